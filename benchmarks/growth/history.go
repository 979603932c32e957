package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/hivesink/hivesink/coordinator"
	"github.com/hivesink/hivesink/internal/kv"
	"github.com/hivesink/hivesink/layout"
	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/storage"
	"github.com/hivesink/hivesink/storage/localfs"
)

const pipelineName = "growth"

// A history is the past of a table: how many files it has published, in how
// many partitions, how many a checkpoint.
type history struct {
	files, partitions, each int
}

// made is what making it took.
type made struct {
	Records int     `json:"records"`
	Seconds float64 `json:"seconds"`
}

// stepTime is the time between two checkpoints of the past: one million files
// at 20 each are 5.8 days, which `history: 7d` keeps whole.
const stepTime = 10 * time.Second

// makeIn is make on the local disk, with the table and the state directory in
// dir and without the syncs.
func (h history) makeIn(ctx context.Context, dir string) (m made, err error) {
	for _, sub := range []string{"in", "state"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			return m, err
		}
	}
	index, err := kv.OpenBadger(filepath.Join(dir, "state", "index"))
	if err != nil {
		return m, err
	}
	m, err = h.make(ctx, noSync{localfs.New()}, index, filepath.Join(dir, "table"))
	return m, errors.Join(err, index.Close())
}

// make writes the history's table log and index through the ledger itself:
// every checkpoint, plan, publication and announcement is appended as a run
// would have appended it, one after the other. Only the data files are not
// there, at which nothing on the measured way may look.
func (h history) make(ctx context.Context, fs storage.FS, index kv.Store, table string) (m made, err error) {
	start := time.Now()
	past := time.Now().Add(-time.Duration(h.files/h.each) * stepTime)
	now := past
	l, err := ledger.Open(ctx, ledger.Options{FS: fs, Table: table, Pipeline: pipelineName, Host: "bench",
		Version: "bench", Index: index, Now: func() time.Time { return now }})
	if err != nil {
		return m, err
	}
	var deleted []string
	serial := uint64(0)
	for done := 0; done < h.files; done += h.each {
		now = now.Add(stepTime)
		if deleted, err = h.step(l, done, &serial, deleted); err != nil {
			return m, err
		}
	}
	if err := l.Append(&ledger.Record{InputsDeleted: deleted}); err != nil {
		return m, err
	}
	if err := errors.Join(l.UpkeepErr(), l.IndexErr()); err != nil {
		return m, err
	}
	m.Records = int(l.State().Seq)
	m.Seconds = time.Since(start).Seconds()
	return m, l.Close()
}

// step is one checkpoint and what follows from it, in the four records of a
// run: checkpoint (with the last one's deletions), plan, published, announced.
func (h history) step(l *ledger.Ledger, done int, serial *uint64, deleted []string) ([]string, error) {
	st := l.State()
	n, at := st.Checkpoint+1, time.Now().UnixMicro()
	cp := &ledger.Checkpoint{Number: n, Watermark: int64(done)}
	src := ledger.Source{Watermark: int64(done)}
	if known := st.Sources[sourceName]; known != nil {
		src = *known
	}
	var plan []ledger.Unit
	for i := range h.each {
		*serial++
		id := layout.ID(ledger.RowHash(int64(*serial)))
		partition, closes := h.partition(done + i)
		held := ledger.Range{First: src.NextRow, Last: src.NextRow}
		held.Row(src.NextRow)
		src.Accepted.Row(src.NextRow)
		src.NextRow++
		cp.Parts = append(cp.Parts, ledger.Part{ID: id, Partition: partition, Epoch: l.Epoch(), Name: layout.StagedPart(id), Rows: 1, Bytes: 1000,
			FirstWrite: at, Closes: closes, Schema: "s", Codec: "none", Checkpoint: n, Sources: map[string]ledger.Range{sourceName: held}})
		u := coordinator.PublishUnit(&cp.Parts[i], ledger.RowHash(-int64(*serial)), l.Epoch())
		u.Mode, u.Reason = ledger.ModeRewrite, "max_delay 5m"
		plan = append(plan, u)
	}
	src.Position = fmt.Sprint(src.NextRow)
	cp.Sources = map[string]ledger.Source{sourceName: src}
	published := make([]ledger.Published, len(plan))
	ids := make([]string, len(plan))
	for i := range plan {
		u := &plan[i]
		ids[i] = u.ID
		published[i] = ledger.Published{Unit: u.ID, Path: u.Partition + "/" + u.Target, Mode: u.Mode, Rows: u.Rows, Bytes: 1200,
			Leaves: u.Inputs, Sources: cp.Parts[i].Sources, Time: at}
	}
	for _, r := range []*ledger.Record{{Checkpoint: cp, InputsDeleted: deleted}, {Plan: plan}, {Published: published}} {
		if err := l.Append(r); err != nil {
			return nil, err
		}
	}
	return ids, l.Append(&ledger.Record{Announced: announce(st, plan, at)})
}

// announce is what a process-time trigger without delay announces: all that was
// published.
func announce(st *ledger.State, plan []ledger.Unit, at int64) []ledger.Announced {
	var out []ledger.Announced
	seen := make(map[string]bool)
	for i := range plan {
		p := st.Partitions[ledger.PartitionKey(plan[i].Table, plan[i].Partition)]
		if seen[p.Path] {
			continue
		}
		seen[p.Path] = true
		out = append(out, ledger.Announced{Partition: p.Path, Number: p.Announced + 1, Cut: st.Checkpoint,
			Files: p.Files, Rows: p.Rows, Bytes: p.Bytes, Time: at})
	}
	return out
}

const sourceName = "past"

// firstHour is the period of the first partition.
var firstHour = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)

// partition is the path of the n-th file's partition, and the end of its
// period.
func (h history) partition(n int) (path string, closes int64) {
	t := firstHour.Add(time.Duration(n%h.partitions) * time.Hour)
	return "dt=" + t.Format("2006-01-02") + "/hr=" + t.Format("15"), t.Add(time.Hour).UnixMicro()
}

// noSync is a file system for data that nobody would miss.
type noSync struct{ storage.FS }

func (noSync) SyncDir(string) error { return nil }

func (n noSync) Create(name string) (storage.File, error) {
	f, err := n.FS.Create(name)
	if err != nil {
		return nil, err
	}
	return noSyncFile{f}, nil
}

type noSyncFile struct{ storage.File }

func (noSyncFile) Sync() error { return nil }
