package csvrow

import (
	"bytes"

	"github.com/hivesink/hivesink/format"
)

// splitter finds records.
type splitter struct {
	quote  byte
	seen   int  // bytes at the start of buf that have been looked at
	inside bool // seen ends inside quotes
}

// NewSplitter returns a splitter of records. They end in \n or \r\n outside
// quotes; quote 0 means there are none. An empty line is blank.
func NewSplitter(quote byte) format.Splitter { return &splitter{quote: quote} }

// Next returns the record at the start of buf.
func (s *splitter) Next(buf []byte, eof bool) (rec []byte, advance int) {
	if s.seen > len(buf) {
		s.Reset()
	}
	end, found := s.scan(buf)
	if !found && !eof {
		return nil, 0
	}
	advance = end
	if found {
		advance++
	}
	s.Reset()
	if end > 0 && buf[end-1] == '\r' {
		end--
	}
	return buf[:end:end], advance
}

// scan goes on where it stopped, up to a newline outside quotes. C4.
func (s *splitter) scan(buf []byte) (end int, found bool) {
	for s.seen < len(buf) {
		rest := buf[s.seen:]
		if s.inside {
			q := bytes.IndexByte(rest, s.quote)
			if q < 0 {
				s.seen = len(buf)
				break
			}
			s.seen += q + 1
			s.inside = false
			continue
		}
		if s.quote == 0 {
			n := bytes.IndexByte(rest, '\n')
			if n >= 0 {
				return s.seen + n, true
			}
			s.seen = len(buf)
			break
		}
		for i, c := range rest {
			if c == '\n' {
				return s.seen + i, true
			}
			if c == s.quote {
				s.inside = true
				rest = rest[:i+1]
				break
			}
		}
		s.seen += len(rest)
	}
	return len(buf), false
}

// Reset forgets what is known about the start of buf.
func (s *splitter) Reset() { s.seen, s.inside = 0, false }
