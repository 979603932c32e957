package kafka

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/hivesink/hivesink/source"
)

// drain reads all partitions of topic t beside the test, for as long as it runs.
type drain struct {
	b    *bench
	mu   sync.Mutex
	rows map[string]int
}

func (b *bench) drain() *drain {
	b.t.Helper()
	s := b.source()
	splits, err := s.Splits(context.Background(), nil)
	if err != nil {
		b.t.Fatal(err)
	}
	r := b.reader(s)
	d := &drain{b: b, rows: make(map[string]int)}
	for _, sp := range splits {
		if err := r.Add(sp, (&taken{}).Source); err != nil {
			b.t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	b.t.Cleanup(func() { cancel(); wg.Wait() })
	wg.Go(func() {
		for {
			ev, err := r.Read(ctx)
			if err != nil {
				if ctx.Err() == nil {
					b.t.Errorf("Read: %v", err)
				}
				return
			}
			if rec := ev.Batch.Record; rec != nil {
				d.mu.Lock()
				d.rows[ev.Split] += int(rec.NumRows())
				d.mu.Unlock()
				rec.Release()
			}
		}
	})
	return d
}

// counts is how often each partition was caught up.
func (b *bench) counts() map[string]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.caught)
}

func (d *drain) read() map[string]int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.rows)
}

// patience is how long an event may take on a machine that is busy with others.
const patience = 3 * time.Minute

// until waits for something.
func (b *bench) until(what string, is func() bool) {
	b.t.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			b.t.Fatalf("not within %s: %s; caught up %v", patience, what, b.counts())
		}
	}
}

// Leaders without messages do not keep the room for fetches from other ones:
// with more leaders than there is room for fetches, all take their turns, idle
// or not.
func TestMoreLeadersThanRoom(t *testing.T) {
	const n = 6
	b := newBenchOf(t, n, n)
	for i := range int32(n) {
		if err := b.cluster.MoveTopicPartition("t", i, i); err != nil {
			t.Fatal(err)
		}
	}
	d := b.drain()
	fair := func() {
		t.Helper()
		b.until("every partition is caught up", func() bool { return len(b.counts()) == n })
		was, least, most := b.counts(), 0, 0
		b.until("every partition is caught up again and again", func() bool {
			least, most = 1<<30, 0
			for id, c := range b.counts() {
				least, most = min(least, c-was[id]), max(most, c-was[id])
			}
			return least >= 3
		})
		if most > 3*least { // a busy machine may look late, and find more of each
			t.Errorf("while one partition was caught up %d times, another was %d times", least, most)
		}
	}
	fair()
	for i := range int32(n) {
		b.produce(int(i), 1, i)
	}
	b.until("every message is read", func() bool { return len(d.read()) == n })
	fair()
}

// Room for fetches is given in the order in which it was asked for.
func TestRoomInTurn(t *testing.T) {
	r := &reader{budget: 20, changed: make(chan struct{})}
	step := func(broker int32, want bool) {
		t.Helper()
		if got := r.reserve(broker, 10); got != want {
			t.Fatalf("broker %d gets room: %v, want %v; waiting: %v", broker, got, want, r.waiting)
		}
	}
	step(0, true)
	step(1, true)
	step(2, false)
	step(3, false)
	step(2, false) // it asks whenever something changes
	r.taking(10, func() {})
	step(0, false) // it has just had its turn
	step(3, false)
	step(2, true)
	r.taking(10, func() {})
	step(0, false)
	r.reserve(3, 0) // nothing to fetch any more: it does not keep the others waiting
	step(1, false)
	step(0, true)
	if r.inflight != 20 || fmt.Sprint(r.waiting) != "[1]" {
		t.Errorf("%d bytes are under way, waiting: %v", r.inflight, r.waiting)
	}
}

