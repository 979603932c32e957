package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hivesink/hivesink/layout"
	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/metastore/hivetest"
)

// Reported inputs, the whole way: the binary, a metastore, a restart, and
// compaction at rest.

const reportedYAML = `
pipeline: p
state_dir: {dir}/state
table:
  name: NAME
  location: {dir}/table
  columns: [COLUMNS]
  partitioned_by: [BY]
source: {files: {paths: ["{dir}/in/*.ndjson"]}, format: json}
compaction: {policy: 'off'}
commit: {trigger: process-time, delay: 0s}
metastore: {type: hive, uri: "thrift://ADDRESS", timeout: 5s, create_table: true}
`

// caseInput is a case's input, its ids raised by so many.
func caseInput(t *testing.T, name string, by int) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "record", "testdata", name+".ndjson"))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	for line := range bytes.Lines(data) {
		var row map[string]any
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if err := json.Unmarshal(line, &row); err != nil {
			t.Fatal(err)
		}
		row["id"] = row["id"].(float64) + float64(by)
		if err := enc.Encode(row); err != nil {
			t.Fatal(err)
		}
	}
	return out.String()
}

// idsByDirectory are the visible ids of each partition directory, ascending, and
// how many files have them.
func (tb *table) idsByDirectory() (ids map[string][]int64, most int) {
	tb.t.Helper()
	ids = make(map[string][]int64)
	count := make(map[string]int)
	for _, name := range tb.files() {
		dir, err := filepath.Rel(tb.root, filepath.Dir(name))
		if err != nil {
			tb.t.Fatal(err)
		}
		got, err := readIDs(name)
		if err != nil {
			tb.t.Fatal(err)
		}
		ids[dir] = append(ids[dir], got...)
		slices.Sort(ids[dir])
		count[dir]++
		most = max(most, count[dir])
	}
	return ids, most
}

// TestReportedPartitionValues: PE-01 to PE-05. The directories, one level for each
// column, the metastore's partitions and the rows in them are those that were
// reported to be right, also after a restart and after compaction; nothing is
// escaped twice.
func TestReportedPartitionValues(t *testing.T) {
	for _, c := range []struct {
		name, columns, by string
		want              func(t *testing.T, expect []byte) map[string][]int64
		dead              int64 // of one input
	}{
		{"PE-01", "id bigint, k string", "k", func(t *testing.T, expect []byte) map[string][]int64 {
			var e struct {
				Partitions []struct {
					ID  int64
					Dir string
				}
			}
			decodeCase(t, expect, &e)
			want := make(map[string][]int64)
			for _, p := range e.Partitions {
				want[p.Dir] = []int64{p.ID}
			}
			return want
		}, 0},
		{"PE-02", "id bigint, dt string", "dt", func(t *testing.T, expect []byte) map[string][]int64 {
			var e struct{ Dir string }
			decodeCase(t, expect, &e)
			return map[string][]int64{e.Dir: {1, 2}}
		}, 0},
		{"PE-03", "id bigint, k string, d date", "k, d", dirsOfCase, 0},
		{"PE-04", "id bigint, h int, s string", "h, s", dirsOfCase, 0},
		{"PE-05", "id bigint, k string", "k", func(*testing.T, []byte) map[string][]int64 {
			return map[string][]int64{"k=" + strings.Repeat("b", 253): {3}, "k=" + strings.Repeat("東", 84): {5}}
		}, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			expect, err := os.ReadFile(filepath.Join("..", "..", "record", "testdata", c.name+".expect.json"))
			if err != nil {
				t.Fatal(err)
			}
			once := c.want(t, expect)
			s := hivetest.New(t)
			tb := newTable(t, strings.NewReplacer("NAME", "t", "COLUMNS", c.columns, "BY", c.by, "ADDRESS", s.Address()).Replace(reportedYAML))
			all := make(map[string][]int64)
			check := func(when string, files int) {
				t.Helper()
				got, most := tb.idsByDirectory()
				if fmt.Sprint(got) != fmt.Sprint(all) || most != files {
					t.Errorf("%s: %d files a directory, want %d; %v, want %v", when, most, files, got, all)
				}
				var dirs []string
				for dir := range all {
					dirs = append(dirs, dir)
				}
				slices.Sort(dirs)
				if got := s.Partitions("default.t"); !slices.Equal(got, dirs) {
					t.Errorf("%s: the metastore has %q, want %q", when, got, dirs)
				}
				tb.fsck(exitDone)
			}
			for run := range 3 {
				tb.write(fmt.Sprintf("in/%d.ndjson", run), caseInput(t, c.name, 1000*run))
				for dir, ids := range once {
					for _, id := range ids {
						all[dir] = append(all[dir], id+int64(1000*run))
					}
				}
				sum := tb.run()
				if sum.RowsBad != c.dead {
					t.Fatalf("run %d: %+v", run, sum)
				}
				check(fmt.Sprintf("after run %d", run), run+1)
			}
			if again := tb.run(); again.RowsRead != 0 { // also what was bad is passed
				t.Errorf("a run without input: %+v", again)
			}
			want(t, exitDone, "compact", "-c", tb.config, "--json")
			check("after compaction", 1)
			tb.write("in/3.ndjson", caseInput(t, c.name, 3000))
			for dir, ids := range once {
				for _, id := range ids {
					all[dir] = append(all[dir], id+3000)
				}
			}
			tb.run()
			check("after another run", 2)
			if c.dead > 0 {
				for _, p := range tb.log().Partitions {
					if p.Table == ledger.DeadTable && p.Rows != 4*c.dead {
						t.Errorf("%d dead letters, want %d", p.Rows, 4*c.dead)
					}
				}
			}
		})
	}
}

