// Command partitions measures a pipeline that keeps many partitions open: it
// feeds as many rows to each of them as come between two checkpoints, through
// the whole chain on the local disk, and reports how long the checkpoints took,
// how much memory the process used, and how many files were created and synced
// for each file that became visible.
//
//	go run ./benchmarks/partitions [-partitions 10000] [-rows 30] [-checkpoints 20] [-speed 10] [-minutes 0]
//
// The pipeline's clock runs -speed times as fast as the wall clock, so that a
// checkpoint every 30 s and a delay of 5 minutes take a tenth of that.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"time"

	"github.com/hivesink/hivesink/audit"
	"github.com/hivesink/hivesink/config"
	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/pipeline"
	"github.com/hivesink/hivesink/storage/localfs"
)

type options struct {
	partitions, rows, checkpoints, readers int
	speed, minutes                         float64
	interval                               time.Duration
	dir, out, profile                      string
}

func main() {
	var o options
	flag.IntVar(&o.partitions, "partitions", 10_000, "open partitions")
	flag.IntVar(&o.rows, "rows", 30, "rows of each partition between two checkpoints")
	flag.IntVar(&o.checkpoints, "checkpoints", 25, "checkpoints")
	flag.IntVar(&o.readers, "writers", 1, "writers; each has every partition")
	flag.Float64Var(&o.speed, "speed", 10, "how much faster than the wall clock the pipeline's clock runs")
	flag.Float64Var(&o.minutes, "minutes", 0, "go on for so long instead of -checkpoints, and report how memory grew")
	flag.DurationVar(&o.interval, "interval", 30*time.Second, "time between two checkpoints, by the pipeline's clock")
	flag.StringVar(&o.dir, "dir", "", "directory to work in (default: a temporary one)")
	flag.StringVar(&o.out, "out", "", "where the result goes as JSON; empty: nowhere")
	flag.StringVar(&o.profile, "profile", "", "directory for a CPU and a heap profile; empty: none")
	flag.Parse()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "partitions:", err)
		os.Exit(1)
	}
}

const yaml = `
pipeline: partitions
state_dir: %[1]s/state
table:
  name: t
  location: %[1]s/table
  columns: [id bigint, ts timestamp, user_name string, country string, amount double, url string, ok boolean, device string]
  partitioned_by: [device]
checkpoint: {interval: 24h}
limits: {new_partitions_per_checkpoint: %[2]d}
`

