package writer

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/hivesink/hivesink/hivetype"
	"github.com/hivesink/hivesink/layout"
	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/record"
	"github.com/hivesink/hivesink/storage/memfs"
)

// TestWriteAllocatesNothingPerRow: routing and shredding, the buffers once
// grown, allocate per batch and bucket and never per row.
func TestWriteAllocatesNothingPerRow(t *testing.T) {
	const small, large = 1 << 10, 16 << 10
	o, rec := allocationOptions(t, large)
	cost := func(rows int) float64 {
		lane, err := o.NewLane()
		if err != nil {
			t.Fatal(err)
		}
		lane.Adopt("a", ledger.Source{Watermark: ledger.NoWatermark})
		part := rec.NewSlice(0, int64(rows))
		first := int64(0)
		write := func() {
			_, err := lane.Write(context.Background(), "a", &record.Batch{Record: part, FirstRow: first, Count: int64(rows)})
			if err != nil {
				t.Fatal(err)
			}
			first += int64(rows)
		}
		// Grow the buffers past what the measured writes need.
		for range 8 {
			write()
		}
		for _, b := range lane.live {
			b.cols.Reset()
		}
		return testing.AllocsPerRun(3, write)
	}
	if got := (cost(large) - cost(small)) / (large - small); got > 0.01 {
		t.Errorf("%.4f allocations a row", got)
	}
}

func allocationOptions(t *testing.T, rows int) (*Options, arrow.RecordBatch) {
	t.Helper()
	var fields []hivetype.Field
	for _, c := range []string{"id bigint", "ts timestamp", "name string", "country string"} {
		f, err := hivetype.ParseColumn(c)
		if err != nil {
			t.Fatal(err)
		}
		fields = append(fields, f)
	}
	rs, err := record.NewSchema(fields, []string{"country"})
	if err != nil {
		t.Fatal(err)
	}
	var transforms []layout.Transform
	for _, x := range [][2]string{{"dt", "date(ts)"}, {"country", "country"}} {
		tr, err := layout.ParseTransform(x[0], x[1])
		if err != nil {
			t.Fatal(err)
		}
		transforms = append(transforms, tr)
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, rs.Arrow)
	for i := range rows {
		b.Field(0).(*array.Int64Builder).Append(int64(i))
		b.Field(1).(*array.TimestampBuilder).Append(arrow.Timestamp(1767225600000000 + int64(i%2)*86400000000))
		b.Field(2).(*array.StringBuilder).Append(fmt.Sprintf("name-%d", i))
		b.Field(3).(*array.StringBuilder).Append([]string{"AT", "CH", "DE"}[i%3])
	}
	now := int64(0)
	o := &Options{FS: memfs.New(), Staging: "/staging", Pipeline: "p", TableID: "t", Epoch: 1, Schema: rs, Transform: transforms,
		Zone: time.UTC, Codec: "zstd", HiddenCodec: "none", Budget: NewBudget(1<<40, 8), EventTime: 1, LateDelay: -1,
		Bad: &BadPolicy{Policy: BadFail}, RowGroupRows: 1 << 30, RowGroupBytes: 1 << 40,
		Random: func() uint64 { now++; return uint64(now) }, Now: func() int64 { return now }}
	if err := o.Init(); err != nil {
		t.Fatal(err)
	}
	return o, b.NewRecordBatch()
}
