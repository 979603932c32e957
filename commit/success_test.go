package commit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/storage"
	"github.com/hivesink/hivesink/storage/faultfs"
	"github.com/hivesink/hivesink/storage/localfs"
	"github.com/hivesink/hivesink/storage/memfs"
)

const (
	successRoot    = "/w/t"
	successStaging = "/w/t/.hivesink/epoch-1/ab"
)

// successTable makes a table with two partitions of one file each, its
// staging directory and its dead-letter table, all durable.
func successTable(t *testing.T, fs storage.FS, root string) {
	t.Helper()
	for _, dir := range []string{"t/k=a", "t/k=b", "t/.hivesink/epoch-1/ab", "t_dead"} {
		if err := storage.MkdirAllSync(fs, root, root+"/"+dir); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"t/k=a/part-1-a.parquet", "t/k=b/part-1-b.parquet", "t_dead/part-1-c.parquet"} {
		if err := storage.WriteFile(fs, root+"/"+file, []byte("data")); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{"t/k=a", "t/k=b", "t_dead"} {
		if err := fs.SyncDir(root + "/" + dir); err != nil {
			t.Fatal(err)
		}
	}
}

func newMarker(fs storage.FS, root string) Policy {
	location := func(table string) string {
		if table == ledger.MainTable {
			return root + "/t"
		}
		return root + "/t_" + table
	}
	return NewSuccessFile(fs, location, func() string { return root + "/t/.hivesink/epoch-1/ab" }, "_DONE", 1)
}

func isFile(fs storage.FS, name string) bool {
	info, err := fs.Stat(name)
	return err == nil && !info.Dir && info.Size == 0
}

// TestSuccessFile: an empty file with the chosen name, in the partition or the
// table's root, replaced the next time (checklist 79, A8). On the local disk
// and in memory.
func TestSuccessFile(t *testing.T) {
	mem := memfs.New()
	if err := mem.Mkdir("/w"); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		fs   storage.FS
		root string
	}{"memfs": {mem, "/w"}, "localfs": {localfs.New(), t.TempDir()}} {
		t.Run(name, func(t *testing.T) {
			successTable(t, c.fs, c.root)
			as := []Announcement{one("a"), one("b"), {Number: 1}, {Table: ledger.DeadTable, Number: 1}}
			for round := range 2 {
				if err := newMarker(c.fs, c.root).Announce(context.Background(), as); err != nil {
					t.Fatalf("round %d: %v", round, err)
				}
				for _, file := range []string{"/t/k=a/_DONE", "/t/k=b/_DONE", "/t/_DONE", "/t_dead/_DONE"} {
					if !isFile(c.fs, c.root+file) {
						t.Errorf("round %d: %s is missing or not empty", round, file)
					}
				}
				left, err := c.fs.List(c.root + "/t/.hivesink/epoch-1/ab")
				if err != nil || len(left) != 0 {
					t.Errorf("round %d: left in staging: %v %v", round, left, err)
				}
			}
		})
	}
}

func faulty(t *testing.T) (*memfs.FS, *faultfs.FS) {
	t.Helper()
	mem := memfs.New()
	if err := mem.Mkdir("/w"); err != nil {
		t.Fatal(err)
	}
	if err := mem.SyncDir("/"); err != nil {
		t.Fatal(err)
	}
	successTable(t, mem, "/w")
	return mem, faultfs.New(mem)
}

