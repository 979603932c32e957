// Command growth measures whether a table's past costs its present, and how fast
// the real binary starts.
//
//	go run ./benchmarks/growth [-json FILE] [-bin bin/hivesink] [-dir DIR]
//
// It makes the logs of tables that have published 100, 10,000 and 1,000,000
// files, the last two in up to 10,000 partitions, opens each and does the same
// work in it: rows for ten partitions, a checkpoint, plan, publication,
// announcement. Each opening is a process of its own, and the tables take turns,
// so that a noisy machine disturbs all of them. Then the binary is started on
// the largest, and on a new table with a checkpoint every 500 ms.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
)

// options are what can be chosen.
type options struct {
	bin, dir, out, only          string
	files, each, partitions      int
	turns, rounds, starts, input int
}

func main() {
	var o options
	flag.StringVar(&o.bin, "bin", "bin/hivesink", "the binary to start")
	flag.StringVar(&o.dir, "dir", "", "where to work, on a local disk; default: a temporary directory")
	flag.StringVar(&o.out, "json", "", "write the result to this file")
	flag.StringVar(&o.only, "only", "", "growth or start: only that part")
	flag.IntVar(&o.files, "files", 1_000_000, "published files in the largest history")
	flag.IntVar(&o.each, "each", 50, "files a checkpoint in it")
	flag.IntVar(&o.partitions, "partitions", 10_000, "partitions of it")
	flag.IntVar(&o.turns, "turns", 5, "openings of each table")
	flag.IntVar(&o.rounds, "rounds", 40, "checkpoints after each opening")
	flag.IntVar(&o.starts, "starts", 10, "starts of the binary")
	flag.IntVar(&o.input, "input-rows", 3_000_000, "rows of the new table's input: they must last longer than a start")
	if len(os.Args) == 5 && os.Args[1] == "child" {
		exit(child(context.Background(), os.Args[2:]))
	}
	flag.Parse()
	exit(run(context.Background(), o))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "growth:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// result is what is written as JSON.
type result struct {
	Go      string     `json:"go"`
	CPUs    int        `json:"cpus"`
	Load    string     `json:"load_before"`
	Tables  []*table   `json:"tables,omitempty"`
	Restart *restarts  `json:"restart_on_the_largest,omitempty"`
	Start   *newTables `json:"start_on_a_new_table,omitempty"`
}

// table is one history and what was measured of it.
type table struct {
	Files      int       `json:"files"`
	Partitions int       `json:"partitions"`
	Made       made      `json:"made"`
	Kept       summary   `json:"index_kept"`
	Lost       summary   `json:"index_lost"`
	Seen       *measured `json:"last_turn"`
	dir        string
	history    history
}

// summary is over all turns: wall clock and processor time of an opening, of a
// checkpoint, and of what follows from it.
type summary struct {
	OpenMs       stats   `json:"open_ms"`
	OpenCPUMs    stats   `json:"open_cpu_ms"`
	CheckpointMs stats   `json:"checkpoint_ms"` // of the turns' medians
	AdvanceMs    stats   `json:"plan_publish_announce_ms"`
	RoundCPUMs   stats   `json:"round_cpu_ms"`
	RSSMB        stats   `json:"rss_mb"`
	raw          rawTurn `json:"-"`
}

type rawTurn struct{ open, openCPU, checkpoint, advance, round, rss []float64 }

func (s *summary) add(m *measured) {
	r := &s.raw
	r.open, r.openCPU = append(r.open, m.OpenMs), append(r.openCPU, m.OpenCPUMs)
	r.checkpoint, r.advance = append(r.checkpoint, m.CheckpointMs.Median), append(r.advance, m.AdvanceMs.Median)
	r.round, r.rss = append(r.round, m.RoundCPUMs), append(r.rss, m.RSSEndMB)
	s.OpenMs, s.OpenCPUMs, s.CheckpointMs = statsOf(r.open), statsOf(r.openCPU), statsOf(r.checkpoint)
	s.AdvanceMs, s.RoundCPUMs, s.RSSMB = statsOf(r.advance), statsOf(r.round), statsOf(r.rss)
}

func run(ctx context.Context, o options) (err error) {
	if o.bin, err = filepath.Abs(o.bin); err != nil {
		return err
	}
	if _, err := os.Stat(o.bin); err != nil {
		return fmt.Errorf("the binary: %w; make build makes it", err)
	}
	dir, err := os.MkdirTemp(o.dir, "growth-")
	if err != nil {
		return err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	r := &result{Go: runtime.Version(), CPUs: runtime.NumCPU(), Load: load()}
	fmt.Printf("%s, %d CPUs, load average before %s\n", r.Go, r.CPUs, r.Load)
	if o.only != "start" {
		if err := growth(ctx, o, dir, r); err != nil {
			return err
		}
	}
	if o.only != "growth" {
		if r.Start, err = startNew(ctx, o, filepath.Join(dir, "new")); err != nil {
			return err
		}
		r.Start.print()
	}
	if o.out == "" {
		return nil
	}
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(o.out, append(data, '\n'), 0o644)
}

func growth(ctx context.Context, o options, dir string, r *result) error {
	for _, files := range []int{o.files / 10_000, o.files / 100, o.files} {
		t := &table{Files: files, Partitions: min(o.partitions, files), dir: filepath.Join(dir, strconv.Itoa(files))}
		t.history = history{files: files, partitions: t.Partitions, each: min(o.each, files)}
		if err := t.make(ctx, dir); err != nil {
			return err
		}
		r.Tables = append(r.Tables, t)
		fmt.Printf("made: %d files in %d partitions, %d records, %.0f s\n", t.Files, t.Partitions, t.Made.Records, t.Made.Seconds)
	}
	for range o.turns {
		for _, t := range r.Tables {
			if err := t.turn(o.rounds); err != nil {
				return err
			}
		}
	}
	printTables(r.Tables)
	var err error
	r.Restart, err = restart(ctx, o, r.Tables[len(r.Tables)-1].dir)
	if err == nil {
		r.Restart.print()
	}
	return err
}

// make makes the table where making is fast, and copies it to the disk.
func (t *table) make(ctx context.Context, dir string) error {
	fast := dir
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		if tmp, err := os.MkdirTemp("/dev/shm", "growth-"); err == nil {
			fast = tmp
			defer os.RemoveAll(tmp)
		}
	}
	made := filepath.Join(fast, "made")
	defer os.RemoveAll(made)
	var err error
	if t.Made, err = t.history.makeIn(ctx, made); err != nil {
		return err
	}
	return os.CopyFS(t.dir, os.DirFS(made))
}

// turn opens the table with its index and works in it, then opens it without.
func (t *table) turn(rounds int) error {
	m, err := inChild(t.dir, t.Partitions, rounds)
	if err != nil {
		return err
	}
	t.Kept.add(m)
	t.Seen = m
	if m.OpenOps.DataListings+m.RoundOps.DataListings > 0 {
		return fmt.Errorf("%d data directories were listed", m.OpenOps.DataListings+m.RoundOps.DataListings)
	}
	if err := os.RemoveAll(filepath.Join(t.dir, "state", "index")); err != nil {
		return err
	}
	if m, err = inChild(t.dir, t.Partitions, 1); err != nil {
		return err
	}
	t.Lost.add(m)
	return nil
}

func inChild(dir string, partitions, rounds int) (*measured, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, "child", dir, strconv.Itoa(partitions), strconv.Itoa(rounds))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("measure %s: %w", dir, err)
	}
	m := new(measured)
	return m, json.Unmarshal(out, m)
}

