package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/hivesink/hivesink/internal/testproc"
)

const filesYAML = `
pipeline: input
state_dir: {dir}/state
source:
  files: {paths: ["{dir}/in/*"]}
  event_time: {column: ts}
table:
  name: events
  location: {dir}/table
  columns: [id bigint not null, ts timestamp not null, name string]
  partitioned_by: [{dt: date(ts)}]
checkpoint: {interval: 50ms}
`

// line is the record with this id: three days, in turn.
func line(id int) string {
	return fmt.Sprintf(`{"id":%d,"ts":"2026-01-%02dT10:00:00Z","name":"name %d"}`, id, 1+id%3, id*7919)
}

// lines are the records 0 to n-1, with some lines (numbered from 1) replaced.
func lines(n int, replaced map[int]string) string {
	var b strings.Builder
	for i := range n {
		text, ok := replaced[i+1]
		if !ok {
			text = line(i)
		}
		b.WriteString(text)
		b.WriteByte('\n')
	}
	return b.String()
}

// oneError checks that a run failed with one error, which says all of says,
// and nothing else: no stack trace, no second report of the same.
func oneError(t *testing.T, r testproc.Result, says ...string) {
	t.Helper()
	if r.Code != exitFailed {
		t.Fatalf("want exit %d: %v", exitFailed, r)
	}
	reports := 0
	for text := range strings.Lines(r.Err) {
		if strings.HasPrefix(text, "hivesink ") {
			reports++
		}
	}
	if reports != 1 || strings.Contains(r.Err, "goroutine ") || len(r.Err) > 1200 {
		t.Errorf("want one clear error: %v", r)
	}
	for _, text := range says {
		if n := strings.Count(r.Err, text); n == 0 {
			t.Errorf("the error does not say %q: %v", text, r)
		}
	}
}

// wantOnly fails unless exactly these ids are visible.
func (tb *table) wantOnly(what string, ids []int64) {
	tb.t.Helper()
	if got := tb.ids(); !slices.Equal(got, ids) {
		tb.t.Fatalf("%s: %d ids are visible, want %d (%d …)", what, len(got), len(ids), ids[0])
	}
}

func upTo(n int, without ...int64) (ids []int64) {
	for i := range int64(n) {
		if !slices.Contains(without, i) {
			ids = append(ids, i)
		}
	}
	return ids
}

// dead reads a column of the dead-letter table.
func (tb *table) dead(column string) (out []string) {
	tb.t.Helper()
	names, err := files(tb.root + "_dead")
	if err != nil {
		tb.t.Fatal(err)
	}
	for _, name := range names {
		if err := readValues(name, column, func(v parquet.Value) { out = append(out, string(v.ByteArray())) }); err != nil {
			tb.t.Fatal(err)
		}
	}
	slices.Sort(out)
	return out
}

// badLines are no records of the table; each is bad in another way.
var badLines = map[int]string{
	1001: `{"id":1000,"ts":"2026-01-01T10:00:0`,
	1501: "\x00\xff\xfe not JSON at all \xc3",
	1502: `{"id":"12e","ts":"2026-01-01T10:00:00Z"}`,
	1990: `{"ts":"2026-01-01T10:00:00Z","name":"no id"}`,
}

func TestBadRecordsAreKept(t *testing.T) {
	tb := newTable(t, filesYAML)
	tb.write("in/a.ndjson", lines(2000, badLines))
	s := tb.run("--set", "source.bad_records.limit=4")
	if s.RowsRead != 2000 || s.RowsBad != 4 || s.RowsVisible != 1996 || s.RowsDropped != 0 {
		t.Fatalf("summary: %+v", s)
	}
	tb.wantOnly("good records", upTo(2000, 1000, 1500, 1501, 1989))
	raw := slices.Sorted(func(yield func(string) bool) {
		for _, text := range badLines {
			if !yield(text) {
				return
			}
		}
	})
	if got := tb.dead("raw"); !slices.Equal(got, raw) {
		t.Fatalf("dead letters:\n%q\nwant\n%q", got, raw)
	}
	for i, place := range tb.dead("position") {
		if n := []int{1001, 1501, 1502, 1990}[i]; !strings.HasSuffix(place, fmt.Sprintf("a.ndjson line %d", n)) {
			t.Errorf("position %q, want line %d", place, n)
		}
	}
	for _, reason := range tb.dead("reason") {
		if reason == "" {
			t.Error("a dead letter without a reason")
		}
	}
	if rep := tb.fsck(exitDone); rep.DeadRows != 4 || rep.Rows != 1996 {
		t.Fatalf("fsck: %+v", rep)
	}
	if s := tb.run(); s.RowsRead != 0 || s.RowsVisible != 1996 {
		t.Fatalf("a second run: %+v", s)
	}
	// fsck sees a dead letter that is gone.
	names, err := files(tb.root + "_dead")
	if err != nil || len(names) == 0 {
		t.Fatal(err)
	}
	if err := os.Remove(names[0]); err != nil {
		t.Fatal(err)
	}
	tb.fsck(exitFault)
}

