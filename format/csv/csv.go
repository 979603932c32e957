package csvrow

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
	"time"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/hivesink/hivesink/format"
	textval "github.com/hivesink/hivesink/format/text"
	"github.com/hivesink/hivesink/record"
)

// Options say how records and values are written.
type Options struct {
	// Timestamps is rfc3339 (the default), or the unit of numbers since 1970:
	// s, ms, us or ns.
	Timestamps string
	// Zone is that of times without an offset; nil is UTC.
	Zone *time.Location
	// NullOnBadTime names the date and timestamp columns whose value is null
	// when it cannot be read.
	NullOnBadTime map[string]bool
	// Delimiter is between fields; 0 is a comma.
	Delimiter byte
	// Quote is around fields that have delimiters, quotes or newlines in them;
	// 0 means there is none.
	Quote byte
	// Null is what an unquoted null field is written as, besides being empty.
	Null string
}

func (o Options) delimiter() byte {
	if o.Delimiter == 0 {
		return ','
	}
	return o.Delimiter
}

func (o Options) check() error {
	d := o.delimiter()
	for _, c := range []byte{d, o.Quote} {
		if c == '\n' || c == '\r' || c >= utf8.RuneSelf {
			return fmt.Errorf("delimiter and quote must be ASCII and no line ends, not %q", c)
		}
	}
	if d == o.Quote {
		return fmt.Errorf("delimiter and quote are both %q", d)
	}
	return nil
}

// Decoder decodes records of delimited text.
type Decoder struct {
	rows    *textval.Rows
	columns []int // of each field; below zero: none
	unknown int
	marks
	null  []byte
	plain []byte // the record's fields that had doubled quotes, without them
}

// marks are what ends a field or must not be in it.
type marks struct {
	delim, quote   byte
	delims, quotes uint64 // in every byte of a word
}

func (o Options) marks() marks {
	d := o.delimiter()
	return marks{delim: d, quote: o.Quote, delims: ones * uint64(d), quotes: ones * uint64(o.Quote)}
}

var _ format.RowDecoder = (*Decoder)(nil)

// New returns a decoder of records of the schema whose fields are those of the
// header, or the table's columns in their order when it is nil. It is an error
// when two fields are of one column or no field is of any.
func New(s *record.Schema, header []string, o Options) (*Decoder, error) {
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("decoding CSV: %w", err)
	}
	rows, err := textval.NewRows(s, textval.Options{
		Timestamps: o.Timestamps, Zone: o.Zone, NullOnBadTime: o.NullOnBadTime})
	if err != nil {
		return nil, fmt.Errorf("decoding CSV: %w", err)
	}
	d := &Decoder{rows: rows, marks: o.marks(), null: []byte(o.Null)}
	if err := d.match(s, header); err != nil {
		rows.Release()
		return nil, fmt.Errorf("decoding CSV: %w", err)
	}
	return d, nil
}

// match finds the column of each field, whatever the case. C5.
func (d *Decoder) match(s *record.Schema, header []string) error {
	if header == nil {
		for i := range s.Columns {
			d.columns = append(d.columns, i)
		}
		return nil
	}
	taken := make(map[int]string)
	for _, h := range header {
		i, _ := d.rows.Column(h)
		d.columns = append(d.columns, i)
		if i < 0 {
			d.unknown++
			continue
		}
		if other, twice := taken[i]; twice {
			return fmt.Errorf("the header has %q and %q, both for column %s: rename one", other, h, s.Columns[i].Name)
		}
		taken[i] = h
	}
	if len(taken) == 0 {
		return fmt.Errorf("the header names no column of the table: %q", header)
	}
	return nil
}

// ParseHeader returns the names in a header record, of which a byte order mark
// is no part. It is an error when the record is not well formed.
func ParseHeader(rec []byte, o Options) ([]string, error) {
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("reading a CSV header: %w", err)
	}
	rec = bytes.TrimPrefix(rec, []byte("\xef\xbb\xbf"))
	d := &Decoder{marks: o.marks()}
	var names []string
	for p := 0; ; {
		text, _, end, err := d.field(rec, p)
		if err != nil {
			return nil, fmt.Errorf("reading a CSV header: %w", err)
		}
		names = append(names, string(bytes.ToValidUTF8(text, []byte("\uFFFD"))))
		if end == len(rec) {
			return names, nil
		}
		p = end + 1
	}
}

