package parquetfile

import (
	"bytes"
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// numbersBatch has a column of each kind of number: some repeat, some do not,
// one has nulls, one lies in lists, floats have both zeros and NaNs.
func numbersBatch(t *testing.T, n int, seed uint64) arrow.RecordBatch {
	t.Helper()
	rs := schemaOf(t, numberColumns...)
	b := array.NewRecordBuilder(memory.DefaultAllocator, rs.Arrow)
	x := rand.New(rand.NewPCG(seed, 1))
	odd := []float64{0, math.Copysign(0, -1), math.NaN(), math.Float64frombits(0x7ff8000000000001), math.Inf(-1), 1.5}
	for i := range n {
		b.Field(0).(*array.Int64Builder).Append(int64(i % 10))
		b.Field(1).(*array.Int64Builder).Append(x.Int64())
		if i%3 == 0 {
			b.Field(2).AppendNull()
		} else {
			b.Field(2).(*array.Int32Builder).Append(int32(-i % 300))
		}
		b.Field(3).(*array.Float64Builder).Append(odd[i*31%len(odd)])
		b.Field(4).(*array.Float32Builder).Append(float32(i%50) / 3)
		b.Field(5).(*array.Date32Builder).Append(arrow.Date32(20000 + i/4000))
		l := b.Field(6).(*array.ListBuilder)
		l.Append(i%5 != 0)
		for k := range i % 5 {
			l.ValueBuilder().(*array.Int64Builder).Append(int64(k))
		}
		b.Field(7).(*array.TimestampBuilder).Append(arrow.Timestamp(int64(i/5000) * 3_600_000_000))
		b.Field(8).(*array.Int64Builder).Append(x.Int64N(5000))
	}
	return b.NewRecordBatch()
}

var numberColumns = []string{"few bigint", "many bigint", "nulls int", "odd double", "third float", "day date",
	"list array<bigint>", "hour timestamp", "toomany bigint"}

// TestNumbersThatRepeat (F9): numbers of which there are few get a dictionary,
// the others none; what another reader reads is the same, bit for bit.
func TestNumbersThatRepeat(t *testing.T) {
	const n = 40000
	rec := numbersBatch(t, n, 1)
	s := compiled(t, schemaOf(t, numberColumns...))
	c := s.NewColumns()
	c.Append(rec, nil)
	data := encode(t, s, WriterOptions{Codec: "none"}, nil, c)
	hidden := encode(t, s, WriterOptions{Codec: "none", Hidden: true}, nil, c)
	sameRows(t, arrowRows(t, data), arrowRows(t, hidden))
	checkFacts(t, data)
	f := opened(t, data)
	for k, want := range []bool{true, false, true, true, true, true, true, true, false} {
		col := &f.groups()[0].columns[k]
		if got := col.dictionary > 0; got != want {
			t.Errorf("%s: dictionary %v, want %v", numberColumns[k], got, want)
		}
		if plain := opened(t, hidden).groups()[0].columns[k].compressed; want && 2*col.compressed > plain {
			t.Errorf("%s takes %d bytes, plain it takes %d", numberColumns[k], col.compressed, plain)
		}
	}
	for k, col := range opened(t, hidden).groups()[0].columns {
		if col.dictionary > 0 {
			t.Errorf("%s has a dictionary in a hidden part, which is soon merged", numberColumns[k])
		}
	}
}

// TestMergeNumbersThatRepeat: a merge of files with such dictionaries, and of
// hidden parts, is as small as a fresh file.
func TestMergeNumbersThatRepeat(t *testing.T) {
	s := compiled(t, schemaOf(t, numberColumns...))
	for _, hidden := range []bool{false, true} {
		var inputs []*File
		var want []string
		for i := range 4 {
			c := s.NewColumns()
			c.Append(numbersBatch(t, 6000, uint64(i)), nil)
			data := encode(t, s, WriterOptions{Codec: "zstd", Hidden: hidden}, nil, c)
			inputs = append(inputs, opened(t, data))
			want = append(want, arrowRows(t, data)...)
		}
		data := merged(t, inputs, JoinOptions{Codec: "zstd"})
		sameRows(t, arrowRows(t, data), want)
		checkFacts(t, data)
		var fresh bytes.Buffer
		if _, err := s.Rewrite(context.Background(), inputs, &fresh, WriterOptions{Codec: "zstd"}, nil); err != nil {
			t.Fatal(err)
		}
		if 100*len(data) > 105*fresh.Len() {
			t.Errorf("hidden %v: %d bytes, a fresh file has %d", hidden, len(data), fresh.Len())
		}
	}
}
