package pipeline

import (
	"bytes"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/parquet-go/parquet-go"

	"github.com/hivesink/hivesink/audit"
	"github.com/hivesink/hivesink/compactor"
	"github.com/hivesink/hivesink/config"
	"github.com/hivesink/hivesink/internal/kv"
	"github.com/hivesink/hivesink/layout"
	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/record"
	"github.com/hivesink/hivesink/storage"
	"github.com/hivesink/hivesink/writer"
)

// A sim is a small run whose every step is the same each time: two source
// partitions, bad records, late rows, several partitions and checkpoints, the
// end of input. It runs inline, so a test can stop it at any storage operation
// or index transaction.
type sim struct {
	yaml   string
	rounds int // batches of each source partition
	atOnce int // what the chain publishes and announces in one turn; 0: as always
	now    int64
	bits   uint64
	spoil  func(compactor.Job) error // what becomes of building a unit; nil: it goes well
	small  int64                     // bytes of a part that gets the hidden encoding; 0: the default
}

const simBatch = 4 // rows of a batch

const simTable = "/w/t"

const simYAML = `
pipeline: sim
state_dir: /nowhere
source:
  datagen: {rows: 1}
  event_time: {column: ts, out_of_orderness: 1h}
  bad_records: {policy: dead-letter, limit: 1000}
table:
  database: d
  name: t
  location: ` + simTable + `
  columns: [id bigint, ts timestamp, name string]
  partitioned_by: [{dt: date(ts)}]
compaction: {policy: hold, file_size: 3KB, max_delay: 7s, parallelism: 1}
commit: {trigger: partition-time, delay: 2h, policies: [metastore, success-file]}
`

var simSources = []string{"src-a", "src-b"}

// manyYAML: more partitions, so that bundles have more parts, whose units are
// published at different times.
var manyYAML = strings.Replace(simYAML, "{dt: date(ts)}", `{dt: date(ts)}, {b: "bucket(5, id)"}`, 1)

func newSim() *sim { return &sim{yaml: simYAML, rounds: 4} }

// newManySim is a sim of many partitions, done in turns of two.
func newManySim() *sim { return &sim{yaml: manyYAML, rounds: 3, atOnce: 2} }

// again is the next process of a run that has ended.
func (s *sim) again() *sim {
	return &sim{yaml: s.yaml, rounds: s.rounds, small: s.small, atOnce: s.atOnce, now: s.now, bits: s.bits}
}

// clock moves 1 ms a look, so that every run sees the same times.
func (s *sim) clock() int64 { s.now += 1000; return 1_800_000_000_000_000 + s.now }

func (s *sim) random() uint64 {
	// Where the chain runs beside the test, encoders draw at the same time.
	return ledger.RowHash(int64(atomic.AddUint64(&s.bits, 1))) // any good mixer of a counter
}

func (s *sim) config(t testing.TB) *config.Config {
	t.Helper()
	cfg, err := config.Parse("sim.yaml", []byte(s.yaml), nil)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// isBad: one record in nine cannot be decoded.
func isBad(row int64) bool { return row%9 == 5 }

// simID is the id of a row: unique over all source partitions.
func simID(source int, row int64) int64 { return int64(source)*1000 + row }

// simTime spreads rows over days; every seventh row comes a day late.
func simTime(row int64) int64 {
	t := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(row) * 5 * time.Hour)
	if row%7 == 6 {
		t = t.Add(-36 * time.Hour)
	}
	return t.UnixMicro()
}

func (s *sim) batch(schema *record.Schema, source int, from int64) *record.Batch {
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema.Arrow)
	defer b.Release()
	out := &record.Batch{FirstRow: from, Count: simBatch, Position: fmt.Sprint(from + simBatch)}
	for row := from; row < from+simBatch; row++ {
		if isBad(row) {
			out.Bad = append(out.Bad, record.BadRecord{Row: row, Place: fmt.Sprintf("%s line %d", simSources[source], row+1),
				Class: record.ClassSyntax, Reason: "not JSON", Raw: []byte("{")})
			continue
		}
		for i, f := range schema.Arrow.Fields() {
			simCell(b.Field(i), f.Name, source, row)
		}
		out.Rows = append(out.Rows, row)
	}
	out.Record = b.NewRecordBatch()
	return out
}

