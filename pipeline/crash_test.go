package pipeline

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/internal/kv"
	"github.com/hivesink/hivesink/storage"
	"github.com/hivesink/hivesink/storage/faultfs"
	"github.com/hivesink/hivesink/storage/memfs"
)

func TestSimUndisturbed(t *testing.T) {
	fs := memfs.New()
	s := newSim()
	if err := s.run(t, fs, kv.NewMem()); err != nil {
		t.Fatal(err)
	}
	s.checkDone(t, fs)
	// A second run finds nothing to do and changes nothing that is visible.
	_, files := visible(t, fs, simTable)
	if err := s.run(t, fs, nil); err != nil {
		t.Fatal(err)
	}
	s.checkDone(t, fs)
	if _, again := visible(t, fs, simTable); fmt.Sprint(files) != fmt.Sprint(again) {
		t.Fatalf("a run without input changed the files:\n%v\n%v", files, again)
	}
}

// errNever is the error of a rule that only watches.
var errNever = errors.New("never")

// stride thins out the crash points of -short runs.
func stride() int {
	if v, err := strconv.Atoi(os.Getenv("HIVESINK_STRIDE")); err == nil && v > 0 {
		return v
	}
	if testing.Short() {
		return 7
	}
	return 1
}

// TestCrashAtEveryOperation stops the run before and after every storage
// operation, takes the images a kill and a power cut leave, and restarts with
// the index kept, lost, or from an older copy.
func TestCrashAtEveryOperation(t *testing.T) { crashEverywhere(t, newSim, stride()) }

// TestCrashWithManyPartitions does the same with larger bundles, and turns of
// the chain that leave work for the next.
func TestCrashWithManyPartitions(t *testing.T) { crashEverywhere(t, newManySim, 13*stride()) }

func crashEverywhere(t *testing.T, fresh func() *sim, stride int) {
	clean := faultfs.New(memfs.New())
	if err := fresh().run(t, clean, kv.NewMem()); err != nil {
		t.Fatal(err)
	}
	total := clean.Ops()
	t.Logf("%d storage operations", total)
	only, _ := strconv.Atoi(os.Getenv("HIVESINK_OP"))
	for k := 1; k <= total; k += stride {
		if only != 0 && k != only {
			continue
		}
		for _, after := range []bool{false, true} {
			crashOnce(t, fresh, k, after, clean.Trace()[k-1])
		}
	}
}

func crashOnce(t *testing.T, fresh func() *sim, k int, after bool, op faultfs.Op) {
	t.Helper()
	mem := memfs.New()
	fs := faultfs.New(mem)
	fs.CrashAt(k, after)
	index := kv.NewMem()
	s := fresh()
	err := s.run(t, fs, index)
	select {
	case <-fs.Crashed():
	default:
		t.Fatalf("operation %d (%v): the crash did not fire: %v", k, op, err)
	}
	// Giving the table up at the very end is best effort: its errors are
	// nobody's.
	if !errors.Is(err, faultfs.ErrCrashed) && (err != nil || op.Kind != storage.OpRemove && op.Kind != storage.OpList) {
		t.Fatalf("operation %d (%v): the crash did not stop the run: %v", k, op, err)
	}
	images := map[string]*memfs.FS{"kill": mem.Kill()}
	switch k % 3 {
	case 0:
		images["synced-only"] = mem.Crash(memfs.SyncedOnly, 0)
	case 1:
		images["random"] = mem.Crash(memfs.Random, uint64(k))
	case 2:
		images["ordered"] = mem.Crash(memfs.Ordered, uint64(k))
	}
	n := k / 3
	for _, name := range slices.Sorted(maps.Keys(images)) {
		image := images[name]
		n++
		s.checkNow(t, image)
		ix := kv.Store(index.Clone())
		switch n % 3 {
		case 1:
			ix = kv.NewMem() // lost
		case 2:
			ix = olderIndex(t, fresh, k)
		}
		r := s.again()
		if err := r.run(t, image, ix); err != nil {
			t.Fatalf("operation %d %v, after=%v, image %s: restart: %v\nrerun: HIVESINK_OP=%d go test ./pipeline -run %s", k, op, after, name, err, k, t.Name())
		}
		r.checkDone(t, image)
	}
}