// field reads the field at p. end is its delimiter or the end of the record.
// The text is good until the next record.
func (d *Decoder) field(rec []byte, p int) (text []byte, quoted bool, end int, err *format.Error) {
	if d.quote != 0 && p < len(rec) && rec[p] == d.quote {
		return d.quotedField(rec, p)
	}
	end = len(rec)
	q := p
	for q+8 <= len(rec) {
		x := binary.LittleEndian.Uint64(rec[q:])
		m := zeroBytes(x^d.delims) | zeroBytes(x^d.quotes)
		if m != 0 {
			q += bits.TrailingZeros64(m) >> 3
			break
		}
		q += 8
	}
	for ; q < len(rec); q++ {
		c := rec[q]
		if c == d.delim {
			end = q
			break
		}
		if c == d.quote && c != 0 { // C3
			return nil, false, 0, syntax("quote at offset %d inside an unquoted field: quote the field and double the quote: %s",
				q, textval.Quote(rec[p:]))
		}
	}
	return rec[p:end:end], false, end, nil
}

// zeroBytes has the high bit of each byte set that is zero in x; it is exact for
// the lowest such byte.
func zeroBytes(x uint64) uint64 {
	return (x - ones) &^ x & (ones << 7)
}

const ones = 0x0101010101010101

func (d *Decoder) quotedField(rec []byte, start int) ([]byte, bool, int, *format.Error) {
	p := start + 1
	first, kept := p, len(d.plain)
	for {
		n := bytes.IndexByte(rec[p:], d.quote)
		if n < 0 {
			return nil, true, 0, syntax("the quote at offset %d is never closed: %s", start, textval.Quote(rec[start:]))
		}
		q := p + n
		if q+1 < len(rec) && rec[q+1] == d.quote {
			d.plain = append(d.plain, rec[p:q+1]...)
			p = q + 2
			continue
		}
		if q+1 < len(rec) && rec[q+1] != d.delim {
			return nil, true, 0, syntax("text after the closing quote at offset %d: %s", q, textval.Quote(rec[q+1:]))
		}
		if p == first {
			return rec[first:q:q], true, q + 1, nil
		}
		d.plain = append(d.plain, rec[p:q]...)
		return d.plain[kept:len(d.plain):len(d.plain)], true, q + 1, nil
	}
}

func syntax(form string, args ...any) *format.Error {
	return &format.Error{Class: record.ClassSyntax, Reason: "not CSV: " + fmt.Sprintf(form, args...)}
}

// Append decodes one record. An error is a *format.Error.
func (d *Decoder) Append(rec []byte) error {
	d.rows.Begin()
	d.plain = d.plain[:0]
	n := 0
	for p := 0; ; {
		text, quoted, end, err := d.field(rec, p)
		if err != nil {
			return err
		}
		if n < len(d.columns) && d.columns[n] >= 0 {
			if !quoted && (len(text) == 0 || bytes.Equal(text, d.null)) { // C2
				d.rows.SetNull(d.columns[n])
			} else {
				d.rows.SetText(d.columns[n], text)
			}
		}
		n++
		if end == len(rec) {
			break
		}
		p = end + 1
	}
	if n != len(d.columns) { // C1
		return syntax("%d fields where the header has %d: %s", n, len(d.columns), textval.Quote(rec))
	}
	d.rows.Ignore(d.unknown)
	return d.rows.Commit()
}

// Len is the number of rows since the last NewBatch.
func (d *Decoder) Len() int { return d.rows.Len() }

// Size is about the bytes those rows take in memory. A batch must be taken
// before a column has 2 GiB of text.
func (d *Decoder) Size() int64 { return d.rows.Size() }

// UnknownKeys is the number of fields no column matched since the last
// NewBatch, and of keys in structs.
func (d *Decoder) UnknownKeys() int64 { return d.rows.UnknownKeys() }

// NewBatch hands over the rows so far, nil when there are none.
func (d *Decoder) NewBatch() arrow.RecordBatch { return d.rows.NewBatch() }

// Release frees the decoder's buffers. It must not be used after it.
func (d *Decoder) Release() { d.rows.Release() }
