package storage_test

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"testing"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/storage"
	"github.com/hivesink/hivesink/storage/faultfs"
	"github.com/hivesink/hivesink/storage/memfs"
)

var errDisk = errors.New("disk on fire")

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

const (
	staged    = "/table/.hivesink/part"
	partition = "/table/dt=1/hr=2"
	published = partition + "/part.parquet"
)

var text = strings.Repeat("0123456789", 1000)

// newTable is a file system with an empty, durable table.
func newTable(t *testing.T, model memfs.Model) *memfs.FS {
	t.Helper()
	m := memfs.NewWith(memfs.Options{Model: model})
	check(t, storage.MkdirAllSync(m, "/", "/table/.hivesink"))
	return m
}

// step is one step of publishing a file; done marks those after which the step
// before must survive everything.
type step func(storage.FS) error

// recipe is the one of the package. Sabotages leave something out.
var recipe = []step{
	func(f storage.FS) error { return storage.WriteFile(f, staged, []byte(text)) },
	func(f storage.FS) error { return f.SyncDir(path.Dir(staged)) },
	func(f storage.FS) error { return storage.MkdirAllSync(f, "/table", partition) },
	func(f storage.FS) error { return storage.Publish(f, staged, published) },
}

func run(f storage.FS, steps []step) (done int, err error) {
	for _, s := range steps {
		if err := s(f); err != nil {
			return done, err
		}
		done++
	}
	return done, nil
}

// verdict looks at what a power cut left when so many steps had been
// acknowledged, and says what is wrong with it.
func verdict(image *memfs.FS, done int) string {
	atEnd, err := image.ReadFile(published)
	if err == nil && string(atEnd) != text {
		return "published, but not complete"
	}
	atStart, serr := image.ReadFile(staged)
	switch {
	case done >= 4 && err != nil:
		return "acknowledged as published, but not there"
	case done >= 2 && err != nil && (serr != nil || string(atStart) != text):
		return "acknowledged as staged, but neither staged nor published"
	case err == nil && serr == nil:
		return "staged and published at once"
	}
	return ""
}

// exhaust stops the steps before and after every operation, and at their end,
// and looks at many images of each moment.
func exhaust(t *testing.T, model memfs.Model, steps []step) (images int, faults map[string]int) {
	t.Helper()
	probe := faultfs.New(newTable(t, model))
	_, err := run(probe, steps)
	check(t, err)
	faults = map[string]int{}
	for n := 1; n <= probe.Ops()+1; n++ {
		for _, after := range []bool{false, true} {
			mem := newTable(t, model)
			f := faultfs.New(mem)
			f.CrashAt(n, after)
			done, _ := run(f, steps)
			for _, mode := range memfs.Modes {
				for seed := range 10 {
					images++
					if wrong := verdict(mem.Crash(mode, uint64(seed)), done); wrong != "" {
						faults[wrong]++
					}
				}
			}
		}
	}
	return images, faults
}

// S4, S6: whatever is left by a power cut at any moment keeps the promise.
func TestPublishSurvivesPowerCuts(t *testing.T) {
	for name, model := range map[string]memfs.Model{"posix": memfs.Posix, "hdfs": memfs.HDFS} {
		images, faults := exhaust(t, model, recipe)
		if len(faults) != 0 {
			t.Errorf("%s: in %d images: %v", name, images, faults)
		}
		if images < 1000 {
			t.Errorf("%s: only %d images", name, images)
		}
	}
}

// Leaving any step out is caught, or the test above would prove nothing.
func TestSabotageIsCaught(t *testing.T) {
	unsynced := func(f storage.FS) error {
		w, err := f.Create(staged)
		if err != nil {
			return err
		}
		if _, err := w.Write([]byte(text)); err != nil {
			return err
		}
		return w.Close()
	}
	with := func(i int, s step) []step {
		steps := append([]step{}, recipe...)
		steps[i] = s
		return steps
	}
	nothing := func(storage.FS) error { return nil }
	for name, steps := range map[string][]step{
		"file not synced":              with(0, unsynced),
		"staging directory not synced": with(1, nothing),
		"partition's parents not synced": with(2, func(f storage.FS) error {
			return errors.Join(f.Mkdir(path.Dir(partition)), f.Mkdir(partition))
		}),
		"only the inner level synced": with(2, func(f storage.FS) error {
			return errors.Join(f.Mkdir(path.Dir(partition)), f.Mkdir(partition), f.SyncDir(path.Dir(partition)))
		}),
		"target directory not synced": with(3, func(f storage.FS) error {
			return errors.Join(f.Rename(staged, published), f.SyncDir(path.Dir(staged)))
		}),
		"source directory not synced": with(3, func(f storage.FS) error {
			return errors.Join(f.Rename(staged, published), f.SyncDir(partition))
		}),
	} {
		if images, faults := exhaust(t, memfs.Posix, steps); len(faults) == 0 {
			t.Errorf("%s: not caught in %d images", name, images)
		}
	}
}

