package pipeline

import (
	"context"
	"testing"
	"time"

	"github.com/hivesink/hivesink/internal/kv"
	"github.com/hivesink/hivesink/storage"
	"github.com/hivesink/hivesink/storage/faultfs"
	"github.com/hivesink/hivesink/storage/memfs"
)

// TestReadingWaitsForNoPublication: what a reader needs to begin is answered
// while the chain publishes, however long that takes (P4).
func TestReadingWaitsForNoPublication(t *testing.T) {
	fs := faultfs.New(memfs.New())
	s := newSim()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
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
