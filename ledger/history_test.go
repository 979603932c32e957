package ledger

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/storage"
	"github.com/hivesink/hivesink/storage/faultfs"
	"github.com/hivesink/hivesink/storage/memfs"
)

// historyOptions keep everything, in many small files.
func historyOptions(w *world, fsys storage.FS) Options {
	o := w.options(fsys)
	o.SnapshotEvery, o.History = 3, 1000*time.Hour
	return o
}

// read is every record that ReadLog gives, as text.
func readAll(t *testing.T, fsys storage.FS) []string {
	t.Helper()
	var out []string
	err := ReadLog(fsys, testTable, func(r *Record) error {
		data, _, err := Encode(r)
		out = append(out, fmt.Sprint(r.Seq, " ", string(data)))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// noGap: the records are those from 1 to the end of the log.
func noGap(t *testing.T, fsys storage.FS) {
	t.Helper()
	got, seq := readAll(t, fsys), stateOf(t, fsys).Seq
	for i, r := range got {
		if !strings.HasPrefix(r, fmt.Sprint(i+1, " ")) {
			t.Fatalf("record %d is %.40s…", i+1, r)
		}
	}
	if len(got) != int(seq) {
		t.Fatalf("%d records, the log goes to %d", len(got), seq)
	}
}

// TestHistory: however long the past is, the log directory stays short (T12),
// and every record is there, as it was written, over several owners.
func TestHistory(t *testing.T) {
	disk, w := memfs.New(), newWorld()
	longest := 0
	for i := range 6 {
		l := mustOpen(t, historyOptions(w, disk))
		if err := (&script{l: l, fsys: disk}).run(i*5*steps, 5*steps, func() {
			files, err := list(disk, testTable)
			if err != nil {
				t.Fatal(err)
			}
			longest = max(longest, len(files.records)+len(files.snapshots))
		}); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(l.UpkeepErr(), l.Close()); err != nil {
			t.Fatal(err)
		}
	}
	if longest > 12 {
		t.Errorf("the log directory had %d files", longest)
	}
	noGap(t, disk)
	spans, err := listHistory(disk, testTable)
	if err != nil || len(spans) == 0 {
		t.Fatalf("no history: %v", err)
	}
	// Every byte counts, and the error says where.
	name := spans[1].path(testTable)
	data, err := disk.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(data); i += 7 {
		broken := disk.Kill()
		breakFile(t, broken, name, i)
		err := ReadLog(broken, testTable, func(*Record) error { return nil })
		if fault.ClassOf(err) != fault.Halt || !strings.Contains(err.Error(), name) {
			t.Fatalf("byte %d: %v", i, err)
		}
	}
	for _, cut := range [][]byte{data[:len(data)-1], append(data, '\n')} {
		broken := disk.Kill()
		rewrite(t, broken, name, cut)
		if err := ReadLog(broken, testTable, func(*Record) error { return nil }); fault.ClassOf(err) != fault.Halt {
			t.Errorf("%d bytes of %d: %v", len(cut), len(data), err)
		}
	}
}

// TestHistoryExpires: what is older than history goes, and no more.
func TestHistoryExpires(t *testing.T) {
	disk, w := memfs.New(), newWorld()
	o := historyOptions(w, disk)
	o.History = time.Hour
	l := mustOpen(t, o)
	s := &script{l: l, fsys: disk}
	if err := s.run(0, 5*steps, nil); err != nil {
		t.Fatal(err)
	}
	old := l.State().Seq
	w.now = w.now.Add(30 * time.Minute)
	if err := s.run(5*steps, 5*steps, nil); err != nil {
		t.Fatal(err)
	}
	noGap(t, disk) // all within history
	w.now = w.now.Add(45 * time.Minute)
	if err := s.run(10*steps, 2*steps, nil); err != nil {
		t.Fatal(err)
	}
	if err := l.UpkeepErr(); err != nil {
		t.Fatal(err)
	}
	first := uint64(0)
	if err := ReadLog(disk, testTable, func(r *Record) error {
		if first == 0 && r.Seq != l.sealed {
			first = r.Seq
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if first < old-10 || first > old+1 {
		t.Errorf("the history begins with record %d, record %d is the last that is older", first, old)
	}
}

// TestHistoryCrash stops a life before and after each of its operations: no
// record is ever lost or there twice (T12).
func TestHistoryCrash(t *testing.T) {
	past := func(fsys storage.FS) error {
		w := newWorld()
		for i := range 2 {
			l, err := Open(context.Background(), historyOptions(w, fsys))
			if err != nil {
				return err
			}
			if err := (&script{l: l, fsys: fsys}).run(i*steps, steps, nil); err != nil {
				return err
			}
		}
		return nil
	}
	whole := faultfs.New(memfs.New())
	if err := past(whole); err != nil {
		t.Fatal(err)
	}
	if spans, err := listHistory(whole, testTable); err != nil || len(spans) < 2 {
		t.Fatalf("%d files of history: %v", len(spans), err)
	}
	for k := 1; k <= whole.Ops(); k++ {
		for _, after := range []bool{false, true} {
			disk := memfs.New()
			fsys := faultfs.New(disk)
			fsys.CrashAt(k, after)
			if err := past(fsys); err != nil && !errors.Is(err, faultfs.ErrCrashed) {
				t.Fatal(err)
			}
			for _, im := range extremes {
				left := disk.Crash(im.mode, im.seed)
				if stateOf(t, left).Seq == 0 {
					continue
				}
				noGap(t, left)
				w := newWorld()
				w.rng.Uint64()
				l := mustOpen(t, historyOptions(w, left))
				for range 7 {
					mustAppend(t, l, &Record{Checkpoint: &Checkpoint{Number: l.State().Checkpoint + 1, Watermark: l.State().Watermark}})
				}
				if err := l.UpkeepErr(); err != nil {
					t.Fatal(err)
				}
				noGap(t, left)
				if t.Failed() {
					t.Fatalf("crash at operation %d (%v), after %v, image %v", k, whole.Trace()[k-1], after, im.mode)
				}
			}
		}
	}
}

// TestReadLogBesideMove: records that move into the history between the listing
// and the reading are still found.
func TestReadLogBesideMove(t *testing.T) {
	disk, w := memfs.New(), newWorld()
	l := mustOpen(t, historyOptions(w, disk))
	s := &script{l: l, fsys: disk}
	if err := s.run(0, 2*steps, nil); err != nil {
		t.Fatal(err)
	}
	slow := faultfs.New(disk)
	i := 2 * steps
	slow.Inject(faultfs.Rule{Kind: storage.OpReadFile, Times: 3, Do: func(faultfs.Op) {
		if err := s.run(i, 2*steps, nil); err != nil {
			t.Error(err)
		}
		i += 2 * steps
	}}).MustFire(t)
	got := readAll(t, slow)
	for n, r := range got {
		if !strings.HasPrefix(r, fmt.Sprint(n+1, " ")) {
			t.Fatalf("record %d is %.40s…", n+1, r)
		}
	}
	if len(got) < 2*steps {
		t.Errorf("%d records", len(got))
	}
}

// TestSnapshotBeside: a snapshot that is being made holds up no append, says
// what the state was when it was begun, and is joined by Close.
func TestSnapshotBeside(t *testing.T) {
	disk, w := memfs.New(), newWorld()
	fsys := faultfs.New(disk)
	held, hold := make(chan struct{}), make(chan struct{})
	fsys.Inject(faultfs.Rule{Kind: storage.OpCreate, Glob: "snapshot-*", Do: func(faultfs.Op) {
		close(held)
		<-hold
	}}).MustFire(t)
	o := w.options(fsys)
	o.SnapshotEvery, o.Background = 5, true
	o.Now, o.Random = time.Now, nil // the world's are for one goroutine
	l := mustOpen(t, o)
	s := &script{l: l, fsys: disk}
	if err := s.run(0, 4, nil); err != nil {
		t.Fatal(err)
	}
	<-held
	want, at := canon(t, l.State()), l.State().Seq
	if err := s.run(4, 2*steps, nil); err != nil { // with the snapshot still held
		t.Fatal(err)
	}
	close(hold)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	st, err := readSnapshot(disk, testTable, at)
	if err != nil || canon(t, st) != want {
		t.Errorf("the snapshot of record %d: %v", at, err)
	}
	if l.UpkeepErr() != nil {
		t.Error(l.UpkeepErr())
	}
}

// TestNoHistory: a user who wants no history has none: what two snapshots cover
// is gone.
func TestNoHistory(t *testing.T) {
	disk, w := memfs.New(), newWorld()
	o := historyOptions(w, disk)
	o.History = Keep(0)
	l := mustOpen(t, o)
	if err := (&script{l: l, fsys: disk}).run(0, 5*steps, func() {}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(l.UpkeepErr(), l.Close()); err != nil {
		t.Fatal(err)
	}
	files, err := list(disk, testTable)
	if err != nil {
		t.Fatal(err)
	}
	spans, err := listHistory(disk, testTable)
	if err != nil || len(spans) != 0 || len(files.records) > 12 {
		t.Fatalf("%d files in the history, %d records in the log, %v", len(spans), len(files.records), err)
	}
	if got := readAll(t, disk); len(got) == 0 {
		t.Fatal("what is needed is gone as well")
	}
	mustOpen(t, historyOptions(w, disk))
}

// TestTableBelowForeignDirectories: above a new table are directories that cannot
// be synced, an automount point for one.
func TestTableBelowForeignDirectories(t *testing.T) {
	for _, err := range []error{syscall.EACCES, syscall.ENOTSUP} {
		fs := faultfs.New(memfs.New())
		fs.Inject(faultfs.Rule{Kind: storage.OpSyncDir, Match: func(op faultfs.Op) bool { return op.Name == "/" }, Err: err}).MustFire(t)
		if err := errors.Join(fs.Mkdir("/net"), fs.Mkdir("/net/data")); err != nil {
			t.Fatal(err)
		}
		o := newWorld().options(fs)
		o.Table = "/net/data/t"
		mustOpen(t, o)
	}
}
