package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/hivesink/hivesink/audit"
	"github.com/hivesink/hivesink/internal/testproc"
	"github.com/hivesink/hivesink/ledger"
)

// dataYAML makes 4 days of records up; ROWS and RATE are replaced.
const dataYAML = `
pipeline: made-up
state_dir: {dir}/state
source:
  datagen: {rows: ROWS, rate: RATE, columns: {ts: {values: 4}}}
  event_time: {column: ts}
table:
  name: events
  location: {dir}/table
  columns: [id bigint, ts timestamp, name string]
  partitioned_by: [{dt: date(ts)}]
checkpoint: {interval: 50ms}
compaction: {file_size: 64KB, max_delay: 1s}
`

func madeUp(rows, rate int) string {
	return strings.NewReplacer("ROWS", strconv.Itoa(rows), "RATE", strconv.Itoa(rate)).Replace(dataYAML)
}

func TestUsage(t *testing.T) {
	tb := newTable(t, madeUp(100, 0))
	broken := tb.write("broken.yaml", "pipeline: x\ntable:\n  name: t\n  location: {dir}/t\n  columns: [id bigimt]\ncheckpoint: {interval: soon}\n")
	for _, c := range []struct {
		name string
		args []string
		code int
		says []string // in stdout or stderr
	}{
		{"no command", nil, exitUsage, []string{"hivesink run"}},
		{"help", []string{"help"}, exitDone, []string{"hivesink fsck", "Exit codes"}},
		{"help of a command", []string{"run", "--help"}, exitDone, []string{"--resume", "--set"}},
		{"unknown command", []string{"rum"}, exitUsage, []string{`"rum"`, "hivesink help"}},
		{"unknown flag", []string{"run", "-c", tb.config, "--jsn"}, exitUsage, []string{"--jsn", "usage: hivesink run"}},
		{"no config", []string{"run"}, exitUsage, []string{"-c FILE"}},
		{"config is missing", []string{"run", "-c", tb.dir + "/none.yaml"}, exitUsage, []string{"none.yaml"}},
		{"two problems, with lines", []string{"run", "-c", broken}, exitUsage, []string{"broken.yaml:5", "bigimt", "broken.yaml:6", "soon"}},
		{"validate finds them too", []string{"validate", "-c", broken}, exitUsage, []string{"broken.yaml:5", "broken.yaml:6"}},
		{"validate", []string{"validate", "-c", tb.config}, exitDone, []string{"valid"}},
		{"validate --set", []string{"validate", "-c", tb.config, "--set", "checkpoint.interval=soon"}, exitUsage, []string{"--set", "checkpoint.interval", "soon"}},
		{"set of no option", []string{"validate", "-c", tb.config, "--set", "checkpoint.intervall=1s"}, exitUsage, []string{"--set", "intervall"}},
		{"run without a source", []string{"run", "-c", tb.config, "--set", "source="}, exitUsage, []string{"source"}},
		{"resume of another source", []string{"run", "-c", tb.config, "--resume"}, exitUsage, []string{"stdin"}},
		{"fsck of no table", []string{"fsck", "-c", tb.config}, exitUsage, []string{"not a table of hivesink"}},
		{"drain of no table", []string{"drain", "-c", tb.config}, exitUsage, []string{"not a table of hivesink"}},
		{"log of no table", []string{"log", "-c", tb.config}, exitUsage, []string{"not a table of hivesink"}},
		{"partitions of no table", []string{"partitions", "-c", tb.config}, exitUsage, []string{"not a table of hivesink"}},
		{"config of nothing", []string{"config"}, exitUsage, []string{"docs", "schema"}},
		{"config docs", []string{"config", "docs"}, exitDone, []string{"compaction.file_size"}},
		{"version", []string{"version"}, exitDone, []string{"hivesink 0."}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := want(t, c.code, c.args...)
			for _, text := range c.says {
				if !strings.Contains(r.Out+r.Err, text) {
					t.Errorf("it does not say %q: %v", text, r)
				}
			}
			if c.code != exitDone && len(c.args) > 0 && r.Out != "" {
				t.Errorf("an error goes to stderr only: %v", r)
			}
		})
	}
	if _, err := os.Stat(tb.root); !os.IsNotExist(err) {
		t.Fatalf("a command that must touch nothing has made the table: %v", err)
	}
}

