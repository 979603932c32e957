package faultfs_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/hivesink/hivesink/storage"
	"github.com/hivesink/hivesink/storage/faultfs"
	"github.com/hivesink/hivesink/storage/memfs"
)

// X2: before and after each operation, the file system below is exactly where
// it was told to stop, and nothing moves it any more.
func TestCrashAt(t *testing.T) {
	const steps = 8
	run := func(f storage.FS) error {
		if err := f.Mkdir("/d"); err != nil { // 1
			return err
		}
		if err := write(f, "/d/f", "text"); err != nil { // 2 to 5
			return err
		}
		if err := f.Rename("/d/f", "/d/g"); err != nil { // 6
			return err
		}
		if err := f.SyncDir("/d"); err != nil { // 7
			return err
		}
		return f.Remove("/d/g") // 8
	}
	tree := []string{"", "d/\n", "d/\n  f 0\n", "d/\n  f 4\n", "d/\n  f 4\n", "d/\n  f 4\n", "d/\n  g 4\n", "d/\n  g 4\n", "d/\n"}
	for n := 1; n <= steps; n++ {
		for _, after := range []bool{false, true} {
			mem := memfs.New()
			f := faultfs.New(mem)
			f.CrashAt(n, after)
			if err := run(f); !errors.Is(err, faultfs.ErrCrashed) {
				t.Fatalf("op %d, after %v: run says %v", n, after, err)
			}
			select {
			case <-f.Crashed():
			default:
				t.Fatalf("op %d, after %v: Crashed is not closed", n, after)
			}
			want := tree[n-1]
			if after {
				want = tree[n]
			}
			if got := mem.Tree("/"); got != want {
				t.Errorf("op %d, after %v: tree is\n%swant\n%s", n, after, got, want)
			}
			if err := run(f); !errors.Is(err, faultfs.ErrCrashed) {
				t.Errorf("after the crash: %v", err)
			}
			if got := mem.Tree("/"); got != want {
				t.Errorf("op %d, after %v: changed after the crash:\n%s", n, after, got)
			}
			if f.Ops() != n {
				t.Errorf("op %d: trace goes on to %d", n, f.Ops())
			}
		}
	}
	f := faultfs.New(memfs.New())
	f.CrashAt(steps+1, false)
	check(t, run(f))
}

// X2: every operation meets the crash, also on handles from before it.
func TestNothingWorksAfterCrash(t *testing.T) {
	mem := memfs.New()
	f := faultfs.New(mem)
	check(t, write(f, "/f", "text"))
	w, err := f.Create("/w")
	check(t, err)
	_, err = w.Write([]byte("x"))
	check(t, err)
	r, err := f.Open("/f")
	check(t, err)
	l, err := f.Lock("/lock")
	check(t, err)
	f.Crash()
	f.Crash()
	before := mem.Tree("/")

	_, write := w.Write([]byte("x"))
	_, readAt := r.ReadAt(make([]byte, 1), 0)
	_, create := f.Create("/c")
	_, open := f.Open("/f")
	_, read := f.ReadFile("/f")
	_, stat := f.Stat("/f")
	_, list := f.List("/")
	_, lock := f.Lock("/lock")
	for what, err := range map[string]error{
		"write": write, "read-at": readAt, "create": create, "open": open, "read-file": read, "stat": stat,
		"list": list, "lock": lock, "close": w.Close(), "unlock": l.Close(), "rename": f.Rename("/f", "/g"),
		"replace": f.Replace("/f", "/g"), "remove": f.Remove("/f"), "mkdir": f.Mkdir("/d"), "sync-dir": f.SyncDir("/"),
	} {
		if !errors.Is(err, faultfs.ErrCrashed) {
			t.Errorf("%s after the crash: %v", what, err)
		}
	}
	if after := mem.Tree("/"); after != before {
		t.Errorf("tree was\n%sand is\n%s", before, after)
	}
	// X3: the dead hold no locks, and leave their files as they are.
	next, err := mem.Lock("/lock")
	check(t, err)
	check(t, next.Close())
	if got := mem.Crash(memfs.SyncedOnly, 0).Tree("/"); got != "" {
		t.Errorf("the crash synced something:\n%s", got)
	}
}

// X2 under concurrency: what was acknowledged is in the image that OnCrash
// takes, and there are exactly n-1 or n effects.
func TestCrashIsExact(t *testing.T) {
	for n := 1; n < 60; n += 7 {
		for _, after := range []bool{false, true} {
			mem := memfs.New()
			f := faultfs.New(mem)
			var image *memfs.FS
			f.OnCrash(func() { image = mem.Kill() })
			f.CrashAt(n, after)
			acked := make([][]string, 4)
			var wg sync.WaitGroup
			for g := range acked {
				wg.Go(func() {
					for i := 0; ; i++ {
						name := fmt.Sprintf("/%d-%d", g, i)
						if f.Mkdir(name) != nil {
							return
						}
						acked[g] = append(acked[g], name)
					}
				})
			}
			wg.Wait()
			want := n - 1
			if after {
				want = n
			}
			if got := strings.Count(image.Tree("/"), "\n"); got != want {
				t.Errorf("crash at %d, after %v: %d effects, want %d", n, after, got, want)
			}
			for _, name := range slices.Concat(acked...) {
				if ok, err := storage.Exists(image, name); !ok || err != nil {
					t.Errorf("crash at %d, after %v: %s was acknowledged and is not in the image", n, after, name)
				}
			}
		}
	}
}