func decodeCase(t *testing.T, data []byte, v any) {
	t.Helper()
	if err := json.Unmarshal(data, v); err != nil {
		t.Fatal(err)
	}
}

func dirsOfCase(t *testing.T, expect []byte) map[string][]int64 {
	t.Helper()
	var e struct{ Dirs map[string][]int64 }
	decodeCase(t, expect, &e)
	return e.Dirs
}

// TestReservedWords: NM-03. A table and columns with names that are words of SQL.
func TestReservedWords(t *testing.T) {
	s := hivetest.New(t)
	tb := newTable(t, strings.NewReplacer("NAME", "external", "ADDRESS", s.Address(), "BY", "date",
		"COLUMNS", "id bigint, timestamp timestamp, date date, user string, order int, external boolean").Replace(reportedYAML))
	tb.write("in/1.ndjson", `{"id":0,"timestamp":"2024-05-06T00:00:00Z","date":"2024-05-06","user":"u","order":1,"external":true}`+"\n")
	if sum := tb.run(); sum.RowsVisible != 1 || sum.RowsBad != 0 || sum.UnknownKeys != 0 {
		t.Errorf("%+v", sum)
	}
	if got := s.Partitions("default.external"); !slices.Equal(got, []string{"date=2024-05-06"}) {
		t.Errorf("the metastore has %q", got)
	}
	tb.wantIDs(1)
	tb.fsck(exitDone)
}

