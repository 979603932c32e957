package pipeline

import (
	"context"
	"testing"

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
