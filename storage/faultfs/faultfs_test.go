package faultfs_test

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/storage"
	"github.com/hivesink/hivesink/storage/faultfs"
	"github.com/hivesink/hivesink/storage/memfs"
	"github.com/hivesink/hivesink/storage/storagetest"
)

var errDisk = errors.New("disk on fire")

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestConformance(t *testing.T) {
	storagetest.Run(t, func(t *testing.T) (storage.FS, string) {
		f := faultfs.New(memfs.New())
		check(t, f.Mkdir("/root"))
		return f, "/root"
	})
}

// write makes a file in the four steps of which each can fail.
func write(fsys storage.FS, name, text string) error {
	return storage.WriteFile(fsys, name, []byte(text))
}

// everyOp does each operation once on /d/f and its like.
func everyOp(t *testing.T, f *faultfs.FS) {
	t.Helper()
	check(t, f.Mkdir("/d"))
	check(t, write(f, "/d/f", "text"))
	r, err := f.Open("/d/f")
	check(t, err)
	_, err = r.ReadAt(make([]byte, 2), 0)
	check(t, err)
	check(t, r.Close())
	_, err = f.ReadFile("/d/f")
	check(t, err)
	check(t, f.Rename("/d/f", "/d/g"))
	check(t, f.Replace("/d/g", "/d/h"))
	_, err = f.Stat("/d/h")
	check(t, err)
	_, err = f.List("/d")
	check(t, err)
	check(t, f.SyncDir("/d"))
	l, err := f.Lock("/d/lock")
	check(t, err)
	check(t, l.Close())
	check(t, f.Remove("/d/h"))
}