// TestSuccessFileErrors: each failure has the class that says what may be done,
// and names the place.
func TestSuccessFileErrors(t *testing.T) {
	broken := errors.New("input/output error")
	for _, c := range []struct {
		name  string
		rule  faultfs.Rule
		class fault.Class
		done  string // partitions that failed are the others
		text  string
	}{
		{"no space for the first", faultfs.Rule{Kind: storage.OpCreate, Err: storage.ErrNoSpace}, fault.Retry, "b", "k=a"},
		{"no space for the entry", faultfs.Rule{Kind: storage.OpReplace, Nth: 2, Err: storage.ErrNoSpace}, fault.Retry, "a", "k=b"},
		{"no space at sync", faultfs.Rule{Kind: storage.OpSync, Err: storage.ErrNoSpace}, fault.Retry, "b", "k=a"},
		{"sync fails", faultfs.Rule{Kind: storage.OpSync, Err: broken}, fault.Halt, "", "k=a"},
		{"close fails", faultfs.Rule{Kind: storage.OpClose, Nth: 2, Err: broken}, fault.Halt, "a", "k=b"},
		{"the entry may not be durable", faultfs.Rule{Kind: storage.OpSyncDir, Err: storage.ErrNoSpace}, fault.Halt, "", "_DONE"},
		{"the rename may not be durable", faultfs.Rule{Kind: storage.OpSyncDir, Glob: "/w/t/.hivesink/*/*", Err: broken}, fault.Halt, "", "_DONE"},
		{"replace fails", faultfs.Rule{Kind: storage.OpReplace, Err: storage.ErrPermission}, fault.Halt, "", "owner and mode"},
	} {
		t.Run(c.name, func(t *testing.T) {
			mem, fs := faulty(t)
			fs.Inject(c.rule).MustFire(t)
			b := newBench(t)
			b.r = NewRunner(Options{}, []Policy{newMarker(fs, "/w")})
			as := []Announcement{one("a"), one("b")}
			done, err := b.r.Run(context.Background(), as, 0)
			var names []string
			for _, d := range done {
				names = append(names, strings.TrimPrefix(d.Partition, "k="))
				if !isFile(mem, "/w/t/"+d.Partition+"/_DONE") {
					t.Errorf("%s is reported and has no success file", d.Partition)
				}
			}
			if got := strings.Join(names, " "); got != c.done {
				t.Errorf("done %q, want %q (%v)", got, c.done, err)
			}
			if got := fault.ClassOf(err); got != c.class {
				t.Errorf("class %q, want %q: %v", got, c.class, err)
			}
			if !strings.Contains(fmt.Sprint(err), c.text) {
				t.Errorf("%v does not say %q", err, c.text)
			}
			// It works once the storage does, whatever was left behind.
			if err := newMarker(fs, "/w").Announce(context.Background(), as); err != nil {
				t.Errorf("again: %v", err)
			}
		})
	}
}

// TestSuccessFileMissing: a partition without its directory has lost committed
// data; a staging directory that is gone was taken over. Neither is made anew.
func TestSuccessFileMissing(t *testing.T) {
	mem, fs := faulty(t)
	err := newMarker(fs, "/w").Announce(context.Background(), []Announcement{one("a"), one("lost"), one("b")})
	if fault.ClassOf(err) != fault.Halt || !strings.Contains(err.Error(), "k=lost") || strings.Contains(err.Error(), "not tried") {
		t.Errorf("a missing partition: %v", err)
	}
	var f Failures
	if !errors.As(err, &f) || f[0] != nil || f[1] == nil || f[2] == nil {
		t.Errorf("failures are %v", f)
	}
	if isFile(mem, "/w/t/k=b/_DONE") {
		t.Error("went on after a halt")
	}

	if err := storage.RemoveAll(mem, successStaging); err != nil {
		t.Fatal(err)
	}
	err = newMarker(fs, "/w").Announce(context.Background(), []Announcement{one("b")})
	if fault.ClassOf(err) != fault.Fenced {
		t.Errorf("a staging directory that is gone: %v", err)
	}

	// Taken over between the marker's two steps.
	mem, fs = faulty(t)
	fs.Inject(faultfs.Rule{Kind: storage.OpReplace, NoEffect: true, Err: storage.ErrNotExist,
		Do: func(faultfs.Op) {}}).MustFire(t)
	err = newMarker(fs, "/w").Announce(context.Background(), []Announcement{one("b")})
	if fault.ClassOf(err) != fault.Fenced || isFile(mem, "/w/t/k=b/_DONE") {
		t.Errorf("taken over in the middle: %v", err)
	}
}

// TestSuccessFileCrash cuts the power before and after every operation: a
// success file that is there never lacks its data, the same process's successor
// writes it anew, and one that was reported survives any power cut (A8).
func TestSuccessFileCrash(t *testing.T) {
	_, dry := faulty(t)
	as := []Announcement{one("a"), one("b")}
	if err := newMarker(dry, "/w").Announce(context.Background(), as); err != nil {
		t.Fatal(err)
	}
	for n := 1; n <= dry.Ops()+1; n++ {
		for _, after := range []bool{false, true} {
			mem, fs := faulty(t)
			fs.CrashAt(n, after)
			err := newMarker(fs, "/w").Announce(context.Background(), as)
			if (err == nil) != (n > dry.Ops()) {
				t.Fatalf("crash at %d of %d: %v", n, dry.Ops(), err)
			}
			var f Failures
			errors.As(err, &f)
			for _, mode := range memfs.Modes {
				image := mem.Crash(mode, uint64(n))
				for i, a := range as {
					reported := err == nil || f[i] == nil
					if there := isFile(image, successRoot+"/"+a.Partition+"/_DONE"); reported && !there {
						t.Errorf("crash at %d (after %v), %v: %s was reported and is not there", n, after, mode, a.Partition)
					}
				}
				if err := newMarker(image, "/w").Announce(context.Background(), as); err != nil {
					t.Errorf("crash at %d (after %v), %v: again: %v", n, after, mode, err)
				}
			}
		}
	}
}
