//go:build integration

package kafkatest

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// orphaned waits until the partition has no leader.
func (w *world) orphaned(topic string, partition int32) {
	w.t.Helper()
	eventually(w.t, "the partition to lose its leader", func() error {
		l, err := w.admin.ListTopics(w.ctx(), topic)
		if err != nil {
			return err
		}
		if p := l[topic].Partitions[partition]; p.Leader >= 0 {
			return fmt.Errorf("broker %d leads", p.Leader)
		}
		return nil
	})
}

// A run that is started while a partition has no leader reads the others; the
// partition holds the watermark, far beyond the idle timeout, and goes on where it
// was when its broker is there again. Nothing of it is late, or comes twice.
func TestStartWithoutALeader(t *testing.T) {
	w := emptyWorld(t, kafkaThree)
	healthy, down, _ := w.coordinator()
	w.createAt(map[string]string{"min.insync.replicas": "1"}, []int32{healthy}, []int32{down})
	w.hours(idle)
	w.options = []string{"start_timeout: 9s"}
	h := home(t)
	w.produce(append(timed(0, 0, 10, "10:00:00"), timed(1, 10, 10, "10:00:00")...)...)
	p := w.start()
	eventually(t, "the first rows", func() error { return w.committed(10, 10) })
	w.produce(timed(1, 20, 10, "10:20:00")...)
	p.stop()
	if err := h.Kill(w.cluster.Daemon(int(down))); err != nil {
		t.Fatal(err)
	}
	w.orphaned(w.topic, 1)

	p = w.start()
	p.await("the run begins without partitions that do not answer")
	next := 30
	for began := time.Now(); time.Since(began) < 5*idle; next++ {
		w.produce(timed(0, next, 1, "12:30:00")...)
		eventually(t, "the healthy partition", func() error { return w.committed(int64(next - 19)) })
		if w.announced("10") {
			t.Fatalf("10 o'clock was announced %s after the start", time.Since(began))
		}
	}
	p.Kill(w.t) // and it may be started again and again
	p = w.start()
	w.produce(timed(0, next, 1, "12:30:00")...)
	eventually(t, "the healthy partition", func() error { return w.committed(int64(next - 19)) })
	next++
	if err := h.Again(w.cluster.Daemon(int(down))); err != nil {
		t.Fatal(err)
	}
	w.inSync()
	w.reconnect()
	w.produce(timed(1, next, 10, "10:30:00")...)
	eventually(t, "the rows of the broker that was down", func() error { return w.committed(int64(next-20), 30) })
	eventually(t, "10 o'clock to be announced", func() error {
		if !w.announced("10") {
			return fmt.Errorf("it is not")
		}
		return nil
	})
	p.await("partitions are read again")
	if s := p.stop(); s.RowsLate != 0 {
		t.Errorf("%+v", s)
	}
	w.wantIDs(0, int64(next)+9)
	w.fsck()
}

// A partition that is read by `latest`, and has no leader when the run begins,
// starts where it ended then, also when much is written to it before the run hears
// of its new leader (K12).
func TestLatestWithoutALeader(t *testing.T) {
	w := emptyWorld(t, kafkaThree)
	healthy, down, _ := w.coordinator()
	w.createAt(map[string]string{"min.insync.replicas": "1"}, []int32{healthy})
	w.options = []string{"start_timeout: 9s"}
	w.produce(numbered(0, 10, 1)...)
	p := w.start()
	eventually(t, "the first rows", func() error { return w.committed(10) })
	p.stop()

	// Another topic comes to the configuration.
	first := w.topic
	w.topic = first + "-b"
	w.createAt(map[string]string{"min.insync.replicas": "1"}, []int32{healthy}, []int32{down})
	before := numbered(1000, 20, 2)
	w.produce(before...)
	h := home(t)
	daemon := w.cluster.Daemon(int(down))
	if err := h.Kill(daemon); err != nil {
		t.Fatal(err)
	}
	w.orphaned(w.topic, 1)
	w.options = []string{"start_timeout: 9s", "start: latest", "group: " + first, fmt.Sprintf("topics: [%s, %s]", first, w.topic)}
	p = w.start()
	p.await("the run begins without partitions that do not answer")
	p.signal(syscall.SIGSTOP)
	if err := h.Again(daemon); err != nil {
		t.Fatal(err)
	}
	w.inSync()
	w.reconnect()
	w.produce(numbered(2000, 100, 2)...)
	// One more leader after that: its epoch is not the first since the start.
	if err := h.Kill(daemon); err != nil {
		t.Fatal(err)
	}
	w.orphaned(w.topic, 1)
	if err := h.Again(daemon); err != nil {
		t.Fatal(err)
	}
	w.inSync()
	w.reconnect()
	w.produce(numbered(2100, 100, 2)...)
	p.signal(syscall.SIGCONT)
	p.await("a partition is taken up that did not answer")
	eventually(t, "its rows", func() error {
		got, err := w.admin.FetchOffsets(w.ctx(), first)
		if err != nil {
			return err
		}
		for n := range int32(2) {
			if o, _ := got.Lookup(w.topic, n); o.At != 110 {
				return fmt.Errorf("partition %d: offset %d", n, o.At)
			}
		}
		return nil
	})
	p.stop()
	var want []int64
	for i := range int64(10) {
		want = append(want, i)
	}
	for i := range int64(200) {
		want = append(want, 2000+i)
	}
	if got := w.ids(); !slices.Equal(got, want) {
		t.Errorf("ids %v", got)
	}
	w.fsck()
}