// X1.
func TestTrace(t *testing.T) {
	f := faultfs.New(memfs.New())
	everyOp(t, f)
	var got []string
	for _, op := range f.Trace() {
		got = append(got, op.String())
		if f.Count(op.Kind) != 1 {
			t.Errorf("%s was counted %d times", op.Kind, f.Count(op.Kind))
		}
	}
	want := []string{
		"mkdir /d", "create /d/f", "write /d/f", "sync /d/f", "close /d/f", "open /d/f", "read-at /d/f",
		"read-file /d/f", "rename /d/f /d/g", "replace /d/g /d/h", "stat /d/h", "list /d", "sync-dir /d",
		"lock /d/lock", "remove /d/h",
	}
	if !slices.Equal(got, want) {
		t.Errorf("trace is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if f.Ops() != len(want) {
		t.Errorf("%d operations, want %d", f.Ops(), len(want))
	}
}

func TestFailBefore(t *testing.T) {
	mem := memfs.New()
	f := faultfs.New(mem)
	check(t, write(f, "/f", "text"))
	for _, kind := range []storage.OpKind{storage.OpRename, storage.OpReplace} {
		rule := f.Inject(faultfs.Rule{Kind: kind, Err: errDisk}).MustFire(t)
		do := map[storage.OpKind]func(a, b string) error{storage.OpRename: f.Rename, storage.OpReplace: f.Replace}[kind]
		err := do("/f", "/g")
		var named *storage.Error
		if !errors.Is(err, errDisk) || !errors.As(err, &named) || named.Op != kind || named.Name != "/f" || named.To != "/g" {
			t.Errorf("%s: %v", kind, err)
		}
		if got := mem.Tree("/"); got != "f 4\n" {
			t.Errorf("%s took effect:\n%s", kind, got)
		}
		if rule.Fired() != 1 {
			t.Errorf("fired %d times", rule.Fired())
		}
	}
	check(t, f.Rename("/f", "/g"))
}

func TestFailAfter(t *testing.T) {
	mem := memfs.New()
	f := faultfs.New(mem)
	check(t, write(f, "/f", "text"))
	rule := f.Inject(faultfs.Rule{Kind: storage.OpRename, When: faultfs.After, Err: errDisk, Times: faultfs.Always}).MustFire(t)
	if err := f.Rename("/f", "/g"); !errors.Is(err, errDisk) {
		t.Errorf("rename: %v", err)
	}
	if got := mem.Tree("/"); got != "g 4\n" {
		t.Errorf("rename did not take effect:\n%s", got)
	}
	// An error from below comes first: it would have met the caller anyway.
	if err := f.Rename("/f", "/g"); !errors.Is(err, storage.ErrNotExist) {
		t.Errorf("rename: %v", err)
	}
	rule.Heal()
	check(t, f.Rename("/g", "/f"))

	f.Inject(faultfs.Rule{Kind: storage.OpCreate, When: faultfs.After, Err: errDisk}).MustFire(t)
	f.Inject(faultfs.Rule{Kind: storage.OpLock, When: faultfs.After, Err: errDisk}).MustFire(t)
	if _, err := f.Create("/c"); !errors.Is(err, errDisk) {
		t.Errorf("create: %v", err)
	}
	if _, err := f.Lock("/lock"); !errors.Is(err, errDisk) {
		t.Errorf("lock: %v", err)
	}
	if _, err := f.Lock("/lock"); !errors.Is(err, storage.ErrLocked) {
		t.Errorf("the lock should be taken by nobody's hand: %v", err)
	}
	if got := mem.Tree("/"); got != "c 0\nf 4\nlock 0\n" {
		t.Errorf("tree is\n%s", got)
	}
}

func TestLies(t *testing.T) {
	mem := memfs.New()
	f := faultfs.New(mem)
	for _, kind := range []storage.OpKind{
		storage.OpMkdir, storage.OpRename, storage.OpRemove, storage.OpSyncDir, storage.OpReplace, storage.OpLock,
	} {
		f.Inject(faultfs.Rule{Kind: kind, NoEffect: true, Times: faultfs.Always}).MustFire(t)
	}
	check(t, write(f, "/f", "text"))
	check(t, f.Mkdir("/d"))
	check(t, f.Rename("/f", "/g"))
	check(t, f.Replace("/f", "/g"))
	check(t, f.Remove("/f"))
	check(t, f.SyncDir("/"))
	for range 2 { // excludes nobody
		l, err := f.Lock("/lock")
		check(t, err)
		check(t, l.Close())
	}
	if got := mem.Tree("/"); got != "f 4\n" {
		t.Errorf("a lie had an effect:\n%s", got)
	}
	if got := mem.Crash(memfs.SyncedOnly, 0).Tree("/"); got != "" {
		t.Errorf("the sync that was none saved\n%s", got)
	}
	f.Heal()

	check(t, mem.SyncDir("/"))
	f.Inject(faultfs.Rule{Kind: storage.OpSync, Glob: "s", NoEffect: true}).MustFire(t)
	f.Inject(faultfs.Rule{Kind: storage.OpWrite, Glob: "w", NoEffect: true}).MustFire(t)
	f.Inject(faultfs.Rule{Kind: storage.OpCreate, Glob: "c", NoEffect: true}).MustFire(t)
	for _, name := range []string{"/s", "/w", "/c"} {
		check(t, write(f, name, "text"))
	}
	check(t, f.SyncDir("/"))
	if got := mem.Tree("/"); got != "f 4\ns 4\nw 0\n" {
		t.Errorf("tree is\n%s", got)
	}
	if got := mem.Crash(memfs.SyncedOnly, 0).Tree("/"); got != "f 4\ns 0\nw 0\n" {
		t.Errorf("after a power cut:\n%s", got)
	}
}

// X4, and a disk that is full and then freed: what failed is condemned, a new
// file works.
func TestDiskFullAndFreed(t *testing.T) {
	mem := memfs.New()
	f := faultfs.New(mem)
	full := f.Inject(faultfs.Rule{
		Kind: storage.OpWrite, Glob: "/*", Nth: 2, Times: faultfs.Always, Short: true,
		Err: &storage.NoSpaceError{Err: syscall.ENOSPC},
	}).MustFire(t)
	w, err := f.Create("/part")
	check(t, err)
	_, err = w.Write([]byte("first"))
	check(t, err)
	n, err := w.Write([]byte("second"))
	if n != 3 || !errors.Is(err, storage.ErrNoSpace) || !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("write: %d, %v; want 3 and ENOSPC", n, err)
	}
	if c := fault.ClassOf(storage.Classify(err)); c != fault.Retry {
		t.Errorf("class is %s", c)
	}
	if err := write(f, "/other", "xx"); !errors.Is(err, storage.ErrNoSpace) {
		t.Errorf("another file: %v", err)
	}
	full.Heal()
	ops := f.Ops()
	if _, err := w.Write([]byte("third")); !errors.Is(err, storage.ErrCondemned) {
		t.Errorf("write to the condemned file: %v", err)
	}
	if err := w.Sync(); !errors.Is(err, storage.ErrCondemned) {
		t.Errorf("sync of it: %v", err)
	}
	if f.Ops() != ops {
		t.Error("the condemned file got through")
	}
	if err := w.Close(); !errors.Is(err, storage.ErrCondemned) {
		t.Errorf("close of it: %v", err)
	}
	check(t, write(f, "/part-2", "first second"))
	if got := mem.Tree("/"); got != "part 8\npart-2 12\n" {
		t.Errorf("tree is\n%s", got)
	}
	if full.Fired() != 2 {
		t.Errorf("fired %d times, want 2", full.Fired())
	}
}