// TestFewDescriptors: RE-02. A process that may open 64 files writes 500
// partitions, and a partition of 200 part files.
func TestFewDescriptors(t *testing.T) {
	s := hivetest.New(t)
	tb := newTable(t, strings.NewReplacer("NAME", "t", "COLUMNS", "id bigint, k string", "BY", "k", "ADDRESS", s.Address(),
		"compaction: {policy: 'off'}", "compaction: {policy: checkpoint}\nrolling: {rows: 100}\nlimits: {memory: 256MB}").Replace(reportedYAML))
	var in strings.Builder
	id := 0
	for range 20 {
		for p := range 500 {
			fmt.Fprintf(&in, `{"id":%d,"k":"k%03d"}`+"\n", id, p)
			id++
		}
	}
	tb.write("in/1.ndjson", in.String())
	for f := range 200 { // the end of a file ends a batch, and that a part
		in.Reset()
		for range 100 {
			fmt.Fprintf(&in, `{"id":%d,"k":"hot"}`+"\n", id)
			id++
		}
		tb.write(fmt.Sprintf("in/hot-%03d.ndjson", f), in.String())
	}
	p := start(t, nil, "sh", "-c", `ulimit -n 64 && exec "$0" "$@"`, binary, "run", "-c", tb.config, "--json")
	r := p.Wait(t)
	if r.Code != exitDone || strings.Contains(r.Err, "too many open files") {
		t.Fatal(r)
	}
	if sum := lastLine(t, r); sum.PartFiles < 700 || sum.Partitions != 501 {
		t.Errorf("%+v", sum)
	}
	tb.wantIDs(id)
	tb.fsck(exitDone)
	// Compaction at rest, with twice as many workers as there are cores, of 300 files
	// in each of eight partitions.
	w := newTable(t, "pipeline: p\nstate_dir: {dir}/state\ntable: {name: t, location: {dir}/table}\ncompaction: {parallelism: 4}\n")
	files := tb.files()
	for p := range 8 {
		for f := range 300 {
			to := filepath.Join(w.root, fmt.Sprintf("p=%d", p), fmt.Sprintf("%d.parquet", f))
			if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
				t.Fatal(err)
			}
			data, err := os.ReadFile(files[f])
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(to, data, 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
	if r := start(t, nil, "sh", "-c", `ulimit -n 64 && exec "$0" "$@"`, binary, "compact", "-c", w.config).Wait(t); r.Code != exitDone {
		t.Fatal(r)
	}
	if n := len(w.files()); n != 8 {
		t.Errorf("%d files after compaction at rest", n)
	}
}

// TestQuietStream: WM-03. Rows of a stream that has gone quiet are visible
// without another row.
func TestQuietStream(t *testing.T) {
	tb := newTable(t, strings.Replace(stdinYAML, "checkpoint: {interval: 50ms}", "checkpoint: {interval: 50ms}\ncompaction: {max_delay: 200ms}", 1))
	p, _ := tb.feed(lines(3, nil))
	if !p.Until(t, "three visible rows", func() bool { return len(tb.ids()) == 3 }) {
		t.Fatal(p.End())
	}
	tb.terminate(p)
	tb.wantIDs(3)
}

const lateYAML = `
pipeline: p
state_dir: {dir}/state
source:
  stdin: {}
  event_time: {column: ts, out_of_orderness: 0s}
  at_end: triggers
table:
  name: t
  location: {dir}/table
  columns: [id bigint, ts timestamp]
  partitioned_by: [{day: date(ts)}, {hour: hour(ts)}]
checkpoint: {interval: 50ms}
compaction: {max_delay: 200ms}
commit: {trigger: partition-time, delay: 0s, late: LATE}
metastore: {type: hive, uri: "thrift://ADDRESS", timeout: 5s, create_table: true}
`

// TestLateRow: WM-04. A row that comes after its partition was announced.
func TestLateRow(t *testing.T) {
	for _, late := range []string{"append", "drop", "side"} {
		t.Run(late, func(t *testing.T) {
			s := hivetest.New(t)
			tb := newTable(t, strings.NewReplacer("LATE", late, "ADDRESS", s.Address()).Replace(lateYAML))
			row := func(id int, clock string) string {
				return fmt.Sprintf(`{"id":%d,"ts":"2026-01-31T%sZ"}`+"\n", id, clock)
			}
			const five = "day=2026-01-31/hour=05"
			announced := func(table string) int64 {
				if tb.records() == 0 {
					return 0
				}
				if q := tb.log().Partitions[ledger.PartitionKey(table, five)]; q != nil {
					return q.Announced
				}
				return 0
			}
			p, w := tb.feed(row(0, "05:10:00") + row(1, "05:59:59.999999") + row(2, "06:00:00"))
			if !p.Until(t, "05 o'clock to be announced", func() bool { return announced(ledger.MainTable) == 1 }) {
				t.Fatal(p.End())
			}
			before, _ := tb.idsByDirectory()
			if got := fmt.Sprint(before[five]); got != "[0 1]" {
				t.Errorf("announced with ids %s", got)
			}
			if _, err := w.WriteString(row(3, "05:30:00") + row(4, "06:01:00")); err != nil {
				t.Fatal(err)
			}
			tb.durable(p, map[string]int64{"append": 5, "drop": 4, "side": 5}[late])
			main, side := "[0 1]", "[]"
			switch late {
			case "append":
				main = "[0 1 3]"
				if !p.Until(t, "05 o'clock to be announced again", func() bool { return announced(ledger.MainTable) == 2 }) {
					t.Fatal(p.End())
				}
			case "side":
				side = "[3]"
				if !p.Until(t, "the late table's partition", func() bool { return announced(ledger.LateTable) == 1 }) {
					t.Fatal(p.End())
				}
			}
			w.Close()
			r := p.Wait(t)
			if r.Code != exitDone {
				t.Fatal(r)
			}
			sum := lastLine(t, r)
			dropped := int64(0)
			if late == "drop" {
				dropped = 1
			}
			if sum.RowsLate != 1 || sum.RowsDropped != dropped || sum.RowsRead != 5 {
				t.Errorf("%+v", sum)
			}
			ids, _ := tb.idsByDirectory()
			if got := fmt.Sprint(ids[five]); got != main {
				t.Errorf("ids %s, want %s", got, main)
			}
			if got := fmt.Sprint(ids["day=2026-01-31/hour=06"]); got != "[2 4]" {
				t.Errorf("ids %s in the hour that is not over", got)
			}
			beside := &table{t: t, root: tb.root + "_late"}
			sideIDs := beside.ids()
			if got := fmt.Sprint(sideIDs); got != side {
				t.Errorf("ids %s in the late table, want %s", got, side)
			}
			// The hour that is not over is not announced (at_end: triggers).
			if got := s.Partitions("default.t"); !slices.Equal(got, []string{five}) {
				t.Errorf("the metastore has %q", got)
			}
			if _, err := os.Stat(filepath.Join(tb.root, "day=2026-01-31", "hour=06", "_SUCCESS")); !os.IsNotExist(err) {
				t.Errorf("a success file of an hour that is not over: %v", err)
			}
			tb.fsck(exitDone)
		})
	}
}

const mendedYAML = `
pipeline: p
state_dir: {dir}/state
source:
  files: {paths: ["{dir}/in/*.ndjson"]}
  event_time: {column: ts, out_of_orderness: 0s}
  at_end: triggers
table:
  name: t
  location: {dir}/table
  columns: [id bigint, dt string, ts timestamp]
  partitioned_by: [dt]
commit: {trigger: partition-time, delay: 1d, time_extractor: {formatter: yyyy-MM-dd}}
`

// TestMendedExtractor: partitions whose values the extractor could not read are
// announced by a run whose extractor can, without another row. Until then a
// warning says what they wait for.
func TestMendedExtractor(t *testing.T) {
	tb := newTable(t, mendedYAML)
	tb.write("in/1.ndjson", `{"id":0,"dt":"20260301","ts":"2026-03-01T10:00:00Z"}`+"\n"+
		`{"id":1,"dt":"20260305","ts":"2026-03-05T10:00:00Z"}`+"\n"+`{"id":2,"ts":"2026-03-05T10:00:00Z"}`+"\n")
	r := want(t, exitDone, "run", "-c", tb.config, "--json")
	if sum := lastLine(t, r); sum.Partitions != 0 || sum.RowsVisible != 3 {
		t.Errorf("%+v", sum)
	}
	if strings.Count(r.Err, "cannot be read as a time") != 1 || !strings.Contains(r.Err, "dt=2026030") {
		t.Errorf("it does not say, once, what the partitions wait for: %v", r)
	}
	r = want(t, exitDone, "run", "-c", tb.config, "--json", "--set", "commit.time_extractor.formatter=yyyyMMdd")
	if sum := lastLine(t, r); sum.Partitions != 1 || sum.RowsRead != 0 {
		t.Errorf("mended: %+v", sum)
	}
	q := tb.log().Partitions[ledger.PartitionKey(ledger.MainTable, "dt=20260301")]
	if q == nil || q.Announced != 1 {
		t.Errorf("mended: %+v", q)
	}
	for _, path := range []string{"dt=20260305", "dt=" + layout.DefaultPartition} {
		if q := tb.log().Partitions[ledger.PartitionKey(ledger.MainTable, path)]; q == nil || q.Announced != 0 {
			t.Errorf("%s, whose time has not passed: %+v", path, q)
		}
	}
	if strings.Contains(r.Err, "cannot be read as a time") {
		t.Errorf("mended, and it still says so: %v", r)
	}
	tb.fsck(exitDone)
}
