package kafka

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/hivesink/hivesink/format"
	"github.com/hivesink/hivesink/format/avro"
	"github.com/hivesink/hivesink/record"
)

// avroValues decode values in the registry's wire format: a zero byte, the
// schema's id in four bytes, the record in Avro's binary encoding.
type avroValues struct {
	d        *avrorow.Decoder
	registry *registry
	compiled map[int32]*compiled // by id
}

// compiled is a schema made ready for the table, or why it cannot be.
type compiled struct {
	schema *avrorow.Schema
	wrong  error
}

const wireBytes = 5

// schema makes the schema of a value ready: it may have to ask the registry,
// and returns the end of ctx only.
func (a *avroValues) schema(ctx context.Context, value []byte) error {
	if len(value) < wireBytes || value[0] != 0 {
		return nil // Append says so
	}
	id := int32(binary.BigEndian.Uint32(value[1:]))
	if a.compiled[id] != nil {
		return nil
	}
	s, err := a.registry.schema(ctx, id)
	if err != nil {
		return err
	}
	c := &compiled{wrong: s.wrong}
	if s.wrong == nil {
		if c.schema, c.wrong = a.d.Compile(s.text, s.others...); c.wrong != nil {
			c.wrong = fmt.Errorf("schema %d of the registry: %w", id, c.wrong)
		}
	}
	a.compiled[id] = c
	return nil
}

// Append implements format.RowDecoder.
func (a *avroValues) Append(value []byte) error {
	switch {
	case len(value) < wireBytes:
		return &format.Error{Class: record.ClassSyntax, Reason: fmt.Sprintf("not Avro from a registry: %d bytes, at least 5 are needed", len(value))}
	case value[0] != 0:
		return &format.Error{Class: record.ClassSyntax, Reason: fmt.Sprintf("not Avro from a registry: its first byte is %#02x, not 0", value[0])}
	}
	c := a.compiled[int32(binary.BigEndian.Uint32(value[1:]))]
	if c.wrong != nil {
		return &format.Error{Class: record.ClassSyntax, Reason: c.wrong.Error()}
	}
	return a.d.Append(c.schema, value[wireBytes:])
}

func (a *avroValues) Len() int                    { return a.d.Len() }
func (a *avroValues) Size() int64                 { return a.d.Size() }
func (a *avroValues) UnknownKeys() int64          { return a.d.UnknownKeys() }
func (a *avroValues) NewBatch() arrow.RecordBatch { return a.d.NewBatch() }
func (a *avroValues) Release()                    { a.d.Release() }
