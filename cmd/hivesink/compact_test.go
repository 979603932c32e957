package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/hivesink/hivesink/internal/testproc"
	"github.com/hivesink/hivesink/internal/watching"
	"github.com/hivesink/hivesink/layout"
	"github.com/hivesink/hivesink/maintenance"
)

const foreignYAML = `
pipeline: maintenance
table: {name: foreign, location: {dir}/table}
`

// foreignTable is a table that another program wrote: partitions of small files
// with 10 rows each, _SUCCESS beside them.
func foreignTable(t testing.TB, partitions, files int) *table {
	t.Helper()
	tb := newTable(t, foreignYAML)
	tb.fillForeign(partitions, files)
	return tb
}

type foreignRow struct {
	ID   int64   `parquet:"id,optional,snappy"`
	Name *string `parquet:"name,optional,dict,snappy"`
}

func (tb *table) fillForeign(partitions, files int) {
	tb.t.Helper()
	id := int64(0)
	for p := range partitions {
		for f := range files {
			rows := make([]foreignRow, 10)
			for i := range rows {
				name := fmt.Sprint("name ", id%7)
				rows[i] = foreignRow{ID: id, Name: &name}
				if id%3 == 0 {
					rows[i].Name = nil
				}
				id++
			}
			full := filepath.Join(tb.root, fmt.Sprintf("dt=%d", p), fmt.Sprintf("f-%d.parquet", f))
			if err := os.MkdirAll(filepath.Dir(full), 0o777); err != nil {
				tb.t.Fatal(err)
			}
			if err := parquet.WriteFile(full, rows); err != nil {
				tb.t.Fatal(err)
			}
		}
		tb.write(fmt.Sprintf("table/dt=%d/_SUCCESS", p), "")
	}
}

func (tb *table) compact(code int, args ...string) maintenance.Report {
	tb.t.Helper()
	r := want(tb.t, code, append([]string{"compact", "-c", tb.config, "--json"}, args...)...)
	var rep maintenance.Report
	if err := json.Unmarshal([]byte(r.Out), &rep); err != nil {
		tb.t.Fatalf("compact --json: %v\n%v", err, r)
	}
	return rep
}

// inodes is everything below the table, with its inode and its last change.
func (tb *table) inodes() string {
	tb.t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(tb.root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil {
			fmt.Fprintln(&b, name, info.Sys().(*syscall.Stat_t).Ino, info.Mode(), info.ModTime().UnixNano())
		}
		return err
	})
	if err != nil {
		tb.t.Fatal(err)
	}
	return b.String()
}

func (tb *table) noCompactionLeft() {
	tb.t.Helper()
	err := filepath.WalkDir(tb.root, func(name string, d fs.DirEntry, err error) error {
		if n := d.Name(); n == layout.CompactDir || n == layout.CompactMarker || strings.HasSuffix(n, ".unit") || strings.HasSuffix(n, ".target") {
			err = fmt.Errorf("left behind: %s", name)
		}
		return err
	})
	if err != nil {
		tb.t.Fatal(err)
	}
}

func TestCompactForeign(t *testing.T) {
	tb := foreignTable(t, 3, 20)
	before := tb.inodes()
	dry := tb.compact(exitDone, "--dry-run")
	if after := tb.inodes(); after != before {
		t.Fatalf("--dry-run changed\n%s\nto\n%s", before, after)
	}
	rep := tb.compact(exitDone)
	if rep.FilesBefore != 60 || rep.FilesAfter != 3 || rep.Rows != 600 || dry.FilesAfter != 3 || !dry.DryRun {
		t.Fatalf("dry run %+v, run %+v", dry, rep)
	}
	tb.wantIDs(600)
	tb.noCompactionLeft()
	if len(tb.files()) != 3 {
		t.Fatalf("files: %v", tb.files())
	}
	if _, err := os.Stat(filepath.Join(tb.root, layout.MetaDir)); !os.IsNotExist(err) {
		t.Errorf("a table without %s has one now: %v", layout.MetaDir, err)
	}
	for p := range 3 {
		if _, err := os.Stat(filepath.Join(tb.root, fmt.Sprintf("dt=%d/_SUCCESS", p))); err != nil {
			t.Error(err)
		}
	}
	before = tb.inodes()
	if rep := tb.compact(exitDone); rep.AsItWas != 3 {
		t.Errorf("again: %+v", rep)
	}
	if after := tb.inodes(); after != before {
		t.Errorf("a second run changed\n%s\nto\n%s", before, after)
	}
	r := want(t, exitDone, "compact", "-c", tb.config)
	for _, text := range []string{"dt=0  nothing to do: one file", "3 → 3", "done after"} {
		if !strings.Contains(r.Out, text) {
			t.Errorf("it does not say %q: %v", text, r)
		}
	}
}