// TestBadRecordsStop: over the limit, or with policy fail, a run ends with one
// error; what came before is visible, and the mended file is read on.
func TestBadRecordsStop(t *testing.T) {
	for _, c := range []struct {
		name   string
		set    string
		at     int // the line that stops the run
		before []int64
	}{
		{"fail", "source.bad_records.policy=fail", 1001, upTo(1000)},
		{"dead-letter over the limit", "source.bad_records.limit=2", 1502, upTo(1501, 1000, 1500)},
		{"drop over the limit", "source.bad_records={policy: drop, limit: 3}", 1990, upTo(1989, 1000, 1500, 1501)},
	} {
		t.Run(c.name, func(t *testing.T) {
			tb := newTable(t, filesYAML)
			tb.write("in/a.ndjson", lines(2000, badLines))
			r := execute(t, "run", "-c", tb.config, "--json", "--set", c.set)
			oneError(t, r, fmt.Sprintf("a.ndjson line %d", c.at))
			tb.wantOnly("before the bad record", c.before)
			tb.fsck(exitDone)
			// The same again: still one error, nothing twice.
			r = execute(t, "run", "-c", tb.config, "--json", "--set", "source.bad_records.policy=fail")
			oneError(t, r, fmt.Sprintf("a.ndjson line %d", c.at))
			tb.wantOnly("after a second try", c.before)

			mended := make(map[int]string)
			for n, text := range badLines {
				if n < c.at { // is passed already
					mended[n] = text
				}
			}
			tb.write("in/a.ndjson", lines(2000, mended))
			s := tb.run("--set", c.set)
			var without []int64
			for n := range mended {
				without = append(without, int64(n-1))
			}
			tb.wantOnly("mended", upTo(2000, without...))
			if s.RowsBad != 0 || s.RowsRead != int64(2000-c.at+1) {
				t.Errorf("the mended rest: %+v", s)
			}
			tb.checkFinished()
		})
	}
}

func TestBadCSV(t *testing.T) {
	tb := newTable(t, filesYAML)
	text := "id,ts,name\n0,2026-01-01T10:00:00Z,\"two\nlines\"\n1,2026-01-01T10:00:00Z,x\n2,2026-01-01T10:00:00Z\n3,2026-01-02T10:00:00Z,y\n"
	tb.write("in/a.csv", text)
	r := execute(t, "run", "-c", tb.config, "--set", "source.format=csv", "--set", "source.bad_records.policy=fail")
	oneError(t, r, "a.csv line 5")
	tb.wantOnly("before the bad record", upTo(2))
	s := tb.run("--set", "source.format=csv")
	if s.RowsBad != 1 {
		t.Fatalf("summary: %+v", s)
	}
	tb.wantOnly("good records", upTo(4, 2))
	if got := tb.dead("raw"); len(got) != 1 || strings.TrimSpace(got[0]) != "2,2026-01-01T10:00:00Z" {
		t.Fatalf("dead letters: %q", got)
	}
	tb.checkFinished()
}

