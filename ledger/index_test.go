package ledger

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/internal/kv"
	"github.com/hivesink/hivesink/storage"
	"github.com/hivesink/hivesink/storage/faultfs"
	"github.com/hivesink/hivesink/storage/memfs"
)

// indexed is what an index holds, nil when it is of no use for the log.
func indexed(fsys storage.FS, store kv.Store) *State {
	return newIndex(store, transactionKeys).load(fsys, testTable)
}

// reopened opens with an index and wants the state that the log alone gives,
// in the ledger and, afterwards, in the index.
func reopened(t *testing.T, disk *memfs.FS, store kv.Store) *Ledger {
	t.Helper()
	want := stateOf(t, disk)
	o := newWorld().options(disk)
	o.Index = store
	l, err := Open(context.Background(), o)
	if err != nil {
		t.Errorf("open: %v", err)
		return nil
	}
	st := l.State().Clone()
	if st.Seq != want.Seq+1 {
		t.Errorf("opened at record %d, want %d", st.Seq, want.Seq+1)
	}
	if canon(t, st) != canon(t, stateOf(t, disk)) {
		t.Errorf("the state is\n%s\nthe log says\n%s", canon(t, st), canon(t, stateOf(t, disk)))
	}
	if err := l.IndexErr(); err != nil {
		t.Errorf("the index: %v", err)
	}
	if x := indexed(disk, store); x == nil || canon(t, x) != canon(t, st) {
		t.Error("the index is not the state")
	}
	return l
}

func TestIndexKeptLostOldAlienAhead(t *testing.T) {
	disk, w := memfs.New(), newWorld()
	o, store := memIndex(w.options(disk))
	l := mustOpen(t, o)
	s := &script{l: l, fsys: disk}
	if err := s.run(0, 4, nil); err != nil {
		t.Fatal(err)
	}
	oldDisk, oldStore := disk.Kill(), store.Clone()
	if err := s.run(4, 5, nil); err != nil {
		t.Fatal(err)
	}
	if x := indexed(disk, store); x == nil || canon(t, x) != canon(t, l.State()) {
		t.Fatal("the index is not the state")
	}
	alienDisk := memfs.New()
	ao, alien := memIndex(newWorldOf(3).options(alienDisk))
	if err := (&script{l: mustOpen(t, ao), fsys: alienDisk}).run(0, 6, nil); err != nil {
		t.Fatal(err)
	}
	t.Run("kept", func(t *testing.T) { reopened(t, disk.Kill(), store.Clone()) })
	t.Run("lost", func(t *testing.T) { reopened(t, disk.Kill(), kv.NewMem()) })
	t.Run("older copy", func(t *testing.T) { reopened(t, disk.Kill(), oldStore.Clone()) })
	t.Run("alien table", func(t *testing.T) { reopened(t, disk.Kill(), alien) })
	t.Run("ahead of the log", func(t *testing.T) { reopened(t, oldDisk, store.Clone()) })
	t.Run("an entity lost", func(t *testing.T) {
		c := store.Clone()
		if err := c.Update(func(w kv.Writer) error { return w.Delete("partition/:dt=1") }); err != nil {
			t.Fatal(err)
		}
		if indexed(disk, c) != nil {
			t.Error("T8: an index with a missing entity passes for whole")
		}
		reopened(t, disk.Kill(), c)
	})
	t.Run("garbage", func(t *testing.T) {
		c := store.Clone()
		if err := c.Update(func(w kv.Writer) error { return w.Set(keyHead, []byte("{")) }); err != nil {
			t.Fatal(err)
		}
		reopened(t, disk.Kill(), c)
	})
}

func newWorldOf(seed uint64) *world {
	w := newWorld()
	for range seed {
		w.rng.Uint64()
	}
	return w
}

// TestIndexIsUsed: with a good index the records before it are not read.
func TestIndexIsUsed(t *testing.T) {
	disk, w := memfs.New(), newWorld()
	o, store := memIndex(w.options(disk))
	l := mustOpen(t, o)
	if err := (&script{l: l, fsys: disk}).run(0, 20, nil); err != nil {
		t.Fatal(err)
	}
	reads := func(x kv.Store) int {
		fsys := faultfs.New(disk.Kill())
		o.indexKeys = transactionKeys
		l := &Ledger{o: o}
		l.o.FS, l.o.Index = fsys, x
		if err := l.inspect(); err != nil {
			t.Fatal(err)
		}
		return fsys.Count(storage.OpReadFile)
	}
	if with, without := reads(store), reads(nil); with > 3 || without < 20 {
		t.Errorf("%d reads with the index, %d without", with, without)
	}
}

