package maintenance

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/hivesink/hivesink/layout"
	"github.com/hivesink/hivesink/storage"
	"github.com/hivesink/hivesink/storage/faultfs"
	"github.com/hivesink/hivesink/storage/memfs"
)

// A crashWorld is a table to be compacted once, and what is true of it at every
// moment.
type crashWorld struct {
	drawn  uint64
	name   string
	make   func(testing.TB) *memfs.FS
	window bool
	rows   int
	now    func(t testing.TB, fs storage.FS, before map[string][]string) // of any image
	end    func(t testing.TB, fs storage.FS)
}

var crashWorlds = []crashWorld{
	{name: "exchange", make: foreign, rows: foreignRows, now: oldOrNew, end: wantOthers},
	{name: "window", make: flat, window: true, rows: 40, now: nothingMissing, end: func(testing.TB, storage.FS) {}},
}

// flat is a table without partitions.
func flat(t testing.TB) *memfs.FS {
	fsys := memfs.New()
	for i := range 4 {
		put(t, fsys, fmt.Sprintf("%s/f-%d.parquet", root, i), fileOf(t, 10*i, 10*i+10, nil))
	}
	return fsys
}

// oldOrNew: each partition has exactly its old files, or none of them and one
// new one; every row is there once.
func oldOrNew(t testing.TB, fs storage.FS, before map[string][]string) {
	t.Helper()
	names, ids := look(t, fs)
	wantIDs(t, ids, foreignRows)
	for dir, old := range before {
		if now := names[dir]; !slices.Equal(now, old) && (len(now) != 1 || slices.Contains(old, now[0])) {
			t.Fatalf("%s has %v: neither the old files nor the new one", dir, now)
		}
	}
	wantOthers(t, fs)
}

// nothingMissing is all that a window promises.
func nothingMissing(t testing.TB, fs storage.FS, _ map[string][]string) {
	t.Helper()
	_, ids := look(t, fs)
	wantIDs(t, slices.Compact(ids), 40)
}

func (w *crashWorld) options(fs storage.Exchanger) Options {
	o := options(fs)
	o.AllowWindow = w.window
	// No run draws what another has drawn: names are 64 random bits.
	o.Random = func() uint64 { w.drawn++; return 0xfeed0000 + w.drawn }
	return o
}

func (w *crashWorld) finished(t testing.TB, fs storage.FS) {
	t.Helper()
	names, ids := look(t, fs)
	wantIDs(t, ids, w.rows)
	for dir, files := range names {
		if len(files) != 1 {
			t.Fatalf("%s has %v in the end", dir, files)
		}
	}
	wantClean(t, fs)
	w.end(t, fs)
}

// images are what a kill and power cuts leave.
func images(mem *memfs.FS, k int) map[string]*memfs.FS {
	return map[string]*memfs.FS{
		"kill": mem.Kill(), "synced-only": mem.Crash(memfs.SyncedOnly, 0), "everything": mem.Crash(memfs.Everything, 0),
		"random": mem.Crash(memfs.Random, uint64(k)), "random again": mem.Crash(memfs.Random, uint64(1000+k)),
		"ordered": mem.Crash(memfs.Ordered, uint64(k)),
	}
}

// TestCrashAtEveryOperation stops a run before and after each of its storage
// operations, looks as a reader at what a kill and power cuts leave, lets a
// second run finish it, and for some stops that one as well.
func TestCrashAtEveryOperation(t *testing.T) {
	only, _ := strconv.Atoi(os.Getenv("HIVESINK_OP"))
	for _, w := range crashWorlds {
		t.Run(w.name, func(t *testing.T) {
			clean := faultfs.New(w.make(t))
			before, _ := look(t, clean)
			skip := clean.Ops()
			run(t, w.options(clean))
			total := clean.Ops()
			w.finished(t, clean)
			seen := map[string]int{}
			for k := skip + 1; k <= total; k++ {
				if only != 0 && only != k {
					continue
				}
				for _, after := range []bool{false, true} {
					w.crash(t, k, skip, after, before, seen)
				}
			}
			t.Logf("%d operations; images: %v", total-skip, seen)
			if only == 0 && (seen["old"] == 0 || seen["new"] == 0 || seen["settled"] == 0) {
				t.Errorf("the crashes did not show old, new and settled: %v", seen)
			}
		})
	}
}

