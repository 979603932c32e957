// Package csvrow decodes CSV (RFC 4180): fields by header name, quoted fields
// with line ends and doubled quotes, one rule for null.
//
// Invariants:
//
//   - V1: a record has as many fields as the header; anything else is bad.
//   - V2: an unquoted empty field, and an unquoted field of the null text, are
//     null; a quoted empty field is the empty text.
//   - V3: no allocation per good record in the steady state.
package csvrow

import (
	"bytes"
	"fmt"

	"github.com/hivesink/hivesink/format"
	"github.com/hivesink/hivesink/format/text"
	"github.com/hivesink/hivesink/record"
)

// Options say how records and values are written.
type Options struct {
	textval.Options
	Delimiter byte   // 0: a comma
	Quote     byte   // 0: no quoting
	Null      string // an unquoted field of this text is null, as an empty one is
}

func (o *Options) delimiter() byte {
	if o.Delimiter == 0 {
		return ','
	}
	return o.Delimiter
}

// Decoder is a format.RowDecoder.
type Decoder struct {
	*textval.Rows
	o       Options
	columns []int // of each field: the column, -1 none
	ignored int   // fields no column matches
	fields  []field
	text    []byte // of quoted fields with doubled quotes
}

type field struct {
	text   []byte
	quoted bool
}

var _ format.RowDecoder = (*Decoder)(nil)

// New makes a decoder for records of the fields that header names; nil: the
// table's columns in order. Two names for one column are an error, unless one
// is spelled as the column is: that one counts.
func New(s *record.Schema, header []string, o Options) (*Decoder, error) {
	r, err := textval.NewRows(s, o.Options)
	if err != nil {
		return nil, err
	}
	d := &Decoder{Rows: r, o: o}
	if header == nil {
		for i := range s.Columns {
			d.columns = append(d.columns, i)
		}
		return d, nil
	}
	type owner struct {
		field int
		exact bool
	}
	owners := make(map[int]owner)
	for i, name := range header {
		col, exact := r.Column(name)
		d.columns = append(d.columns, col)
		if col < 0 {
			continue
		}
		was, taken := owners[col]
		switch {
		case !taken || (exact && !was.exact):
			if taken {
				d.columns[was.field] = -1
			}
			owners[col] = owner{i, exact}
		case was.exact && !exact:
			d.columns[i] = -1
		default:
			r.Release()
			return nil, fmt.Errorf("fields %d and %d (%q and %q) are both column %s", was.field+1, i+1, header[was.field], name, s.Columns[col].Name)
		}
	}
	for _, c := range d.columns {
		if c < 0 {
			d.ignored++
		}
	}
	return d, nil
}

// ParseHeader reads the names of a header record, without a byte order mark.
func ParseHeader(rec []byte, o Options) ([]string, error) {
	rec = bytes.TrimPrefix(rec, []byte("\xef\xbb\xbf"))
	d := &Decoder{o: o}
	if err := d.split(rec); err != nil {
		return nil, err
	}
	names := make([]string, len(d.fields))
	for i, f := range d.fields {
		names[i] = string(f.text)
	}
	return names, nil
}

// Append decodes one record.
func (d *Decoder) Append(rec []byte) error {
	if err := d.split(rec); err != nil {
		return err
	}
	if len(d.fields) != len(d.columns) {
		return &format.Error{Class: record.ClassSyntax, Reason: fmt.Sprintf("the record has %d fields, want %d", len(d.fields), len(d.columns))}
	}
	d.Begin()
	for i, col := range d.columns {
		if col < 0 {
			continue
		}
		f := &d.fields[i]
		if !f.quoted && (len(f.text) == 0 || (d.o.Null != "" && string(f.text) == d.o.Null)) {
			d.SetNull(col) // V2
			continue
		}
		d.SetText(col, f.text)
	}
	d.Ignore(d.ignored)
	return d.Commit()
}

// split cuts a record into fields.
func (d *Decoder) split(rec []byte) error {
	d.fields, d.text = d.fields[:0], d.text[:0]
	if cap(d.text) < len(rec) {
		d.text = make([]byte, 0, 2*len(rec)) // never moved while fields point into it
	}
	delim := d.o.delimiter()
	for {
		if d.o.Quote != 0 && len(rec) > 0 && rec[0] == d.o.Quote {
			rest, err := d.quoted(rec)
			if err != nil {
				return err
			}
			if len(rest) == 0 {
				return nil
			}
			rec = rest[1:]
			continue
		}
		i := bytes.IndexByte(rec, delim)
		if i < 0 {
			d.fields = append(d.fields, field{text: rec})
			return nil
		}
		d.fields = append(d.fields, field{text: rec[:i]})
		rec = rec[i+1:]
	}
}

// quoted takes a quoted field and returns what follows: nothing, or a delimiter
// and the rest.
func (d *Decoder) quoted(rec []byte) (rest []byte, err error) {
	q := d.o.Quote
	body := rec[1:]
	start := len(d.text)
	for {
		i := bytes.IndexByte(body, q)
		if i < 0 {
			return nil, &format.Error{Class: record.ClassSyntax, Reason: fmt.Sprintf("field %d: its quote is not closed", len(d.fields)+1)}
		}
		end := i + 1
		if end < len(body) && body[end] == q { // a doubled quote
			d.text = append(d.text, body[:end]...)
			body = body[end+1:]
			continue
		}
		text := body[:i]
		if len(d.text) > start {
			d.text = append(d.text, text...)
			text = d.text[start:]
		}
		rest = body[end:]
		if len(rest) > 0 && rest[0] != d.o.delimiter() {
			return nil, &format.Error{Class: record.ClassSyntax, Reason: fmt.Sprintf("field %d: %s follows its closing quote", len(d.fields)+1, textval.Quote(rest))}
		}
		d.fields = append(d.fields, field{text: text, quoted: true})
		return rest, nil
	}
}

// splitter cuts at line ends outside quotes. A quote counts only where a field
// begins or inside a quoted one; between, it is text.
type splitter struct {
	delim, quote byte
	scanned      int
	inQuotes     bool
	fieldStart   bool
}

// NewSplitter makes a splitter of records.
func NewSplitter(delimiter, quote byte) format.Splitter {
	if delimiter == 0 {
		delimiter = ','
	}
	return &splitter{delim: delimiter, quote: quote, fieldStart: true}
}

func (s *splitter) Reset() { s.scanned, s.inQuotes, s.fieldStart = 0, false, true }

func (s *splitter) Next(buf []byte, eof bool) (rec []byte, advance int) {
	i := min(s.scanned, len(buf))
	for i < len(buf) {
		c := buf[i]
		switch {
		case s.inQuotes:
			j := bytes.IndexByte(buf[i:], s.quote)
			if j < 0 {
				i = len(buf)
				continue
			}
			i += j
			s.inQuotes = false // a doubled quote opens it again
			s.fieldStart = true
		case c == '\n':
			s.Reset()
			return trim(buf[:i]), i + 1
		case s.quote != 0 && c == s.quote && s.fieldStart:
			s.inQuotes = true
		default:
			s.fieldStart = c == s.delim
		}
		i++
	}
	if eof && len(buf) > 0 {
		s.Reset()
		return trim(buf), len(buf)
	}
	s.scanned = i
	return nil, 0
}

func trim(line []byte) []byte {
	if n := len(line); n > 0 && line[n-1] == '\r' {
		line = line[:n-1]
	}
	return line
}
