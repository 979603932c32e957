package pipeline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"github.com/hivesink/hivesink/audit"
	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/internal/kv"
	"github.com/hivesink/hivesink/layout"
	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/storage"
	"github.com/hivesink/hivesink/storage/faultfs"
	"github.com/hivesink/hivesink/storage/memfs"
)

// A change is made to the configuration between two runs on one table, the first
// of which was killed. It is tried in both directions: from the simulation's
// configuration to the changed one, and back.
type change struct {
	name     string
	from, to string   // in simYAML
	both     string   // "from → to" that both configurations have besides
	refused  []string // what the refusal says; nil: it is taken
}

const (
	simColumns   = "columns: [id bigint, ts timestamp, name string]"
	simPartition = "partitioned_by: [{dt: date(ts)}]"
	simPolicy    = "policy: hold, file_size: 3KB, max_delay: 7s, parallelism: 1"
	simCommit    = "trigger: partition-time, delay: 2h, policies: [metastore, success-file]"
	simSource    = "event_time: {column: ts, out_of_orderness: 1h}"
	simBadPolicy = "policy: dead-letter, limit: 1000"
)

var changes = []change{
	{name: "a column more", from: simColumns, to: "columns: [id bigint, ts timestamp, extra int, name string]"},
	{name: "a column less", from: simColumns, to: "columns: [id bigint, ts timestamp]"},
	{name: "another order", from: simColumns, to: "columns: [name string, ts timestamp, id bigint]"},
	{name: "another name", from: simColumns, to: "columns: [id bigint, ts timestamp, label string]"},
	{name: "another width", from: simColumns, to: "columns: [id int, ts timestamp, name string]"},
	{name: "another type", from: simColumns, to: `columns: [id string, ts timestamp, "name binary"]`},
	{name: "not null", from: simColumns, to: `columns: ["id bigint not null", ts timestamp, "name varchar(20)"]`},
	{name: "old physical types", from: simColumns, to: simColumns + "\n  parquet: {timestamps: int96, decimals: fixed}"},
	{name: "a column partitions", from: simPartition, to: "partitioned_by: [{dt: date(ts)}, name]"},
	{name: "a partition column more", from: simPartition, to: "partitioned_by: [{dt: date(ts)}, {hr: hour(ts)}]"},
	{name: "no partition columns", from: simPartition, to: "partitioned_by: []", both: "trigger: partition-time, delay: 2h → trigger: process-time"},
	{name: "another transform", from: simPartition, to: `partitioned_by: [{dt: 'format(ts, "yyyyMM")'}]`},
	{name: "another partition column", from: simPartition, to: `partitioned_by: [{b: "bucket(3, id)"}]`, both: "trigger: partition-time, delay: 2h → trigger: process-time"},
	{name: "time zone", from: "  name: t\n", to: "  name: t\n  time_zone: Asia/Tokyo\n"},
	{name: "name of the table", from: "  name: t\n", to: "  name: other\n"},
	{name: "database", from: "database: d", to: "database: other"},
	{name: "codec", from: "  name: t\n", to: "  name: t\n  compression: snappy\n"},
	{name: "compaction off", from: simPolicy, to: "enabled: false"},
	{name: "compaction by checkpoint", from: simPolicy, to: "policy: checkpoint, file_size: 100MB"},
	{name: "size and delay", from: simPolicy, to: "policy: hold, file_size: 1KB, max_delay: 1h, max_checkpoints: 2, parallelism: 3"},
	{name: "trigger", from: simCommit, to: "policies: [success-file]"},
	{name: "delay and late rows to the side", from: simCommit, to: "trigger: partition-time, delay: 10m, late: side, policies: [success-file, metastore]"},
	{name: "late rows dropped", from: simCommit, to: "trigger: partition-time, delay: 0s, late: drop, register: first-file, policies: [metastore]"},
	{name: "name of the success file", from: simCommit, to: simCommit + ", success_file: _DONE"},
	{name: "bad records dropped", from: simBadPolicy, to: "policy: drop, limit: 500"},
	{name: "watermark", from: simSource, to: "event_time: {column: ts, out_of_orderness: 30h, idle_timeout: 1s, max_future: 2h}"},
	{name: "no event time", from: simSource, to: "readers: 3", both: "trigger: partition-time, delay: 2h → trigger: process-time"},
	{name: "history and checkpoints", from: "pipeline: sim\n", to: "pipeline: sim\nhistory: 0s\ncheckpoint: {interval: 1h}\n"},
	{name: "rolling and limits", from: "pipeline: sim\n", to: "pipeline: sim\nrolling: {file_size: 1KB, rows: 2}\nlimits: {staging: 2KB, memory: 64MB}\n"},
	{name: "pipeline", from: "pipeline: sim\n", to: "pipeline: other\n", refused: []string{`belongs to pipeline "sim"`, `this is pipeline "other"`, "hivesink drain"}},
}

