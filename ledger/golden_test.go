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

var makeGolden = flag.Bool("make-golden", false, "write testdata/v1 anew; never for a version that was released")

const goldenDir = "testdata/v1"

// TestGoldenV1: a log of format version 1 reads as it did when it was written,
// and is written as it was.
func TestGoldenV1(t *testing.T) {
	if *makeGolden {
		writeGolden(t)
	}
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