func TestWhichMatchFires(t *testing.T) {
	for _, c := range []struct {
		rule  faultfs.Rule
		fails string // of mkdir /a/1 … /a/6, /b/1 … /b/6
	}{
		{faultfs.Rule{}, "/a/1"},
		{faultfs.Rule{Nth: 3}, "/a/3"},
		{faultfs.Rule{Nth: 5, Times: 3}, "/a/5 /a/6 /b/1"},
		{faultfs.Rule{Nth: 11, Times: faultfs.Always}, "/b/5 /b/6"},
		{faultfs.Rule{Glob: "/b/*", Nth: 2}, "/b/2"},
		{faultfs.Rule{Glob: "[34]", Times: faultfs.Always}, "/a/3 /a/4 /b/3 /b/4"},
		{faultfs.Rule{Kind: storage.OpMkdir, Glob: "/b/6"}, "/b/6"},
		{faultfs.Rule{Kind: storage.OpRemove}, ""},
		{faultfs.Rule{Glob: "/*"}, ""},
		{faultfs.Rule{Match: func(op faultfs.Op) bool { return op.Name == "/b/1" }}, "/b/1"},
	} {
		f := faultfs.New(memfs.New())
		check(t, f.Mkdir("/a"))
		check(t, f.Mkdir("/b"))
		c.rule.Err = errDisk
		rule := f.Inject(c.rule)
		var failed []string
		for _, dir := range []string{"/a/", "/b/"} {
			for i := 1; i <= 6; i++ {
				if name := fmt.Sprint(dir, i); f.Mkdir(name) != nil {
					failed = append(failed, name)
				}
			}
		}
		if got := strings.Join(failed, " "); got != c.fails || rule.Fired() != len(failed) {
			t.Errorf("%+v: failed are %q (fired %d), want %q", c.rule, got, rule.Fired(), c.fails)
		}
	}
}

// A rename is also matched by its target.
func TestGlobOnTarget(t *testing.T) {
	f := faultfs.New(memfs.New())
	check(t, write(f, "/f", ""))
	f.Inject(faultfs.Rule{Glob: "*.parquet", Err: errDisk}).MustFire(t)
	if err := f.Rename("/f", "/f.parquet"); !errors.Is(err, errDisk) {
		t.Errorf("rename: %v", err)
	}
}

// A hang holds up one operation, neither the others nor a crash.
func TestHang(t *testing.T) {
	mem := memfs.New()
	f := faultfs.New(mem)
	release := make(chan struct{})
	rule := f.Inject(faultfs.Rule{Kind: storage.OpMkdir, Glob: "slow", Do: func(faultfs.Op) { <-release }}).MustFire(t)
	result := make(chan error)
	go func() { result <- f.Mkdir("/slow") }()
	<-rule.FirstFired()
	check(t, f.Mkdir("/quick"))
	f.Crash()
	close(release)
	if err := <-result; !errors.Is(err, faultfs.ErrCrashed) {
		t.Errorf("the hanging operation ends with %v", err)
	}
	if got := mem.Tree("/"); got != "quick/\n" {
		t.Errorf("tree is\n%s", got)
	}
}

// X5.
func TestMustFire(t *testing.T) {
	f := faultfs.New(memfs.New())
	rec := &recorder{}
	f.Inject(faultfs.Rule{Kind: storage.OpMkdir, Err: errDisk}).MustFire(rec)
	f.Inject(faultfs.Rule{Kind: storage.OpRemove, Err: errDisk}).MustFire(rec)
	if f.Mkdir("/d") == nil {
		t.Error("mkdir went well")
	}
	for _, end := range rec.cleanups {
		end()
	}
	if len(rec.errors) != 1 || !strings.Contains(rec.errors[0], "did not fire: remove") {
		t.Errorf("a test would say %q", rec.errors)
	}
}

type recorder struct {
	cleanups []func()
	errors   []string
}

func (r *recorder) Helper()           {}
func (r *recorder) Cleanup(fn func()) { r.cleanups = append(r.cleanups, fn) }
func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

func TestBadRulesPanic(t *testing.T) {
	f := faultfs.New(memfs.New())
	for _, rule := range []faultfs.Rule{
		{Kind: storage.OpStat, NoEffect: true},
		{NoEffect: true},
		{Kind: storage.OpMkdir},
		{Kind: storage.OpSync, Short: true, Err: errDisk},
		{Glob: "[", Err: errDisk},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%+v was accepted", rule)
				}
			}()
			f.Inject(rule)
		}()
	}
}

// io.EOF goes through as it is, an injected error with its place.
func TestReadAt(t *testing.T) {
	f := faultfs.New(memfs.New())
	check(t, write(f, "/f", "text"))
	r, err := f.Open("/f")
	check(t, err)
	f.Inject(faultfs.Rule{Kind: storage.OpReadAt, Nth: 2, Err: errDisk}).MustFire(t)
	if n, err := r.ReadAt(make([]byte, 9), 0); n != 4 || err != io.EOF {
		t.Errorf("read: %d, %v", n, err)
	}
	if n, err := r.ReadAt(make([]byte, 1), 0); n != 0 || !errors.Is(err, errDisk) {
		t.Errorf("read: %d, %v", n, err)
	}
	check(t, r.Close())
}