// A partition with an open transaction is not caught up, although nothing can be
// read of it: its rows are to come. When the transaction has ended, either way,
// it is caught up again (K8).
func TestOpenTransactionIsNotCaughtUp(t *testing.T) {
	b := newBench(t)
	other := splitID("t", 1) // on the same leader: its answers say that time goes by
	d := b.drain()
	b.until("both are caught up", func() bool { return len(b.counts()) == 2 })
	more := func(id string, n int) {
		t.Helper()
		was := b.counts()[id]
		b.until(fmt.Sprintf("%s is caught up %d times more", id, n), func() bool { return b.counts()[id] >= was+n })
	}
	for run, how := range []kgo.TransactionEndTry{kgo.TryCommit, kgo.TryAbort} {
		client, err := kgo.NewClient(kgo.SeedBrokers(b.cfg.Brokers...), kgo.TransactionalID(fmt.Sprint("txn", run)), kgo.TransactionTimeout(10*time.Minute),
			kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.DefaultProduceTopic("t"))
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		ctx := t.Context()
		if err := client.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		if err := client.ProduceSync(ctx, &kgo.Record{Partition: 0, Value: []byte(`{"id":1}`)}).FirstErr(); err != nil {
			t.Fatal(err)
		}
		more(other, 2) // fetches that were under way
		was := b.counts()[firstSplit]
		more(other, 2)
		if now := b.counts()[firstSplit]; now > was {
			t.Errorf("run %d: with an open transaction it was caught up %d times", run, now-was)
		}
		if err := client.EndTransaction(ctx, how); err != nil {
			t.Fatal(err)
		}
		more(firstSplit, 1)
		if got := d.read()[firstSplit]; got != 1 {
			t.Errorf("run %d: %d rows are read, want 1", run, got)
		}
	}
}

// Messages at the end may all have been removed by compaction: then the leader
// has nothing to give although the position is before its end. That counts when
// the whole answer is empty: else there may have been no room for them; and when
// the leader has read its own disks: else tiered storage may have been too slow (K8).
func TestEmptyBeforeTheEnd(t *testing.T) {
	for _, c := range []struct {
		name         string
		stable       int64
		beside, want bool
		head         bool // of what can be read
		local        int64
		replica      int32
	}{
		{name: "nothing there", stable: 5, want: true, head: true},
		{name: "open transaction", stable: 3, head: true},
		{name: "no room beside another one", stable: 5, beside: true},
		{name: "tiered storage", stable: 5, local: 4},
		{name: "another replica is to be asked", stable: 5, replica: 1},
		{name: "a leader that is behind itself", stable: 2},
	} {
		b := newBench(t)
		b.localStart(c.local)
		caught, held, heads := []string(nil), []string(nil), []string(nil)
		lr, err := b.source().Reader(source.Watch{
			CaughtUp: func(id string) { caught = append(caught, id) },
			Hold:     func(id string) { held = append(held, id) },
			AtHead:   func(id string) { heads = append(heads, id) },
		})
		if err != nil {
			t.Fatal(err)
		}
		r := lr.(*reader)
		asked := make(map[key]*partition)
		var first *partition
		resp := kmsg.NewPtrFetchResponse()
		topic := kmsg.NewFetchResponseTopic()
		topic.Topic = "t"
		for n := range int32(2) {
			p := &partition{split: &split{id: splitID("t", n), topic: "t", partition: n}, next: 3, epoch: -1}
			p.end.Store(noEnd)
			if n == 0 {
				first = p
			}
			asked[key{name: "t", partition: n}] = p
			q := kmsg.NewFetchResponseTopicPartition()
			q.Partition, q.HighWatermark, q.LastStableOffset = n, max(2, c.stable), c.stable
			if c.stable == 3 {
				q.HighWatermark = 5
			}
			if c.replica > 0 {
				q.PreferredReadReplica = c.replica
			}
			if n == 1 && c.beside {
				q.RecordBatches = []byte{0} // too few bytes to be a batch
			}
			topic.Partitions = append(topic.Partitions, q)
		}
		resp.Topics = append(resp.Topics, topic)
		for range 2 { // what the first answer says has to be proved
			caught, held, heads = nil, nil, nil
			if err := r.answer(asked, resp, 0); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			b.until("it is known what the leader has", func() bool {
				r.mu.Lock()
				defer r.mu.Unlock()
				return !first.proving
			})
		}
		lr.Close()
		if got := slices.Contains(caught, firstSplit); got != c.want || got == slices.Contains(held, firstSplit) {
			t.Errorf("%s: caught up: %v, held: %v", c.name, caught, held)
		}
		if got := slices.Contains(heads, firstSplit); got != c.head {
			t.Errorf("%s: at the head: %v, want %v", c.name, got, c.head)
		}
	}
}

