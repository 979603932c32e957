package mainjob

import (
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/hivesink/hivesink/internal/testproc"
	"github.com/hivesink/hivesink/internal/watching"
	"github.com/hivesink/hivesink/layout"
	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/storage"
	"github.com/hivesink/hivesink/test/engines"
	"github.com/hivesink/hivesink/test/services"
)

// Place is where the table of a job lies.
type Place struct {
	FS       storage.FS
	Root     string // of the table, on FS
	Location string // of the table, as table.location names it
	Config   string // further sections of the configuration
	Policy   string // compaction.policy; "" is the default
	Env      []string
	// Readers is how the engines of test/engines come to the table; Spark by the
	// metastore, which knows it as CallsIt, "" being Location. nil: no engine
	// can, so PyArrow and DuckDB read a copy, and no metastore is told.
	Readers *engines.Table
	CallsIt string
}

// job is one table with its configuration, in a local directory of its own.
type job struct {
	Place
	t      testing.TB
	dir    string
	config string
	rate   int    // rows a second
	table  string // its name in the metastore: nobody had it before
}

// yaml is the job: datagen rows in some partitions, small targets, so that
// every step of the chain happens all the time.
const yaml = `
pipeline: mainjob
state_dir: %s/state
source:
  datagen: {rows: %d, rate: %d, columns: {ts: {values: 6}}}
  readers: 2
  event_time: {column: ts}
table:
  database: mainjob
  name: %s
  location: %s
  columns: [id bigint, ts timestamp, name string, amount double]
  partitioned_by: [{dt: date(ts)}]
checkpoint: {interval: 200ms}
compaction: {file_size: 64KB, max_delay: 1s%s}
commit: {trigger: partition-time, delay: 1h}
%s
%s
`

