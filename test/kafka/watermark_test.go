//go:build integration

package kafkatest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// idle is source.event_time.idle_timeout of these tests.
const idle = time.Second

// hours makes a table with a partition for each hour, which is announced when
// the watermark has passed it; what comes later is put aside, and counted.
func (w *world) hours(idle time.Duration) {
	w.columns = "[id bigint, ts timestamp], partitioned_by: [{dt: date(ts)}, {hr: hour(ts)}]"
	w.source = append(w.source, "  event_time: {column: ts, out_of_orderness: 0s, idle_timeout: "+idle.String()+"}")
	w.extra = append(w.extra, "commit: {trigger: partition-time, policies: [metastore, success-file], register: first-file, late: side}")
}

// timed are n records of a partition, with ids from first and one time.
func timed(partition int32, first, n int, clock string) []*kgo.Record {
	out := make([]*kgo.Record, n)
	for i := range out {
		out[i] = &kgo.Record{Partition: partition, Value: fmt.Appendf(nil, `{"id":%d,"ts":"2026-01-31T%sZ"}`, first+i, clock)}
	}
	return out
}

// announced says whether an hour is complete.
func (w *world) announced(hour string) bool {
	w.t.Helper()
	_, err := os.Stat(filepath.Join(w.location(), "dt=2026-01-31", "hr="+hour, "_SUCCESS"))
	if err != nil && !os.IsNotExist(err) {
		w.t.Fatal(err)
	}
	return err == nil
}

// A partition whose broker is down holds the watermark for as long as that
// lasts, however far the others are: what it has is not late when it comes. When
// its broker says that there is nothing more, it holds no longer.
func TestOutageHoldsWatermark(t *testing.T) {
	w := emptyWorld(t, kafkaThree)
	healthy, down, _ := w.coordinator()
	w.createAt(map[string]string{"min.insync.replicas": "1"}, []int32{healthy}, []int32{down})
	const idle = 5 * idle // a busy machine takes long from the return of the broker to the next rows
	w.hours(idle)
	h := home(t)
	w.produce(append(timed(0, 0, 10, "10:00:00"), timed(1, 10, 10, "10:00:00")...)...)
	p := w.start()
	eventually(t, "the first rows", func() error { return w.committed(10, 10) })
	if err := h.Kill(w.cluster.Daemon(int(down))); err != nil {
		t.Fatal(err)
	}
	p.await("trying again")
	next := 20
	for began := time.Now(); time.Since(began) < 2*idle; next++ {
		w.produce(timed(0, next, 1, "12:30:00")...)
		eventually(t, "the healthy partition", func() error { return w.committed(int64(next-10)+1, 10) })
		if w.announced("10") {
			t.Fatalf("10 o'clock was announced %s after its broker was killed", time.Since(began))
		}
	}
	if err := h.Again(w.cluster.Daemon(int(down))); err != nil {
		t.Fatal(err)
	}
	w.inSync()
	w.reconnect()
	w.produce(timed(1, next, 10, "10:30:00")...)
	eventually(t, "the rows of the broker that was down", func() error { return w.committed(int64(next-10), 20) })
	eventually(t, "10 o'clock to be announced", func() error {
		if !w.announced("10") {
			return fmt.Errorf("it is not")
		}
		return nil
	})
	if s := p.stop(); s.RowsLate != 0 || s.RowsRead != int64(next)+10 {
		t.Errorf("%+v", s)
	}
	w.wantIDs(0, int64(next)+9)
	w.fsck()
}