func TestFacts(t *testing.T) {
	tb := newTable(t, madeUp(8000, 0))
	s := tb.run("--set", "source.datagen.rows=5000")
	if s.RowsRead != 5000 || s.RowsVisible != 5000 || s.RowsBad != 0 || s.Partitions != 6 || s.Checkpoints < 1 ||
		s.PartFiles < 6 || s.VisibleFiles != int64(len(tb.files())) || s.Seconds <= 0 || s.Stopped {
		t.Fatalf("summary: %+v", s)
	}
	tb.wantIDs(5000)
	tb.checkFinished()

	var parts []struct {
		Partition string `json:"partition"`
		NumFiles  int64  `json:"num_files"`
		NumRows   int64  `json:"num_rows"`
	}
	out := want(t, exitDone, "partitions", "-c", tb.config, "--json").Out
	if err := json.Unmarshal([]byte(out), &parts); err != nil || len(parts) != int(s.Partitions) {
		t.Fatalf("partitions --json: %v\n%s", err, out)
	}
	var rows int64
	for _, p := range parts {
		rows += p.NumRows
	}
	if rows != 5000 {
		t.Fatalf("the catalogue has %d rows:\n%s", rows, out)
	}
	one := want(t, exitDone, "partitions", "-c", tb.config, parts[2].Partition).Out
	if lines := strings.Count(one, "dt="); lines != 1 || !strings.Contains(one, parts[2].Partition) {
		t.Fatalf("one partition was asked for:\n%s", one)
	}

	history := want(t, exitDone, "log", "-c", tb.config, "--json").Out
	dec := json.NewDecoder(strings.NewReader(history))
	var seq uint64
	var published int64
	for {
		var r ledger.Record
		err := dec.Decode(&r)
		if err == io.EOF {
			break
		}
		if err != nil || r.Seq != seq+1 {
			t.Fatalf("log --json: record %d after %d: %v", r.Seq, seq, err)
		}
		seq = r.Seq
		for _, p := range r.Published {
			published += p.Rows
		}
	}
	if int(seq) != tb.records() || published != 5000 {
		t.Fatalf("log --json ends at %d of %d, %d rows published", seq, tb.records(), published)
	}
	text := want(t, exitDone, "log", "-c", tb.config).Out
	for _, word := range []string{"epoch: pipeline made-up", "end of input", "plan: unit", "published: dt=", "announced: "} {
		if !strings.Contains(text, word) {
			t.Errorf("log does not say %q:\n%s", word, text)
		}
	}

	var version map[string]string
	if err := json.Unmarshal([]byte(want(t, exitDone, "version", "--json").Out), &version); err != nil || version["version"] == "" {
		t.Fatalf("version --json: %v %v", err, version)
	}
	if out := want(t, exitDone, "config", "schema").Out; !json.Valid([]byte(out)) {
		t.Fatalf("config schema is no JSON:\n%.200s", out)
	}
	human := want(t, exitDone, "run", "-c", tb.config, "--set", "source.datagen.rows=5000").Out
	if !strings.Contains(human, "end of input") || !strings.Contains(human, "rows visible    5000") {
		t.Fatalf("summary for people:\n%s", human)
	}
}

// TestSecondProcess: one process owns the table, and one pipeline.
func TestSecondProcess(t *testing.T) {
	tb := newTable(t, madeUp(0, 2000))
	other := tb.write("other.yaml", strings.Replace(madeUp(10, 0), "pipeline: made-up", "pipeline: newcomer", 1))
	p := start(t, nil, binary, "run", "-c", tb.config, "--json")
	if !p.Until(t, "the first log record", func() bool { return tb.records() > 0 }) {
		t.Fatal(p.End())
	}
	for name, args := range map[string][]string{
		"same state directory":    {"run", "-c", tb.config},
		"another state directory": {"run", "-c", tb.config, "--set", "state_dir=" + tb.dir + "/state2"},
		"another pipeline":        {"run", "-c", other, "--set", "state_dir=" + tb.dir + "/state3"},
		"drain beside a run":      {"drain", "-c", tb.config},
	} {
		r := want(t, exitFenced, args...)
		if !strings.Contains(r.Err, tb.root) && !strings.Contains(r.Err, tb.state) {
			t.Errorf("%s: the message does not name the table: %v", name, r)
		}
	}
	before := tb.records()
	if !p.Until(t, "the next checkpoints", func() bool { return tb.records() > before+3 }) {
		t.Fatalf("the owner was disturbed: %v", p.End())
	}
	s := tb.terminate(p)

	r := want(t, exitFenced, "run", "-c", other)
	if !strings.Contains(r.Err, "made-up") || !strings.Contains(r.Err, "drain") {
		t.Errorf("the message names neither the owner nor the remedy: %v", r)
	}
	if r := want(t, exitFenced, "drain", "-c", other); !strings.Contains(r.Err, "made-up") {
		t.Errorf("drain of another pipeline: %v", r)
	}
	want(t, exitDone, "drain", "-c", tb.config)
	want(t, exitDone, "drain", "-c", tb.config) // again: nothing to do
	tb.fsck(exitDone)
	if n := len(tb.ids()); int64(n) != s.RowsRead {
		t.Fatalf("%d ids are visible, %d rows were read", n, s.RowsRead)
	}
	want(t, exitDone, "run", "-c", other, "--set", "source.datagen.rows=100000")
	tb.fsck(exitDone)
	tb.wantIDs(100_000)
	want(t, exitFenced, "run", "-c", tb.config)
}