// The new directory and its files look like the old ones.
func TestCompactKeepsModes(t *testing.T) {
	tb := foreignTable(t, 1, 5)
	dir := filepath.Join(tb.root, "dt=0")
	for _, name := range tb.files() {
		if err := os.Chmod(name, 0o664); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, 0o775|os.ModeSetgid); err != nil {
		t.Fatal(err)
	}
	tb.compact(exitDone)
	for name, mode := range map[string]os.FileMode{dir: 0o775 | os.ModeSetgid | os.ModeDir, tb.files()[0]: 0o664} {
		if info, err := os.Stat(name); err != nil || info.Mode() != mode {
			t.Errorf("%s has mode %v, want %v (%v)", name, info.Mode(), mode, err)
		}
	}
}

func TestCompactFailures(t *testing.T) {
	tb := foreignTable(t, 3, 4)
	bad := filepath.Join(tb.root, "dt=1", "f-2.parquet")
	data, err := os.ReadFile(bad)
	if err == nil {
		err = os.WriteFile(bad, data[:len(data)-20], 0o666)
	}
	if err == nil {
		err = os.MkdirAll(filepath.Join(tb.dir, "elsewhere"), 0o777)
	}
	if err == nil {
		err = os.Symlink(filepath.Join(tb.dir, "elsewhere"), filepath.Join(tb.root, "dt=9"))
	}
	if err != nil {
		t.Fatal(err)
	}
	r := want(t, exitFailed, "compact", "-c", tb.config)
	for _, text := range []string{"dt=1  FAILED: f-2.parquet: it is cut short", "dt=9  left alone: it is a symbolic link", "2 compacted, 0 as they were, 1 left alone, 1 failed", "1 of 4 partitions could not be compacted"} {
		if !strings.Contains(r.Out+r.Err, text) {
			t.Errorf("it does not say %q: %v", text, r)
		}
	}
	if n := len(tb.files()); n != 4+2 {
		t.Errorf("%d files", n)
	}
	tb.noCompactionLeft()
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"--partition", "dt=7"}, exitUsage, "no data files in partition dt=7"},
		{[]string{"--partition", "2026"}, exitUsage, "not name=value"},
		{[]string{"--set", "table.location=" + tb.dir + "/none"}, exitUsage, "table.location"},
		{[]string{"--set", "table.location=hdfs://nn/x"}, exitUsage, "hdfs"},
		{[]string{"dt=2"}, exitUsage, `no use for "dt=2"; one partition is --partition dt=2`}, // not: the whole table
		{[]string{"--partition", "dt=0", "dt=2"}, exitUsage, `no use for "dt=2"`},
	} {
		if r := want(t, c.code, append([]string{"compact", "-c", tb.config}, c.args...)...); !strings.Contains(r.Err, c.says) {
			t.Errorf("%v does not say %q: %v", c.args, c.says, r)
		}
	}
}