// A partition that lags is not idle, although its broker lets it wait for longer
// than the idle timeout; none of its rows is late because others are ahead.
func TestLaggingPartitionIsNotLate(t *testing.T) {
	// A broker throttles by itself: that of the partition ahead has no reason to.
	w := emptyWorld(t, kafkaThree)
	ahead, lagging, _ := w.coordinator()
	w.createAt(map[string]string{"min.insync.replicas": "1"}, []int32{ahead}, []int32{lagging})
	w.hours(idle)
	const n, step = 16_000, 2_000
	w.extra = append(w.extra, "limits: {memory: 16MB}")
	w.produce(timed(0, 0, 1, "12:30:00")...)
	plain := w.newClient(kgo.ProducerBatchCompression(kgo.NoCompression()))
	for i := 1; i < n; i += step {
		if err := plain.ProduceSync(w.ctx(), w.named(timed(1, i, min(step, n-i), "10:00:00"))...).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	w.throttle(50 << 10)
	p := w.start()
	eventually(t, "the partition that is ahead", func() error { return w.committed(1) })
	began, longest, last := time.Now(), time.Duration(0), time.Now()
	for at := int64(0); at < n-1; {
		announced := w.announced("10") // looked at before the offset is
		got, err := w.admin.FetchOffsets(w.ctx(), w.topic)
		if err != nil {
			t.Fatal(err)
		}
		if o, _ := got.Lookup(w.topic, 1); o.At > at {
			at, last = o.At, time.Now()
		}
		longest = max(longest, time.Since(last))
		if announced && at < n-1 {
			t.Fatalf("10 o'clock was announced at offset %d of %d", at, n-1)
		}
		if time.Since(began) > patience {
			t.Fatalf("after %s it is at offset %d of %d", patience, at, n-1)
		}
		time.Sleep(20 * time.Millisecond)
	}
	if longest < 2*idle {
		t.Errorf("the partition waited for %s at most: the test is not what it says", longest)
	}
	eventually(t, "10 o'clock to be announced", func() error {
		if !w.announced("10") {
			return fmt.Errorf("it is not")
		}
		return nil
	})
	if s := p.stop(); s.RowsLate != 0 || s.RowsRead != n {
		t.Errorf("%+v", s)
	}
	w.wantIDs(0, n-1)
	w.fsck()
}

// A partition with an open transaction holds the watermark for as long as that
// is open, although its broker has nothing to give: the hour of its rows is
// complete with them.
func TestOpenTransactionHoldsWatermark(t *testing.T) {
	w := newWorld(t, 2, nil)
	w.hours(idle)
	w.produce(append(timed(0, 0, 10, "10:00:00"), timed(1, 10, 10, "10:00:00")...)...)
	p := w.start()
	eventually(t, "the first rows", func() error { return w.committed(10, 10) })
	txn := w.newClient(kgo.TransactionalID(w.topic))
	if err := txn.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	if err := txn.ProduceSync(w.ctx(), w.named(timed(1, 20, 5, "10:30:00"))...).FirstErr(); err != nil {
		t.Fatal(err)
	}
	next := 25
	for began := time.Now(); time.Since(began) < 4*idle; next++ {
		w.produce(timed(0, next, 1, "12:30:00")...)
		eventually(t, "the other partition", func() error { return w.committed(int64(next-14), 10) })
		if w.announced("10") {
			t.Fatalf("10 o'clock was announced %s after the transaction was begun, before its end", time.Since(began))
		}
	}
	if err := txn.EndTransaction(w.ctx(), kgo.TryCommit); err != nil {
		t.Fatal(err)
	}
	eventually(t, "its rows", func() error { return w.committed(int64(next-15), 16) }) // and the marker
	eventually(t, "10 o'clock to be announced", func() error {
		if !w.announced("10") {
			return fmt.Errorf("it is not")
		}
		return nil
	})
	if s := p.stop(); s.RowsLate != 0 || s.RowsRead != int64(next) {
		t.Errorf("%+v", s)
	}
	w.wantIDs(0, int64(next)-1)
	w.fsck()
}

// throttle lets the sink fetch so many bytes a second until the test's end.
func (w *world) throttle(bytes float64) {
	w.t.Helper()
	client := "hivesink"
	set := func(op kadm.AlterClientQuotaOp) error {
		res, err := w.admin.AlterClientQuotas(context.Background(), []kadm.AlterClientQuotaEntry{{
			Entity: kadm.ClientQuotaEntity{{Type: "client-id", Name: &client}}, Ops: []kadm.AlterClientQuotaOp{op}}})
		if err == nil {
			err = res[0].Err
		}
		return err
	}
	if err := set(kadm.AlterClientQuotaOp{Key: "consumer_byte_rate", Value: bytes}); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		if err := set(kadm.AlterClientQuotaOp{Key: "consumer_byte_rate", Remove: true}); err != nil {
			w.t.Error(err)
		}
	})
}
