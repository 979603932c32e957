package jsonrow

import (
	"bytes"

	"github.com/hivesink/hivesink/format"
)

// splitter finds lines.
type splitter struct{ seen int } // bytes at the start of buf without a newline

// NewSplitter returns a splitter of lines. They end in \n or \r\n; a line of
// nothing but white space is blank.
func NewSplitter() format.Splitter { return &splitter{} }

// Next returns the line at the start of buf.
func (s *splitter) Next(buf []byte, eof bool) (rec []byte, advance int) {
	if s.seen > len(buf) {
		s.seen = 0
	}
	end := bytes.IndexByte(buf[s.seen:], '\n') // J4
	if end < 0 {
		if !eof {
			s.seen = len(buf)
			return nil, 0
		}
		end, advance = len(buf), len(buf)
	} else {
		end += s.seen
		advance = end + 1
	}
	s.seen = 0
	if end > 0 && buf[end-1] == '\r' {
		end--
	}
	rec = buf[:end:end]
	// A record starts with a brace, so that this ends at once.
	for _, c := range rec {
		if c != ' ' && c != '\t' && c != '\r' {
			return rec, advance
		}
	}
	return rec[:0], advance
}

// Reset forgets what is known about the start of buf.
func (s *splitter) Reset() { s.seen = 0 }
