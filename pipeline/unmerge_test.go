package pipeline

import (
	"errors"
	"strings"
	"testing"

	"github.com/hivesink/hivesink/compactor"
	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/internal/kv"
	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/storage"
	"github.com/hivesink/hivesink/storage/faultfs"
	"github.com/hivesink/hivesink/storage/memfs"
	"github.com/hivesink/hivesink/storage/memobj"
)

// merging refuses to build every unit of several parts.
func merging(cause error) func(compactor.Job) error {
	return func(j compactor.Job) error {
		if len(j.Inputs) > 1 {
			return &compactor.TargetError{Err: cause}
		}
		return nil
	}
}

// givenUp is what has become of units: how many were given up, and how many
// merged all the same.
func givenUp(t testing.TB, fs storage.FS) (units, merged int) {
	t.Helper()
	several := make(map[string]bool)
	err := ledger.ReadLog(fs, simTable, func(r *ledger.Record) error {
		units += len(r.GivenUp)
		for _, u := range r.Plan {
			several[u.ID] = len(u.Inputs) > 1
		}
		for _, p := range r.Published {
			if several[p.Unit] {
				merged++
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return units, merged
}

var (
	errPair  = fault.New(fault.Halt, "", "these two do not go together")
	errSpace = storage.Classify(&storage.Error{Op: storage.OpWrite, Name: "/x", Err: storage.ErrNoSpace})
)

// TestUnmerged: what cannot be merged, for whatever reason but a storage that
// fails, is published part by part (P8), on file systems and object stores.
func TestUnmerged(t *testing.T) {
	for name, cause := range map[string]error{"a bad pair": errPair, "no space": errSpace} {
		t.Run(name, func(t *testing.T) {
			store, disk := memobj.New(), memfs.New()
			for kind, fs := range map[string]storage.FS{"objects": store.View(nil), "files": disk} {
				s := objectSim(t, "")
				s.spoil = merging(cause)
				if err := s.run(t, fs, kv.NewMem()); err != nil {
					t.Fatalf("%s: %v", kind, err)
				}
				s.checkDone(t, fs)
				if units, merged := givenUp(t, fs); units == 0 || merged != 0 {
					t.Fatalf("%s: %d units were given up, %d merged", kind, units, merged)
				}
			}
			wantNoUploads(t, store)
		})
	}
}

// TestNotUnmerged: a storage that fails, and a part that cannot be read, end the
// run, and give nothing up.
func TestNotUnmerged(t *testing.T) {
	for name, spoil := range map[string]func(compactor.Job) error{
		"an input is gone":    func(compactor.Job) error { return errPair },
		"the storage fails":   merging(&storage.Error{Op: storage.OpWrite, Name: "/x", Err: errCut}),
		"fenced":              merging(fault.New(fault.Fenced, "", "another owner")),
		"one part is damaged": func(compactor.Job) error { return &compactor.TargetError{Err: errPair} },
	} {
		t.Run(name, func(t *testing.T) {
			fs, s := memfs.New(), newSim()
			s.spoil = spoil
			if err := s.run(t, fs, kv.NewMem()); err == nil {
				t.Fatal("the run ends well")
			}
			s.checkNow(t, fs)
			units, _ := givenUp(t, fs)
			if name != "one part is damaged" && units > 0 { // of that, the others of its unit go first
				t.Fatalf("%d units were given up", units)
			}
			r := s.again()
			if err := r.run(t, fs, kv.NewMem()); err != nil {
				t.Fatal(err)
			}
			r.checkDone(t, fs)
		})
	}
}

// TestUnmergedAsItIs: with no space at all for targets, a part with a file of its
// own is published as it is, in another codec than the table has by now.
func TestUnmergedAsItIs(t *testing.T) {
	s := newSim()
	s.small = 1 // every part has a file of its own
	s.spoil = func(compactor.Job) error { return &storage.Error{Op: storage.OpWrite, Name: "/x", Err: errCut} }
	mem := memfs.New()
	if err := s.run(t, mem, kv.NewMem()); !errors.Is(err, errCut) {
		t.Fatal(err)
	}
	r := s.again()
	r.yaml = strings.Replace(r.yaml, "  columns:", "  compression: snappy\n  columns:", 1)
	fs := faultfs.New(mem)
	fs.Inject(faultfs.Rule{Kind: storage.OpWrite, Glob: "*.target", Times: faultfs.Always, Err: &storage.NoSpaceError{Err: errors.New("full")}}).MustFire(t)
	if err := r.run(t, fs, nil); err != nil {
		t.Fatal(err)
	}
	if n := modes(t, mem); n[ledger.ModePublish] == 0 || len(n) > 1 {
		t.Fatalf("not all parts were published as they are: %v", n)
	}
	r.checkDone(t, mem)
}

// TestUnmergedCrash stops a run in which nothing can be merged at every
// operation; the next process can merge, or cannot either.
func TestUnmergedCrash(t *testing.T) {
	watch := faultfs.New(memfs.New())
	s := newSim()
	s.spoil = merging(errPair)
	if err := s.run(t, watch, kv.NewMem()); err != nil {
		t.Fatal(err)
	}
	for k := 1; k <= watch.Ops()-4; k += 9 * stride() {
		mem := memfs.New()
		fs := faultfs.New(mem)
		fs.CrashAt(k, k%2 == 0)
		s := newSim()
		s.spoil = merging(errPair)
		if err := s.run(t, fs, kv.NewMem()); !errors.Is(err, faultfs.ErrCrashed) {
			t.Fatalf("operation %d: the crash did not stop the run: %v", k, err)
		}
		for _, image := range []*memfs.FS{mem.Kill(), mem.Crash(memfs.Random, uint64(k))} {
			s.checkNow(t, image)
			for _, spoil := range []func(compactor.Job) error{nil, s.spoil} {
				r, image := s.again(), image.Kill()
				r.spoil = spoil
				if err := r.run(t, image, nil); err != nil {
					t.Fatalf("operation %d: restart: %v", k, err)
				}
				r.checkDone(t, image)
			}
		}
	}
}

// TestUnmergedObjectsCrash does the same at every request to an object store, the
// answer lost.
func TestUnmergedObjectsCrash(t *testing.T) {
	for k := 1; ; k += 8 * stride() {
		store, s := memobj.New(), objectSim(t, "")
		s.spoil = merging(errPair)
		dead := false
		view := store.View(func(step memobj.Step) memobj.Fate {
			switch {
			case step.N == k:
				dead = true
				return memobj.Fate{After: errCut}
			case dead:
				return memobj.Fate{Before: errCut}
			}
			return memobj.Fate{}
		})
		_ = s.run(t, view, kv.NewMem()) // it cannot end well but at its very end
		if k > view.Steps() {
			break
		}
		s.checkNow(t, store.View(nil))
		r := s.again()
		if err := r.run(t, store.View(nil), nil); err != nil {
			t.Fatalf("request %d: restart: %v", k, err)
		}
		r.checkDone(t, store.View(nil))
		wantNoUploads(t, store)
	}
}
