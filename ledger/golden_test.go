package ledger

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/hivesink/hivesink/layout"
	"github.com/hivesink/hivesink/storage"
	"github.com/hivesink/hivesink/storage/memfs"
)

var makeGolden = flag.Bool("make-golden", false, "write testdata/v1, v1-replaced and v1-more anew; never for a version that was released")

// The logs: one as the first hivesink wrote it, one with replacements of
// published files, which came later, and one with all that came after that.
const (
	goldenDir         = "testdata/v1"
	goldenDirReplaced = "testdata/v1-replaced"
	goldenDirMore     = "testdata/v1-more"
)

// TestGoldenV1: a log of format version 1 reads as it did when it was written,
// and is written as it was.
func TestGoldenV1(t *testing.T) {
	if *makeGolden {
		writeGolden(t)
	}
	readGolden(t, goldenDir)
}

// TestGoldenReplaced: the same of a log with a replacement that has ended, one
// that is done and one that is planned.
func TestGoldenReplaced(t *testing.T) {
	if *makeGolden {
		writeGoldenReplaced(t)
	}
	readGolden(t, goldenDirReplaced)
}

// TestGoldenMore: the same of a log with slices, parts in the table's encoding,
// uploads, and a unit that was given up.
func TestGoldenMore(t *testing.T) {
	if *makeGolden {
		writeGoldenMore(t)
	}
	readGolden(t, goldenDirMore)
}

