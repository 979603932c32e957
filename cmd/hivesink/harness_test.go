package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/hivesink/hivesink/audit"
	"github.com/hivesink/hivesink/internal/testproc"
	"github.com/hivesink/hivesink/layout"
	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/storage/localfs"
)

// binary is the program under test, built once.
var binary string

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	path, remove, err := testproc.Build("")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer remove()
	binary = path
	return m.Run()
}

// deadline is how long an event may take before a test gives up on it.
const deadline = 5 * time.Minute

// table is one table with its configuration file, in a directory of its own.
type table struct {
	t      testing.TB
	dir    string
	root   string // the table's location
	state  string
	config string
}

// newTable writes the configuration; {dir} stands for the test's directory.
func newTable(t testing.TB, yaml string) *table {
	t.Helper()
	dir := t.TempDir()
	tb := &table{t: t, dir: dir, root: filepath.Join(dir, "table"), state: filepath.Join(dir, "state"), config: filepath.Join(dir, "sink.yaml")}
	tb.write("sink.yaml", yaml)
	return tb
}

// write makes a file in the test's directory and returns its path.
func (tb *table) write(name, text string) string {
	tb.t.Helper()
	full := filepath.Join(tb.dir, name)
	if err := os.MkdirAll(filepath.Dir(full), 0o777); err != nil {
		tb.t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(strings.ReplaceAll(text, "{dir}", tb.dir)), 0o666); err != nil {
		tb.t.Fatal(err)
	}
	return full
}

// start runs a program; the test's end kills it.
func start(t testing.TB, stdin io.Reader, name string, args ...string) *testproc.Process {
	t.Helper()
	return testproc.Start(t, testproc.Command{Path: name, Args: args, Stdin: stdin, Deadline: deadline})
}

// execute runs one command to its end.
func execute(t testing.TB, args ...string) testproc.Result {
	t.Helper()
	return start(t, nil, binary, args...).Wait(t)
}

// want runs one command and fails the test unless it exits with code.
func want(t testing.TB, code int, args ...string) testproc.Result {
	t.Helper()
	r := execute(t, args...)
	if r.Code != code {
		t.Fatalf("hivesink %s: want exit %d: %v", strings.Join(args, " "), code, r)
	}
	return r
}

// run runs the pipeline to its end and returns its summary.
func (tb *table) run(args ...string) summary {
	tb.t.Helper()
	return lastLine(tb.t, want(tb.t, exitDone, append([]string{"run", "-c", tb.config, "--json"}, args...)...))
}

func lastLine(t testing.TB, r testproc.Result) (s summary) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(r.Out), "\n")
	dec := json.NewDecoder(strings.NewReader(lines[len(lines)-1]))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&s); err != nil {
		t.Fatalf("the last line of stdout is no summary: %v\n%v", err, r)
	}
	return s
}

// fsck runs fsck --json and fails the test unless it exits with code.
func (tb *table) fsck(code int) audit.Report {
	tb.t.Helper()
	r := want(tb.t, code, "fsck", "-c", tb.config, "--json")
	var rep audit.Report
	if err := json.Unmarshal([]byte(r.Out), &rep); err != nil {
		tb.t.Fatalf("fsck --json: %v\n%v", err, r)
	}
	if (len(rep.Faults) == 0) != (code == exitDone) {
		tb.t.Fatalf("fsck: exit %d with %d faults: %v", code, len(rep.Faults), r)
	}
	return rep
}

// records is the sequence of the last log record; 0 before there is a table.
func (tb *table) records() int {
	entries, err := os.ReadDir(filepath.Join(tb.root, layout.MetaDir, layout.LogDir))
	if err != nil {
		return 0 // not there yet
	}
	for _, e := range slices.Backward(entries) {
		if seq, ok := layout.ParseLogFile(e.Name()); ok {
			return int(seq)
		}
	}
	return 0
}

// inputEnded says whether the log has the checkpoint of the end of input,
// looking only at records above *seen.
func (tb *table) inputEnded(seen *int) bool {
	last := tb.records()
	for seq := *seen + 1; seq <= last; seq++ {
		name := filepath.Join(tb.root, layout.MetaDir, layout.LogDir, layout.LogFile(uint64(seq)))
		data, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // older than history
		}
		if err != nil {
			tb.t.Fatal(err)
		}
		r, _, err := ledger.Decode(name, data)
		if err != nil {
			tb.t.Fatal(err)
		}
		if r.Checkpoint != nil && r.Checkpoint.InputEnded {
			return true
		}
		*seen = seq
	}
	return false
}

