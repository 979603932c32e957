package writer

import (
	"encoding/json"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/hivesink/hivesink/hivetype"
	"github.com/hivesink/hivesink/record"
)

// DeadSchema is the schema of a dead-letter table.
func DeadSchema() (*record.Schema, error) {
	str := &hivetype.Type{Kind: hivetype.String}
	return record.NewSchema([]hivetype.Field{
		{Name: "source", Type: str},                                       // source partition
		{Name: "row_number", Type: &hivetype.Type{Kind: hivetype.BigInt}}, // ordinal in it
		{Name: "position", Type: str},                                     // file and line, topic and offset
		{Name: "error_class", Type: str},
		{Name: "reason", Type: str},
		{Name: "raw", Type: &hivetype.Type{Kind: hivetype.Binary}},
		{Name: "dead_at", Type: &hivetype.Type{Kind: hivetype.Timestamp}},
	}, nil)
}

func deadBatch(s *arrow.Schema, source string, bad []record.BadRecord, now int64) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.DefaultAllocator, s)
	defer b.Release()
	for _, r := range bad {
		b.Field(0).(*array.StringBuilder).Append(source)
		b.Field(1).(*array.Int64Builder).Append(r.Row)
		b.Field(2).(*array.StringBuilder).Append(r.Place)
		b.Field(3).(*array.StringBuilder).Append(r.Class)
		b.Field(4).(*array.StringBuilder).Append(r.Reason)
		b.Field(5).(*array.BinaryBuilder).Append(r.Raw)
		b.Field(6).(*array.TimestampBuilder).Append(arrow.Timestamp(now))
	}
	return b.NewRecordBatch()
}

// rowText is a row of a batch as JSON, for a record whose own bytes are gone
// by the time it turns out to be bad.
func rowText(rec arrow.RecordBatch, row int) []byte {
	out := []byte("{")
	for i, f := range rec.Schema().Fields() {
		if i > 0 {
			out = append(out, ',')
		}
		k, _ := json.Marshal(f.Name)
		v, err := json.Marshal(rec.Column(i).GetOneForMarshal(row))
		if err != nil { // a float that JSON cannot say
			v, _ = json.Marshal(rec.Column(i).ValueStr(row))
		}
		out = append(append(append(out, k...), ':'), v...)
	}
	return append(out, '}')
}
