package jsonrow

import (
	"fmt"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/hivesink/hivesink/format"
	textval "github.com/hivesink/hivesink/format/text"
	"github.com/hivesink/hivesink/record"
)

// Options say how values are written.
type Options struct {
	// Timestamps is rfc3339 (the default), or the unit of numbers since 1970:
	// s, ms, us or ns.
	Timestamps string
	// Zone is that of times without an offset; nil is UTC.
	Zone *time.Location
	// NullOnBadTime names the date and timestamp columns whose value is null
	// when it cannot be read.
	NullOnBadTime map[string]bool
}

// Decoder decodes JSON objects.
type Decoder struct{ rows *textval.Rows }

var _ format.RowDecoder = (*Decoder)(nil)

// New returns a decoder of records of the schema. It is an error when the
// options name no spelling of times or no time column, or when a map's keys
// are of a type that has no text form.
func New(s *record.Schema, o Options) (*Decoder, error) {
	rows, err := textval.NewRows(s, textval.Options(o))
	if err != nil {
		return nil, fmt.Errorf("decoding JSON: %w", err)
	}
	return &Decoder{rows: rows}, nil
}

// Append decodes one object. An error is a *format.Error.
func (d *Decoder) Append(rec []byte) error { return d.rows.AppendJSON(rec) }

// Len is the number of rows since the last NewBatch.
func (d *Decoder) Len() int { return d.rows.Len() }

// Size is about the bytes those rows take in memory. A batch must be taken
// before a column has 2 GiB of text.
func (d *Decoder) Size() int64 { return d.rows.Size() }

// UnknownKeys is the number of keys no column matched since the last NewBatch,
// those in structs included, those of bad records not.
func (d *Decoder) UnknownKeys() int64 { return d.rows.UnknownKeys() }

// NewBatch hands over the rows so far, nil when there are none.
func (d *Decoder) NewBatch() arrow.RecordBatch { return d.rows.NewBatch() }

// Release frees the decoder's buffers. It must not be used after it.
func (d *Decoder) Release() { d.rows.Release() }
