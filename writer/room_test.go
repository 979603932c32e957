package writer

import (
	"context"
	"errors"
	"testing"

	"github.com/hivesink/hivesink/storage/memfs"
)

// crowded is a lane and a cut of it that has all the memory there is.
func crowded(t *testing.T) (*Options, *Lane, *Cut) {
	t.Helper()
	o := options(t, memfs.New())
	o.Budget = NewBudget(64<<10, 8)
	l := lane(t, o)
	for at := int64(0); !o.Budget.exceeded(); at++ { // past the lane's own rolling
		if _, err := l.write("src", rows(o, at, []string{"a"}, string(make([]byte, 1000)))); err != nil {
			t.Fatal(err)
		}
	}
	c, err := l.Cut()
	if err != nil {
		t.Fatal(err)
	}
	return o, l, c
}

// TestWriteTakesNothingWhenItsWaitEnds: a Write that waits for memory has taken
// nothing when ctx ends, so that the same batch may be brought again (W1).
func TestWriteTakesNothingWhenItsWaitEnds(t *testing.T) {
	o, l, c := crowded(t)
	before, _ := l.Source("src")
	b := rows(o, before.NextRow, []string{"b"}, "")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Write(ctx, "src", b); !errors.Is(err, context.Canceled) {
		t.Fatalf("a write without room: %v", err)
	}
	if after, _ := l.Source("src"); after.NextRow != before.NextRow || after.Accepted != before.Accepted {
		t.Fatalf("it has taken rows: %+v, before %+v", after, before)
	}
	if _, err := Flush(t.Context(), []*Cut{c}, 1); err != nil {
		t.Fatal(err)
	}
	write(t, l, b)
	_, parts := flush(t, l)
	if len(parts) != 1 || parts[0].Rows != 1 {
		t.Fatalf("parts %+v, want one with the row", parts)
	}
}

// TestClosedBudgetEndsWaits: nobody waits for memory that will not be given
// back.
func TestClosedBudgetEndsWaits(t *testing.T) {
	o, l, _ := crowded(t)
	src, _ := l.Source("src")
	done := make(chan error)
	go func() {
		_, err := l.Write(t.Context(), "src", rows(o, src.NextRow, []string{"b"}, ""))
		done <- err
	}()
	failed := errors.New("the disk is full")
	o.Budget.Close(failed)
	if err := <-done; !errors.Is(err, failed) {
		t.Fatalf("the write that waits: %v", err)
	}
	if _, err := l.Write(t.Context(), "src", rows(o, src.NextRow, []string{"b"}, "")); !errors.Is(err, failed) {
		t.Fatalf("a later one: %v", err)
	}
}