// simCell appends the value of a row, of the column's type; columns that a test
// has added are null.
func simCell(b array.Builder, column string, source int, row int64) {
	text := simName(row)
	switch column {
	case "id":
		text = fmt.Sprint(simID(source, row))
	case "ts":
		b.(*array.TimestampBuilder).Append(arrow.Timestamp(simTime(row)))
		return
	case "name":
	default:
		b.AppendNull()
		return
	}
	if err := b.AppendValueFromString(text); err != nil {
		b.AppendNull() // a test has given the column a type that has no such value
	}
}

func simName(row int64) string { return fmt.Sprintf("name-%d", row%3) }

func (s *sim) end() int64 { return int64(s.rounds * simBatch) }

// run is one process: it opens the table, resumes, writes what is left, and
// finishes.
func (s *sim) run(t testing.TB, fs storage.FS, index kv.Store) error {
	t.Helper()
	return s.runWith(t, s.config(t), fs, index)
}

func (s *sim) runWith(t testing.TB, cfg *config.Config, fs storage.FS, index kv.Store) error {
	t.Helper()
	ctx := context.Background()
	p, err := Open(ctx, Options{Config: cfg, Version: "test", FS: fs, Index: index, NoLock: true, Inline: true,
		Now: s.clock, Random: s.random, smallBytes: s.small})
	if err != nil {
		return err
	}
	if s.atOnce > 0 {
		p.c.atOnce, p.c.ann.runner.AtOnce = s.atOnce, s.atOnce
	}
	if s.spoil != nil {
		built := p.c.pool.(*inline)
		build := built.build
		built.build = func(ctx context.Context, j compactor.Job) (*compactor.Built, error) {
			if err := s.spoil(j); err != nil {
				return nil, err
			}
			return build(ctx, j)
		}
	}
	err = s.drive(ctx, p)
	if rerr := p.Release(); err == nil {
		err = rerr
	}
	return err
}

func (s *sim) drive(ctx context.Context, p *Pipeline) error {
	lanes := make([]*writer.Lane, len(simSources))
	next := make([]int64, len(simSources))
	for i, name := range simSources {
		from, err := p.Own(ctx, name)
		if err != nil {
			return err
		}
		if lanes[i], err = p.NewLane(); err != nil {
			return err
		}
		lanes[i].Adopt(name, from)
		next[i] = from.NextRow
	}
	for round := 0; ; round++ {
		wrote := false
		for i := range lanes {
			if next[i] >= s.end() {
				continue
			}
			b := s.batch(p.Schema(), i, next[i])
			_, err := lanes[i].Write(ctx, simSources[i], b)
			b.Record.Release()
			if err != nil {
				return p.c.judge(err)
			}
			next[i] += simBatch
			wrote = true
		}
		if !wrote {
			return p.Finish(ctx, true)
		}
		if err := p.Checkpoint(ctx); err != nil {
			return err
		}
		if err := p.Advance(ctx); err != nil {
			return err
		}
	}
}

// visible reads every row a reader sees, by partition directory.
func visible(t testing.TB, fs storage.FS, root string) (ids []int64, files []string) {
	t.Helper()
	var walk func(dir string)
	walk = func(dir string) {
		entries, err := fs.List(dir)
		if err != nil {
			return // nothing there yet
		}
		for _, e := range entries {
			full := path.Join(dir, e.Name)
			if strings.HasSuffix(e.Name, ".parquet") && (layout.Hidden(e.Name) || strings.Contains(dir, "/.")) {
				t.Fatalf("hidden and named .parquet: %s", full)
			}
			switch {
			case layout.Hidden(e.Name):
			case e.Dir:
				walk(full)
			default:
				files = append(files, full)
				ids = append(ids, fileIDs(t, fs, full)...)
			}
		}
	}
	walk(root)
	slices.Sort(ids)
	return ids, files
}