func run(o options) error {
	if o.partitions < 1 || o.rows < 1 || o.speed <= 0 || o.readers < 1 {
		return fmt.Errorf("-partitions, -rows, -writers and -speed must be at least 1")
	}
	dir, err := os.MkdirTemp(o.dir, "hivesink-partitions-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	cfg, err := config.Parse("partitions.yaml", fmt.Appendf(nil, yaml, dir, o.partitions+1), nil)
	if err != nil {
		return err
	}
	stop, err := profiles(o.profile)
	if err != nil {
		return err
	}
	debug.SetGCPercent(50) // as the binary does
	debug.SetMemoryLimit(int64(cfg.Limits.Memory))
	start := time.Now()
	counts := &counters{FS: localfs.New()}
	m := newMeter(counts)
	p, err := pipeline.Open(context.Background(), pipeline.Options{Config: cfg, Version: "benchmark", FS: counts,
		Now: func() int64 {
			return start.UnixMicro() + int64(float64(time.Since(start).Microseconds())*o.speed)
		}})
	if err != nil {
		return err
	}
	r, err := drive(o, p, m, start)
	if err != nil {
		return fmt.Errorf("%w (%v)", err, p.Release())
	}
	if err := p.Release(); err != nil {
		return err
	}
	m.stop()
	if err := stop(); err != nil {
		return err
	}
	m.fill(r)
	if err := verify(filepath.ToSlash(filepath.Join(dir, "table")), r); err != nil {
		return err
	}
	r.print()
	return keep(o.out, r)
}

// drive feeds the pipeline at its pace and finishes it.
func drive(o options, p *pipeline.Pipeline, m *meter, start time.Time) (*result, error) {
	ctx := context.Background()
	r := &result{Partitions: o.partitions, RowsPerCheckpoint: o.rows, Interval: o.interval.Seconds(), Speed: o.speed, Writers: o.readers}
	feeds := make([]*feed, o.readers)
	for i := range feeds {
		var err error
		if feeds[i], err = newFeed(ctx, p, i, o); err != nil {
			return nil, err
		}
	}
	pace := time.Duration(float64(o.interval) / o.speed)
	for n := 1; ; n++ {
		if o.minutes > 0 && time.Since(start).Minutes() >= o.minutes || o.minutes <= 0 && n > o.checkpoints {
			break
		}
		fed := time.Now()
		for _, f := range feeds {
			if err := f.interval(ctx); err != nil {
				return nil, err
			}
		}
		r.FeedSeconds = append(r.FeedSeconds, time.Since(fed).Seconds())
		if wait := time.Until(start.Add(time.Duration(n) * pace)); wait > 0 {
			time.Sleep(wait)
		} else {
			r.Behind = max(r.Behind, -wait.Seconds())
		}
		at := time.Now()
		if err := p.Checkpoint(ctx); err != nil {
			return nil, err
		}
		r.CheckpointSeconds = append(r.CheckpointSeconds, time.Since(at).Seconds())
		m.mark(n, &p.Stats)
	}
	r.RunSeconds = time.Since(start).Seconds()
	r.PartFiles = p.Stats.PartFiles.Load()
	at := time.Now()
	if err := p.Finish(ctx, true); err != nil {
		return nil, err
	}
	r.FinishSeconds = time.Since(at).Seconds()
	r.Rows = p.Stats.RowsAccepted.Load()
	r.VisibleFiles = p.Stats.PublishedFiles.Load()
	return r, nil
}

// verify proves that nothing of it was lost or doubled.
func verify(table string, r *result) error {
	rep, err := audit.Run(context.Background(), localfs.New(), table)
	if err != nil {
		return err
	}
	if len(rep.Faults) > 0 || rep.PendingParts > 0 || rep.Rows != r.Rows {
		return fmt.Errorf("fsck: %d faults, %d parts pending, %d rows of %d", len(rep.Faults), rep.PendingParts, rep.Rows, r.Rows)
	}
	st, err := ledger.Read(localfs.New(), table)
	if err != nil {
		return err
	}
	r.VisibleFiles = st.PublishedFiles
	return nil
}

// result is what is printed and kept.
type result struct {
	Partitions        int       `json:"partitions"`
	RowsPerCheckpoint int       `json:"rows_per_partition_and_checkpoint"`
	Writers           int       `json:"writers"`
	Interval          float64   `json:"checkpoint_interval_seconds"`
	Speed             float64   `json:"speed"`
	Rows              int64     `json:"rows"`
	Checkpoints       int       `json:"checkpoints"`
	CheckpointMedian  float64   `json:"checkpoint_seconds_median"`
	CheckpointMax     float64   `json:"checkpoint_seconds_max"`
	CheckpointSeconds []float64 `json:"checkpoint_seconds"`
	FeedSeconds       []float64 `json:"-"`
	Behind            float64   `json:"behind_seconds_max"`
	RunSeconds        float64   `json:"run_seconds"`
	FinishSeconds     float64   `json:"finish_seconds"`
	CPUSeconds        float64   `json:"cpu_seconds"`
	PartFiles         int64     `json:"parts"`
	VisibleFiles      int64     `json:"visible_files"`
	Created           int64     `json:"files_created"`
	Synced            int64     `json:"file_syncs"`
	DirSynced         int64     `json:"directory_syncs"`
	Renamed           int64     `json:"renames"`
	CreatedPerVisible float64   `json:"files_created_per_visible_file"`
	SyncsPerVisible   float64   `json:"syncs_per_visible_file"`
	HiddenCreated     int64     `json:"hidden_files_created"`
	PeakRSSMB         float64   `json:"peak_rss_mb"`
	SlopeMBPerHour    float64   `json:"rss_slope_mb_per_hour_second_half,omitempty"`
	RSSMB             []float64 `json:"rss_mb,omitempty"`
}

func (r *result) print() {
	r.Checkpoints = len(r.CheckpointSeconds)
	sorted := slices.Sorted(slices.Values(r.CheckpointSeconds))
	r.CheckpointMedian, r.CheckpointMax = sorted[len(sorted)/2], sorted[len(sorted)-1]
	fed := slices.Sorted(slices.Values(r.FeedSeconds))
	fmt.Printf("%d partitions, %d rows each between two checkpoints %.0f s apart, %d writers, clock x %.0f: %d rows\n",
		r.Partitions, r.RowsPerCheckpoint, r.Interval, r.Writers, r.Speed, r.Rows)
	fmt.Printf("  %d checkpoints, median %.2f s, longest %.2f s; feeding took %.2f s; behind by %.1f s at most\n",
		r.Checkpoints, r.CheckpointMedian, r.CheckpointMax, fed[len(fed)/2], r.Behind)
	fmt.Printf("  run %.1f s, finish %.1f s, CPU %.1f s\n", r.RunSeconds, r.FinishSeconds, r.CPUSeconds)
	fmt.Printf("  %d visible files, %d parts in %d hidden files; created %d, synced %d files and %d directories, renamed %d\n",
		r.VisibleFiles, r.PartFiles, r.HiddenCreated, r.Created, r.Synced, r.DirSynced, r.Renamed)
	fmt.Printf("  for each visible file: %.2f files created, %.2f syncs\n", r.CreatedPerVisible, r.SyncsPerVisible)
	fmt.Printf("  peak RSS %.0f MB", r.PeakRSSMB)
	if r.SlopeMBPerHour != 0 {
		fmt.Printf(", slope over the second half %+.1f MB/h", r.SlopeMBPerHour)
	}
	fmt.Println()
}

func keep(name string, r *result) error {
	if name == "" {
		return nil
	}
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(name, append(data, '\n'), 0o644)
}