// log is what the table log says now.
func (tb *table) log() *ledger.State {
	tb.t.Helper()
	st, err := ledger.Read(localfs.New(), tb.root)
	if err != nil {
		tb.t.Fatal(err)
	}
	return st
}

// files lists what a reader of **/*.parquet sees, ascending. A file of such a
// name in a hidden directory is an error: not every reader skips those.
func files(root string) (out []string, err error) {
	err = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // nothing yet, or a hidden directory on its way out
		}
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".parquet") {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		for _, part := range strings.Split(rel, string(filepath.Separator)) {
			if layout.Hidden(part) {
				return fmt.Errorf("%s is hidden and named .parquet", rel)
			}
		}
		out = append(out, name)
		return nil
	})
	return out, err
}

func (tb *table) files() []string {
	tb.t.Helper()
	out, err := files(tb.root)
	if err != nil {
		tb.t.Fatal(err)
	}
	return out
}

// hiddenData lists part files and targets that are still in staging.
func (tb *table) hiddenData() (out []string) {
	tb.t.Helper()
	err := filepath.WalkDir(filepath.Join(tb.root, layout.MetaDir), func(name string, d fs.DirEntry, err error) error {
		if ext := filepath.Ext(name); err == nil && (ext == ".part" || ext == ".bundle" || ext == ".target") {
			out = append(out, name)
		}
		return err
	})
	if err != nil {
		tb.t.Fatal(err)
	}
	return out
}

// readValues reads every column of a file with a reader of its own, checks
// that each has a value for each row, and calls fn for those of the column.
func readValues(name, column string, fn func(parquet.Value)) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	pf, err := parquet.OpenFile(f, info.Size())
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	leaf, ok := pf.Schema().Lookup(column)
	if !ok {
		return fmt.Errorf("%s has no column %s", name, column)
	}
	var rows int64
	for _, g := range pf.RowGroups() {
		rows += g.NumRows()
		for i, chunk := range g.ColumnChunks() {
			use := fn
			if i != leaf.ColumnIndex {
				use = func(parquet.Value) {}
			}
			if err := readChunk(chunk, g.NumRows(), use); err != nil {
				return fmt.Errorf("%s, column %d: %w", name, i, err)
			}
		}
	}
	if rows != pf.NumRows() {
		return fmt.Errorf("%s: its footer says %d rows, its row groups %d", name, pf.NumRows(), rows)
	}
	return nil
}

func readChunk(chunk parquet.ColumnChunk, rows int64, fn func(parquet.Value)) error {
	pages := chunk.Pages()
	defer pages.Close()
	values := make([]parquet.Value, 1024)
	var n int64
	for {
		page, err := pages.ReadPage()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		vr := page.Values()
		for {
			k, err := vr.ReadValues(values)
			for _, v := range values[:k] {
				fn(v)
				if v.RepetitionLevel() == 0 { // the first of a row
					n++
				}
			}
			if err == io.EOF {
				break
			}
			if err != nil {
				return err
			}
		}
		parquet.Release(page)
	}
	if n != rows {
		return fmt.Errorf("%d values, want %d", n, rows)
	}
	return nil
}

// readIDs is the column id of a file.
func readIDs(name string) (ids []int64, err error) {
	err = readValues(name, "id", func(v parquet.Value) { ids = append(ids, v.Int64()) })
	return ids, err
}

// ids are the visible ids, ascending.
func (tb *table) ids() (all []int64) {
	tb.t.Helper()
	for _, name := range tb.files() {
		ids, err := readIDs(name)
		if err != nil {
			tb.t.Fatal(err)
		}
		all = append(all, ids...)
	}
	slices.Sort(all)
	return all
}

// wantIDs fails unless exactly the ids 0 to n-1 are visible, each once.
func (tb *table) wantIDs(n int) {
	tb.t.Helper()
	all := tb.ids()
	for i, id := range all {
		if int64(i) != id {
			tb.t.Fatalf("%d ids are visible, want 0 to %d each once: at place %d is %d", len(all), n-1, i, id)
		}
	}
	if len(all) != n {
		tb.t.Fatalf("%d ids are visible, want %d", len(all), n)
	}
}
