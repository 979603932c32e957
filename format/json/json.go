// Package jsonrow decodes NDJSON: one JSON object a line.
//
// It is strict (RFC 8259), exact to the last digit, and allocates nothing per
// record; the work is done by package textval, whose invariants hold here.
package jsonrow

import (
	"bytes"

	"github.com/hivesink/hivesink/format"
	"github.com/hivesink/hivesink/format/text"
	"github.com/hivesink/hivesink/record"
)

// Options say how values are written.
type Options = textval.Options

// Decoder is a format.RowDecoder.
type Decoder struct{ *textval.Rows }

var _ format.RowDecoder = (*Decoder)(nil)

// New makes a decoder for the columns of a table.
func New(s *record.Schema, o Options) (*Decoder, error) {
	r, err := textval.NewRows(s, o)
	if err != nil {
		return nil, err
	}
	return &Decoder{r}, nil
}

// Append decodes one line.
func (d *Decoder) Append(rec []byte) error { return d.AppendJSON(rec) }

// splitter cuts at line ends: JSON has none inside a record.
type splitter struct{ scanned int }

// NewSplitter makes a splitter of lines. It takes LF and CR LF; a line of
// blanks is blank.
func NewSplitter() format.Splitter { return new(splitter) }

func (s *splitter) Reset() { s.scanned = 0 }

func (s *splitter) Next(buf []byte, eof bool) (rec []byte, advance int) {
	from := min(s.scanned, len(buf))
	i := bytes.IndexByte(buf[from:], '\n')
	switch {
	case i >= 0:
		i += from
		s.scanned = 0
		return trim(buf[:i]), i + 1
	case eof && len(buf) > 0:
		s.scanned = 0
		return trim(buf), len(buf)
	}
	s.scanned = len(buf)
	return nil, 0
}

// trim takes the carriage return off, and makes a blank line empty.
func trim(line []byte) []byte {
	if n := len(line); n > 0 && line[n-1] == '\r' {
		line = line[:n-1]
	}
	for _, c := range line {
		if c != ' ' && c != '\t' && c != '\r' {
			return line
		}
	}
	return line[:0]
}