func fileIDs(t testing.TB, fs storage.FS, full string) []int64 {
	t.Helper()
	data, err := fs.ReadFile(full)
	if err != nil {
		t.Fatal(err)
	}
	type row struct {
		ID  int64 `parquet:"id,optional"`
		Row int64 `parquet:"row_number,optional"`
	}
	rows, err := parquet.Read[row](bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatalf("%s: a reader cannot read it: %v", full, err)
	}
	out := make([]int64, len(rows))
	for i, r := range rows {
		out[i] = r.ID + r.Row
	}
	return out
}

// wantRows is every accepted row; wantDead every bad one.
func (s *sim) wantRows() (ids, dead []int64) {
	for i := range simSources {
		for row := range s.end() {
			if isBad(row) {
				dead = append(dead, row)
			} else {
				ids = append(ids, simID(i, row))
			}
		}
	}
	slices.Sort(ids)
	slices.Sort(dead)
	return ids, dead
}

// checkDone checks the promise on a finished table.
func (s *sim) checkDone(t testing.TB, fs storage.FS) {
	t.Helper()
	want, wantDead := s.wantRows()
	if got, _ := visible(t, fs, simTable); !slices.Equal(got, want) {
		t.Fatalf("rows visible: %v\nwant: %v", got, want)
	}
	if got, _ := visible(t, fs, simTable+"_dead"); !slices.Equal(got, wantDead) {
		t.Fatalf("dead-letter rows: %v\nwant: %v", got, wantDead)
	}
	rep, err := audit.Run(context.Background(), fs, simTable)
	if err != nil {
		t.Fatalf("fsck: %v", err)
	}
	if len(rep.Faults) > 0 || rep.PendingParts > 0 {
		t.Fatalf("fsck: %+v", rep)
	}
	st, err := ledger.Read(fs, simTable)
	if err != nil {
		t.Fatal(err)
	}
	if len(st.Parts) > 0 || len(st.Units) > 0 {
		t.Fatalf("work in flight after the end: %d parts, %d units", len(st.Parts), len(st.Units))
	}
	for key, p := range st.Partitions {
		if p.Table == ledger.DeadTable {
			continue
		}
		if p.Unannounced() || p.AnnouncedRows != p.Rows {
			t.Fatalf("partition %s: %d of %d rows announced", key, p.AnnouncedRows, p.Rows)
		}
		if _, err := fs.Stat(path.Join(simTable, p.Path, "_SUCCESS")); err != nil {
			t.Fatalf("partition %s: %v", key, err)
		}
	}
	checkStaging(t, fs)
}

// checkStaging: no hidden data file is left.
func checkStaging(t testing.TB, fs storage.FS) {
	t.Helper()
	err := storage.Walk(fs, path.Join(simTable, layout.MetaDir), func(name string, info storage.Info) error {
		if !info.Dir && (strings.HasSuffix(name, ".part") || strings.HasSuffix(name, ".bundle") || strings.HasSuffix(name, ".target")) {
			return fmt.Errorf("hidden data file left: %s", name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// checkNow checks what a reader sees at any moment: whole files, no row twice,
// none that was not accepted.
func (s *sim) checkNow(t testing.TB, fs storage.FS) {
	t.Helper()
	got, _ := visible(t, fs, simTable)
	want, _ := s.wantRows()
	for i, id := range got {
		if i > 0 && got[i-1] == id {
			t.Fatalf("row %d is visible twice", id)
		}
		if !slices.Contains(want, id) {
			t.Fatalf("row %d is visible and was never accepted", id)
		}
	}
}