func readGolden(t *testing.T, goldenDir string) {
	t.Helper()
	disk := memfs.New()
	if err := storage.MkdirAllSync(disk, "/", logDir(testTable)); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(filepath.Join(goldenDir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		data, err := os.ReadFile(filepath.Join(goldenDir, "log", f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if err := storage.WriteFile(disk, logDir(testTable)+"/"+f.Name(), data); err != nil {
			t.Fatal(err)
		}
		if _, ok := layout.ParseLogFile(f.Name()); !ok {
			continue
		}
		r, sum, err := Decode(f.Name(), data)
		if err != nil {
			t.Fatal(err)
		}
		again, sum2, err := Encode(r)
		if err != nil || !bytes.Equal(again, data) || sum != sum2 {
			t.Errorf("record %s is written as\n%s, it was\n%s%v", f.Name(), again, data, err)
		}
	}
	want, err := os.ReadFile(filepath.Join(goldenDir, "state.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, from := range []string{"snapshot", "records"} {
		if got := canon(t, stateOf(t, disk)) + "\n"; got != string(want) {
			t.Errorf("the state from the %s is\n%swant\n%s", from, got, want)
		}
		if err := storage.RemoveAll(disk, snapshotPath(testTable, 10)); err != nil {
			t.Fatal(err)
		}
	}
	mustOpen(t, newWorld().options(disk))
}

func writeGolden(t *testing.T) {
	disk := memfs.New()
	o := newWorld().options(disk)
	o.SnapshotEvery = 10
	o.Identity = map[string]string{"kafka.cluster": "A"}
	l := mustOpen(t, o)
	if err := (&script{l: l, fsys: disk}).run(0, 2*steps, nil); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, l, &Record{Checkpoint: &Checkpoint{Number: l.State().Checkpoint + 1, Sources: map[string]Source{
		"topic/0": {Position: "5", NextRow: 5, Watermark: NoWatermark, Ended: true, Accepted: sumOf(0, 2), DeadLettered: sumOf(2, 3), Dropped: sumOf(3, 4), Skipped: sumOf(4, 5)}},
		Parts: []Part{{ID: "00000000000000aa", Table: DeadTable, Partition: "dt=<é>", Epoch: 1, Name: "00000000000000aa.part", Rows: 1, Bytes: 7, MinTime: -1, MaxTime: 2,
			FirstWrite: 3, Closes: 4, Schema: "s", Codec: "snappy", Full: true, Checkpoint: l.State().Checkpoint + 1, Sources: map[string]Range{"topic/0": {First: 2, Last: 2, Sum: sumOf(2, 3)}}}}}})
	saveGolden(t, goldenDir, disk, l)
}

func writeGoldenReplaced(t *testing.T) {
	disk := memfs.New()
	o := newWorld().options(disk)
	o.SnapshotEvery = 10
	l := mustOpen(t, o)
	part := func(id string) Part {
		return Part{ID: id, Partition: "dt=<é>", Epoch: 1, Name: id + ".part", Rows: 2, Bytes: 20, FirstWrite: 3, Schema: "s", Codec: "zstd", Checkpoint: 1,
			Sources: map[string]Range{"topic/0": {First: 0, Last: 1, Sum: sumOf(0, 2)}}}
	}
	var c Checkpoint
	c.Number = 1
	var published []Published
	for _, id := range []string{"a", "b", "c"} {
		c.Parts = append(c.Parts, part(id))
		c.Units = append(c.Units, Unit{ID: "u" + id, Partition: "dt=<é>", Inputs: []string{id}, Target: id + ".parquet", Mode: ModePublish, Rows: 2, Checkpoint: 1})
		published = append(published, Published{Unit: "u" + id, Path: "dt=<é>/" + id + ".parquet", Mode: ModePublish, Rows: 2, Bytes: 20, Leaves: []string{id}, Time: 5})
	}
	mustAppend(t, l, &Record{Checkpoint: &c})
	mustAppend(t, l, &Record{Published: published})
	replace := func(id, old, now string) Replacement {
		return Replacement{ID: id, Partition: "dt=<é>", Epoch: 1, Removed: []string{old}, RemovedBytes: 20,
			Added: []ReplacedFile{{Name: now, Mode: "merge", Rows: 2, Bytes: 18, Leaves: []string{old[:1]}, Sources: map[string]Range{"topic/0": {First: 0, Last: 1, Sum: sumOf(0, 2)}}}}}
	}
	mustAppend(t, l, &Record{Replacing: []Replacement{replace("r1", "a.parquet", "d.parquet")}})
	mustAppend(t, l, &Record{Replaced: []string{"r1"}})
	mustAppend(t, l, &Record{ReplacementsEnded: []string{"r1"}})
	mustAppend(t, l, &Record{Replacing: []Replacement{replace("r2", "b.parquet", "e.parquet")}, Replaced: []string{"r2"}})
	for l.State().Seq < 10 { // into the snapshot
		mustAppend(t, l, &Record{Checkpoint: &Checkpoint{Number: l.State().Checkpoint + 1}})
	}
	mustAppend(t, l, &Record{ReplacementsEnded: []string{"r2"}})
	mustAppend(t, l, &Record{Replacing: []Replacement{replace("r3", "c.parquet", "f.parquet")}})
	saveGolden(t, goldenDirReplaced, disk, l)
}

func writeGoldenMore(t *testing.T) {
	disk := memfs.New()
	o := newWorld().options(disk)
	o.SnapshotEvery = 10
	l := mustOpen(t, o)
	row := int64(0)
	checkpoint := func(parts []Part, units ...Unit) {
		c := &Checkpoint{Number: l.State().Checkpoint + 1, Watermark: NoWatermark, Parts: parts, Units: units}
		for i := range c.Parts {
			p := &c.Parts[i]
			p.Epoch, p.Rows, p.FirstWrite, p.Schema, p.Checkpoint = 1, 2, 3, "s", c.Number
			p.Sources = map[string]Range{"topic/0": {First: row, Last: row + 1, Sum: sumOf(row, row+2)}}
			row += 2
		}
		c.Sources = map[string]Source{"topic/0": {Position: "at", NextRow: row, Watermark: NoWatermark, Accepted: sumOf(0, row)}}
		mustAppend(t, l, &Record{Checkpoint: c})
	}
	slice := func(id string, offset int64) Part {
		return Part{ID: id, Partition: "dt=" + id, Name: "b.bundle", Bundle: true, Offset: offset, Bytes: 10, Codec: "none"}
	}
	checkpoint([]Part{slice("a", 0), slice("b", 10), {ID: "f", Partition: "dt=a", Name: "f.part", Bytes: 30, Codec: "zstd", Final: true, Full: true}})
	unit := func(id string, rows int64, target string, inputs ...string) Unit {
		return Unit{ID: id, Partition: "dt=a", Inputs: inputs, Target: target, Mode: ModeMerge, Rows: rows, Checkpoint: 1}
	}
	mustAppend(t, l, &Record{Plan: []Unit{unit("u1", 4, "t1.parquet", "a", "f")}})
	mustAppend(t, l, &Record{Uploading: []Upload{{Unit: "u1", ID: "up-1"}, {Unit: "u1", ID: "up-2"}}})
	mustAppend(t, l, &Record{GivenUp: []string{"u1"}, Plan: []Unit{unit("u2", 2, "t2.parquet", "a"), unit("u3", 2, "t3.parquet", "f")}})
	mustAppend(t, l, &Record{Published: []Published{{Unit: "u2", Path: "dt=a/t2.parquet", Mode: ModeRewrite, Rows: 2, Bytes: 9, Leaves: []string{"a"}, Time: 5}}})
	ready := func(id string) (Part, Unit) {
		return Part{ID: id, Partition: "dt=c", Name: id + ".parquet", Bytes: 40, Codec: "zstd", Final: true, Upload: "up-" + id},
			Unit{ID: "u" + id, Partition: "dt=c", Inputs: []string{id}, Target: id + ".parquet", Mode: ModePublish, Rows: 2}
	}
	for _, id := range []string{"r", "s"} { // one in the snapshot, one after it
		for id == "s" && l.State().Seq < 10 {
			mustAppend(t, l, &Record{Checkpoint: &Checkpoint{Number: l.State().Checkpoint + 1, Watermark: NoWatermark}})
		}
		p, u := ready(id)
		checkpoint([]Part{p}, u)
	}
	mustAppend(t, l, &Record{Uploading: []Upload{{Unit: "u3", ID: "up-3"}}, InputsDeleted: []string{"u2"}})
	saveGolden(t, goldenDirMore, disk, l)
}

func saveGolden(t *testing.T, goldenDir string, disk *memfs.FS, l *Ledger) {
	t.Helper()
	entries, err := disk.List(logDir(testTable))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(goldenDir, "log"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		data, err := disk.ReadFile(logDir(testTable) + "/" + e.Name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(goldenDir, "log", e.Name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(goldenDir, "state.json"), []byte(canon(t, l.State())+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}