// A bounded run does not begin without knowing all ends: it says for what it
// waits, and ends with an error that names it.
func TestBoundedWithoutALeader(t *testing.T) {
	w := emptyWorld(t, kafkaThree)
	healthy, down, _ := w.coordinator()
	w.createAt(map[string]string{"min.insync.replicas": "1"}, []int32{healthy}, []int32{down})
	w.options = []string{"until: end", "start_timeout: 12s"}
	w.produce(numbered(0, 10, 2)...)
	w.run()
	h := home(t)
	if err := h.Kill(w.cluster.Daemon(int(down))); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := h.Again(w.cluster.Daemon(int(down))); err != nil {
			t.Error(err)
		}
		w.inSync()
	}()
	w.orphaned(w.topic, 1)
	p := w.start()
	if code := p.wait(); code != 1 || !strings.Contains(p.Log(), "topic "+w.topic+" partition 1 has no leader") ||
		!strings.Contains(p.Log(), "needs to know where each ends") {
		t.Errorf("exit code %d:\n%s", code, p.Log())
	}
}

// A broker that takes connections and never answers keeps neither a start nor a
// run from what the others have, whether it is the first of the addresses or not.
func TestSilentBroker(t *testing.T) {
	w := emptyWorld(t, kafkaThree)
	healthy, hung, _ := w.coordinator()
	w.createAt(map[string]string{"min.insync.replicas": "1"}, []int32{healthy}, []int32{hung})
	all := w.cluster.Brokers()
	w.options = []string{"brokers: [" + strings.Join([]string{all[hung-1], all[healthy-1]}, ",") + "]"}
	h := home(t)
	w.produce(numbered(0, 10, 2)...)
	p := w.start()
	eventually(t, "the first rows", func() error { return w.committed(5, 5) })
	p.stop()
	if err := h.Pause(w.cluster.Daemon(int(hung))); err != nil {
		t.Fatal(err)
	}
	resumed := false
	resume := func() {
		if !resumed {
			resumed = true
			if err := h.Resume(w.cluster.Daemon(int(hung))); err != nil {
				t.Error(err)
			}
		}
	}
	defer resume()
	began := time.Now()
	p = w.start() // at once: the cluster still says that the broker leads
	w.client.Close()
	w.client = w.newClient(kgo.SeedBrokers(all[healthy-1]))
	w.admin = kadm.NewClient(w.client)
	evens := numbered(10, 10, 2)
	evens = slices.DeleteFunc(evens, func(r *kgo.Record) bool { return r.Partition == 1 })
	w.produce(evens...)
	eventually(t, "the healthy partition", func() error { return w.committed(10) })
	t.Logf("after %s", time.Since(began))
	if p.Ended() {
		t.Fatalf("the run has ended: %v", p.End())
	}
	resume()
	w.inSync()
	w.reconnect()
	odds := slices.DeleteFunc(numbered(10, 10, 2), func(r *kgo.Record) bool { return r.Partition == 0 })
	w.produce(odds...)
	eventually(t, "all rows", func() error { return w.committed(10, 10) })
	p.stop()
	w.wantIDs(0, 19)
	w.fsck()
}
