package kafka

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/hivesink/hivesink/ledger"
)

// A run ends before the first message of a time that was in the future when it
// started, also when that message was there before the time came; the run after
// it begins with that message (K9).
func TestUntilATimeInTheFuture(t *testing.T) {
	t.Run("messages before the time", func(t *testing.T) { untilLater(t, false) })
	t.Run("all fetched before the end is known", func(t *testing.T) { untilLater(t, true) })
}

const firstSplit = "kafka:t/0"

func untilLater(t *testing.T, wait bool) {
	b := newBench(t)
	until := time.Now().Add(1500 * time.Millisecond)
	for i := range 20 {
		r := &kgo.Record{Partition: 0, Timestamp: until.Add(time.Duration(i-12) * time.Minute), Value: fmt.Appendf(nil, `{"id":%d}`, i)}
		if err := b.client.ProduceSync(context.Background(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	k := &taken{}
	b.cfg.Until = until.Format(time.RFC3339Nano)
	b.readToEnd(k, wait)
	if len(k.rows) != 12 || k.NextRow != 12 {
		t.Errorf("the run until %s took %d rows and stands at row %d, want 12", until, len(k.rows), k.NextRow)
	}
	b.cfg.Until = "end"
	b.readToEnd(k, false)
	if len(k.rows) != 20 {
		t.Errorf("with the run after it %d rows are read, want 20: %v", len(k.rows), k.rows)
	}
}

// readToEnd is a bounded run of the first partition. wait lets it take nothing
// until its end is known.
func (b *bench) readToEnd(k *taken, wait bool) {
	b.t.Helper()
	var known map[string]ledger.Source
	if k.Position != "" {
		known = map[string]ledger.Source{firstSplit: k.Source}
	}
	s := b.source()
	splits, err := s.Splits(context.Background(), known)
	if err != nil {
		b.t.Fatal(err)
	}
	r := b.reader(s)
	k.Ended = false
	if err := r.Add(splits[0], k.Source); err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() { s.Grown(ctx) }) //nolint:errcheck // it ends with ctx
	for wait && s.splits[firstSplit].end.Load() == noEnd {
		if ctx.Err() != nil {
			b.t.Fatal("the end is never known")
		}
		time.Sleep(5 * time.Millisecond)
	}
	for !k.Ended {
		ev, err := r.Read(ctx)
		if err != nil {
			b.t.Fatal(err)
		}
		k.take(b.t, ev.Batch)
	}
}
