package kafka

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

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
	compiled map[uint32]*compiled // by id, what does not change any more
	now      *compiled            // of the value that schema was called with
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
	id := binary.BigEndian.Uint32(value[1:])
	if a.now = a.compiled[id]; a.now != nil {
		return nil
	}
	if id > math.MaxInt32 { // no registry gives one, and some choke on it
		a.now = &compiled{wrong: fmt.Errorf("not Avro from a registry: %d is no id of a schema, which have 31 bits", id)}
		return nil
	}
	s, err := a.registry.schema(ctx, id)
	if err != nil {
		return err
	}
	a.now = a.compile(id, s)
	if s.until.IsZero() {
		a.compiled[id] = a.now
	}
	return nil
}

func (a *avroValues) compile(id uint32, s *writerSchema) (c *compiled) {
	if s.wrong != nil {
		return &compiled{wrong: s.wrong}
	}
	defer func() { // a hostile schema must not kill the process (K10)
		if p := recover(); p != nil {
			c = &compiled{wrong: fmt.Errorf("schema %d of the registry: reading it panicked: %v", id, p)}
		}
	}()
	schema, err := a.d.Compile(s.text, s.others...)
	if err != nil {
		return &compiled{wrong: fmt.Errorf("schema %d of the registry: %w", id, err)}
	}
	return &compiled{schema: schema}
}

// Append implements format.RowDecoder.
func (a *avroValues) Append(value []byte) error {
	switch {
	case len(value) < wireBytes:
		return &format.Error{Class: record.ClassSyntax, Reason: fmt.Sprintf("not Avro from a registry: %d bytes, at least 5 are needed", len(value))}
	case value[0] != 0:
		return &format.Error{Class: record.ClassSyntax, Reason: fmt.Sprintf("not Avro from a registry: its first byte is %#02x, not 0", value[0])}
	}
	if a.now.wrong != nil {
		return &format.Error{Class: record.ClassSyntax, Reason: a.now.wrong.Error()}
	}
	return a.d.Append(a.now.schema, value[wireBytes:])
}

func (a *avroValues) Len() int                    { return a.d.Len() }
func (a *avroValues) Size() int64                 { return a.d.Size() }
func (a *avroValues) UnknownKeys() int64          { return a.d.UnknownKeys() }
func (a *avroValues) NewBatch() arrow.RecordBatch { return a.d.NewBatch() }
func (a *avroValues) Release()                    { a.d.Release() }