func TestCompactUnpartitioned(t *testing.T) {
	tb := newTable(t, dataYAML2)
	tb.run()
	if n := len(tb.files()); n < 3 {
		t.Fatalf("only %d files", n)
	}
	before := tb.inodes()
	tb.compact(exitDone, "--dry-run")
	if after := tb.inodes(); after != before {
		t.Fatal("--dry-run changed the table")
	}
	r := want(t, exitUsage, "compact", "-c", tb.config)
	if !strings.Contains(r.Out+r.Err, "--allow-window") {
		t.Errorf("it does not name the flag: %v", r)
	}
	if rep := tb.compact(exitDone, "--allow-window"); rep.FilesAfter != 1 || !rep.Partitions[0].Window {
		t.Errorf("%+v", rep)
	}
	tb.wantIDs(3000)
	tb.noCompactionLeft()
	tb.fsck(exitDone)
	if s := tb.run(); s.RowsRead != 0 || s.VisibleFiles != 1 {
		t.Errorf("the next run: %+v", s)
	}
	tb.fsck(exitDone)
}

// dataYAML2 makes a table without partitions, of a file per checkpoint, or per 500
// rows where a busy machine makes few checkpoints.
const dataYAML2 = `
pipeline: flat
state_dir: {dir}/state
source:
  datagen: {rows: 3000, rate: 10000}
table:
  name: flat
  location: {dir}/table
  columns: [id bigint, name string]
checkpoint: {interval: 20ms}
rolling: {rows: 500}
compaction: {policy: off}
`

// Who owns the table decides: a live run refuses, another pipeline's table is
// refused until it is drained, and stays drained.
func TestCompactOwnership(t *testing.T) {
	tb := newTable(t, stdinYAML+"compaction: {policy: off}\n")
	all := lines(6000, nil)
	p, w := tb.feed(all[:len(all)/2])
	for _, n := range []int{3, 6} { // files: of each partition one, and one more; and it waits for more input
		if !p.Until(t, "the files", func() bool { return tb.records() > 0 && len(tb.files()) >= n }) {
			t.Fatalf("the run ended: %v", p.Wait(t))
		}
		if n == 3 {
			if _, err := io.WriteString(w, all[len(all)/2:]); err != nil {
				t.Fatal(err)
			}
		}
	}
	if r := want(t, exitFenced, "compact", "-c", tb.config); !strings.Contains(r.Err, "locked by another process") {
		t.Errorf("beside a run it says: %v", r)
	}
	w.Close()
	if r := p.Wait(t); r.Code != exitDone {
		t.Fatal(r)
	}
	tb.fsck(exitDone)
	other := tb.write("other.yaml", strings.Replace(foreignYAML, "maintenance", "another", 1))
	for _, args := range [][]string{nil, {"--dry-run"}} {
		before := tb.inodes()
		if r := want(t, exitFenced, append([]string{"compact", "-c", other}, args...)...); !strings.Contains(r.Err, `belongs to pipeline "stream"`) {
			t.Errorf("another pipeline's table, %v: %v", args, r)
		}
		if after := tb.inodes(); after != before {
			t.Errorf("the refusal of %v touched the table", args)
		}
	}
	want(t, exitDone, "drain", "-c", tb.config)
	n := len(tb.files())
	rep := func() maintenance.Report {
		tb := *tb
		tb.config = other
		return tb.compact(exitDone)
	}()
	if rep.Compacted == 0 || len(tb.files()) >= n {
		t.Fatalf("%d files were, %d are; %+v", n, len(tb.files()), rep)
	}
	if !tb.log().Released {
		t.Error("a drained table is not released after its compaction")
	}
	tb.fsck(exitDone)
	tb.wantIDs(6000)
	if s := tb.run("--resume"); s.RowsVisible != 6000 || s.RowsRead != 0 {
		t.Errorf("the pipeline goes on: %+v", s)
	}
	// Now it is its pipeline's again, which compacts it without a drain.
	tb.compact(exitDone)
	tb.fsck(exitDone)
	tb.noCompactionLeft()
}

