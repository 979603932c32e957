package kafka

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/hivesink/hivesink/config"
	"github.com/hivesink/hivesink/hivetype"
	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/record"
	"github.com/hivesink/hivesink/source"
)

// bench is a cluster in this process, with a topic t of two partitions.
type bench struct {
	t       *testing.T
	cluster *kfake.Cluster
	client  *kgo.Client
	cfg     *config.Kafka
	mu      sync.Mutex
	caught  map[string]int
	held    map[string]int
	heads   map[string]int
}

func newBench(t *testing.T) *bench {
	t.Helper()
	return newBenchOf(t, 1, 2)
}

// newBenchOf is a cluster of brokers, with a topic t.
func newBenchOf(t *testing.T, brokers int, partitions int32) *bench {
	t.Helper()
	c, err := kfake.NewCluster(kfake.NumBrokers(brokers), kfake.SeedTopics(partitions, "t"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	client, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.DefaultProduceTopic("t"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	cfg := &config.Kafka{Brokers: c.ListenAddrs(), Topics: []string{"t"}, Start: "earliest", Group: "g", OffsetOutOfRange: "halt",
		Discover: config.Duration(time.Minute), StartTimeout: config.Duration(patience)}
	return &bench{t: t, cluster: c, client: client, cfg: cfg, caught: make(map[string]int), held: make(map[string]int), heads: make(map[string]int)}
}

func (b *bench) produce(first, n int, partition int32) {
	b.t.Helper()
	for i := range n {
		r := &kgo.Record{Partition: partition, Value: fmt.Appendf(nil, `{"id":%d}`, first+i)}
		if err := b.client.ProduceSync(context.Background(), r).FirstErr(); err != nil {
			b.t.Fatal(err)
		}
	}
}

func (b *bench) produceText(value string, partition int32) {
	b.t.Helper()
	if err := b.client.ProduceSync(context.Background(), &kgo.Record{Partition: partition, Value: []byte(value)}).FirstErr(); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) source() *Source {
	b.t.Helper()
	id, err := hivetype.Parse("bigint")
	if err != nil {
		b.t.Fatal(err)
	}
	schema, err := record.NewSchema([]hivetype.Field{{Name: "id", Type: id}}, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	s, err := New(Options{Options: source.Options{Schema: schema, BatchRows: 7}, Config: b.cfg, Memory: 1 << 20, Readers: 1})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { s.Close() })
	return s
}

func (b *bench) reader(s *Source) source.LiveReader {
	b.t.Helper()
	note := func(m map[string]int) func(string) {
		return func(id string) {
			b.mu.Lock()
			defer b.mu.Unlock()
			m[id]++
		}
	}
	r, err := s.Reader(source.Watch{CaughtUp: note(b.caught), Hold: note(b.held), AtHead: note(b.heads)})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { r.Close() })
	return r
}

// taken is what a ledger has of a split after batches.
type taken struct {
	ledger.Source
	rows []int64
}

func (k *taken) take(t *testing.T, b *record.Batch) {
	t.Helper()
	if b.FirstRow != k.NextRow {
		t.Fatalf("a batch starts at row %d, the next is %d", b.FirstRow, k.NextRow)
	}
	if b.Record != nil {
		for i := range int(b.Record.NumRows()) {
			n := b.FirstRow + int64(i)
			if b.Rows != nil {
				n = b.Rows[i]
			}
			k.rows = append(k.rows, n)
		}
		b.Record.Release()
	}
	k.NextRow += b.Count
	k.Position, k.Ended = b.Position, b.End
}

// Two partitions are read side by side to the end at the start; a run after it
// goes on at the positions, and one without messages has nothing to say.
func TestReadAndResume(t *testing.T) {
	b := newBench(t)
	b.cfg.Until = "end"
	b.produce(0, 20, 0)
	b.produce(100, 3, 1)
	state := map[string]*taken{"kafka:t/0": {}, "kafka:t/1": {}}
	for run, want := range []string{"20 3", "25 3", "25 3"} {
		s := b.source()
		known := make(map[string]ledger.Source)
		for id, k := range state {
			if k.Position != "" {
				known[id] = k.Source
			}
		}
		splits, err := s.Splits(context.Background(), known)
		if err != nil || len(splits) != 2 {
			t.Fatalf("%v, %v", splits, err)
		}
		r := b.reader(s)
		for _, sp := range splits {
			state[sp.ID].Ended = false
			if err := r.Add(sp, state[sp.ID].Source); err != nil {
				t.Fatal(err)
			}
		}
		for !state["kafka:t/0"].Ended || !state["kafka:t/1"].Ended {
			ev, err := r.Read(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			state[ev.Split].take(t, ev.Batch)
		}
		if got := fmt.Sprint(len(state["kafka:t/0"].rows), len(state["kafka:t/1"].rows)); got != want {
			t.Errorf("run %d: %s rows, want %s", run, got, want)
		}
		if run == 0 {
			b.produce(20, 5, 0)
		}
	}
	for i, n := range state["kafka:t/0"].rows {
		if n != int64(i) {
			t.Fatalf("row numbers %v", state["kafka:t/0"].rows)
		}
	}
}

// A split that is removed gives nothing more, and goes on elsewhere from its
// position; a partition that is at its end says so, again and again (K8).
func TestMoveAndCaughtUp(t *testing.T) {
	b := newBench(t)
	b.produce(0, 30, 0)
	s := b.source()
	splits, err := s.Splits(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	one, two := b.reader(s), b.reader(s)
	k := &taken{}
	if err := one.Add(splits[0], k.Source); err != nil {
		t.Fatal(err)
	}
	read := func(r source.LiveReader) source.Event {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		ev, err := r.Read(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if ev.Batch != nil {
			k.take(t, ev.Batch)
		}
		return ev
	}
	for len(k.rows) < 7 {
		read(one)
	}
	one.Remove(splits[0].ID)
	for !read(one).Removed {
	}
	had := len(k.rows)
	if err := two.Add(splits[0], k.Source); err != nil {
		t.Fatal(err)
	}
	for len(k.rows) < 30 {
		read(two)
	}
	if had >= 30 || !slices.IsSorted(k.rows) || k.rows[29] != 29 {
		t.Errorf("%d rows before the move: %v", had, k.rows)
	}
	b.mu.Lock()
	early := b.caught[splits[0].ID]
	b.mu.Unlock()
	if early > 0 {
		t.Error("it is caught up before the last batch was taken")
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() { // joined by the end of ctx
		defer cancel()
		for end := time.Now().Add(patience); b.counts()[splits[0].ID] < 2 && time.Now().Before(end); {
			time.Sleep(20 * time.Millisecond)
		}
	}()
	if _, err := two.Read(ctx); err != context.Canceled {
		t.Errorf("Read: %v", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.caught[splits[0].ID] < 2 || b.held[splits[0].ID] == 0 {
		t.Errorf("caught up %d times, held %d times", b.caught[splits[0].ID], b.held[splits[0].ID])
	}
}

// A split with more than was fetched lags, also when it is written to without a
// pause; one of which everything was fetched does not.
func TestLagIsTold(t *testing.T) {
	b := newBench(t)
	const n = 40
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range n { // together more than a reader has room for, also compressed
		wide := make([]byte, 50_000)
		for k := range wide {
			wide[k] = letters[rng.IntN(len(letters))]
		}
		b.produceText(fmt.Sprintf(`{"id":%d,"x":%q}`, i, wide), 0)
	}
	s := b.source()
	splits, err := s.Splits(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	r, k := b.reader(s), &taken{}
	heads := func() int {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.heads[splits[0].ID]
	}
	read := func() {
		t.Helper()
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		ev, err := r.Read(ctx)
		if err != nil {
			t.Fatal(err)
		}
		k.take(t, ev.Batch)
	}
	if err := r.Add(splits[0], k.Source); err != nil {
		t.Fatal(err)
	}
	for len(k.rows) == 0 {
		read()
	}
	if h := heads(); h > 0 {
		t.Errorf("with %d of %d messages it is said %d times to be at the head", len(k.rows), n, h)
	}
	for len(k.rows) < n {
		read()
	}
	if heads() == 0 {
		t.Error("everything was fetched, and it is not said to be at the head")
	}
	// Each message finds the reader where the one before ended: there is no
	// empty answer that would say so.
	for i := range 3 {
		was := heads()
		b.produce(n+i, 1, 0)
		for len(k.rows) < n+i+1 {
			read()
		}
		if heads() == was {
			t.Errorf("message %d was fetched, and it is not said to be at the head", n+i)
		}
	}
}

// Positions of another cluster or topic halt, naming both (K5); positions that
// are not there halt, naming the offsets (K7).
func TestHalts(t *testing.T) {
	b := newBench(t)
	b.produce(0, 5, 0)
	for name, c := range map[string]struct {
		position string
		want     string
	}{
		"cluster":  {`{"o":3,"e":0,"c":"elsewhere"}`, "written from cluster elsewhere"},
		"topic":    {`{"o":3,"e":0,"t":"AAAA"}`, "the topic with id AAAA"},
		"offset":   {`{"o":9,"e":0}`, "the next offset to read is 9"},
		"no sense": {`{"o":-1}`, "is not one of Kafka's"},
	} {
		_, err := b.source().Splits(context.Background(), map[string]ledger.Source{"kafka:t/0": {Position: c.position}})
		if err == nil || !strings.Contains(err.Error(), c.want) || fault.ClassOf(err) != fault.Halt {
			t.Errorf("%s: %v", name, err)
		}
	}
}
