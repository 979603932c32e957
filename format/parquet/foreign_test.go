package parquetfile

import (
	"fmt"
	"math/rand/v2"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// foreignBatch fills any flat schema, and lists, with values that repeat and
// values that do not, and with nulls where they may be.
func foreignBatch(s *arrow.Schema, n int, seed uint64) arrow.RecordBatch {
	rnd := rand.New(rand.NewPCG(seed, 7))
	b := array.NewRecordBuilder(memory.DefaultAllocator, s)
	defer b.Release()
	for i := range n {
		for c, f := range s.Fields() {
			if f.Nullable && rnd.IntN(6) == 0 {
				b.Field(c).AppendNull()
				continue
			}
			foreignValue(b.Field(c), rnd, i)
		}
	}
	return b.NewRecordBatch()
}

func foreignValue(b array.Builder, rnd *rand.Rand, i int) {
	few := rnd.IntN(9)
	switch b := b.(type) {
	case *array.Int64Builder:
		b.Append(int64(i) * 7)
	case *array.Uint64Builder:
		b.Append(rnd.Uint64() >> (8 * few))
	case *array.Int32Builder:
		b.Append(int32(few) - 4)
	case *array.StringBuilder:
		b.Append(fmt.Sprintf("text %d", few*few))
	case *array.BooleanBuilder:
		b.Append(few > 4)
	case *array.TimestampBuilder:
		b.Append(arrow.Timestamp(rnd.Int64()>>2 + 1))
	case *array.Float64Builder:
		b.Append(rnd.NormFloat64())
	case *array.FixedSizeBinaryBuilder:
		b.Append([]byte(fmt.Sprintf("%05d", rnd.IntN(100))))
	case *array.Decimal128Builder:
		b.Append(decimal128.FromI64(int64(rnd.IntN(199999)) - 99999))
	case *array.Int8Builder:
		b.Append(int8(few))
	case *array.Int16Builder:
		b.Append(int16(few) << 10)
	case *array.Float32Builder:
		b.Append(float32(few))
	case *array.Date32Builder:
		b.Append(arrow.Date32(i))
	case *array.BinaryBuilder:
		b.Append([]byte{byte(few), 0xff, byte(i)})
	case *array.MapBuilder:
		b.Append(true)
		for k := range few % 3 {
			b.KeyBuilder().(*array.StringBuilder).Append(fmt.Sprint("k", k))
			foreignValue(b.ItemBuilder(), rnd, i)
		}
	case *array.StructBuilder:
		b.Append(true)
		for k := range b.NumField() {
			foreignValue(b.FieldBuilder(k), rnd, i)
		}
	case *array.ListBuilder:
		b.Append(true)
		for range few % 4 {
			foreignValue(b.ValueBuilder(), rnd, i)
		}
	default:
		panic(fmt.Sprintf("no values for %T", b))
	}
}

// rowBuilder builds batches row by row.
type rowBuilder struct{ b *array.RecordBuilder }

func newBuilder(s *arrow.Schema) rowBuilder {
	return rowBuilder{array.NewRecordBuilder(memory.DefaultAllocator, s)}
}

func (r rowBuilder) append(values ...any) {
	for i, v := range values {
		switch v := v.(type) {
		case int64:
			r.b.Field(i).(*array.Int64Builder).Append(v)
		case string:
			r.b.Field(i).(*array.StringBuilder).Append(v)
		case float64:
			r.b.Field(i).(*array.Float64Builder).Append(v)
		default:
			r.b.Field(i).AppendNull()
		}
	}
}

func (r rowBuilder) batch() arrow.RecordBatch { return r.b.NewRecordBatch() }