// A level that a killed process made and did not sync is synced by the next one.
func TestMkdirAllSyncAfterKill(t *testing.T) {
	m := newTable(t, memfs.Posix)
	f := faultfs.New(m)
	made := f.Inject(faultfs.Rule{Kind: storage.OpSyncDir, Err: errDisk}).MustFire(t)
	err := storage.MkdirAllSync(f, "/table", partition)
	var unsynced *storage.UnsyncedError
	if !errors.As(err, &unsynced) || unsynced.Name != "/table/dt=1" || !errors.Is(err, errDisk) {
		t.Fatalf("error is %v, want the unsynced /table/dt=1 (fired %d)", err, made.Fired())
	}
	next := m.Kill()
	check(t, storage.MkdirAllSync(next, "/table", partition))
	if got, want := next.Crash(memfs.SyncedOnly, 0).Tree("/table"), ".hivesink/\ndt=1/\n  hr=2/\n"; got != want {
		t.Errorf("after a kill, a new start and a power cut:\n%swant\n%s", got, want)
	}
}

// S5: each way in which writing can fail leaves no file, and no later sync.
func TestWriteFileCleansUp(t *testing.T) {
	for _, kind := range []storage.OpKind{storage.OpCreate, storage.OpWrite, storage.OpSync, storage.OpClose} {
		for _, when := range []faultfs.When{faultfs.Before, faultfs.After} {
			if kind == storage.OpCreate && when == faultfs.After {
				continue // looks like a taken name: not ours to remove
			}
			m := newTable(t, memfs.Posix)
			f := faultfs.New(m)
			f.Inject(faultfs.Rule{Kind: kind, When: when, Err: errDisk}).MustFire(t)
			if err := storage.WriteFile(f, staged, []byte(text)); !errors.Is(err, errDisk) {
				t.Errorf("%s: error is %v", kind, err)
			}
			if got := m.Tree("/table"); got != ".hivesink/\n" {
				t.Errorf("%s left\n%s", kind, got)
			}
			if f.Count(storage.OpSync) > 1 {
				t.Errorf("%s: synced again", kind)
			}
			check(t, storage.WriteFile(f, staged, []byte(text)))
		}
	}
}

// A file that cannot even be removed does not hide the first error.
func TestWriteFileReportsTheFirstError(t *testing.T) {
	f := faultfs.New(newTable(t, memfs.Posix))
	f.Inject(faultfs.Rule{Kind: storage.OpWrite, Short: true, Err: storage.ErrNoSpace}).MustFire(t)
	f.Inject(faultfs.Rule{Kind: storage.OpRemove, Err: errDisk}).MustFire(t)
	err := storage.WriteFile(f, staged, []byte(text))
	if !errors.Is(err, storage.ErrNoSpace) || errors.Is(err, errDisk) {
		t.Errorf("error is %v", err)
	}
}

func TestPublishOrderAndErrors(t *testing.T) {
	for _, c := range []struct {
		kind     storage.OpKind
		nth      int
		unsynced bool
	}{
		{storage.OpRename, 1, false}, {storage.OpSyncDir, 1, true}, {storage.OpSyncDir, 2, true},
	} {
		m := newTable(t, memfs.Posix)
		check(t, storage.MkdirAllSync(m, "/table", partition))
		check(t, storage.WriteFile(m, staged, []byte(text)))
		f := faultfs.New(m)
		f.Inject(faultfs.Rule{Kind: c.kind, Nth: c.nth, Err: storage.ErrNoSpace}).MustFire(t)
		err := storage.Publish(f, staged, published)
		var unsynced *storage.UnsyncedError
		if !errors.Is(err, storage.ErrNoSpace) || errors.As(err, &unsynced) != c.unsynced {
			t.Errorf("%s %d: error is %v", c.kind, c.nth, err)
		}
		// Not done may be tried again; done or not is for a restart to find out.
		want := fault.Retry
		if c.unsynced {
			want = fault.Halt
		}
		if got := fault.ClassOf(storage.Classify(err)); got != want {
			t.Errorf("%s %d: class is %s, want %s", c.kind, c.nth, got, want)
		}
	}
	m := newTable(t, memfs.Posix)
	check(t, storage.WriteFile(m, staged, nil))
	f := faultfs.New(m)
	check(t, storage.Publish(f, staged, staged+"-2"))
	if got, want := fmt.Sprint(f.Trace()), fmt.Sprintf("[rename %s %s-2 sync-dir %s]", staged, staged, path.Dir(staged)); got != want {
		t.Errorf("within one directory: %s, want %s", got, want)
	}
}

