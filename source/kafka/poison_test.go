package kafka

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/hivesink/hivesink/format"
	"github.com/hivesink/hivesink/record"
)

// mistaken is a decoder that panics at some messages, with half of one appended.
type mistaken struct {
	format.RowDecoder
	panics *int
}

func (d mistaken) Append(rec []byte) error {
	err := d.RowDecoder.Append(rec)
	for _, id := range []string{"9", "12", "13", "19"} {
		if bytes.Equal(rec, []byte(`{"id":`+id+`}`)) {
			*d.panics++
			var none []int
			_ = none[len(rec)]
		}
	}
	return err
}

// A panic at a message makes it a bad record with its place, and nothing else is
// lost or there twice, also what is bad before it (K10).
func TestPanicIsABadRecord(t *testing.T) {
	b := newBench(t)
	b.cfg.Until = "end"
	b.produce(0, 8, 0)
	b.produceText("{}x", 0) // offset 8
	b.produce(9, 11, 0)
	s := b.source()
	panics := 0
	sound := s.values
	s.values = func() (*decoder, error) {
		d, err := sound()
		if err == nil {
			d.value = mistaken{d.value, &panics}
		}
		return d, err
	}
	budget := new(atomic.Int64)
	budget.Store(100)
	s.o.BadBudget = budget
	splits, err := s.Splits(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	r := b.reader(s)
	k := &taken{}
	var bad []record.BadRecord
	var ids []int64
	if err := r.Add(splits[0], k.Source); err != nil {
		t.Fatal(err)
	}
	for !k.Ended {
		ev, err := r.Read(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if ev.Batch == nil {
			continue
		}
		bad = append(bad, ev.Batch.Bad...)
		if rec := ev.Batch.Record; rec != nil {
			for i := range int(rec.NumRows()) {
				var id int64
				fmt.Sscan(rec.Column(0).ValueStr(i), &id)
				ids = append(ids, id)
			}
		}
		k.take(t, ev.Batch)
	}
	const want = "[0 1 2 3 4 5 6 7 10 11 14 15 16 17 18]"
	if fmt.Sprint(k.rows) != want || fmt.Sprint(ids) != want {
		t.Errorf("rows %v\nids  %v\nwant %s", k.rows, ids, want)
	}
	if panics != 4 {
		t.Errorf("%d panics", panics)
	}
	var places []string
	for _, r := range bad {
		places = append(places, r.Place)
		if r.Row != 8 && !strings.Contains(r.Reason, "panicked: runtime error: index out of range") {
			t.Errorf("row %d: %s", r.Row, r.Reason)
		}
	}
	const at = "topic t partition 0 offset "
	if got := strings.Join(places, ", "); got != at+strings.Join([]string{"8", "9", "12", "13", "19"}, ", "+at) {
		t.Errorf("bad records at %s", got)
	}
	if left := budget.Load(); left != 95 {
		t.Errorf("%d left of the budget of 100", left)
	}
}
