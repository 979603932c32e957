package pipeline

import (
	"path"
	"testing"

	"github.com/hivesink/hivesink/internal/kv"
	"github.com/hivesink/hivesink/layout"
	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/storage"
	"github.com/hivesink/hivesink/storage/faultfs"
	"github.com/hivesink/hivesink/storage/memfs"
)

// TestRenameThatDoesNothing: EO-02. Each rename of a run in turn answers well and
// does nothing. A record of the log that is not there is not acknowledged, and a
// target that is not there is not noted; whatever became of the run, the next
// one ends with every row there once.
func TestRenameThatDoesNothing(t *testing.T) {
	clean := faultfs.New(memfs.New())
	if err := newSim().run(t, clean, kv.NewMem()); err != nil {
		t.Fatal(err)
	}
	records, targets, n := 0, 0, 0
	for _, op := range clean.Trace() {
		if op.Kind != storage.OpRename {
			continue
		}
		n++
		mem := memfs.New()
		fs := faultfs.New(mem)
		fs.Inject(faultfs.Rule{Kind: storage.OpRename, Nth: n, NoEffect: true}).MustFire(t)
		s := newSim()
		cfg := s.config(t)
		cfg.OnCheckpoint = func(positions map[string]string) {
			st, err := ledger.Read(mem, simTable)
			for name, at := range positions {
				if err != nil || st.Sources[name] == nil || st.Sources[name].Position != at {
					t.Errorf("rename %d (%v): position %s of %s is acknowledged, and the log does not have it: %v", n, op, at, name, err)
				}
			}
		}
		err := s.runWith(t, cfg, fs, kv.NewMem())
		_, isRecord := layout.ParseLogFile(path.Base(op.To))
		_, _, isTarget := layout.ParsePartFile(path.Base(op.To))
		if isRecord {
			records++
		}
		if isTarget {
			targets++
		}
		if (isRecord || isTarget) && err == nil {
			t.Errorf("rename %d (%v) did nothing, and the run says that all is well", n, op)
		}
		s.checkNow(t, mem)
		again := s.again()
		if err := again.run(t, mem, nil); err != nil {
			t.Errorf("rename %d (%v): the next run: %v", n, op, err)
			continue
		}
		again.checkDone(t, mem)
	}
	if records < 10 || targets < 5 {
		t.Fatalf("%d records, %d targets", records, targets)
	}
}
