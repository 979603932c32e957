package pipeline

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hivesink/hivesink/internal/kv"
	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/storage"
	"github.com/hivesink/hivesink/storage/faultfs"
	"github.com/hivesink/hivesink/storage/memfs"
	"github.com/hivesink/hivesink/watermark"
)

// TestReadingWaitsForNoPublication: what a reader needs to begin is answered
// while the chain publishes, however long that takes (P4).
func TestReadingWaitsForNoPublication(t *testing.T) {
	fs := faultfs.New(memfs.New())
	s := newSim()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cfg := s.config(t)
	cfg.Compaction.Policy = "checkpoint"
	p, err := Open(ctx, Options{Config: cfg, Version: "test", FS: fs, Index: kv.NewMem(), NoLock: true})
	if err != nil {
		t.Fatal(err)
	}
	publishing, hold := make(chan struct{}), make(chan struct{})
	stuck := fs.Inject(faultfs.Rule{Kind: storage.OpRename, Glob: "part-*.parquet", Do: func(faultfs.Op) {
		close(publishing)
		<-hold
	}}).MustFire(t)
	lane, err := p.NewLane()
	if err != nil {
		t.Fatal(err)
	}
	from, err := p.Own(ctx, simSources[0])
	if err != nil {
		t.Fatal(err)
	}
	lane.Adopt(simSources[0], from)
	b := s.batch(p.schema, 0, 0)
	if _, err := lane.Write(ctx, simSources[0], b); err != nil {
		t.Fatal(err)
	}
	b.Record.Release()
	if err := p.Checkpoint(ctx); err != nil {
		t.Fatal(err)
	}
	<-publishing
	known, err := p.Sources(ctx)
	if err != nil || known[simSources[0]].NextRow != simBatch {
		t.Errorf("while a file is published: %v, source partitions %v", err, known)
	}
	if from, err := p.Own(ctx, simSources[0]); err != nil || from.NextRow != simBatch {
		t.Errorf("while a file is published: %v, the source partition goes on at %d", err, from.NextRow)
	}
	if err := p.CaughtUp(simSources[0]); err != nil {
		t.Error(err)
	}
	close(hold)
	if stuck.Fired() != 1 {
		t.Errorf("%d files were held up", stuck.Fired())
	}
	if err := p.Release(); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Own(ctx, simSources[0]); err == nil {
		t.Error("a pipeline that is closed lends a source partition")
	}
}

// TestIdleOutlivesCheckpoint: who has said that there is nothing to read has said
// so, also when a checkpoint takes what was written before.
func TestIdleOutlivesCheckpoint(t *testing.T) {
	const minute = int64(60_000_000)
	i := newIntake(ledger.NewState(), watermark.Options{IdleTimeout: minute})
	i.own("a")
	i.own("b")
	moved := func(at int64) map[string]ledger.Source { return map[string]ledger.Source{"a": {Watermark: at}} }
	now := int64(1_000_000_000)
	i.written("a")
	i.caughtUp("a", now)
	i.observe(moved(100), 0, now+1)
	i.observe(map[string]ledger.Source{"b": {Watermark: 500}}, 0, now+2)
	if w := i.observe(nil, 0, now+minute-1); w != 100 {
		t.Errorf("before the timeout: watermark %d, want 100", w)
	}
	if w := i.observe(nil, 0, now+minute); w != 500 {
		t.Errorf("after the timeout: watermark %d, want 500: a is idle", w)
	}
	i.observe(map[string]ledger.Source{"b": {Watermark: 900}}, 0, now+minute)
	i.written("a")
	if w := i.observe(nil, 0, now+2*minute); w != 900 { // never back
		t.Errorf("watermark %d, want 900", w)
	}
	i.observe(moved(700), 0, now+2*minute)
	if w := i.observe(map[string]ledger.Source{"b": {Watermark: 2000}}, 0, now+4*minute); w != 900 {
		t.Errorf("with rows of a again: watermark %d, want 900", w)
	}
}