func printTables(ts []*table) {
	fmt.Printf("\n%-34s", "files in the past, partitions")
	for _, t := range ts {
		fmt.Printf("%16s", fmt.Sprintf("%d, %d", t.Files, t.Partitions))
	}
	row := func(name, format string, f func(*table) any) {
		fmt.Printf("\n%-34s", name)
		for _, t := range ts {
			fmt.Printf("%16s", fmt.Sprintf(format, f(t)))
		}
	}
	row("checkpoint, ms", "%.2f", func(t *table) any { return t.Kept.CheckpointMs.Median })
	row("plan, publish, announce, ms", "%.2f", func(t *table) any { return t.Kept.AdvanceMs.Median })
	row("both, CPU ms", "%.2f", func(t *table) any { return t.Kept.RoundCPUMs.Median })
	row("open, index kept, ms", "%.0f", func(t *table) any { return t.Kept.OpenMs.Median })
	row("   of it CPU ms", "%.0f", func(t *table) any { return t.Kept.OpenCPUMs.Median })
	row("open, index lost, ms", "%.0f", func(t *table) any { return t.Lost.OpenMs.Median })
	row("   of it CPU ms", "%.0f", func(t *table) any { return t.Lost.OpenCPUMs.Median })
	row("index keys read at open", "%d", func(t *table) any { return t.Seen.OpenKeys })
	row("storage operations at open", "%d", func(t *table) any { return t.Seen.OpenOps.All })
	row("log entries listed at open", "%d", func(t *table) any { return t.Seen.OpenOps.EntriesListed })
	row("data directories listed", "%d", func(t *table) any { return t.Seen.OpenOps.DataListings + t.Seen.RoundOps.DataListings })
	row("memory, MB", "%.0f", func(t *table) any { return t.Kept.RSSMB.Median })
	fmt.Printf("\n\n")
}

// load is the machine's load average, for whoever wonders about the figures.
func load() string {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	var one string
	_, _ = fmt.Sscan(string(data), &one)
	return one
}
