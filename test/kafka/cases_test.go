//go:build integration

package kafkatest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func (w *world) wantCommitted(want ...int64) {
	w.t.Helper()
	if err := w.committed(want...); err != nil {
		w.t.Error(err)
	}
}

// transaction produces records in one transaction and ends it.
func (w *world) transaction(id string, commit kgo.TransactionEndTry, records ...*kgo.Record) {
	w.t.Helper()
	p := w.newClient(kgo.TransactionalID(w.topic + id))
	defer p.Close()
	if err := p.BeginTransaction(); err != nil {
		w.t.Fatal(err)
	}
	for _, r := range records {
		r.Topic = w.topic
	}
	if err := p.ProduceSync(w.ctx(), records...).FirstErr(); err != nil {
		w.t.Fatal(err)
	}
	if err := p.EndTransaction(w.ctx(), commit); err != nil {
		w.t.Fatal(err)
	}
}

// KA-01: a partition changes its reader in mid run, and nothing is lost or
// doubled by it.
func TestReadersShareAndMove(t *testing.T) {
	w := newWorld(t, 4, nil)
	w.options = []string{"until: end"}
	w.source = []string{"  readers: 2"}
	w.extra = []string{"limits: {memory: 64MB}"}
	const n = 300_000
	for i := 0; i < n; i += 10_000 { // all in partitions 0 and 2, which one reader gets
		batch := numbered(i, 10_000, 2)
		for _, r := range batch {
			r.Partition *= 2
		}
		w.produce(batch...)
	}
	p := w.start()
	p.await("msg=moved")
	if s := p.summary(); s.RowsRead != n {
		t.Fatalf("%+v", s)
	}
	w.wantIDs(0, n-1)
	w.fsck()
}

// When nothing else is left to read, a move does not wait for its checkpoint.
func TestLastMoveHurries(t *testing.T) {
	w := newWorld(t, 4, nil)
	w.options = []string{"until: end"}
	w.source = []string{"  readers: 2"}
	w.interval = "1h"
	records := numbered(0, 1000, 2)
	for _, r := range records {
		r.Partition *= 2
	}
	w.produce(records...)
	p := w.start()
	p.await("msg=moved")
	if s := p.summary(); s.RowsRead != 1000 {
		t.Fatalf("%+v", s)
	}
	w.wantIDs(0, 999)
}

// KA-02: offsets that compaction has removed.
func TestCompactedTopic(t *testing.T) {
	w := newWorld(t, 1, map[string]*string{"cleanup.policy": ptr("compact"), "segment.ms": ptr("200"), "min.cleanable.dirty.ratio": ptr("0.01"), "max.compaction.lag.ms": ptr("500")})
	for i, key := range strings.Split("a b a c b d d d c d d", " ") {
		w.produce(&kgo.Record{Key: []byte(key), Value: fmt.Appendf(nil, `{"id":%d}`, i)})
	}
	// The segment that is written to is never compacted.
	time.Sleep(300 * time.Millisecond)
	w.produce(&kgo.Record{Key: []byte("z"), Value: []byte(`{"id":11}`)})
	eventually(t, "compaction", func() error {
		c := w.newClient(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{w.topic: {0: kgo.NewOffset().AtStart()}}))
		defer c.Close()
		var left []int64
		for last := int64(-1); last < 11; {
			for _, r := range c.PollFetches(w.ctx()).Records() {
				left, last = append(left, r.Offset), r.Offset
			}
		}
		if !slices.Equal(left, []int64{2, 4, 8, 10, 11}) {
			return fmt.Errorf("left are offsets %v", left)
		}
		return nil
	})
	w.options = []string{`until: "5"`}
	if s := w.run(); s.RowsRead != 2 {
		t.Errorf("%+v", s)
	}
	eventually(t, "the group to have offset 5", func() error { return w.committed(5) })
	w.options = []string{"until: end"}
	if s := w.run(); s.RowsRead != 3 {
		t.Errorf("%+v", s)
	}
	if got := w.ids(); !slices.Equal(got, []int64{2, 4, 8, 10, 11}) {
		t.Errorf("ids %v", got)
	}
	w.wantCommitted(12)
	w.fsck()
}

// KA-03: a null value is passed over and counted, an empty one is bad.
func TestTombstones(t *testing.T) {
	w := newWorld(t, 1, nil)
	w.options = []string{"until: end"}
	w.produce(&kgo.Record{Key: []byte("a"), Value: []byte(`{"id":0}`)}, &kgo.Record{Key: []byte("a")},
		&kgo.Record{Key: []byte("b"), Value: []byte{}}, &kgo.Record{Key: []byte("c"), Value: []byte(`{"id":3}`)})
	if s := w.run(); s.RowsSkipped != 1 || s.RowsBad != 1 || s.RowsRead != 4 {
		t.Errorf("%+v", s)
	}
	if got := w.ids(); !slices.Equal(got, []int64{0, 3}) {
		t.Errorf("ids %v", got)
	}
	w.wantCommitted(4)
	w.fsck()
}