// Two processes making the same levels do not disturb each other.
func TestMkdirAllSyncRace(t *testing.T) {
	m := newTable(t, memfs.Posix)
	f := faultfs.New(m)
	f.Inject(faultfs.Rule{
		Kind: storage.OpMkdir, Glob: "/table/dt=1/hr=2",
		Do: func(faultfs.Op) { check(t, storage.MkdirAllSync(m, "/table", partition)) },
	}).MustFire(t)
	check(t, storage.MkdirAllSync(f, "/table", partition))
}

// RemoveAll copes with others at work, and gives up on those who never stop.
func TestRemoveAllUnderWay(t *testing.T) {
	m := newTable(t, memfs.Posix)
	check(t, m.Mkdir("/table/d"))
	check(t, storage.WriteFile(m, "/table/d/a", nil))
	check(t, storage.WriteFile(m, "/table/d/b", nil))
	f := faultfs.New(m)
	f.Inject(faultfs.Rule{Kind: storage.OpRemove, Glob: "a", Do: func(faultfs.Op) {
		check(t, m.Remove("/table/d/b"))
		check(t, storage.WriteFile(m, "/table/d/late", nil))
	}}).MustFire(t)
	check(t, storage.RemoveAll(f, "/table/d"))
	if got := m.Tree("/table"); got != ".hivesink/\n" {
		t.Errorf("tree is\n%s", got)
	}

	check(t, m.Mkdir("/table/d"))
	busy := 0
	f.Inject(faultfs.Rule{Kind: storage.OpRemove, Glob: "/table/d", Times: faultfs.Always, Do: func(faultfs.Op) {
		busy++
		check(t, storage.WriteFile(m, fmt.Sprintf("/table/d/%d", busy), nil))
	}}).MustFire(t)
	if err := storage.RemoveAll(f, "/table/d"); !errors.Is(err, storage.ErrExist) {
		t.Errorf("a directory that others keep filling: %v", err)
	}
	if busy > 10 {
		t.Errorf("%d passes", busy)
	}

	f.Heal()
	f.Inject(faultfs.Rule{Kind: storage.OpRemove, Glob: "1*", Err: errDisk}).MustFire(t)
	check(t, storage.WriteFile(m, "/table/d/1x", nil))
	if err := storage.RemoveAll(f, "/table/d"); !errors.Is(err, errDisk) {
		t.Errorf("an entry that cannot be removed: %v", err)
	}
}

func TestDepthIsBounded(t *testing.T) {
	m := memfs.New()
	dir := "/"
	for range 70 {
		dir = path.Join(dir, "d")
		check(t, m.Mkdir(dir))
	}
	nothing := func(string, storage.Info) error { return nil }
	for what, err := range map[string]error{"walk": storage.Walk(m, "/", nothing), "remove": storage.RemoveAll(m, "/d")} {
		if err == nil || !strings.Contains(err.Error(), "more than 64 levels deep") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestWalk(t *testing.T) {
	m := newTable(t, memfs.Posix)
	check(t, storage.MkdirAllSync(m, "/table", "/table/a/b"))
	check(t, storage.WriteFile(m, "/table/z", nil))
	var seen []string
	// What vanishes under way is passed over.
	err := storage.Walk(m, "/table", func(name string, info storage.Info) error {
		seen = append(seen, name)
		if name == "/table/a" {
			return storage.RemoveAll(m, "/table/a")
		}
		return nil
	})
	check(t, err)
	if got, want := strings.Join(seen, " "), "/table/.hivesink /table/a /table/z"; got != want {
		t.Errorf("walk saw %s, want %s", got, want)
	}
	for _, stop := range []error{errDisk, fs.SkipDir} { // SkipDir of a file is an error like any
		err := storage.Walk(m, "/table", func(name string, info storage.Info) error {
			if info.Dir {
				return nil
			}
			return stop
		})
		if err != stop {
			t.Errorf("walk ends with %v, want %v", err, stop)
		}
	}
	f := faultfs.New(m)
	f.Inject(faultfs.Rule{Kind: storage.OpList, Nth: 2, Err: errDisk}).MustFire(t)
	if err := storage.Walk(f, "/table", func(string, storage.Info) error { return nil }); !errors.Is(err, errDisk) {
		t.Errorf("walk: %v", err)
	}
}

func TestExists(t *testing.T) {
	m := newTable(t, memfs.Posix)
	f := faultfs.New(m)
	for name, want := range map[string]bool{"/table": true, "/no": false, "/no/no": false} {
		if got, err := storage.Exists(f, name); got != want || err != nil {
			t.Errorf("%s exists: %v, %v", name, got, err)
		}
	}
	f.Inject(faultfs.Rule{Kind: storage.OpStat, Err: errDisk}).MustFire(t)
	if got, err := storage.Exists(f, "/table"); got || !errors.Is(err, errDisk) {
		t.Errorf("exists: %v, %v; want to know that it is not known", got, err)
	}
}