// TestIndexCrash stops the index before and after each of its transactions, one
// of them being the second of a record too large for one. No append fails, and
// the next owner has the state of the log (T8).
func TestIndexCrash(t *testing.T) {
	run := func(store *kv.Mem) *memfs.FS {
		disk, w := memfs.New(), newWorld()
		o := w.options(disk)
		o.Index, o.indexKeys = store, 100
		l := mustOpen(t, o)
		s := &script{l: l, fsys: disk}
		if err := s.run(0, 4, nil); err != nil {
			t.Fatal(err)
		}
		many := &Checkpoint{Number: l.State().Checkpoint + 1, Sources: map[string]Source{}}
		for i := range 2*o.indexKeys + 10 {
			many.Sources[fmt.Sprintf("file %d", i)] = Source{Position: "1"}
		}
		mustAppend(t, l, &Record{Checkpoint: many})
		mustAppend(t, l, &Record{})
		return disk
	}
	whole := kv.NewMem()
	run(whole)
	if n := whole.Updates(); n < 9 {
		t.Fatalf("%d transactions", n)
	}
	for n := 1; n <= whole.Updates(); n++ {
		for _, after := range []bool{false, true} {
			store, fired := kv.NewMem(), false
			store.Hook = func(k int, a bool) error {
				if k > n || k == n && a == after {
					fired = true
					return errors.New("killed")
				}
				return nil
			}
			disk := run(store)
			if !fired {
				t.Fatal("the fault did not fire")
			}
			reopened(t, disk, store.Clone())
			if t.Failed() {
				t.Fatalf("stopped at transaction %d, after %v", n, after)
			}
		}
	}
}

// TestIndexNoSpace: without space the log goes on, and the index follows when
// there is some.
func TestIndexNoSpace(t *testing.T) {
	for from := 1; from < 8; from++ {
		disk, w := memfs.New(), newWorld()
		o, store := memIndex(w.options(disk))
		failed := 0
		store.Hook = func(n int, after bool) error {
			if n >= from && n < from+3 && !after {
				failed++
				return fault.New(fault.Retry, "", "no space left")
			}
			return nil
		}
		l := mustOpen(t, o)
		s := &script{l: l, fsys: disk}
		if err := s.run(0, 10, func() {
			if x := indexed(disk, store); (l.IndexErr() == nil) != (x != nil && x.Seq == l.State().Seq) {
				t.Errorf("record %d: index error %v", l.State().Seq, l.IndexErr())
			}
		}); err != nil {
			t.Fatal(err)
		}
		if failed != 3 {
			t.Errorf("%d faults fired", failed)
		}
		if x := indexed(disk, store); l.IndexErr() != nil || x == nil || canon(t, x) != canon(t, l.State()) {
			t.Errorf("after the space is back: %v", l.IndexErr())
		}
	}
}

// TestIndexDamagedFiles is a kill -9 of a process with a Badger index, and then
// every one of its files cut short or changed. The state is the log's, each
// time (case ST-01).
func TestIndexDamagedFiles(t *testing.T) {
	root := t.TempDir()
	live, err := kv.OpenBadger(filepath.Join(root, "live"))
	if err != nil {
		t.Fatal(err)
	}
	defer live.Close()
	disk, w := memfs.New(), newWorld()
	o := w.options(disk)
	o.Index = live
	l := mustOpen(t, o)
	if err := (&script{l: l, fsys: disk}).run(0, 10, nil); err != nil {
		t.Fatal(err)
	}
	if l.IndexErr() != nil {
		t.Fatal(l.IndexErr())
	}
	files, err := os.ReadDir(filepath.Join(root, "live"))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, f := range files {
		for _, cut := range []int64{0, 1, 7, 4096, 1 << 40} {
			n++
			dir := filepath.Join(root, fmt.Sprint("copy", n))
			if err := os.CopyFS(dir, os.DirFS(filepath.Join(root, "live"))); err != nil {
				t.Fatal(err)
			}
			info, err := f.Info()
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Truncate(filepath.Join(dir, f.Name()), max(0, info.Size()-cut)); err != nil {
				t.Fatal(err)
			}
			store, err := kv.OpenBadger(dir)
			if err != nil {
				t.Errorf("%s cut by %d: %v", f.Name(), cut, err)
				continue
			}
			reopened(t, disk.Kill(), store)
			if err := store.Close(); err != nil {
				t.Errorf("%s cut by %d: close: %v", f.Name(), cut, err)
			}
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n < 15 {
		t.Errorf("%d damages only", n)
	}
}
