package kafka

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/hivesink/hivesink/config"
	"github.com/hivesink/hivesink/format"
	"github.com/hivesink/hivesink/format/avro"
	"github.com/hivesink/hivesink/hivetype"
	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/record"
)

// decoder turns messages into columns: the value by its format, the rest into
// the columns of source.kafka.metadata.
type decoder struct {
	value format.RowDecoder
	meta  *metaColumns
	csv   bool
	avro  *avroValues // value, when the format is avro
	cols  []column    // of the table
	arrow *arrow.Schema
}

// column says where a column of the table comes from.
type column struct {
	meta  bool
	index int
}

// decoders checks what the values are decoded to, and makes decoders.
func (s *Source) decoders() (func() (*decoder, error), error) {
	schema := s.o.Schema
	names := s.c.Metadata.Columns()
	var fields []hivetype.Field
	var cols []column
	var metas []hivetype.Field
	for _, f := range schema.Columns {
		if slices.Contains(names, f.Name) {
			cols = append(cols, column{true, len(metas)})
			metas = append(metas, f)
		} else {
			cols = append(cols, column{false, len(fields)})
			fields = append(fields, f)
		}
	}
	if len(fields) == 0 {
		return nil, fault.New(fault.Config, "add one", "source.kafka.metadata: no column of the table is left for the value of a message")
	}
	values, err := record.NewSchema(fields, nil)
	if err != nil {
		return nil, fault.Wrap(fault.Config, "", err)
	}
	o := s.o.Options
	o.Schema = values
	made := func() (*decoder, error) {
		d := &decoder{cols: cols, arrow: schema.Arrow, csv: o.Format == config.FormatCSV}
		var err error
		switch o.Format {
		case config.FormatRaw:
			d.value, err = newRaw(values)
		case config.FormatAvro:
			var a *avrorow.Decoder
			a, err = avrorow.New(values, avrorow.Options{Timestamps: o.Timestamps, Zone: o.Zone, NullOnBadTime: o.NullOnBadTime})
			if err == nil {
				d.avro = &avroValues{d: a, registry: s.registry, compiled: make(map[uint32]*compiled)}
				d.value = d.avro
			}
		default:
			d.value, err = o.NewDecoder()
		}
		if err != nil {
			return nil, fault.Wrap(fault.Config, "", fmt.Errorf("source.format: %w", err))
		}
		if len(metas) > 0 {
			d.meta = newMetaColumns(&s.c.Metadata, metas, o.NullOnBadTime)
		}
		return d, nil
	}
	try, err := made()
	if err != nil {
		return nil, err
	}
	try.close()
	return made, nil
}

func (d *decoder) partition(topic string, n int32) {
	if d.meta != nil {
		d.meta.topic, d.meta.partition = topic, n
	}
}

// ready sees to it that append has what it needs. Its error is the end of ctx.
func (d *decoder) ready(ctx context.Context, m *message) error {
	if d.avro == nil || m.long || m.noValue {
		return nil
	}
	return d.avro.schema(ctx, m.value)
}

// append decodes a message. On a *format.Error nothing of it was appended.
func (d *decoder) append(m *message) error {
	value := m.value
	if d.csv {
		value = bytes.TrimSuffix(bytes.TrimSuffix(value, newline), []byte{'\r'})
	}
	if d.meta == nil {
		return d.value.Append(value)
	}
	if err := d.meta.check(m); err != nil {
		return err
	}
	if err := d.value.Append(value); err != nil {
		return err
	}
	d.meta.append(m)
	return nil
}

var newline = []byte{'\n'}

func (d *decoder) size() int64 {
	if d.meta == nil {
		return d.value.Size()
	}
	return d.value.Size() + d.meta.size
}

func (d *decoder) unknown() int64 { return d.value.UnknownKeys() }

// newBatch hands over the rows so far, nil when there are none.
func (d *decoder) newBatch() arrow.RecordBatch {
	values := d.value.NewBatch()
	if values == nil || d.meta == nil {
		return values
	}
	defer values.Release()
	metas := d.meta.take()
	cols := make([]arrow.Array, len(d.cols))
	for i, c := range d.cols {
		if c.meta {
			cols[i] = metas[c.index]
		} else {
			cols[i] = values.Column(c.index)
		}
	}
	out := array.NewRecordBatch(d.arrow, cols, values.NumRows())
	for _, m := range metas {
		m.Release()
	}
	return out
}

func (d *decoder) close() {
	d.value.Release()
	if d.meta != nil {
		d.meta.release()
	}
}
