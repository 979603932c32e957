package kafka

import (
	"fmt"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/hivesink/hivesink/format"
	"github.com/hivesink/hivesink/hivetype"
	"github.com/hivesink/hivesink/record"
)

// raw puts a value as it is into the one column there is.
type raw struct {
	schema *arrow.Schema
	name   string
	text   bool // must be UTF-8
	b      *array.BinaryBuilder
	size   int64
}

func newRaw(s *record.Schema) (format.RowDecoder, error) {
	if len(s.Columns) != 1 {
		return nil, fmt.Errorf("raw fills one column, and %d are no metadata", len(s.Columns))
	}
	f := s.Columns[0]
	r := &raw{schema: s.Arrow, name: f.Name, text: f.Type.Kind == hivetype.String}
	switch b := array.NewBuilder(memory.DefaultAllocator, s.Arrow.Field(0).Type).(type) {
	case *array.StringBuilder:
		r.b = b.BinaryBuilder
	case *array.BinaryBuilder:
		r.b = b
	default:
		return nil, fmt.Errorf("raw cannot fill column %s, which is %s", f.Name, f.Type)
	}
	return r, nil
}

// Append implements format.RowDecoder.
func (r *raw) Append(rec []byte) error {
	if r.text && !utf8.Valid(rec) {
		return &format.Error{Class: record.ClassType, Column: r.name, Reason: "the value is not UTF-8; declare the column as binary"}
	}
	r.b.Append(rec)
	r.size += int64(len(rec)) + 4
	return nil
}

func (r *raw) Len() int           { return r.b.Len() }
func (r *raw) Size() int64        { return r.size }
func (r *raw) UnknownKeys() int64 { return 0 }
func (r *raw) Release()           { r.b.Release() }

// NewBatch implements format.RowDecoder.
func (r *raw) NewBatch() arrow.RecordBatch {
	n := r.b.Len()
	if n == 0 {
		return nil
	}
	r.size = 0
	data := r.b.NewArray()
	defer data.Release()
	if r.text { // the builder of a string column makes binary arrays
		d := data.Data()
		text := array.NewData(arrow.BinaryTypes.String, d.Len(), d.Buffers(), nil, d.NullN(), d.Offset())
		defer text.Release()
		data2 := array.MakeFromData(text)
		defer data2.Release()
		return array.NewRecordBatch(r.schema, []arrow.Array{data2}, int64(n))
	}
	return array.NewRecordBatch(r.schema, []arrow.Array{data}, int64(n))
}
