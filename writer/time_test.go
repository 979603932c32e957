package writer

import (
	"math"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/hivesink/hivesink/layout"
	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/record"
	"github.com/hivesink/hivesink/storage/memfs"
)

// TestEarliestTime: a record from before all others does not wrap round to the
// latest time, under which every later record is late and dropped.
func TestEarliestTime(t *testing.T) {
	o := options(t, memfs.New())
	o.Transform = []layout.Transform{{Name: "dt", Func: "date", Column: "ts"}}
	schema, err := record.NewSchema(o.Schema.Columns, nil)
	if err != nil {
		t.Fatal(err)
	}
	o.Schema, o.OutOfOrderness, o.LateDelay, o.Late = schema, 30_000_000, 0, LateDrop
	if err := o.Init(); err != nil {
		t.Fatal(err)
	}
	l := lane(t, o)
	b := array.NewRecordBuilder(memory.DefaultAllocator, o.Schema.Arrow)
	defer b.Release()
	times := []int64{math.MinInt64 + 1, 1_700_000_000_000_000, 1_700_000_000_000_001}
	for i, at := range times {
		b.Field(0).(*array.Int64Builder).Append(int64(i))
		b.Field(1).(*array.StringBuilder).Append("k")
		b.Field(2).(*array.TimestampBuilder).Append(arrow.Timestamp(at))
		b.Field(3).(*array.StringBuilder).Append("")
	}
	first := b.NewRecordBatch()
	for i := range times {
		out := write(t, l, &record.Batch{Record: first.NewSlice(int64(i), int64(i+1)), FirstRow: int64(i), Count: 1, Position: "x"})
		if out.Late != 0 || out.Dropped != 0 || out.Accepted != 1 {
			t.Fatalf("row %d: %+v", i, out)
		}
		src, _ := l.Source("src")
		if i == 0 && (src.Watermark == ledger.NoWatermark || src.Watermark > 0) {
			t.Fatalf("watermark %d after the earliest time", src.Watermark)
		}
	}
	l.Advance("src", math.MaxInt64-1)
	if src, _ := l.Source("src"); src.Watermark != math.MaxInt64-1 {
		t.Fatalf("watermark %d", src.Watermark)
	}
}

// TestPartitionValueThatIsNoText: the table log cannot name such a directory. It
// is found out for the record, and not when the checkpoint is written down.
func TestPartitionValueThatIsNoText(t *testing.T) {
	o := options(t, memfs.New())
	l := lane(t, o)
	out := write(t, l, rows(o, 0, []string{"a", "\xff\xfe", "b"}, ""))
	if out.Accepted != 2 || out.Dead != 1 {
		t.Fatalf("%+v, want one dead", out)
	}
	_, parts := flush(t, l)
	for _, p := range parts {
		if p.Partition == "k=\xff\xfe" {
			t.Fatalf("part of partition %q", p.Partition)
		}
	}
}