func (w *crashWorld) crash(t *testing.T, k, skip int, after bool, before map[string][]string, seen map[string]int) {
	t.Helper()
	mem := w.make(t)
	fsys := faultfs.New(mem)
	fsys.CrashAt(k-skip, after)
	_, err := Run(context.Background(), w.options(fsys))
	select {
	case <-fsys.Crashed():
	default:
		t.Fatalf("operation %d: the crash did not fire: %v", k, err)
	}
	defer func() {
		if t.Failed() {
			t.Logf("operation %d, after=%v; again: HIVESINK_OP=%d go test ./maintenance -run CrashAtEvery/%s", k, after, k, w.name)
		}
	}()
	all := images(mem, k)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		image := all[name]
		w.now(t, image, before)
		was, _ := look(t, image)
		for dir := range before {
			if slices.Equal(was[dir], before[dir]) {
				seen["old"]++
			} else {
				seen["new"]++
			}
		}
		if name == "kill" {
			for i := range 3 {
				w.crashAgain(t, image.Kill(), before, uint64(3*k+i))
			}
		} else if k%8 == 0 {
			w.crashAgain(t, image.Kill(), before, uint64(k))
		}
		rep, err := Run(context.Background(), w.options(image))
		if err != nil {
			t.Fatalf("image %s of operation %d: the next run: %v", name, k, err)
		}
		seen["settled"] += rep.Settled
		w.finished(t, image)
		// MT4: what was exchanged already is not exchanged again.
		now, _ := look(t, image)
		for dir, files := range was {
			if !slices.Equal(files, before[dir]) && !w.window && !slices.Equal(files, now[dir]) {
				t.Fatalf("image %s: %s was exchanged twice: %v, then %v", name, dir, files, now[dir])
			}
		}
	}
}

// crashAgain stops the redo somewhere, too.
func (w *crashWorld) crashAgain(t *testing.T, image *memfs.FS, before map[string][]string, seed uint64) {
	t.Helper()
	dry := faultfs.New(image.Kill())
	run(t, w.options(dry))
	k := 1 + rand.New(rand.NewPCG(seed, 7)).IntN(dry.Ops())
	fsys := faultfs.New(image)
	fsys.CrashAt(k, seed%2 == 0)
	if _, err := Run(context.Background(), w.options(fsys)); err == nil || !errors.Is(err, faultfs.ErrCrashed) {
		// Errors of one partition are in the report; a crash at the very end is
		// nobody's.
		_ = err
	}
	all := images(image, k)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		second := all[name]
		w.now(t, second, before)
		if _, err := Run(context.Background(), w.options(second)); err != nil {
			t.Fatalf("second crash at operation %d, image %s: %v", k, name, err)
		}
		w.finished(t, second)
	}
}

// TestCrashOfRedo kills a run at each operation from its commit marker on, and
// stops the run that goes on at each of its operations: what that one saw in
// memory may be gone after a power cut (MT4).
func TestCrashOfRedo(t *testing.T) {
	for _, w := range crashWorlds {
		t.Run(w.name, func(t *testing.T) {
			clean := faultfs.New(w.make(t))
			before, _ := look(t, clean)
			skip := clean.Ops()
			run(t, w.options(clean))
			first := slices.IndexFunc(clean.Trace(), func(op faultfs.Op) bool { return path.Base(op.Name) == layout.CompactMarker })
			tried, step := 0, 1
			if !w.window {
				step = 7 // of the exchange, crash tries pairs too
			}
			if testing.Short() {
				step *= 3
			}
			for k := first + 1; k <= clean.Ops() && (!testing.Short() || k <= first+8); k++ {
				mem := w.make(t)
				fsys := faultfs.New(mem)
				fsys.CrashAt(k-skip, true)
				Run(context.Background(), w.options(fsys)) //nolint:errcheck // it crashes
				dry := faultfs.New(mem.Kill())
				run(t, w.options(dry))
				settled := slices.IndexFunc(dry.Trace(), func(op faultfs.Op) bool { return op.Name == root && op.Kind == storage.OpList })
				for second := 1; second <= min(settled+1, dry.Ops()); second += step {
					again := mem.Kill()
					redo := faultfs.New(again)
					redo.CrashAt(second, true)
					Run(context.Background(), w.options(redo)) //nolint:errcheck // it crashes
					all := images(again, 1000*k+second)
					for _, name := range slices.Sorted(maps.Keys(all)) {
						image := all[name]
						tried++
						w.now(t, image, before)
						if _, err := Run(context.Background(), w.options(image)); err != nil {
							t.Fatalf("killed after operation %d (%s), redo stopped after %d (%s), image %s: %v", k, clean.Trace()[k-1], second, redo.Trace()[second-1], name, err)
						}
						w.finished(t, image)
						if t.Failed() {
							t.Fatalf("killed after operation %d (%s), redo stopped after %d (%s), image %s", k, clean.Trace()[k-1], second, redo.Trace()[second-1], name)
						}
					}
				}
			}
			t.Logf("%d pairs of crashes", tried)
			if tried < 40 {
				t.Errorf("only %d pairs of crashes", tried)
			}
		})
	}
}