// A transaction that stays open is logged, with what waits for it, and not before
// it has been open for long.
func TestOpenTransactionIsLogged(t *testing.T) {
	b := newBench(t)
	s := b.source()
	var said bytes.Buffer
	s.log = slog.New(slog.NewTextHandler(&said, nil))
	lr, err := s.Reader(source.Watch{CaughtUp: func(string) {}, Hold: func(string) {}, AtHead: func(string) {}})
	if err != nil {
		t.Fatal(err)
	}
	defer lr.Close()
	r := lr.(*reader)
	p := &partition{split: &split{id: splitID("t", 0), topic: "t"}, next: 3, epoch: -1}
	p.end.Store(noEnd)
	q := &kmsg.FetchResponseTopicPartition{HighWatermark: 9, LastStableOffset: 3}
	r.empty(p, q, true)
	if said.Len() > 0 {
		t.Errorf("logged at once: %s", &said)
	}
	p.open.say = time.Now() // as if it had been open for a minute
	r.empty(p, q, true)
	if log := said.String(); strings.Count(log, "a transaction has been open") != 1 || !strings.Contains(log, "first_offset=3") || !strings.Contains(log, "waiting_offsets=6") {
		t.Errorf("logged: %s", log)
	}
	r.empty(p, q, true)
	if n := strings.Count(said.String(), "\n"); n != 1 {
		t.Errorf("logged %d times", n)
	}
	r.empty(p, &kmsg.FetchResponseTopicPartition{HighWatermark: 9, LastStableOffset: 9}, true)
	if !p.open.since.IsZero() {
		t.Error("it has ended, and is not forgotten")
	}
}

// A partition with much to fetch does not wait for another of its broker that has
// nothing: a request without it ends soon.
func TestIdleDoesNotDelay(t *testing.T) {
	b := newBench(t)
	type asked struct {
		busy bool // partition 0 is among them
		wait int32
	}
	var mu sync.Mutex
	var all []asked
	without := make(chan struct{}, 1) // a request without partition 0
	b.cluster.ControlKey(int16(kmsg.Fetch), func(req kmsg.Request) (kmsg.Response, error, bool) {
		b.cluster.KeepControl()
		f := req.(*kmsg.FetchRequest)
		a := asked{wait: f.MaxWaitMillis}
		for _, t := range f.Topics {
			for _, p := range t.Partitions {
				a.busy = a.busy || p.Partition == 0
			}
		}
		mu.Lock()
		all = append(all, a)
		mu.Unlock()
		if !a.busy {
			select {
			case without <- struct{}{}:
			default:
			}
		}
		return nil, nil, false
	})
	const rows, text = 40, 100_000 // one answer has room for two
	for i := range rows {
		b.produceText(fmt.Sprintf(`{"id":%d,"more":%q}`, i, strings.Repeat("x", text)), 0)
	}
	s := b.source()
	splits, err := s.Splits(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	r := b.reader(s)
	for _, sp := range splits {
		if err := r.Add(sp, (&taken{}).Source); err != nil {
			t.Fatal(err)
		}
	}
	select { // nothing is taken until enough waits
	case <-without:
	case <-time.After(patience):
		t.Fatal("no fetch without the partition that has enough fetched")
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for got := int64(0); got < rows; {
		ev, err := r.Read(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if rec := ev.Batch.Record; rec != nil {
			got += rec.NumRows()
			rec.Release()
		}
	}
	mu.Lock()
	defer mu.Unlock()
	short := 0
	for _, a := range all {
		if a.busy {
			continue
		}
		short++
		if a.wait > 20 {
			t.Errorf("a fetch without the busy partition waits %d ms", a.wait)
		}
	}
	if short == 0 {
		t.Error("there was none")
	}
}