// terminate sends SIGTERM and checks that the run ends cleanly.
func (tb *table) terminate(p *testproc.Process) summary {
	tb.t.Helper()
	if err := p.Send(syscall.SIGTERM); err != nil {
		tb.t.Fatalf("%v: %v", err, p.End())
	}
	r := p.Wait(tb.t)
	if r.Code != exitDone {
		tb.t.Fatalf("after SIGTERM: %v", r)
	}
	return lastLine(tb.t, r)
}

func TestTerminate(t *testing.T) {
	tb := newTable(t, madeUp(0, 20_000))
	p := start(t, nil, binary, "run", "-c", tb.config, "--json")
	if !p.Until(t, "a few checkpoints", func() bool { return tb.records() >= 8 }) {
		t.Fatal(p.End())
	}
	s := tb.terminate(p)
	ids := tb.ids()
	if s.RowsRead == 0 || s.RowsRead != s.RowsVisible || int64(len(ids)) != s.RowsRead || !s.Stopped {
		t.Fatalf("%d ids are visible: %+v", len(ids), s)
	}
	if twice := len(ids) - len(slices.Compact(slices.Clone(ids))); twice > 0 {
		t.Fatalf("%d ids are there twice", twice)
	}
	if left := tb.hiddenData(); len(left) > 0 {
		t.Fatalf("hidden data files are left: %v", left)
	}
	tb.fsck(exitDone)
	for _, line := range strings.Split(p.End().Out, "\n") {
		if line != "" && !json.Valid([]byte(line)) {
			t.Fatalf("stdout has a line that is no JSON: %q", line)
		}
	}
	// A signal during the start is as good.
	p = start(t, nil, binary, "run", "-c", tb.config, "--json")
	before := tb.records()
	if !p.Until(t, "the new epoch", func() bool { return tb.records() > before }) {
		t.Fatal(p.End())
	}
	if s := tb.terminate(p); s.RowsVisible != int64(len(tb.ids())) {
		t.Fatalf("%d ids are visible: %+v", len(tb.ids()), s)
	}
	tb.fsck(exitDone)
}

// TestFsckBesideARun: what moves is no fault. The input goes on until fsck has
// looked often, and seen rows that are still hidden.
func TestFsckBesideARun(t *testing.T) {
	tb := newTable(t, stdinYAML)
	p, w := tb.feed(line(0)+"\n", "--set", "compaction={file_size: 64KB, max_delay: 100ms}")
	if !p.Until(t, "the first log record", func() bool { return tb.records() > 0 }) {
		t.Fatal(p.End())
	}
	enough, fed := make(chan struct{}), make(chan int, 1)
	go func() { // joined through fed
		rows := 1
		for pace := time.NewTicker(20 * time.Millisecond); ; <-pace.C {
			select {
			case <-enough:
				fed <- rows
				return
			default:
			}
			var b strings.Builder
			for range 300 {
				b.WriteString(line(rows) + "\n")
				rows++
			}
			if _, err := io.WriteString(w, b.String()); err != nil {
				fed <- -1 // the run has ended, as is seen below
				return
			}
		}
	}()
	for n, pending := 0, 0; (n < 10 || pending == 0) && !p.Ended(); n++ {
		if rep := tb.fsck(exitDone); rep.PendingRows > 0 {
			pending++
		}
	}
	close(enough)
	rows := <-fed
	w.Close()
	if r := p.Wait(t); r.Code != exitDone {
		t.Fatal(r)
	}
	tb.wantIDs(rows)
	tb.checkFinished()
}

// cutRows rewrites a file without its last n rows, footer kept.
func cutRows(t *testing.T, name string, n int64) {
	t.Helper()
	in, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		t.Fatal(err)
	}
	pf, err := parquet.OpenFile(in, info.Size())
	if err != nil {
		t.Fatal(err)
	}
	options := []parquet.WriterOption{pf.Schema()}
	for _, kv := range pf.Metadata().KeyValueMetadata {
		options = append(options, parquet.KeyValueMetadata(kv.Key, kv.Value))
	}
	out, err := os.Create(name + ".new")
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	w := parquet.NewWriter(out, options...)
	r := parquet.NewReader(in)
	buf := make([]parquet.Row, 1)
	for range pf.NumRows() - n {
		if k, err := r.ReadRows(buf); k != 1 {
			t.Fatal(err)
		}
		if _, err := w.WriteRows(buf); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(out.Name(), name); err != nil {
		t.Fatal(err)
	}
}