// TestErrorAtEveryOperation makes each operation fail once, before or after it
// took effect. Whatever the run makes of it, readers see old or new, and the
// next run finishes.
func TestErrorAtEveryOperation(t *testing.T) {
	errDisk := errors.New("disk on fire")
	for _, w := range crashWorlds {
		t.Run(w.name, func(t *testing.T) {
			clean := faultfs.New(w.make(t))
			before, _ := look(t, clean)
			skip := clean.Ops()
			run(t, w.options(clean))
			for k := 1; k <= clean.Ops()-skip; k++ {
				for _, when := range []faultfs.When{faultfs.Before, faultfs.After} {
					mem := w.make(t)
					fsys := faultfs.New(mem)
					n := 0
					fsys.Inject(faultfs.Rule{Err: errDisk, When: when, Times: faultfs.Always, Match: func(faultfs.Op) bool { n++; return n == k }}).MustFire(t)
					_, _ = Run(context.Background(), w.options(fsys)) // the error may be a partition's
					w.now(t, mem, before)
					mem = mem.Kill() // a lock that was taken and reported as not
					if _, err := Run(context.Background(), w.options(mem)); err != nil {
						t.Fatalf("operation %d (%v), %v: the next run: %v", k, clean.Trace()[skip+k-1], when, err)
					}
					w.finished(t, mem)
				}
			}
		})
	}
}

// MT5: what another program does between plan and exchange.
func TestChangedMeanwhile(t *testing.T) {
	for _, c := range []struct {
		name string
		does func(t *testing.T, fs storage.FS)
		rows int // in dt=0 in the end of the first run
	}{
		{"a new file", func(t *testing.T, fs storage.FS) { put(t, fs, root+"/dt=0/late.parquet", fileOf(t, 70, 80, nil)) }, 40},
		{"a file is gone", func(t *testing.T, fs storage.FS) { check(t, fs.Remove(root+"/dt=0/f-1.parquet")) }, 20},
		{"a file is another one", func(t *testing.T, fs storage.FS) {
			check(t, fs.Remove(root+"/dt=0/f-1.parquet"))
			put(t, fs, root+"/dt=0/f-1.parquet", fileOf(t, 70, 90, nil))
		}, 40},
		{"a marker is gone", func(t *testing.T, fs storage.FS) { check(t, fs.Remove(root+"/dt=0/_SUCCESS")) }, 30},
	} {
		t.Run(c.name, func(t *testing.T) {
			mem := foreign(t)
			fsys := faultfs.New(mem)
			// The first target is verified: the moment between build and exchange.
			var once sync.Once
			fsys.Inject(faultfs.Rule{Kind: storage.OpOpen, Glob: "*.target", Err: errors.New("never"),
				Match: func(faultfs.Op) bool { once.Do(func() { c.does(t, mem) }); return false }})
			rep := run(t, options(fsys))
			p := outcome(t, rep, "dt=0", LeftAlone)
			if !contains(p.Reason, "changed while") {
				t.Errorf("it says: %s", p.Reason)
			}
			outcome(t, rep, "dt=1", Compacted)
			names, _ := look(t, mem)
			rows := 0
			for _, name := range names["/dt=0"] {
				rows += len(idsOf(t, mem, path.Join(root, "dt=0", name)))
			}
			if rows != c.rows {
				t.Errorf("dt=0 has %d rows, want %d", rows, c.rows)
			}
			wantClean(t, mem)
		})
	}
}