func newJob(t testing.TB, p Place, rows, rate int) *job {
	t.Helper()
	j := &job{Place: p, t: t, dir: t.TempDir(), rate: rate, table: fmt.Sprintf("job_%d_%d", os.Getpid(), time.Now().UnixNano())}
	j.config = filepath.Join(j.dir, "sink.yaml")
	announce := ""
	if p.Readers != nil {
		announce = engines.Announce(p.CallsIt)
	}
	policy := ""
	if p.Policy != "" {
		policy = fmt.Sprintf(", policy: %q", p.Policy)
	}
	text := fmt.Sprintf(yaml, j.dir, rows, rate, j.table, p.Location, policy, announce, p.Config)
	if err := os.WriteFile(j.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return j
}

// watch starts a reader of the table that goes on looking, until stop is called,
// which returns the first thing wrong.
func (j *job) watch() (r *watching.Reader, stop func() error) {
	r = &watching.Reader{
		Files: func() ([]string, error) { return files(j.FS, j.Root) },
		IDs:   func(name string) ([]int64, error) { return readIDs(j.FS, name) },
	}
	return r, watching.Keep(20*time.Millisecond, r.Look) // leave the servers some time for others
}

// start starts a run, with a state directory of its own if one is named.
func (j *job) start(state string) *testproc.Process {
	j.t.Helper()
	return j.startAt(j.rate, state)
}

// startAt starts a run that reads so many rows a second.
func (j *job) startAt(rate int, state string) *testproc.Process {
	j.t.Helper()
	args := []string{"run", "-c", j.config, "--json", "--set", fmt.Sprintf("source.datagen.rate=%d", rate)}
	if state != "" {
		args = append(args, "--set", "state_dir="+filepath.Join(j.dir, state))
	}
	return Start(j.t, j.Env, args...)
}

// records is the sequence of the last log record; 0 before there is a table.
func (j *job) records() int {
	j.t.Helper()
	entries, err := j.FS.List(path.Join(j.Root, layout.MetaDir, layout.LogDir))
	if errors.Is(err, storage.ErrNotExist) {
		return 0
	}
	if err != nil {
		j.t.Fatal(err)
	}
	for _, e := range slices.Backward(entries) {
		if seq, ok := layout.ParseLogFile(e.Name); ok {
			return int(seq)
		}
	}
	return 0
}

// log is what the table log says now.
func (j *job) log() *ledger.State {
	j.t.Helper()
	st, err := ledger.Read(j.FS, j.Root)
	if err != nil {
		j.t.Fatal(err)
	}
	return st
}

// fsck proves that every row is there once.
func (j *job) fsck() {
	j.t.Helper()
	Want(j.t, 0, j.Env, "fsck", "-c", j.config)
}

// files lists what a reader of **/*.parquet sees.
func files(fs storage.FS, root string) (out []string, err error) {
	err = storage.Walk(fs, root, func(name string, info storage.Info) error {
		if info.Dir || !strings.HasSuffix(name, ".parquet") {
			return nil
		}
		for _, part := range strings.Split(strings.TrimPrefix(name, root+"/"), "/") {
			if layout.Hidden(part) {
				return fmt.Errorf("%s is hidden and named .parquet", name)
			}
		}
		out = append(out, name)
		return nil
	})
	if errors.Is(err, storage.ErrNotExist) {
		err = nil // nothing yet
	}
	return out, err
}

// readIDs is the column id of a file, read by a library that did not write it.
func readIDs(fs storage.FS, name string) (ids []int64, err error) {
	r, err := fs.Open(name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	f, err := parquet.OpenFile(r, r.Size())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	leaf, ok := f.Schema().Lookup("id")
	if !ok {
		return nil, fmt.Errorf("%s has no column id", name)
	}
	values := make([]parquet.Value, 1024)
	for _, g := range f.RowGroups() {
		pages := g.ColumnChunks()[leaf.ColumnIndex].Pages()
		for {
			page, err := pages.ReadPage()
			if err == io.EOF {
				break
			}
			if err != nil {
				return nil, errors.Join(fmt.Errorf("%s: %w", name, err), pages.Close())
			}
			for vr := page.Values(); ; {
				n, err := vr.ReadValues(values)
				for _, v := range values[:n] {
					ids = append(ids, v.Int64())
				}
				if err == io.EOF {
					break
				}
				if err != nil {
					return nil, errors.Join(fmt.Errorf("%s: %w", name, err), pages.Close())
				}
			}
			parquet.Release(page)
		}
		if err := pages.Close(); err != nil {
			return nil, err
		}
	}
	if int64(len(ids)) != f.NumRows() {
		return nil, fmt.Errorf("%s: its footer says %d rows, it has %d", name, f.NumRows(), len(ids))
	}
	return ids, nil
}

// finished checks what holds after the end of the input: exactly the ids 0 to
// rows-1 are visible, fsck agrees, nothing hidden is left, every partition is
// marked and announced.
func (j *job) finished(rows int) {
	j.t.Helper()
	names, err := files(j.FS, j.Root)
	if err != nil {
		j.t.Fatal(err)
	}
	var all []int64
	for _, name := range names {
		ids, err := readIDs(j.FS, name)
		if err != nil {
			j.t.Fatal(err)
		}
		all = append(all, ids...)
	}
	slices.Sort(all)
	for i, id := range all {
		if int64(i) != id {
			j.t.Fatalf("%d ids are visible, want 0 to %d each once: at place %d is %d", len(all), rows-1, i, id)
		}
	}
	if len(all) != rows {
		j.t.Fatalf("%d ids are visible, want %d", len(all), rows)
	}
	j.fsck()
	for _, p := range j.log().Partitions {
		if p.Unannounced() {
			j.t.Fatalf("partition %s has files that are not announced", p.Path)
		}
		if _, err := j.FS.Stat(path.Join(j.Root, p.Path, "_SUCCESS")); err != nil {
			j.t.Fatal(err)
		}
	}
	j.readByAll(rows)
	j.noSecrets()
	err = storage.Walk(j.FS, path.Join(j.Root, layout.MetaDir), func(name string, _ storage.Info) error {
		if ext := path.Ext(name); ext == ".part" || ext == ".bundle" || ext == ".target" {
			return fmt.Errorf("%s is left", name)
		}
		return nil
	})
	if err != nil {
		j.t.Fatal(err)
	}
}

// noSecrets: no file that the program has written, here or in the table's own
// directory, holds a secret.
func (j *job) noSecrets() {
	j.t.Helper()
	searched := 0
	err := filepath.WalkDir(j.dir, func(name string, d iofs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(name)
		searched++
		return errors.Join(err, services.Leaks(name, string(data)))
	})
	err = errors.Join(err, storage.Walk(j.FS, path.Join(j.Root, layout.MetaDir), func(name string, info storage.Info) error {
		if info.Dir {
			return nil
		}
		data, err := j.FS.ReadFile(name)
		searched++
		return errors.Join(err, services.Leaks(name, string(data)))
	}))
	if err != nil || searched < 2 {
		j.t.Fatalf("%d files searched for secrets: %v", searched, err)
	}
}

// readByAll: Spark through the metastore, DuckDB and PyArrow see in the table
// what they see in one that was written undisturbed on the local disk.
func (j *job) readByAll(rows int) {
	j.t.Helper()
	var table engines.Table
	if j.Readers != nil {
		table = *j.Readers
		table.Location, table.Name = j.Location, "mainjob."+j.table
	} else {
		table.Location = j.copied()
	}
	got := engines.Agree(j.t, table)
	want := engines.Agree(j.t, engines.Table{Location: j.undisturbed(rows)})
	if got.Rows != rows || got.Digest != want.Digest {
		j.t.Fatalf("the engines see %d rows, %d in a table that was written undisturbed, %d were generated; the digests are %s and %s",
			got.Rows, want.Rows, rows, got.Digest, want.Digest)
	}
}

// undisturbed is a local table of the same rows.
func (j *job) undisturbed(rows int) string {
	j.t.Helper()
	dir := filepath.Join(j.dir, "undisturbed")
	config := filepath.Join(j.dir, "undisturbed.yaml")
	text := fmt.Sprintf(yaml, dir, rows, 0, j.table, filepath.Join(dir, "table"), "", "", "")
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		j.t.Fatal(err)
	}
	Want(j.t, 0, nil, "run", "-c", config, "--json")
	return filepath.Join(dir, "table")
}

// copied is a local copy of what a reader sees of the table.
func (j *job) copied() string {
	j.t.Helper()
	names, err := files(j.FS, j.Root)
	if err != nil {
		j.t.Fatal(err)
	}
	dir := filepath.Join(j.dir, "copy")
	for _, name := range names {
		data, err := j.FS.ReadFile(name)
		if err != nil {
			j.t.Fatal(err)
		}
		to := filepath.Join(dir, strings.TrimPrefix(name, j.Root))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			j.t.Fatal(err)
		}
		if err := os.WriteFile(to, data, 0o644); err != nil {
			j.t.Fatal(err)
		}
	}
	return dir
}
