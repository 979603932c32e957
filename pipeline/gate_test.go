package pipeline

import (
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/hivesink/hivesink/config"
	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/source"
	"github.com/hivesink/hivesink/storage"
	"github.com/hivesink/hivesink/storage/localfs"
	"github.com/hivesink/hivesink/storage/memobj"
	"github.com/hivesink/hivesink/writer"
)

const gatedRows = 200000

// gated is a run of four readers that meet limits.staging.
type gated struct {
	dir string
	fs  storage.FS
	p   *Pipeline
	src source.Source
}

// newGated opens one with more options; fs nil: on the disk.
func newGated(t *testing.T, fs storage.FS, more string) *gated {
	t.Helper()
	g := &gated{dir: t.TempDir(), fs: fs}
	yaml := strings.NewReplacer("{dir}", g.dir).Replace(`
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
compaction: {policy: hold, max_delay: 1h}
` + more)
	if fs != nil {
		if err := fs.Mkdir(filepath.ToSlash(g.dir)); err != nil {
			t.Fatal(err)
		}
	}
	g.p, g.src = openDatagen(t, yaml, fs)
	return g
}

// openDatagen opens a pipeline that reads a datagen; fs nil: on the disk.
func openDatagen(t *testing.T, yaml string, fs storage.FS) (*Pipeline, source.Source) {
	t.Helper()
	cfg, err := config.Parse("gate.yaml", []byte(yaml), nil)
	if err != nil {
		t.Fatal(err)
	}
	p, err := Open(context.Background(), Options{Config: cfg, Version: "test", FS: fs})
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
	return p, src
}

// run goes to the end of input; atEnd looks at the pipeline before it is given up.
func (g *gated) run(t *testing.T, atEnd func()) {
	t.Helper()
	if err := g.p.Run(context.Background(), g.src); err != nil {
		t.Fatal(err)
	}
	atEnd()
	if err := g.p.Release(); err != nil {
		t.Fatal(err)
	}
	fs := g.fs
	if fs == nil {
		fs = localfs.New()
	}
	ids, _ := visible(t, fs, filepath.ToSlash(filepath.Join(g.dir, "t")))
	if len(ids) != gatedRows || len(slices.Compact(ids)) != gatedRows {
		t.Fatalf("%d rows visible", len(ids))
	}
}

// TestStagingLimit: with hardly any room for hidden files, four readers that wait
// for compaction, if they are faster than it, all come to their end (P4).
func TestStagingLimit(t *testing.T) {
	newGated(t, nil, "checkpoint: {interval: 10ms}\nlimits: {staging: 100KB}\n").run(t, func() {})
}

// TestPartFilesCount: part files that no checkpoint names yet count for
// limits.staging. There is no checkpoint but the one that a reader asks for
// because it would wait (P4).
func TestPartFilesCount(t *testing.T) {
	g := newGated(t, nil, "checkpoint: {interval: 1h}\nrolling: {rows: 1000}\nlimits: {staging: 500KB}\n")
	c := g.p.c
	var most atomic.Int64
	c.events = func(Event) { // nothing is written yet
		open, closed := c.writer.Hidden()
		most.Store(max(most.Load(), open+closed+c.staged.Load()))
	}
	g.run(t, func() {
		if open, closed := c.writer.Hidden(); open != 0 || closed != 0 {
			t.Errorf("%d and %d bytes are in no checkpoint at the end", open, closed)
		}
		// Each reader may be a batch beyond it.
		if n, waits := most.Load(), g.p.Stats.Waits.Load(); waits == 0 || n > 500<<10+4*source.DefaultBatchBytes {
			t.Errorf("%d waits, up to %d hidden bytes", waits, n)
		}
	})
}

// TestSpoolCounts: on a remote storage the files that are open fill the spool,
// and count for limits.staging. There is no checkpoint but the one that a reader
// asks for because it would wait (P4).
func TestSpoolCounts(t *testing.T) {
	g := newGated(t, memobj.New().View(nil), "checkpoint: {interval: 1h}\nlimits: {staging: 100KB, memory: 16MB}\n")
	spooled := g.p.c.spooled
	if spooled == nil {
		t.Fatal("a store without a spool")
	}
	var most atomic.Int64
	g.p.c.spooled = func() int64 {
		n := spooled()
		most.Store(max(most.Load(), n))
		return n
	}
	g.run(t, func() {
		if g.p.Stats.Waits.Load() == 0 {
			t.Errorf("nobody waited; the spool held up to %d bytes", most.Load())
		}
	})
	if n := spooled(); n != 0 {
		t.Errorf("%d bytes are left in the spool", n)
	}
}

// TestGateEasesAll: four wait at the gate; one token for all is passed on, and
// everyone comes through when the staged bytes have gone down once (P4).
func TestGateEasesAll(t *testing.T) {
	p := &Pipeline{c: &chain{stage: 100, staging: newStaging(&ledger.State{}), eased: make(token, 1), writer: new(writer.Options)},
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

// TestPartitionsWithoutEnd: a wrong partition column is found out when the limit
// is passed, and not at the next checkpoint, for which there may be no memory.
// What is known already is not counted.
func TestPartitionsWithoutEnd(t *testing.T) {
	dir := t.TempDir()
	run := func(rows, limit string) (*Pipeline, error) {
		t.Helper()
		yaml := strings.NewReplacer("{dir}", dir, "{rows}", rows, "{limit}", limit).Replace(`
pipeline: gate
state_dir: {dir}/state
source:
  datagen: {rows: {rows}}
table:
  name: t
  location: {dir}/t
  columns: [id bigint, ts timestamp]
  partitioned_by: [id]
checkpoint: {interval: 1h}
limits: {new_partitions_per_checkpoint: {limit}}
`)
		p, src := openDatagen(t, yaml, nil)
		return p, errors.Join(p.Run(context.Background(), src), p.Release())
	}
	p, err := run("300000", "50")
	if fault.ClassOf(err) != fault.Halt || !strings.Contains(err.Error(), "new_partitions_per_checkpoint") {
		t.Fatalf("the run ends with %v", err)
	}
	if n := p.Stats.RowsRead.Load(); n > 20000 {
		t.Errorf("%d records were read before", n)
	}
	if p, err = run("60", "60"); err != nil {
		t.Fatal(err)
	}
	for i, known := range map[string]bool{"id=1": true, "id=100000": false} {
		if p.c.intake.named(ledger.MainTable, i) != known {
			t.Errorf("%s: known %v", i, !known)
		}
	}
}