// MT5: a file that comes in the very moment of the exchange goes to the old
// directory; it is moved into the new one.
func TestNewcomerOfTheLastMoment(t *testing.T) {
	mem := foreign(t)
	fsys := faultfs.New(mem)
	fsys.Inject(faultfs.Rule{Kind: storage.OpExchange, Glob: "dt=0", Err: errors.New("never"), Times: faultfs.Always,
		Match: func(op faultfs.Op) bool {
			if path.Base(op.To) == "dt=0" { // once: the other one is the probe
				put(t, mem, root+"/dt=0/late.parquet", fileOf(t, 70, 80, nil))
			}
			return false
		}})
	outcome(t, run(t, options(fsys)), "dt=0", Compacted)
	names, ids := look(t, mem)
	wantIDs(t, ids, foreignRows+10)
	if len(names["/dt=0"]) != 2 || !slices.Contains(names["/dt=0"], "late.parquet") {
		t.Errorf("dt=0 has %v", names["/dt=0"])
	}
	wantClean(t, mem)
}

// A file system without links copies; one without exchange needs the window.
func TestLesserFileSystems(t *testing.T) {
	mem := foreign(t)
	fsys := faultfs.New(mem)
	fsys.Inject(faultfs.Rule{Kind: storage.OpLink, Err: errors.ErrUnsupported, Times: faultfs.Always}).MustFire(t)
	run(t, options(fsys))
	_, ids := look(t, mem)
	wantIDs(t, ids, foreignRows)
	wantOthers(t, mem)
	wantClean(t, mem)

	mem = foreign(t)
	fsys = faultfs.New(mem)
	fsys.Inject(faultfs.Rule{Kind: storage.OpExchange, Err: errors.ErrUnsupported, Times: faultfs.Always}).MustFire(t)
	outcome(t, run(t, options(fsys)), "dt=0", LeftAlone)
	o := options(fsys)
	o.AllowWindow = true
	outcome(t, run(t, o), "dt=0", Compacted)
	_, ids = look(t, mem)
	wantIDs(t, ids, foreignRows)
	wantOthers(t, mem)
	wantClean(t, mem)
}

// A window that is finished long after its process died removes the files it
// joined, and not what another program has put in their place meanwhile.
func TestWindowSparesNewFilesOfOldNames(t *testing.T) {
	fsys := flat(t)
	o := options(fsys)
	o.AllowWindow = true
	c := &compaction{Options: o, report: &Report{}, noExchange: true}
	c.stage = stage{fs: fsys, root: root, dir: path.Join(root, layout.CompactDir), foreign: true}
	check(t, c.stage.ready())
	c.defaults()
	h := newHandles(t.Context(), &c.Options)
	defer h.close()
	p, err := c.plan(t.Context(), h, directory{})
	check(t, err)
	pl := c.describe(p)
	check(t, pl.writeDown())
	check(t, fsys.Mkdir(pl.dir()))
	for _, target := range p.targets {
		check(t, c.build(t.Context(), h, p, pl, target))
	}
	check(t, pl.mark(pl.dir()))
	check(t, fsys.SyncDir(pl.dir()))
	// Here it died, and the job that writes the table ran again.
	name := root + "/f-2.parquet"
	check(t, fsys.Remove(name))
	put(t, fsys, name, fileOf(t, 40, 50, nil))

	rep := run(t, options(fsys))
	if rep.Settled != 1 {
		t.Fatalf("%d units were settled", rep.Settled)
	}
	names, ids := look(t, fsys)
	wantIDs(t, ids, 50)
	if len(names[""]) != 2 || !slices.Contains(names[""], "f-2.parquet") {
		t.Errorf("files: %v", names)
	}
}
