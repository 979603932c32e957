package pipeline

import (
	"context"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/hivesink/hivesink/config"
	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/source"
	"github.com/hivesink/hivesink/storage/localfs"
)

// TestStagingLimit: with hardly any room for hidden files, four readers that wait
// for compaction, if they are faster than it, all come to their end (P4).
func TestStagingLimit(t *testing.T) {
	dir := t.TempDir()
	yaml := strings.NewReplacer("{dir}", dir).Replace(`
pipeline: gate
state_dir: {dir}/state
source:
  datagen: {rows: 200000}
  readers: 4
table:
  name: t
  location: {dir}/t
  columns: [id bigint, ts timestamp, name string]
  partitioned_by: [{dt: date(ts)}]
checkpoint: {interval: 10ms}
compaction: {policy: hold, max_delay: 1h}
limits: {staging: 100KB}
`)
	cfg, err := config.Parse("gate.yaml", []byte(yaml), nil)
	if err != nil {
		t.Fatal(err)
	}
	p, err := Open(context.Background(), Options{Config: cfg, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	o, err := SourceOptions(cfg, p.Schema())
	if err != nil {
		t.Fatal(err)
	}
	src, err := source.NewDatagen(DatagenOptions(cfg), o)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Run(context.Background(), src); err != nil {
		t.Fatal(err)
	}
	if err := p.Release(); err != nil {
		t.Fatal(err)
	}
	ids, _ := visible(t, localfs.New(), filepath.ToSlash(filepath.Join(dir, "t")))
	if len(ids) != 200000 || len(slices.Compact(ids)) != 200000 {
		t.Fatalf("%d rows visible", len(ids))
	}
}

// TestGateEasesAll: four wait at the gate; one token for all is passed on, and
// everyone comes through when the staged bytes have gone down once (P4).
func TestGateEasesAll(t *testing.T) {
	p := &Pipeline{c: &chain{stage: 100, staging: newStaging(&ledger.State{}), eased: make(chan struct{}, 1)},
		failed: make(chan struct{}), stopped: make(chan struct{})}
	p.c.staging.bytes = 101
	p.c.restage()
	through := make(chan error)
	for range 4 {
		go func() { through <- p.Gate(t.Context()) }()
	}
	for p.Stats.Waits.Load() < 4 {
		select {
		case err := <-through:
			t.Fatalf("let through with 101 of 100 bytes staged: %v", err)
		default:
			runtime.Gosched()
		}
	}
	p.c.staging.bytes = 100
	p.c.restage()
	for range 4 {
		if err := <-through; err != nil {
			t.Fatal(err)
		}
	}
}