// A file that the log does not know leaves its partition as it is.
func TestCompactStrangerInTable(t *testing.T) {
	tb := newTable(t, strings.Replace(madeUp(3000, 0), "max_delay: 1s", "policy: off", 1))
	tb.run()
	dirs, err := filepath.Glob(filepath.Join(tb.root, "dt=*"))
	if err != nil || len(dirs) < 2 {
		t.Fatal(dirs, err)
	}
	if err := parquet.WriteFile(filepath.Join(dirs[0], "stranger.parquet"), []foreignRow{{ID: 1 << 40}}); err != nil {
		t.Fatal(err)
	}
	rep := tb.compact(exitFailed)
	if rep.Failed != 1 || rep.Partitions[slices.IndexFunc(rep.Partitions, func(p maintenance.Partition) bool { return p.Outcome == maintenance.Failed })].Path != filepath.Base(dirs[0]) {
		t.Errorf("%+v", rep)
	}
	if err := os.Remove(filepath.Join(dirs[0], "stranger.parquet")); err != nil {
		t.Fatal(err)
	}
	tb.compact(exitDone)
	tb.fsck(exitDone)
	tb.wantIDs(3000)
}

// SIGTERM stops between two units; a second run does the rest.
func TestCompactStopped(t *testing.T) {
	const partitions, each = 40, 4
	tb := foreignTable(t, partitions, each)
	// Half a minute for all of it, so that a busy machine does not stop it too late.
	p := start(t, nil, binary, "compact", "-c", tb.config, "--json", "--set", "compaction.bytes_per_second=4KB", "--set", "compaction.parallelism=1")
	visible := func() int { // while it works a hidden directory may have files of such names
		names, err := filepath.Glob(filepath.Join(tb.root, "dt=*", "*.parquet"))
		if err != nil {
			t.Fatal(err)
		}
		return len(names)
	}
	if !p.Until(t, "the first partition", func() bool { return visible() < partitions*each }) {
		t.Fatalf("it ended: %v", p.Wait(t))
	}
	if err := p.Send(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	r := p.Wait(t)
	var rep maintenance.Report
	if err := json.Unmarshal([]byte(r.Out), &rep); err != nil || r.Code != exitDone || !rep.Stopped || rep.Failed > 0 {
		t.Fatalf("stopped: %v, %+v, %v", err, rep, r)
	}
	tb.noCompactionLeft()
	tb.wantIDs(partitions * each * 10)
	n := len(tb.files())
	if n <= partitions || n >= partitions*each {
		t.Fatalf("%d files after the stop", n)
	}
	tb.compact(exitDone)
	tb.wantIDs(partitions * each * 10)
	if n := len(tb.files()); n != partitions {
		t.Fatalf("%d files in the end", n)
	}
}

// lister looks at every partition again and again: it has its old files or its
// new one, nothing else.
type lister struct {
	root  string
	old   map[string][]string // by directory
	ids   map[string][]int64
	looks int
	moved int    // listings of a directory that was no longer the partition's when they ended
	seen  [2]int // old, new
}

// list lists a partition. same: the directory that was listed is the partition's
// still; else it may have been emptied meanwhile.
func list(dir string) (names []string, same bool, err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	entries, err := f.ReadDir(-1)
	listed, serr := f.Stat()
	now, nerr := os.Stat(dir)
	if serr != nil || nerr != nil {
		return nil, false, errors.Join(serr, nerr)
	}
	if !os.SameFile(listed, now) {
		return nil, false, nil
	}
	for _, e := range entries {
		if !layout.Hidden(e.Name()) && strings.HasSuffix(e.Name(), layout.PartExt) {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, true, err
}

func (tb *table) lister() *lister {
	tb.t.Helper()
	l := &lister{root: tb.root, old: map[string][]string{}, ids: map[string][]int64{}}
	for _, name := range tb.files() {
		dir := filepath.Dir(name)
		ids, err := readIDs(name)
		if err != nil {
			tb.t.Fatal(err)
		}
		l.old[dir] = append(l.old[dir], filepath.Base(name))
		l.ids[dir] = append(l.ids[dir], ids...)
	}
	for _, ids := range l.ids {
		slices.Sort(ids)
	}
	return l
}

func (l *lister) look() error {
	l.looks++
	for dir, old := range l.old {
		now, same, err := list(dir)
		if err != nil {
			return err
		}
		if !same {
			l.moved++
			continue
		}
		if slices.Equal(now, old) {
			l.seen[0]++
			continue
		}
		if len(now) != 1 || slices.Contains(old, now[0]) {
			return fmt.Errorf("look %d: %s has %d files, neither the %d old ones nor the new one: %v", l.looks, dir, len(now), len(old), now)
		}
		ids, err := readIDs(filepath.Join(dir, now[0]))
		if err != nil {
			return err
		}
		slices.Sort(ids)
		if !slices.Equal(ids, l.ids[dir]) {
			return fmt.Errorf("%s has %d rows in its new file, had %d", dir, len(ids), len(l.ids[dir]))
		}
		l.seen[1]++
	}
	return nil
}

// TestCompactKill kills compactions at random moments, of a foreign table and of
// one with a log, while a reader lists it; each next one goes on.
func TestCompactKill(t *testing.T) {
	wanted := testproc.Number(t, "HIVESINK_KILLS", 24)
	if testing.Short() {
		wanted = testproc.Number(t, "HIVESINK_KILLS", 6)
	}
	seed := testproc.Number(t, "HIVESINK_SEED", int(time.Now().UnixNano()%1_000_000_000))
	defer func() {
		if t.Failed() {
			t.Logf("again: HIVESINK_SEED=%d HIVESINK_KILLS=%d go test ./cmd/hivesink -run TestCompactKill", seed, wanted)
		}
	}()
	rng := rand.New(rand.NewPCG(uint64(seed), 2))
	for _, logged := range []bool{false, true} {
		t.Run(fmt.Sprintf("logged=%v", logged), func(t *testing.T) {
			hits, rounds, looks, settled := 0, 0, 0, 0
			for hits < wanted/2 {
				var tb *table
				rows := 2000
				if logged {
					tb = newTable(t, strings.Replace(madeUp(rows, 0), "max_delay: 1s", "policy: off", 1)+"rolling: {rows: 40}\n")
					tb.run()
				} else {
					tb = foreignTable(t, 8, 25)
				}
				h, l, s := killCompaction(t, tb, rng, logged, wanted/2-hits)
				hits, looks, settled, rounds = hits+h, looks+l, settled+s, rounds+1
				tb.wantIDs(rows)
				tb.noCompactionLeft()
				if logged {
					tb.fsck(exitDone)
				}
			}
			t.Logf("seed %d: %d kills in %d tables, listed %d times, %d units settled", seed, hits, rounds, looks, settled)
		})
	}
}

func killCompaction(t *testing.T, tb *table, rng *rand.Rand, logged bool, most int) (hits, looks, settled int) {
	t.Helper()
	l := tb.lister()
	stop := watching.Keep(0, l.look)
	t.Cleanup(func() { _ = stop() })
	for {
		p := start(t, nil, binary, "compact", "-c", tb.config, "--json")
		if hits < most {
			select {
			case <-p.Done():
			case <-time.After(time.Duration(rng.IntN(120_000)) * time.Microsecond):
				if p.Kill(t) {
					hits++
					if logged {
						tb.fsck(exitDone)
					}
					continue
				}
			}
		}
		r := p.Wait(t)
		if r.Code != exitDone {
			t.Fatalf("after %d kills: %v", hits, r)
		}
		var rep maintenance.Report
		if err := json.Unmarshal([]byte(r.Out), &rep); err != nil {
			t.Fatal(err)
		}
		settled += rep.Settled
		break
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if l.seen[1] == 0 {
		t.Fatal("the reader never saw a new file")
	}
	return hits, l.looks, settled
}