// configs are the configurations before and after.
func (c *change) configs(t *testing.T) (before, after string) {
	t.Helper()
	before = simYAML
	if was, is, ok := strings.Cut(c.both, " → "); ok {
		before = strings.Replace(before, was, is, 1)
	}
	after = strings.Replace(before, c.from, c.to, 1)
	if after == before {
		t.Fatal("the change changes nothing")
	}
	return before, after
}

// TestConfigurationChanges: whatever is changed between a kill and the next run,
// every accepted row is there once, with the values that it was accepted with,
// and nothing is left behind; or the change is refused and nothing was touched.
func TestConfigurationChanges(t *testing.T) {
	for _, c := range changes {
		t.Run(c.name, func(t *testing.T) {
			before, after := c.configs(t)
			for way, pair := range [][2]string{{before, after}, {after, before}} {
				if way == 1 && c.refused != nil {
					continue
				}
				inFlight := 0
				watch := faultfs.New(memfs.New())
				if err := (&sim{yaml: pair[0], rounds: 4}).run(t, watch, nil); err != nil {
					t.Fatal(err)
				}
				for k := watch.Ops() / 4; k < watch.Ops()-4; k += watch.Ops() / 6 {
					if testing.Short() && inFlight > 0 {
						break // one kill with work in flight
					}
					mem := memfs.New()
					fs := faultfs.New(mem)
					fs.CrashAt(k, true)
					first := &sim{yaml: pair[0], rounds: 4}
					index := kv.NewMem()
					if err := first.run(t, fs, index); !errors.Is(err, faultfs.ErrCrashed) {
						t.Fatalf("operation %d: the crash did not stop the run: %v", k, err)
					}
					image := mem.Kill()
					if c.refused != nil {
						c.checkRefused(t, first, image, after)
						continue
					}
					st, err := ledger.Read(image, simTable)
					if err != nil {
						t.Fatal(err)
					}
					inFlight += len(st.Parts)
					next := first.again()
					next.yaml = pair[1]
					if err := next.run(t, image, index); err != nil {
						t.Fatalf("way %d, operation %d: %v", way, k, err)
					}
					if err := next.accounted(t, image, st, strings.Contains(pair[0], "name string") || strings.Contains(pair[0], "name varchar")); err != nil {
						t.Fatalf("way %d, operation %d: %v", way, k, err)
					}
				}
				if inFlight == 0 && c.refused == nil {
					t.Errorf("way %d: nothing was in flight at any kill", way)
				}
			}
		})
	}
}

// checkRefused: the change is refused, says why, and has touched nothing (T4).
func (c *change) checkRefused(t *testing.T, first *sim, image *memfs.FS, after string) {
	t.Helper()
	was := listing(t, image)
	next := first.again()
	next.yaml = after
	err := next.run(t, image, nil)
	if err == nil || fault.ClassOf(err) != fault.Fenced {
		t.Fatalf("it was taken: %v", err)
	}
	text := err.Error()
	for _, word := range c.refused {
		if !strings.Contains(text, word) {
			t.Errorf("the refusal does not say %q: %s", word, text)
		}
	}
	if is := listing(t, image); is != was {
		t.Fatalf("it was refused, and something was touched:\n%s\nbefore:\n%s", is, was)
	}
	again := first.again()
	if err := again.run(t, image, nil); err != nil {
		t.Fatal(err)
	}
	again.checkDone(t, image)
}