// KA-04: aborted messages are not read, and the markers at the end keep neither
// the run nor a lag tool waiting.
func TestTransactions(t *testing.T) {
	w := newWorld(t, 1, nil)
	w.options = []string{"until: end"}
	w.transaction("1", kgo.TryCommit, numbered(0, 3, 1)...)
	w.transaction("2", kgo.TryAbort, numbered(4, 2, 1)...)
	if s := w.run(); s.RowsRead != 3 {
		t.Errorf("%+v", s)
	}
	w.wantIDs(0, 2)
	w.wantCommitted(7)
	ends, err := w.admin.ListCommittedOffsets(w.ctx(), w.topic)
	if err != nil {
		t.Fatal(err)
	}
	if o, _ := ends.Lookup(w.topic, 0); o.Offset != 7 {
		t.Fatalf("the log ends at %d: the test is not what it says", o.Offset)
	}
	w.fsck()
}

// A transaction that is open holds what comes behind it, whoever wrote it.
func TestOpenTransaction(t *testing.T) {
	w := newWorld(t, 1, nil)
	p := w.newClient(kgo.TransactionalID(w.topic))
	if err := p.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	if err := p.ProduceSync(w.ctx(), &kgo.Record{Topic: w.topic, Value: []byte(`{"id":0}`)}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	w.produce(&kgo.Record{Value: []byte(`{"id":1}`)})
	w.options = []string{"until: end"}
	if s := w.run(); s.RowsRead != 0 {
		t.Errorf("%+v", s)
	}
	if err := p.EndTransaction(w.ctx(), kgo.TryCommit); err != nil {
		t.Fatal(err)
	}
	if s := w.run(); s.RowsRead != 2 {
		t.Errorf("%+v", s)
	}
	w.wantIDs(0, 1)
}

// KA-05: what is in a partition before it is noticed is read, also by a run
// that started at the latest messages.
func TestPartitionAdded(t *testing.T) {
	w := newWorld(t, 1, nil)
	w.produce(&kgo.Record{Value: []byte(`{"id":-1}`)}) // before the start
	w.options = []string{"start: latest", "discover: 500ms"}
	p := w.start()
	eventually(t, "the start to be durable", func() error { return w.committed(1) })
	if _, err := w.admin.UpdatePartitions(w.ctx(), 2, w.topic); err != nil {
		t.Fatal(err)
	}
	records := numbered(0, 100, 1)
	for _, r := range records {
		r.Partition = 1
	}
	var err error
	eventually(t, "the new partition", func() error {
		// A client of its own knows the partition at once.
		c := w.newClient()
		for _, r := range records {
			r.Topic = w.topic
		}
		err = c.ProduceSync(w.ctx(), records...).FirstErr()
		c.Close()
		return err
	})
	eventually(t, "its rows", func() error { return w.committed(1, 100) })
	if s := p.stop(); s.RowsRead != 100 {
		t.Errorf("%+v", s)
	}
	w.wantIDs(0, 99)
	w.fsck()
}

// A start at the latest messages is durable before the first of them.
func TestLatestIsKept(t *testing.T) {
	w := newWorld(t, 1, nil)
	w.produce(numbered(0, 10, 1)...)
	w.options = []string{"start: latest"}
	p := w.start()
	eventually(t, "the start to be durable", func() error { return w.committed(10) })
	p.Kill(w.t)
	w.produce(numbered(10, 5, 1)...) // while nobody reads
	p = w.start()
	eventually(t, "the rows", func() error { return w.committed(15) })
	p.stop()
	w.wantIDs(10, 14)
}

// KA-06: a message that cannot be read is kept with its place, once.
func TestPoison(t *testing.T) {
	for name, poison := range map[string]string{"cut": `{"id":`, "type": `{"id":"five"}`} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1, nil)
			w.options = []string{"until: end"}
			records := numbered(0, 10, 1)
			records[5].Value = []byte(poison)
			w.produce(records...)
			if s := w.run(); s.RowsBad != 1 || s.RowsRead != 10 {
				t.Errorf("%+v", s)
			}
			if s := w.run(); s.RowsRead != 0 {
				t.Errorf("the second run: %+v", s)
			}
			dead := w.rows(w.location() + "_dead")
			if len(dead) != 1 || dead[0]["raw"] != poison || !strings.Contains(fmt.Sprint(dead[0]), "topic "+w.topic+" partition 0 offset 5") {
				t.Errorf("dead letters: %v", dead)
			}
			if got := w.ids(); !slices.Equal(got, []int64{0, 1, 2, 3, 4, 6, 7, 8, 9}) {
				t.Errorf("ids %v", got)
			}
			w.wantCommitted(10)
			w.fsck()
		})
	}
}

// KA-06 with policy fail: everything before is kept, and said.
func TestPoisonFails(t *testing.T) {
	w := newWorld(t, 1, nil)
	w.options = []string{"until: end"}
	w.source = []string{"  bad_records: {policy: fail}"}
	records := numbered(0, 10, 1)
	records[5].Value = []byte("no")
	w.produce(records...)
	p := w.start()
	if code := p.wait(); code != 1 || !strings.Contains(p.Log(), "offset 5") {
		t.Errorf("exit code %d:\n%s", code, p.Log())
	}
	w.wantIDs(0, 4)
	w.wantCommitted(5)
}
