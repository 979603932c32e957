package record

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/hivesink/hivesink/hivetype"
	"github.com/hivesink/hivesink/layout"
)

// benchmarkRows is how many rows a batch of the benchmarks has.
const benchmarkRows = 1 << 20

func benchmarkBatch(b testing.TB, step func(i int) int64) (*Schema, arrow.RecordBatch) {
	s, err := NewSchema([]hivetype.Field{
		{Name: "ts", Type: &hivetype.Type{Kind: hivetype.Timestamp}},
		{Name: "country", Type: &hivetype.Type{Kind: hivetype.String}},
		{Name: "id", Type: &hivetype.Type{Kind: hivetype.BigInt}},
	}, nil)
	if err != nil {
		b.Fatal(err)
	}
	rb := array.NewRecordBuilder(memory.DefaultAllocator, s.Arrow)
	defer rb.Release()
	ts, country, id := rb.Field(0).(*array.TimestampBuilder), rb.Field(1).(*array.StringBuilder), rb.Field(2).(*array.Int64Builder)
	for i := range benchmarkRows {
		ts.Append(arrow.Timestamp(1_700_000_000_000_000 + step(i)))
		country.Append([]string{"de", "fr", "us", "jp", "cl"}[rand.IntN(5)])
		id.Append(int64(i))
	}
	return s, rb.NewRecordBatch()
}

func BenchmarkAssign(b *testing.B) {
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		b.Fatal(err)
	}
	inOrder := func(i int) int64 { return int64(i) * 1_000_000 }
	random := func(int) int64 { return rand.Int64N(30 * microsPerDay) }
	for _, c := range []struct {
		name string
		step func(int) int64
		spec []layout.Transform
	}{
		{"date/in-order", inOrder, []layout.Transform{{Name: "dt", Func: layout.Date, Column: "ts"}}},
		{"date/random-30-days", random, []layout.Transform{{Name: "dt", Func: layout.Date, Column: "ts"}}},
		{"date-hour/in-order", inOrder, []layout.Transform{{Name: "dt", Func: layout.Date, Column: "ts"}, {Name: "hr", Func: layout.Hour, Column: "ts"}}},
		{"date-country", inOrder, []layout.Transform{{Name: "dt", Func: layout.Date, Column: "ts"}, {Name: "country", Func: layout.Identity, Column: "country"}}},
		{"bucket-16", inOrder, []layout.Transform{{Name: "b", Func: layout.Bucket, Column: "id", N: 16}}},
	} {
		b.Run(c.name, func(b *testing.B) {
			s, rec := benchmarkBatch(b, c.step)
			defer rec.Release()
			p, err := NewPartitioner(s, c.spec, zone, nil)
			if err != nil {
				b.Fatal(err)
			}
			out := make([]int32, benchmarkRows)
			p.Assign(rec, out)
			b.ReportAllocs()
			for b.Loop() {
				p.Assign(rec, out)
			}
			b.ReportMetric(float64(benchmarkRows)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mrows/s")
		})
	}
}