func rename(t *testing.T, pairs ...string) {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if err := os.Rename(pairs[i], pairs[i+1]); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFsckFinds damages a table in the ways a person or a disk does; fsck
// exits 4 and names the file, its source partitions and how many rows.
func TestFsckFinds(t *testing.T) {
	tb := newTable(t, madeUp(5000, 0))
	tb.run()
	tb.fsck(exitDone)
	good := filepath.Join(tb.dir, "good")
	if err := os.CopyFS(good, os.DirFS(tb.root)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		damage func(t *testing.T, a, b string) // two files of two partitions
		kinds  []string
		both   bool // b is affected as well
		rows   int64
	}{
		{"deleted", func(t *testing.T, a, _ string) {
			if err := os.Remove(a); err != nil {
				t.Fatal(err)
			}
		}, []string{audit.Vanished, audit.RowsShort}, false, 0},
		{"doubled", func(t *testing.T, a, _ string) {
			data, err := os.ReadFile(a)
			if err == nil {
				err = os.WriteFile(filepath.Join(filepath.Dir(a), "part-1-00000000000000aa.parquet"), data, 0o666)
			}
			if err != nil {
				t.Fatal(err)
			}
		}, []string{audit.Doubled}, false, 0},
		{"swapped between partitions", func(t *testing.T, a, b string) {
			rename(t, a, a+".tmp", b, filepath.Join(filepath.Dir(a), filepath.Base(b)),
				a+".tmp", filepath.Join(filepath.Dir(b), filepath.Base(a)))
		}, []string{audit.Misplaced, audit.Vanished}, true, 0},
		{"contents swapped under the names", func(t *testing.T, a, b string) {
			rename(t, a, a+".tmp", b, a, a+".tmp", b)
		}, []string{audit.Misplaced, audit.Replaced}, true, 0},
		{"truncated", func(t *testing.T, a, _ string) {
			info, err := os.Stat(a)
			if err == nil {
				err = os.Truncate(a, info.Size()/2)
			}
			if err != nil {
				t.Fatal(err)
			}
		}, []string{audit.Damaged, audit.RowsShort}, false, 0},
		{"emptied", func(t *testing.T, a, _ string) {
			if err := os.Truncate(a, 0); err != nil {
				t.Fatal(err)
			}
		}, []string{audit.Damaged, audit.RowsShort}, false, 0},
		{"rows cut out", func(t *testing.T, a, _ string) { cutRows(t, a, 7) }, []string{audit.Damaged}, false, 7},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := os.RemoveAll(tb.root); err != nil {
				t.Fatal(err)
			}
			if err := os.CopyFS(tb.root, os.DirFS(good)); err != nil {
				t.Fatal(err)
			}
			all := tb.files()
			a, b := all[0], all[len(all)-1]
			rows := []int64{rowsOf(t, a), rowsOf(t, b)}
			if c.rows > 0 {
				rows[0] = c.rows
			}
			c.damage(t, a, b)
			at := *tb
			at.t = t
			rep := at.fsck(exitFault)
			for _, kind := range c.kinds {
				if !slices.ContainsFunc(rep.Faults, func(f audit.Fault) bool { return f.Kind == kind }) {
					t.Errorf("no fault of kind %q: %+v", kind, rep.Faults)
				}
			}
			text := want(t, exitFault, "fsck", "-c", tb.config).Out
			names(t, text, a, rows[0])
			if c.both {
				names(t, text, b, rows[1])
			}
		})
	}
}

func rowsOf(t *testing.T, name string) (n int64) {
	t.Helper()
	ids, err := readIDs(name)
	if err != nil {
		t.Fatal(err)
	}
	return int64(len(ids))
}

// names checks that one line of a report has the file, a source partition and
// the number of rows.
func names(t *testing.T, report, file string, rows int64) {
	t.Helper()
	for line := range strings.Lines(report) {
		if strings.Contains(line, filepath.Base(file)) && strings.Contains(line, "datagen-") && strings.Contains(line, fmt.Sprintf("%d rows", rows)) {
			return
		}
	}
	t.Errorf("no line names %s, a source and %d rows:\n%s", filepath.Base(file), rows, report)
}
