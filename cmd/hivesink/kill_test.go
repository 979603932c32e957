package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hivesink/hivesink/internal/testproc"
	"github.com/hivesink/hivesink/internal/watching"
	"github.com/hivesink/hivesink/layout"
	"github.com/hivesink/hivesink/ledger"
)

const killYAML = `
pipeline: kills
state_dir: {dir}/state
source:
  datagen: {rows: 200000, rate: 60000, columns: {ts: {values: 20}}}
  readers: 2
  event_time: {column: ts}
table:
  name: kills
  location: {dir}/table
  columns: [id bigint, ts timestamp, name string, amount double]
  partitioned_by: [{dt: date(ts)}]
checkpoint: {interval: 60ms}
compaction: {file_size: 64KB, max_delay: 1s, bytes_per_second: 3MB}
commit: {trigger: partition-time, delay: 1h}
`

// killBundlesYAML has many small partitions: what a checkpoint makes is bundles,
// whose parts are published at different times, into tiny targets.
var killBundlesYAML = strings.NewReplacer("[{dt: date(ts)}]", `[{dt: date(ts)}, {b: "bucket(12, id)"}]`,
	"rows: 200000, rate: 60000", "rows: 60000, rate: 20000", "file_size: 64KB", "file_size: 8KB", "interval: 60ms", "interval: 100ms").Replace(killYAML)

const (
	killRows = 200_000
	// killsAtEnd is how many of the kills, at most half, are kept for the end
	// of input and the last compactions.
	killsAtEnd = 5
)

// spoilState says in turn what becomes of the state directory after a kill.
func (tb *table) spoilState(turn int) {
	tb.t.Helper()
	older := filepath.Join(tb.dir, "older-state")
	var err error
	switch turn % 4 {
	case 0: // kept; a copy is put aside
		if err = os.RemoveAll(older); err == nil {
			err = os.CopyFS(older, os.DirFS(tb.state))
		}
		if errors.Is(err, os.ErrNotExist) {
			err = nil // killed before it was made
		}
	case 1: // kept
	case 2:
		err = os.RemoveAll(tb.state)
	case 3:
		if _, statErr := os.Stat(older); statErr == nil {
			if err = os.RemoveAll(tb.state); err == nil {
				err = os.CopyFS(tb.state, os.DirFS(older))
			}
		}
	}
	if err != nil {
		tb.t.Fatal(err)
	}
}

// moment waits for the moment to kill. False: the process ended before.
func (tb *table) moment(p *testproc.Process, rng *rand.Rand, atEnd bool) bool {
	tb.t.Helper()
	if atEnd {
		seen := 0
		if !p.Until(tb.t, "the end of input", func() bool { return tb.inputEnded(&seen) }) {
			return false
		}
	}
	ahead := 7
	if atEnd {
		ahead = 3 // few are left
	}
	more := tb.records() + rng.IntN(ahead)
	if !p.Until(tb.t, "the next log records", func() bool { return tb.records() >= more }) {
		return false
	}
	if rng.IntN(2) == 0 {
		return true // at the record
	}
	select { // some time after it
	case <-p.Done():
		return false
	case <-time.After(time.Duration(rng.IntN(40_000)) * time.Microsecond):
		return true
	}
}

// TestKill kills a run again and again, at random moments, at log records and
// in the last compactions, and spoils the state directory in between.
func TestKill(t *testing.T) { killAgain(t, killYAML, killRows, 60_000, 24) }

// TestKillWithBundles does the same with many small partitions.
func TestKillWithBundles(t *testing.T) { killAgain(t, killBundlesYAML, 60_000, 20_000, 12) }

func killAgain(t *testing.T, yaml string, rows, rate, want int) {
	if testing.Short() {
		want = 4
	}
	want = testproc.Number(t, "HIVESINK_KILLS", want)
	seed := testproc.Number(t, "HIVESINK_SEED", int(time.Now().UnixNano()%1_000_000_000))
	t.Logf("seed %d", seed)
	defer func() {
		if t.Failed() {
			t.Logf("again: HIVESINK_SEED=%d HIVESINK_KILLS=%d go test ./cmd/hivesink -run '^%s$'", seed, want, t.Name())
		}
	}()
	rng := rand.New(rand.NewPCG(uint64(seed), 1))
	// On a busy machine a run may read far before it is killed: then again, slower.
	for ; !killTable(t, yaml, rows, rate, want, rng); rate /= 8 {
		if rate < 1000 {
			t.Fatal("the runs read too fast for the kills")
		}
	}
}

// killTable is killAgain on one table. False: nothing is wrong with it, but the
// input ended before there were kills enough.
func killTable(t *testing.T, yaml string, rows, rate, want int, rng *rand.Rand) bool {
	tb := newTable(t, yaml)
	w := &watching.Reader{Files: func() ([]string, error) { return files(tb.root) }, IDs: readIDs}
	stop := watching.Keep(0, w.Look)
	t.Cleanup(func() { _ = stop() })

	// The kills after the end of input go on until the work is done: of them one
	// at least must hit, of the others all.
	late := min(killsAtEnd, max(1, want/2))
	hits, atEnd, missed := 0, 0, 0
	for {
		p := start(t, nil, binary, "run", "-c", tb.config, "--json", "--set", fmt.Sprintf("source.datagen.rate=%d", rate))
		end := hits >= want-late
		if hits < want && tb.moment(p, rng, end) && p.Kill(t) {
			hits++
			seen := 0
			if tb.inputEnded(&seen) {
				atEnd++
			}
			if tb.records() > 0 {
				tb.fsck(exitDone)
			}
			tb.spoilState(hits)
			continue
		}
		if r := p.Wait(t); r.Code != exitDone {
			t.Fatalf("after %d kills: %v", hits, r)
		}
		if missed++; hits >= want || missed > want {
			break
		}
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d kills hit, %d of them after the end of input, %d runs got away; %d log records, %d files, listed %d times", hits, atEnd, missed-1, tb.records(), len(w.Seen), w.Looks)
	if len(w.Row) != rows {
		t.Fatalf("the reader has seen %d ids, want %d", len(w.Row), rows)
	}
	tb.wantIDs(rows)
	tb.checkFinished()
	if s := tb.run(); s.RowsRead != 0 || s.RowsVisible != int64(rows) || s.FilesWritten != 0 {
		t.Fatalf("a run after the end was not empty: %+v", s)
	}
	staging, err := filepath.Glob(filepath.Join(tb.root, layout.MetaDir, "fenced-*"))
	if err != nil || len(staging) > 0 {
		t.Fatalf("staging of former owners is left after an empty run: %v %v", staging, err)
	}
	return hits > want-late && atEnd > 0
}

// checkFinished checks what holds after the end of a bounded input.
func (tb *table) checkFinished() {
	tb.t.Helper()
	tb.fsck(exitDone)
	if left := tb.hiddenData(); len(left) > 0 {
		tb.t.Fatalf("%d hidden data files are left: %s", len(left), left[0])
	}
	partitions := 0
	for _, p := range tb.log().Partitions {
		if p.Table != ledger.MainTable {
			continue
		}
		partitions++
		if _, err := os.Stat(filepath.Join(tb.root, filepath.FromSlash(p.Path), "_SUCCESS")); err != nil {
			tb.t.Fatal(err)
		}
	}
	if partitions == 0 {
		tb.t.Fatal("no partitions")
	}
	for _, p := range tb.log().Partitions {
		if p.Unannounced() {
			tb.t.Fatalf("partition %s has files that are not announced", p.Path)
		}
	}
}
