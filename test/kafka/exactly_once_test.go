//go:build integration

package kafkatest

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// A producer writes transactions and aborts some of them, while the sink is
// killed again and again: the table has exactly the committed messages.
func TestExactlyOnce(t *testing.T) {
	const partitions, transactions, each = 4, 60, 500
	w := newWorld(t, partitions, nil)
	w.source = []string{"  readers: 2", "  event_time: {column: ts, idle_timeout: 1s}"}
	w.columns = "[id bigint, name string, ts timestamp]"
	w.extra = []string{"commit: {policies: [metastore, success-file]}"}
	const leastKills = 4
	var kills atomic.Int64
	committed := make(chan int64, 1)
	go func() {
		r := rand.New(rand.NewPCG(7, 7))
		p := w.newClient(kgo.TransactionalID(w.topic), kgo.ProducerBatchCompression(kgo.Lz4Compression()))
		next, aborted := int64(0), 0
		for n := 0; n < transactions || kills.Load() < leastKills; n++ { // a busy machine takes long for a start
			if err := p.BeginTransaction(); err != nil {
				t.Error(err)
				break
			}
			abort := r.IntN(5) == 0 || n == 1
			var records []*kgo.Record
			for i := range int64(each) {
				id := next + i
				if abort {
					id = -1 // never to be seen
				}
				records = append(records, &kgo.Record{Topic: w.topic, Partition: r.Int32N(partitions),
					Value: fmt.Appendf(nil, `{"id":%d,"name":"n%d","ts":"2026-01-31T10:00:%02dZ"}`, id, id, n%60)})
			}
			if err := p.ProduceSync(w.ctx(), records...).FirstErr(); err != nil {
				t.Error(err)
				break
			}
			end := kgo.TryCommit
			if abort {
				end = kgo.TryAbort
				aborted++
			}
			if err := p.EndTransaction(w.ctx(), end); err != nil {
				t.Error(err)
				break
			}
			if !abort {
				next += each
			}
			time.Sleep(150 * time.Millisecond)
		}
		if aborted == 0 {
			t.Error("no transaction was aborted")
		}
		committed <- next
	}()
	r := rand.New(rand.NewPCG(8, 8))
	for {
		p := w.start()
		p.await("msg=checkpoint")
		select {
		case <-time.After(time.Duration(r.IntN(1200)) * time.Millisecond):
			p.Kill(w.t)
			kills.Add(1)
			continue
		case n := <-committed:
			if kills.Load() < leastKills {
				t.Errorf("only %d kills", kills.Load())
			}
			ends, err := w.admin.ListCommittedOffsets(w.ctx(), w.topic)
			if err != nil {
				t.Fatal(err)
			}
			var want []int64
			for i := range int32(partitions) {
				o, _ := ends.Lookup(w.topic, i)
				want = append(want, o.Offset)
			}
			eventually(t, "the end of the topic", func() error { return w.committed(want...) })
			p.stop()
			w.wantIDs(0, n-1)
			w.fsck()
			t.Logf("%d kills, %d committed messages", kills.Load(), n)
			return
		}
	}
}

// The brokers of a cluster are killed one after the other.
func TestBrokersAreKilled(t *testing.T) {
	w := newWorldOn(t, kafkaThree, 6, nil)
	w.source = []string{"  readers: 3"}
	p := w.start()
	n := 0 // of the producer, until it is done
	over, done := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			if err := w.client.ProduceSync(w.ctx(), w.named(numbered(n, 1000, 6))...).FirstErr(); err != nil {
				done <- err
				return
			}
			n += 1000
			select {
			case <-over:
				done <- nil
				return
			case <-time.After(200 * time.Millisecond):
			}
		}
	}()
	h := home(t)
	// progress waits until the sink has committed more messages than it had; the
	// producer goes on all the time.
	progress := func() {
		t.Helper()
		was := int64(-1)
		eventually(t, "progress", func() error {
			now, err := w.allCommitted() // fails for a while when a broker is killed
			if err != nil {
				return err
			}
			if was < 0 {
				was = now
			}
			if now == was {
				return fmt.Errorf("%d messages are committed, as before", now)
			}
			return nil
		})
	}
	for broker := 1; broker <= 3; broker++ {
		progress()
		if err := h.Kill(w.cluster.Daemon(broker)); err != nil {
			t.Fatal(err)
		}
		progress() // without it
		if err := h.Again(w.cluster.Daemon(broker)); err != nil {
			t.Fatal(err)
		}
		w.inSync()
	}
	close(over)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	ends, err := w.admin.ListCommittedOffsets(w.ctx(), w.topic)
	if err != nil {
		t.Fatal(err)
	}
	var want []int64
	for i := range int32(6) {
		o, _ := ends.Lookup(w.topic, i)
		want = append(want, o.Offset)
	}
	eventually(t, "the end of the topic", func() error { return w.committed(want...) })
	p.stop()
	w.wantIDs(0, int64(n)-1)
	w.fsck()
}