// olderIndex is the index of the same run, stopped at half the way.
func olderIndex(t *testing.T, fresh func() *sim, k int) kv.Store {
	t.Helper()
	fs := faultfs.New(memfs.New())
	fs.CrashAt(max(1, k/2), true)
	index := kv.NewMem()
	if err := fresh().run(t, fs, index); !errors.Is(err, faultfs.ErrCrashed) {
		t.Fatalf("older copy: %v", err)
	}
	return index
}

// TestTakeover lets a second owner take the table over before every storage
// operation of the first, finish the work, and checks that the first is fenced
// and makes nothing visible afterwards.
func TestTakeover(t *testing.T) { takeOverEverywhere(t, newSim, stride()) }

// TestTakeoverWithManyPartitions does the same with larger bundles.
func TestTakeoverWithManyPartitions(t *testing.T) { takeOverEverywhere(t, newManySim, 11*stride()) }

func takeOverEverywhere(t *testing.T, fresh func() *sim, stride int) {
	clean := faultfs.New(memfs.New())
	if err := fresh().run(t, clean, kv.NewMem()); err != nil {
		t.Fatal(err)
	}
	total := clean.Ops()
	fenced := 0
	for k := 1; k <= total; k += stride {
		mem := memfs.New()
		fs := faultfs.New(mem)
		second := fresh()
		second.bits = 1 << 32
		n := 0
		var serr error
		fs.Inject(faultfs.Rule{Times: faultfs.Always, Err: errNever, Match: func(faultfs.Op) bool {
			if n++; n == k {
				serr = second.run(t, mem, nil)
			}
			return false
		}})
		first := fresh()
		err := first.run(t, fs, kv.NewMem())
		if n < k {
			t.Fatalf("operation %d was never reached", k)
		}
		if serr != nil {
			// Only a claim that meets the first owner's own claim may lose.
			if fault.ClassOf(serr) != fault.Fenced {
				t.Fatalf("operation %d (%v): second owner: %v", k, clean.Trace()[k-1], serr)
			}
			if err != nil {
				t.Fatalf("operation %d: the second owner was fenced (%v) and the first failed: %v", k, serr, err)
			}
		}
		if err != nil {
			if c := fault.ClassOf(err); c != fault.Fenced {
				t.Fatalf("operation %d (%v): first owner's error is of class %s: %v", k, clean.Trace()[k-1], c, err)
			}
			fenced++
		}
		second.checkDone(t, mem)
	}
	if fenced == 0 {
		t.Fatal("no first owner was ever fenced")
	}
	t.Logf("%d of %d first owners fenced", fenced, (total+stride-1)/stride)
}

// TestCrashAtEveryIndexTransaction stops the run before and after every
// transaction of the index, and goes on with that very index.
func TestCrashAtEveryIndexTransaction(t *testing.T) {
	clean := kv.NewMem()
	if err := newSim().run(t, memfs.New(), clean); err != nil {
		t.Fatal(err)
	}
	total := clean.Updates()
	if total < 10 {
		t.Fatalf("only %d index transactions", total)
	}
	for n := 1; n <= total; n++ {
		for _, after := range []bool{false, true} {
			mem := memfs.New()
			fs := faultfs.New(mem)
			index := kv.NewMem()
			fired := false
			index.Hook = func(k int, done bool) error {
				if k != n || done != after {
					return nil
				}
				fired = true
				fs.Crash()
				return errors.New("killed in an index transaction")
			}
			s := newSim()
			err := s.run(t, fs, index)
			if !fired {
				t.Fatalf("transaction %d was never reached", n)
			}
			if err == nil && n < total-1 {
				t.Fatalf("transaction %d: the crash did not stop the run", n)
			}
			image := mem.Kill()
			s.checkNow(t, image)
			r := s.again()
			if err := r.run(t, image, index.Clone()); err != nil {
				t.Fatalf("transaction %d, after=%v: restart: %v", n, after, err)
			}
			r.checkDone(t, image)
		}
	}
}