// TestCaughtUpSince: what lags with one source partition lags; a pause of less
// than a minute is no lag.
func TestCaughtUpSince(t *testing.T) {
	const second, minute = int64(1_000_000), int64(60_000_000)
	i := newIntake(ledger.NewState(), watermark.Options{})
	at := 100 * minute
	is := func(what string, want int64) {
		t.Helper()
		if got := i.caughtUpSince(at); got != want {
			t.Errorf("%s: since %d s, want %d s", what, (got-100*minute)/second, (want-100*minute)/second)
		}
	}
	is("nobody tells", 0)
	i.follow("a")
	i.follow("b")
	is("nothing was said", at)
	i.atHead("a", at)
	at += second
	is("of one nothing was said", at)
	i.atHead("b", at)
	both := at
	at += minute - second
	i.atHead("a", at)
	is("within a minute", both)
	i.follow("b") // again
	at += second + 1
	is("more than a minute ago", at)
	i.atHead("b", at)
	again := at
	at += second
	i.atHead("a", at)
	is("caught up again", again)
	i.atHead("x", at) // not followed
	i.unfollow("b")
	is("one has ended", 100*minute)
}

// TestIdleSinceTheCut: a source partition that has rows after a checkpoint was
// cut, and is idle again before it is written, holds the checkpoint's watermark:
// the rows are not in it, and it must not say that they are (watermark T7).
func TestIdleSinceTheCut(t *testing.T) {
	const second, minute = int64(1_000_000), int64(60_000_000)
	i := newIntake(ledger.NewState(), watermark.Options{IdleTimeout: minute})
	i.own("a")
	i.own("b")
	now := 1000 * minute
	i.observe(map[string]ledger.Source{"a": {Watermark: 100}, "b": {Watermark: 500}}, 0, now)
	quiet := func(long int64) {
		for end := now + long; now < end; now += second {
			i.polled("a", now)
		}
	}
	// Cut, then a row of a, which goes to the next checkpoint, then nothing for so
	// long that a is idle when all parts are written.
	i.cutting(now)
	now += second
	i.hold("a")
	quiet(2 * minute)
	if w := i.observe(map[string]ledger.Source{"b": {Watermark: 900}}, 0, now); w != 100 {
		t.Errorf("watermark %d, want 100: a had a row that the checkpoint does not have", w)
	}
	// The next one has the row, and a is idle.
	i.cutting(now)
	if w := i.observe(nil, 0, now); w != 900 {
		t.Errorf("watermark %d, want 900: a is idle", w)
	}
	// A row in between, although a was idle before it and is idle after it.
	i.cutting(now)
	i.hold("a")
	quiet(2 * minute)
	if w := i.observe(map[string]ledger.Source{"b": {Watermark: 1500}}, 0, now); w != 900 {
		t.Errorf("watermark %d, want 900: a had a row that the checkpoint does not have", w)
	}
	// What was idle all the time does not hold.
	i.cutting(now)
	quiet(minute)
	if w := i.observe(map[string]ledger.Source{"b": {Watermark: 2000}}, 0, now); w != 2000 {
		t.Errorf("watermark %d, want 2000", w)
	}
}

// TestDelayWaitsForABacklog: a process-time delay counts from when reading keeps up
// with the source. While it lags, what it has not read yet may be of any partition.
func TestDelayWaitsForABacklog(t *testing.T) {
	policy := newService()
	policy.works()
	yaml := strings.Replace(fmt.Sprintf(besideYAML, t.TempDir()), "commit: {policies", "commit: {delay: 10m, policies", 1)
	p, now := clocked(t, &sim{yaml: yaml, rounds: 1}, policy)
	minute := time.Minute.Microseconds()
	p.c.intake.follow("lags")
	advance(t, p)
	if p.Stats.PublishedFiles.Load() == 0 {
		t.Fatal("nothing is published")
	}
	*now += 20 * minute
	advance(t, p)
	if n := p.Stats.Announced.Load(); n != 0 {
		t.Fatalf("%d partitions announced by a delay of 10m, 20m behind the source", n)
	}
	for m := range 21 {
		p.c.intake.atHead("lags", *now)
		advance(t, p)
		if n := p.Stats.Announced.Load(); n > 0 && m < 20 {
			t.Fatalf("%d partitions announced %s after it has caught up", n, time.Duration(m)*30*time.Second)
		}
		*now += minute / 2
	}
	advance(t, p)
	if p.Stats.Announced.Load() == 0 {
		t.Fatal("nothing is announced, although it has kept up for longer than the delay")
	}
}