// listing is every file with its size.
func listing(t *testing.T, fs storage.FS) string {
	t.Helper()
	var out strings.Builder
	err := storage.Walk(fs, "/", func(name string, info storage.Info) error {
		fmt.Fprintln(&out, name, info.Size)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// accounted checks a finished table whose configuration was changed: every row
// is visible once, dead-lettered, or dropped; what a checkpoint had accepted
// before the change has its name, if there was a column for it.
func (s *sim) accounted(t *testing.T, fs storage.FS, before *ledger.State, named bool) error {
	t.Helper()
	rep, err := audit.Run(context.Background(), fs, simTable)
	if err != nil {
		return err
	}
	if len(rep.Faults) > 0 || rep.PendingParts > 0 {
		return fmt.Errorf("fsck: %+v", rep)
	}
	st, err := ledger.Read(fs, simTable)
	if err != nil {
		return err
	}
	if len(st.Parts)+len(st.Units) > 0 {
		return fmt.Errorf("%d parts and %d units are in flight", len(st.Parts), len(st.Units))
	}
	for key, p := range st.Partitions {
		if p.Unannounced() {
			return fmt.Errorf("partition %s is not announced", key)
		}
	}
	checkStaging(t, fs)
	seen := make(map[int64]bool)
	accepted, _ := s.wantRows()
	for _, row := range append(cells(t, fs, simTable), cells(t, fs, simTable+"_late")...) {
		id, err := strconv.ParseInt(row["id"], 10, 64)
		if err != nil {
			return fmt.Errorf("row %v: %w", row, err)
		}
		if seen[id] {
			return fmt.Errorf("row %d is visible twice", id)
		}
		if _, ok := slices.BinarySearch(accepted, id); !ok {
			return fmt.Errorf("row %d is visible and was never accepted", id)
		}
		seen[id] = true
		source, n := id/1000, id%1000
		if was := before.Sources[simSources[source]]; named && was != nil && n < was.NextRow && row["name"] != simName(n) {
			return fmt.Errorf("row %d was accepted with name %s and has %q in %s", id, simName(n), row["name"], row["file"])
		}
	}
	total := int64(len(seen)) + int64(len(cells(t, fs, simTable+"_dead")))
	for _, src := range st.Sources {
		total += src.Dropped.Rows
	}
	if total != 2*s.end() {
		return fmt.Errorf("%d rows of %d are visible, dead-lettered or dropped", total, 2*s.end())
	}
	return nil
}

// cells are all rows that a reader sees, by column; those of its path too.
func cells(t *testing.T, fs storage.FS, root string) (rows []map[string]string) {
	t.Helper()
	var files []string
	err := storage.Walk(fs, root, func(name string, info storage.Info) error {
		rel := strings.TrimPrefix(name, root)
		if strings.HasSuffix(name, ".parquet") && !strings.Contains(rel, "/.") {
			files = append(files, name)
		}
		return nil
	})
	if err != nil && !errors.Is(err, storage.ErrNotExist) {
		t.Fatal(err)
	}
	for _, name := range files {
		rows = append(rows, fileCells(t, fs, root, name)...)
	}
	return rows
}

func fileCells(t *testing.T, fs storage.FS, root, name string) []map[string]string {
	t.Helper()
	data, err := fs.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	pf, err := file.NewParquetReader(bytes.NewReader(data))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	fr, err := pqarrow.NewFileReader(pf, pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	tbl, err := fr.ReadTable(context.Background())
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	defer tbl.Release()
	rows := make([]map[string]string, tbl.NumRows())
	keys, values, err := layout.ParsePath(strings.TrimPrefix(strings.TrimPrefix(path.Dir(name), root), "/"))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	for i := range rows {
		rows[i] = map[string]string{"file": name}
		for k := range keys {
			rows[i][keys[k]] = values[k]
		}
	}
	for i := range int(tbl.NumCols()) {
		at := 0
		for _, chunk := range tbl.Column(i).Data().Chunks() {
			for k := range chunk.Len() {
				rows[at][tbl.Column(i).Name()] = chunk.ValueStr(k)
				at++
			}
		}
	}
	return rows
}
