package hivesink_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/hivesink/hivesink"
)

// TestClosedWriter: what is written to a closed Writer would be in no
// checkpoint; and closing it again does not close its successor.
func TestClosedWriter(t *testing.T) {
	dir, ctx := t.TempDir(), context.Background()
	s := open(t, load(t, dir, "checkpoint.interval=1h"))
	old, err := s.Writer("orders-0")
	if err != nil {
		t.Fatal(err)
	}
	if err := old.Write(ctx, orders(s.Schema(), 0, 5), "5"); err != nil {
		t.Fatal(err)
	}
	if err := old.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if err := old.Write(ctx, orders(s.Schema(), 5, 5), "10"); !errors.Is(err, hivesink.ErrWriterClosed) {
		t.Fatalf("write after the writer's close: %v", err)
	}
	w, err := s.Writer("orders-0")
	if err != nil || w.Position() != "5" {
		t.Fatalf("opened again at %q: %v", w.Position(), err)
	}
	if err := w.Write(ctx, orders(s.Schema(), 5, 5), "10"); err != nil {
		t.Fatal(err)
	}
	if err := old.Close(ctx); err != nil {
		t.Fatalf("second close: %v", err)
	}
	if _, err := s.Writer("orders-0"); !errors.Is(err, hivesink.ErrRefused) {
		t.Fatalf("a second open Writer of one name: %v", err)
	}
	if err := s.Close(ctx); err != nil {
		t.Fatal(err)
	}
	wantIDs(t, dir, 10)
}

// TestRefusedCalls: what is wrong with a call is no reason to open the sink
// anew, and is told before anything of it is in a checkpoint.
func TestRefusedCalls(t *testing.T) {
	dir, ctx := t.TempDir(), context.Background()
	s := open(t, load(t, dir))
	w, err := s.Writer("orders-0")
	if err != nil {
		t.Fatal(err)
	}
	other := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.BinaryTypes.String}}, nil))
	other.Field(0).(*array.StringBuilder).Append("x")
	_, noName := s.Writer("")
	_, noText := s.Writer("orders-\xff")
	_, twice := s.Writer("orders-0")
	for what, err := range map[string]error{
		"no batch":                  w.Write(ctx, nil, "1"),
		"another table's batch":     w.Write(ctx, other.NewRecordBatch(), "1"),
		"a position of raw bytes":   w.Write(ctx, orders(s.Schema(), 0, 1), "\x00\xff"),
		"a writer without name":     noName,
		"a name that is not text":   noText,
		"a second writer of a name": twice,
	} {
		if !errors.Is(err, hivesink.ErrRefused) || errors.Is(err, hivesink.ErrHalted) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := w.Write(ctx, orders(s.Schema(), 0, 5), "5"); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Checkpoint(ctx), s.Err(), s.Close(ctx)); err != nil {
		t.Fatal(err)
	}
	wantIDs(t, dir, 5)
}

// TestCloseTwice: also at the same time.
func TestCloseTwice(t *testing.T) {
	dir, ctx := t.TempDir(), context.Background()
	s := open(t, load(t, dir))
	w, err := s.Writer("orders-0")
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(ctx, orders(s.Schema(), 0, 5), "5"); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if err := s.Close(ctx); err != nil && !errors.Is(err, hivesink.ErrClosed) {
				t.Errorf("close: %v", err)
			}
		})
	}
	wg.Wait()
	if err := s.Close(ctx); !errors.Is(err, hivesink.ErrClosed) || strings.Contains(err.Error(), "\n") {
		t.Errorf("another close: %v", err)
	}
	wantIDs(t, dir, 5)
	again := open(t, load(t, dir))
	if err := again.Close(ctx); err != nil {
		t.Fatal(err)
	}
}

// TestBatchesOfOtherWriters: types that are the table's but for what says nothing
// about values, columns that are longer than their batch, and batches without
// columns are taken; the values come out as they are.
func TestBatchesOfOtherWriters(t *testing.T) {
	dir, ctx := t.TempDir(), context.Background()
	s := open(t, load(t, dir))
	w, err := s.Writer("orders-0")
	if err != nil {
		t.Fatal(err)
	}
	whole := orders(s.Schema(), 0, 10)
	zone := &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "America/New_York"}
	there := array.NewTimestampData(array.NewData(zone, 10, whole.Column(1).Data().Buffers(), nil, 0, 0))
	fields := whole.Schema().Fields()
	fields[1].Type = zone
	other := array.NewRecordBatch(arrow.NewSchema(fields, nil), []arrow.Array{whole.Column(0), there, whole.Column(2), whole.Column(3)}, 7)
	for _, err := range []error{
		w.Write(ctx, other, "7"),
		w.Write(ctx, array.NewRecordBatch(s.Schema(), orders(s.Schema(), 7, 9).Columns(), 3), "10"),
		w.Write(ctx, array.NewRecordBatch(arrow.NewSchema(nil, nil), nil, 0), "11"),
		s.Close(ctx),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	wantIDs(t, dir, 10)
	s = open(t, load(t, dir))
	defer s.Close(ctx)
	if w, err = s.Writer("orders-0"); err != nil || w.Position() != "11" {
		t.Fatalf("position %q: %v", w.Position(), err)
	}
}