func TestTruncatedGzip(t *testing.T) {
	var whole bytes.Buffer
	z := gzip.NewWriter(&whole)
	if _, err := z.Write([]byte(lines(30_000, nil))); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	for _, cut := range []int{5, whole.Len() / 2, whole.Len() - 4} {
		t.Run(fmt.Sprint(cut), func(t *testing.T) {
			tb := newTable(t, filesYAML)
			tb.write("in/a.ndjson.gz", whole.String()[:cut])
			oneError(t, execute(t, "run", "-c", tb.config), "a.ndjson.gz", "cut short")
			ids := tb.ids()
			if len(ids) > 30_000 || cut > 1000 && len(ids) == 0 {
				t.Fatalf("%d rows are visible", len(ids))
			}
			if len(ids) > 0 {
				tb.wantOnly("before the cut", upTo(len(ids)))
				tb.fsck(exitDone)
			}
			tb.write("in/a.ndjson.gz", whole.String())
			if s := tb.run(); s.RowsVisible != 30_000 || s.RowsBad != 0 {
				t.Fatalf("the whole file: %+v", s)
			}
			tb.wantIDs(30_000)
			tb.checkFinished()
		})
	}
}

// TestLocationUnderAFile: a place where no table can be.
func TestLocationUnderAFile(t *testing.T) {
	tb := newTable(t, filesYAML)
	tb.write("in/a.ndjson", lines(100, nil))
	tb.write("file", "keep me")
	for _, set := range []string{"table.location=" + tb.dir + "/file", "table.location=" + tb.dir + "/file/table", "state_dir=" + tb.dir + "/file/state"} {
		oneError(t, execute(t, "run", "-c", tb.config, "--set", set), tb.dir+"/file")
	}
	if data, err := os.ReadFile(filepath.Join(tb.dir, "file")); err != nil || string(data) != "keep me" {
		t.Fatalf("the file in the way was touched: %q %v", data, err)
	}
	if s := tb.run(); s.RowsRead != 100 {
		t.Fatalf("a run at a good place: %+v", s)
	}
	tb.wantIDs(100)
}

// TestPartitionInTheWay: a file where a partition's directory should be.
func TestPartitionInTheWay(t *testing.T) {
	tb := newTable(t, filesYAML)
	tb.write("in/a.ndjson", lines(3000, nil))
	tb.write("table/dt=2026-01-02", "not a directory")
	oneError(t, execute(t, "run", "-c", tb.config), "dt=2026-01-02")
	if err := os.Remove(filepath.Join(tb.root, "dt=2026-01-02")); err != nil {
		t.Fatal(err)
	}
	tb.run()
	tb.wantIDs(3000)
	tb.checkFinished()
}

// TestDiskFull: writes fail for want of space, on a small disk where one can
// be mounted, and by the limit of a file's size anywhere.
func TestDiskFull(t *testing.T) {
	const rows = 60_000
	t.Run("small disk", func(t *testing.T) {
		tb := newTable(t, filesYAML)
		tb.write("in/a.ndjson", lines(rows, nil))
		if err := os.Mkdir(tb.root, 0o777); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", tb.root).CombinedOutput(); err != nil {
			t.Logf("no small disk here (%s); the limit of a file's size has to do", bytes.TrimSpace(out))
			return
		}
		t.Cleanup(func() {
			if out, err := exec.Command("umount", "-l", tb.root).CombinedOutput(); err != nil {
				t.Errorf("umount: %v: %s", err, out)
			}
		})
		oneError(t, execute(t, "run", "-c", tb.config), "no space left")
		oneError(t, execute(t, "run", "-c", tb.config), "no space left")
		if out, err := exec.Command("mount", "-o", "remount,size=64m", tb.root).CombinedOutput(); err != nil {
			t.Fatalf("remount: %v: %s", err, out)
		}
		tb.run()
		tb.wantIDs(rows)
		tb.checkFinished()
	})
	t.Run("file size limit", func(t *testing.T) {
		tb := newTable(t, filesYAML)
		tb.write("in/a.ndjson", lines(1000, nil))
		if s := tb.run(); s.RowsVisible != 1000 {
			t.Fatalf("with space: %+v", s)
		}
		tb.write("in/b.ndjson", strings.Join(strings.SplitAfter(lines(rows, nil), "\n")[1000:], ""))
		limited := []string{"-c", `ulimit -f 64; exec "$@"`, "sh", binary, "run", "-c", tb.config}
		oneError(t, start(t, nil, "sh", limited...).Wait(t), "file too large")
		tb.wantOnly("before", upTo(1000))
		tb.fsck(exitDone)
		tb.run()
		tb.wantIDs(rows)
		tb.checkFinished()
	})
}
