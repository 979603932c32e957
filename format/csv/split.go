package csvrow

import (
	"bytes"

	"github.com/hivesink/hivesink/format"
)

// place is where in a record a byte is.
type place uint8

const (
	fieldStart  place = iota
	insideField       // of an unquoted field, or behind a closing quote and text
	insideQuotes
	afterQuote // behind a quote that closes, or is the first of two
)

// splitter finds records.
type splitter struct {
	delim, quote byte
	seen         int   // bytes at the start of buf that have been looked at
	at           place // of buf[seen]
}

// NewSplitter returns a splitter of records. They end in \n or \r\n outside
// quotes; delimiter 0 is a comma, quote 0 means there are none. An empty line
// is blank.
func NewSplitter(delimiter, quote byte) format.Splitter {
	return &splitter{delim: Options{Delimiter: delimiter}.delimiter(), quote: quote}
}

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

// scan goes on where it stopped, up to a newline outside quotes. C3, C4.
func (s *splitter) scan(buf []byte) (end int, found bool) {
	if s.quote == 0 {
		n := bytes.IndexByte(buf[s.seen:], '\n')
		if n >= 0 {
			return s.seen + n, true
		}
		s.seen = len(buf)
		return len(buf), false
	}
	if s.at != insideQuotes {
		// Most records have no quotes at all: then the line is the record.
		n := bytes.IndexByte(buf[s.seen:], '\n')
		if n >= 0 && bytes.IndexByte(buf[s.seen:s.seen+n], s.quote) < 0 {
			return s.seen + n, true
		}
	}
	p, at := s.seen, s.at
	for p < len(buf) {
		if at == insideQuotes {
			n := bytes.IndexByte(buf[p:], s.quote)
			if n < 0 {
				p = len(buf)
				break
			}
			p, at = p+n+1, afterQuote
			continue
		}
		switch c := buf[p]; {
		case c == '\n':
			return p, true
		case c == s.delim:
			at = fieldStart
		case c == s.quote && at != insideField:
			at = insideQuotes
		default:
			at = insideField
		}
		p++
	}
	s.seen, s.at = p, at
	return len(buf), false
}

// Reset forgets what is known about the start of buf.
func (s *splitter) Reset() { s.seen, s.at = 0, fieldStart }
