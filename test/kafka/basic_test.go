//go:build integration

package kafkatest

import (
	"testing"
)

// A bounded run reads what is there, the next one what has come since.
func TestBoundedRuns(t *testing.T) {
	w := newWorld(t, 3, nil)
	w.options = []string{"until: end"}
	w.produce(numbered(0, 1000, 3)...)
	if s := w.run(); s.RowsRead != 1000 || s.RowsVisible != 1000 {
		t.Fatalf("%+v", s)
	}
	w.wantIDs(0, 999)
	if s := w.run(); s.RowsRead != 0 || s.RowsVisible != 1000 {
		t.Fatalf("the second run: %+v", s)
	}
	w.produce(numbered(1000, 500, 3)...)
	if s := w.run(); s.RowsRead != 500 || s.RowsVisible != 1500 {
		t.Fatalf("the third run: %+v", s)
	}
	w.wantIDs(0, 1499)
	w.fsck()
}

// A run that never ends is killed, and the next one goes on where the last
// complete checkpoint was.
func TestKillAndResume(t *testing.T) {
	w := newWorld(t, 2, nil)
	w.source = []string{"  readers: 2"}
	w.produce(numbered(0, 5000, 2)...)
	p := w.start()
	p.await("msg=published")
	w.produce(numbered(5000, 5000, 2)...)
	p.Kill(w.t)
	p = w.start()
	w.produce(numbered(10000, 10, 2)...)
	eventually(t, "all rows", func() error { return w.committed(5005, 5005) })
	if s := p.stop(); s.RowsVisible != 10010 {
		t.Fatalf("%+v", s)
	}
	w.wantIDs(0, 10009)
	w.fsck()
}
