package ledger

import (
	"context"
	"errors"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/layout"
	"github.com/hivesink/hivesink/storage"
	"github.com/hivesink/hivesink/storage/faultfs"
	"github.com/hivesink/hivesink/storage/memfs"
)

func TestLife(t *testing.T) {
	fsys := memfs.New()
	w := newWorld()
	l := mustOpen(t, w.options(fsys))
	if err := (&script{l: l, fsys: fsys}).run(0, 3*steps, nil); err != nil {
		t.Fatal(err)
	}
	if l.UpkeepErr() != nil || l.IndexErr() != nil {
		t.Fatal(l.UpkeepErr(), l.IndexErr())
	}
	st, err := Read(fsys, testTable)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := canon(t, st), canon(t, l.State()); got != want {
		t.Errorf("read beside the run:\n%s\nwant\n%s", got, want)
	}
	if st.Seq != 3*steps+1 || st.Checkpoint != 9 || st.Partitions[":dt=1"].Rows != 60 || !st.Partitions[":dt=2"].Registered {
		t.Errorf("state %s", canon(t, st))
	}
	seqs := uint64(0)
	if err := ReadLog(fsys, testTable, func(r *Record) error {
		seqs++
		if r.Seq != seqs {
			t.Errorf("record %d comes as number %d", r.Seq, seqs)
		}
		return nil
	}); err != nil || seqs != st.Seq {
		t.Errorf("read the log: %d records, %v", seqs, err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := l.Append(&Record{}); err == nil {
		t.Error("a closed ledger appends")
	}
	if tree := fsys.Tree(testTable + "/.hivesink"); strings.Contains(tree, "epoch-") {
		t.Errorf("a clean end leaves staging behind:\n%s", tree)
	}
}

// TestTakeover: staged files of a former owner stay where the log names them
// and go where it does not (T11), and every file of former owners is found.
func TestTakeover(t *testing.T) {
	fsys := memfs.New()
	w := newWorld()
	l := mustOpen(t, w.options(fsys))
	s := &script{l: l, fsys: fsys}
	if err := s.run(0, 2, nil); err != nil {
		t.Fatal(err)
	}
	garbage := path.Join(l.Staging(), layout.StagedPart("00000000000000ff"))
	if err := storage.WriteFile(fsys, garbage, []byte("never named")); err != nil {
		t.Fatal(err)
	}
	second := mustOpen(t, w.options(fsys.Kill()))
	fsys = second.o.FS.(*memfs.FS)
	for _, p := range second.State().Parts {
		where, err := second.Locate(p.Epoch, p.Name)
		if err != nil || !strings.Contains(where, "/fenced-1/") {
			t.Errorf("part %s is at %q: %v", p.ID, where, err)
		}
		if b, err := fsys.ReadFile(where); err != nil || string(b) != "part "+p.ID {
			t.Errorf("part %s holds %q: %v", p.ID, b, err)
		}
		if found, err := FindStaged(fsys, testTable, p.Epoch, p.Name); err != nil || found != where {
			t.Errorf("readers find part %s at %q: %v", p.ID, found, err)
		}
	}
	if _, err := second.Locate(1, path.Base(garbage)); !errors.Is(err, storage.ErrNotExist) {
		t.Errorf("what the log does not name is still there: %v", err)
	}
	if err := (&script{l: second, fsys: fsys}).run(2, 5, nil); err != nil {
		t.Fatal(err)
	}
	third := mustOpen(t, w.options(fsys.Kill()))
	if tree := third.o.FS.(*memfs.FS).Tree(testTable + "/.hivesink"); strings.Contains(tree, "fenced-") || third.Epoch() != 3 {
		t.Errorf("epoch %d, and nothing should be left of the others:\n%s", third.Epoch(), tree)
	}
}

// refused opens and expects an error that leaves everything as it is (T4).
func refused(t *testing.T, fsys *memfs.FS, o Options, class fault.Class, says ...string) {
	t.Helper()
	before := fsys.Tree("/")
	_, err := Open(context.Background(), o)
	if err == nil {
		t.Fatal("opened")
	}
	if fault.ClassOf(err) != class {
		t.Errorf("class %s of: %v", fault.ClassOf(err), err)
	}
	for _, s := range says {
		if !strings.Contains(err.Error(), s) {
			t.Errorf("%q is not in: %v", s, err)
		}
	}
	if after := fsys.Tree("/"); after != before {
		t.Errorf("T4: a refusal changed things:\n%s\nbefore:\n%s", after, before)
	}
}

func TestRefusals(t *testing.T) {
	fsys := memfs.New()
	w := newWorld()
	o := w.options(fsys)
	o.Identity = map[string]string{"kafka.cluster": "A"}
	l := mustOpen(t, o)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	other := o
	other.Pipeline = "orders"
	refused(t, fsys, other, fault.Fenced, `belongs to pipeline "clicks"`, `this is pipeline "orders"`, "drain")
	changed := o
	changed.Identity = map[string]string{"kafka.cluster": "B"}
	refused(t, fsys, changed, fault.Halt, `kafka.cluster is "B"`, `the table log has "A"`)

	// An identity that a run does not know is kept for the next one.
	none := o
	none.Identity = map[string]string{"kafka.topic": "T"}
	l = mustOpen(t, none)
	if id := l.State().Owner.Identity; id["kafka.cluster"] != "A" || id["kafka.topic"] != "T" {
		t.Errorf("identity %v", id)
	}
	// A released table is anybody's, with the same table id.
	id := l.State().Owner.Table
	mustAppend(t, l, &Record{Released: true})
	if err := l.Append(&Record{}); err == nil || !strings.Contains(err.Error(), "released") {
		t.Errorf("append after the release: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = mustOpen(t, other)
	if st := l.State(); st.Released || st.Owner.Pipeline != "orders" || st.Owner.Table != id {
		t.Errorf("taken over as %+v", st.Owner)
	}
}

func TestForeignFiles(t *testing.T) {
	fsys := memfs.New()
	if err := storage.MkdirAllSync(fsys, "/", testTable+"/dt=1"); err != nil {
		t.Fatal(err)
	}
	if err := fsys.Mkdir(testTable + "/_logs"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"/_logs/1", "/.marker"} {
		if err := storage.WriteFile(fsys, testTable+name, nil); err != nil {
			t.Fatal(err)
		}
	}
	w := newWorld()
	clean := fsys.Kill()
	mustOpen(t, w.options(clean)) // hidden files and empty directories are fine
	if err := storage.WriteFile(fsys, testTable+"/dt=1/x.parquet", nil); err != nil {
		t.Fatal(err)
	}
	refused(t, fsys, w.options(fsys), fault.Halt, testTable+"/dt=1/x.parquet", "empty location")
	if err := fsys.Remove(testTable + "/dt=1/x.parquet"); err != nil {
		t.Fatal(err)
	}
	for _, side := range []string{"_dead", "_late"} { // of a table that was removed
		left := testTable + side + "/part-1-00.parquet"
		if err := fsys.Mkdir(testTable + side); err != nil {
			t.Fatal(err)
		}
		if err := storage.WriteFile(fsys, left, nil); err != nil {
			t.Fatal(err)
		}
		refused(t, fsys, w.options(fsys), fault.Halt, left, "empty location")
		if err := fsys.Remove(left); err != nil {
			t.Fatal(err)
		}
	}
	mustOpen(t, w.options(fsys))
}

// TestMadeMeanwhile: files that another process has published since the log was
// read as empty are not foreign.
func TestMadeMeanwhile(t *testing.T) {
	for _, pipeline := range []string{"clicks", "orders"} {
		disk, w := memfs.New(), newWorld()
		stepped := faultfs.New(disk)
		stepped.Inject(faultfs.Rule{Kind: storage.OpList, Glob: testTable, Do: func(faultfs.Op) {
			mustOpen(t, w.options(disk))
			if err := storage.WriteFile(disk, testTable+"/part-1-00.parquet", nil); err != nil {
				t.Error(err)
			}
		}}).MustFire(t)
		o := w.options(stepped)
		o.Pipeline = pipeline
		l, err := Open(context.Background(), o)
		switch {
		case pipeline == "clicks" && (err != nil || l.Epoch() != 2):
			t.Errorf("the same pipeline: %v", err)
		case pipeline == "orders" && fault.ClassOf(err) != fault.Fenced:
			t.Errorf("another pipeline: %v", err)
		}
	}
}

// TestLostLog: parts without a log are not taken for garbage.
func TestLostLog(t *testing.T) {
	fsys := memfs.New()
	w := newWorld()
	l := mustOpen(t, w.options(fsys))
	if err := (&script{l: l, fsys: fsys}).run(0, 1, nil); err != nil {
		t.Fatal(err)
	}
	if err := storage.RemoveAll(fsys, logDir(testTable)); err != nil {
		t.Fatal(err)
	}
	refused(t, fsys, w.options(fsys), fault.Halt, ".hivesink/log is gone", ".part")
}

// TestLostLogWithBundles: nor are bundles.
func TestLostLogWithBundles(t *testing.T) {
	fsys := memfs.New()
	w := newWorld()
	l := mustOpen(t, w.options(fsys))
	if err := storage.WriteFile(fsys, l.Staging()+"/00ff.bundle", []byte("rows")); err != nil {
		t.Fatal(err)
	}
	if err := storage.RemoveAll(fsys, logDir(testTable)); err != nil {
		t.Fatal(err)
	}
	refused(t, fsys, w.options(fsys), fault.Halt, ".hivesink/log is gone", "00ff.bundle")
}

func TestReadNoTable(t *testing.T) {
	for _, err := range []error{
		func() error { _, err := Read(memfs.New(), testTable); return err }(),
		ReadLog(memfs.New(), testTable, func(*Record) error { return nil }),
	} {
		if fault.ClassOf(err) != fault.Config || !strings.Contains(err.Error(), testTable) {
			t.Errorf("no table: %v", err)
		}
	}
}

func TestLock(t *testing.T) {
	fsys := memfs.New()
	w := newWorld()
	o := w.options(fsys)
	o.Lock = true
	l := mustOpen(t, o)
	refused(t, fsys, o, fault.Fenced, "lock", testTable)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := mustOpen(t, o).Close(); err != nil {
		t.Fatal(err)
	}
}

// TestSnapshots: the log stays short, never loses what a reader needs (T7), and
// a damaged snapshot costs nothing.
func TestSnapshots(t *testing.T) {
	// The clock ticks a second or two per record.
	for history, most := range map[time.Duration]int{30 * time.Second: 45, time.Nanosecond: 22} {
		fsys := memfs.New()
		w := newWorld()
		o := w.options(fsys)
		o.SnapshotEvery, o.History = 10, history
		l := mustOpen(t, o)
		s := &script{l: l, fsys: fsys}
		check := func() {
			t.Helper()
			if err := l.UpkeepErr(); err != nil {
				t.Fatal(err)
			}
			st, err := Read(fsys, testTable)
			if err != nil {
				t.Fatal(err)
			}
			if canon(t, st) != canon(t, l.State()) {
				t.Fatal("the log says something else than the state")
			}
		}
		if err := s.run(0, 14*steps, check); err != nil {
			t.Fatal(err)
		}
		files, err := list(fsys, testTable)
		if err != nil {
			t.Fatal(err)
		}
		if len(files.snapshots) != 2 || len(files.records) > most || files.records[0] != 1 {
			t.Errorf("T7: history %v: snapshots %v, records %v", history, files.snapshots, files.records)
		}
		young := 0
		if err := ReadLog(fsys, testTable, func(r *Record) error {
			if r.Time > w.now.Add(-history).UnixMicro() {
				young++
			}
			return nil
		}); err != nil || history > time.Second && young < 10 {
			t.Errorf("%d records within history %v: %v", young, history, err)
		}
		want := canon(t, l.State())
		breakFile(t, fsys, snapshotPath(testTable, files.snapshots[1]), 10)
		if st, err := Read(fsys, testTable); err != nil || canon(t, st) != want {
			t.Errorf("a damaged newest snapshot, history %v: %v", history, err)
		}
		breakFile(t, fsys, snapshotPath(testTable, files.snapshots[0]), 10)
		_, err = Read(fsys, testTable)
		if fault.ClassOf(err) != fault.Halt || !strings.Contains(err.Error(), layout.SnapshotFile(files.snapshots[1])) {
			t.Errorf("both snapshots damaged: %v", err)
		}
	}
}

// breakFile flips a bit of the byte at i, of the end when i is negative.
func breakFile(t *testing.T, fsys storage.FS, name string, i int) {
	t.Helper()
	data, err := fsys.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if i < 0 {
		i += len(data)
	}
	data[i] ^= 1
	rewrite(t, fsys, name, data)
}

func rewrite(t *testing.T, fsys storage.FS, name string, data []byte) {
	t.Helper()
	if err := fsys.Remove(name); err != nil {
		t.Fatal(err)
	}
	if err := storage.WriteFile(fsys, name, data); err != nil {
		t.Fatal(err)
	}
}

// TestReadBesideRemoval: a reader that misses a record starts again at the
// newest snapshot.
func TestReadBesideRemoval(t *testing.T) {
	fsys := memfs.New()
	w := newWorld()
	o := w.options(fsys)
	o.SnapshotEvery, o.History = 3, time.Nanosecond
	l := mustOpen(t, o)
	s := &script{l: l, fsys: fsys}
	if err := s.run(0, 20, nil); err != nil {
		t.Fatal(err)
	}
	slow := faultfs.New(fsys)
	i := 20
	between := slow.Inject(faultfs.Rule{Kind: storage.OpReadFile, Times: 3, Do: func(faultfs.Op) {
		if err := s.run(i, steps*3, nil); err != nil { // everything it has listed goes
			t.Error(err)
		}
		i += steps * 3
	}}).MustFire(t)
	st, err := Read(slow, testTable)
	if err != nil || canon(t, st) != canon(t, l.State()) || between.Fired() != 3 {
		t.Errorf("after %d removals: %v", between.Fired(), err)
	}
}

func TestDamage(t *testing.T) {
	whole := memfs.New()
	w := newWorld()
	l := mustOpen(t, w.options(whole))
	if err := (&script{l: l, fsys: whole}).run(0, steps, nil); err != nil {
		t.Fatal(err)
	}
	record := func(fsys storage.FS, seq uint64) *Record {
		r, _, err := readRecord(fsys, testTable, seq)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	store := func(fsys storage.FS, seq uint64, r *Record) {
		data, _, err := Encode(r)
		if err != nil {
			t.Fatal(err)
		}
		rewrite(t, fsys, recordPath(testTable, seq), data)
	}
	cases := []struct {
		name string
		do   func(fsys *memfs.FS)
		says []string
	}{
		{"a flipped bit", func(f *memfs.FS) { breakFile(t, f, recordPath(testTable, 3), 40) }, []string{"000000000003", "checksum", "checkpoint 2 and everything after it", "restore"}},
		{"an empty file", func(f *memfs.FS) { rewrite(t, f, recordPath(testTable, 3), nil) }, []string{"000000000003", "0 bytes"}},
		{"a gap", func(f *memfs.FS) { _ = f.Remove(recordPath(testTable, 2)) }, []string{"record 2 is missing", "goes on to 8", "checkpoint 1 and everything after it", "restore"}},
		{"a lower epoch", func(f *memfs.FS) {
			r := record(f, 8)
			r.Epoch = 0
			store(f, 8, r)
		}, []string{"000000000008", "epoch 0, after one of epoch 1"}},
		{"an epoch nobody opened", func(f *memfs.FS) {
			r := record(f, 8)
			r.Epoch = 2
			store(f, 8, r)
		}, []string{"never opened"}},
		{"a record of another log", func(f *memfs.FS) {
			r := record(f, 8)
			r.Previous = strings.Repeat("0", 64)
			store(f, 8, r)
		}, []string{"000000000008", "it follows a record with checksum"}},
		{"a record under another name", func(f *memfs.FS) { store(f, 8, record(f, 7)) }, []string{"000000000008", "it says it is record 7"}},
		{"a newer format", func(f *memfs.FS) {
			r := record(f, 8)
			r.Version = 2
			store(f, 8, r)
		}, []string{"format version 2", "newer hivesink"}},
		{"a foreign name", func(f *memfs.FS) {
			if err := storage.WriteFile(f, logDir(testTable)+"/000000000009.tmp", nil); err != nil {
				t.Fatal(err)
			}
		}, []string{"000000000009.tmp is not a file of the table log", "move it"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			fsys := whole.Kill()
			c.do(fsys)
			refused(t, fsys, w.options(fsys), fault.Halt, c.says...)
			if _, err := Read(fsys, testTable); err == nil {
				t.Error("read without complaint")
			}
		})
	}
}

// TestEveryByte: no changed byte of a record goes unnoticed (T1).
func TestEveryByte(t *testing.T) {
	fsys := memfs.New()
	l := mustOpen(t, newWorld().options(fsys))
	if err := (&script{l: l, fsys: fsys}).run(0, 1, nil); err != nil {
		t.Fatal(err)
	}
	data, err := fsys.ReadFile(recordPath(testTable, 2))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := Decode("2", data); err != nil {
		t.Fatal(err)
	}
	for i := range data {
		for _, bit := range []byte{1, 0x20, 0x80} {
			data[i] ^= bit
			if _, _, err := Decode("2", data); fault.ClassOf(err) != fault.Halt {
				t.Errorf("byte %d changed by %#x: %v", i, bit, err)
			}
			data[i] ^= bit
		}
		if _, _, err := Decode("2", data[:i]); err == nil {
			t.Errorf("cut to %d bytes and read", i)
		}
	}
	if _, _, err := Decode("2", append(data, '\n')); err == nil {
		t.Error("read with a byte more")
	}
}

func TestNotUTF8(t *testing.T) {
	fsys := memfs.New()
	l := mustOpen(t, newWorld().options(fsys))
	bad := func(name string) *Record {
		return &Record{Checkpoint: &Checkpoint{Number: 1, Sources: map[string]Source{name: {Position: "1"}}}}
	}
	if err := l.Append(bad("in/\xff.json")); err == nil || !strings.Contains(err.Error(), "UTF-8") {
		t.Errorf("append: %v", err)
	}
	mustAppend(t, l, bad("in/\\ufffd\ufffd<&>.json")) // odd, but text
	if st, err := Read(fsys, testTable); err != nil || st.Sources["in/\\ufffd\ufffd<&>.json"] == nil {
		t.Errorf("read back: %v", err)
	}
}
