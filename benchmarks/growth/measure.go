package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/hivesink/hivesink/config"
	"github.com/hivesink/hivesink/internal/kv"
	"github.com/hivesink/hivesink/pipeline"
	"github.com/hivesink/hivesink/record"
	"github.com/hivesink/hivesink/storage/localfs"
	"github.com/hivesink/hivesink/writer"
)

// measured is what one process saw of a table.
type measured struct {
	OpenMs       float64 `json:"open_ms"`       // pipeline.Open, the index included
	IndexMs      float64 `json:"index_open_ms"` // of it: open the index
	OpenOps      ops     `json:"open_ops"`
	OpenKeys     int64   `json:"open_index_keys_read"`
	OpenCPUMs    float64 `json:"open_cpu_ms"`
	RSSOpenMB    float64 `json:"rss_open_mb"`
	CheckpointMs stats   `json:"checkpoint_ms"`
	AdvanceMs    stats   `json:"plan_publish_announce_ms"`
	RoundOps     ops     `json:"ops_of_all_rounds"`
	RoundKeys    int64   `json:"index_keys_of_all_rounds"`
	RoundCPUMs   float64 `json:"cpu_ms_of_a_round"`
	Rounds       int     `json:"rounds"`
	RSSEndMB     float64 `json:"rss_end_mb"`
	CloseMs      float64 `json:"close_ms"`
}

type stats struct {
	Median float64 `json:"median"`
	P95    float64 `json:"p95"`
	Worst  float64 `json:"worst"`
}

func statsOf(ms []float64) stats {
	if len(ms) == 0 {
		return stats{}
	}
	s := slices.Sorted(slices.Values(ms))
	return stats{s[len(s)/2], s[len(s)*95/100], s[len(s)-1]}
}

const growthYAML = `
pipeline: ` + pipelineName + `
state_dir: %q
source:
  files: {paths: [%q]}
  format: json
table:
  database: d
  name: t
  location: %q
  columns: [id bigint, ts timestamp, name string]
  partitioned_by: [{dt: date(ts)}, {hr: hour(ts)}]
checkpoint: {interval: %s}
compaction: {policy: checkpoint}
commit: {policies: [metastore, success-file]}
`

func configOf(dir, interval string) string {
	return fmt.Sprintf(growthYAML, filepath.Join(dir, "state"), filepath.Join(dir, "in", "*.ndjson"), filepath.Join(dir, "table"), interval)
}

// measure opens the table in dir and does rounds of work of the same size in it:
// rows for ten partitions, a checkpoint, and all that follows.
func measure(ctx context.Context, dir string, partitions, rounds int) (m measured, err error) {
	cfg, err := config.Parse("growth.yaml", []byte(configOf(dir, "1h")), nil)
	if err != nil {
		return m, err
	}
	fs := &counter{FS: localfs.New()}
	start, cpuStart := time.Now(), cpu()
	badger, err := kv.OpenBadger(filepath.Join(dir, "state", "index"))
	if err != nil {
		return m, err
	}
	m.IndexMs = ms(start)
	index := &keys{Store: badger}
	p, err := pipeline.Open(ctx, pipeline.Options{Config: cfg, Version: "bench", FS: fs, Index: index})
	if err != nil {
		return m, errors.Join(err, badger.Close())
	}
	m.OpenCPUMs = cpu() - cpuStart
	m.OpenMs, m.OpenOps, m.OpenKeys, m.RSSOpenMB = ms(start), fs.seen(), index.read.Load(), rss()
	err = m.work(ctx, p, fs, index, partitions, rounds)
	m.RSSEndMB = rss()
	start = time.Now()
	err = errors.Join(err, p.Stop(ctx), p.Release(), badger.Close())
	m.CloseMs = ms(start)
	return m, err
}

func (m *measured) work(ctx context.Context, p *pipeline.Pipeline, fs *counter, index *keys, partitions, rounds int) error {
	const name = "bench"
	from, err := p.Own(ctx, name)
	if err != nil {
		return err
	}
	lane, err := p.NewLane()
	if err != nil {
		return err
	}
	lane.Adopt(name, from)
	before, keysBefore := fs.seen(), index.read.Load()+index.written.Load()
	cpuBefore := cpu()
	var checkpoints, advances []float64
	for round := range rounds {
		if err := write(ctx, p, lane, round, partitions); err != nil {
			return err
		}
		want := p.Stats.PublishedFiles.Load() + int64(min(partsEach, partitions))
		start := time.Now()
		if err := p.Checkpoint(ctx); err != nil {
			return err
		}
		checkpoints = append(checkpoints, ms(start))
		start = time.Now()
		for p.Stats.PublishedFiles.Load() < want {
			time.Sleep(200 * time.Microsecond)
			if err := p.Err(); err != nil {
				return err
			}
		}
		if err := p.Advance(ctx); err != nil { // behind what announces the last file
			return err
		}
		advances = append(advances, ms(start))
	}
	m.CheckpointMs, m.AdvanceMs, m.Rounds = statsOf(checkpoints), statsOf(advances), rounds
	m.RoundCPUMs = (cpu() - cpuBefore) / float64(rounds)
	m.RoundOps, m.RoundKeys = fs.seen().minus(before), index.read.Load()+index.written.Load()-keysBefore
	return nil
}

// partsEach is how many partitions a round writes to.
const partsEach = 10

func write(ctx context.Context, p *pipeline.Pipeline, lane *writer.Lane, round, partitions int) error {
	rec := rows(p.Schema(), round, partitions)
	defer rec.Release()
	return p.WriteBatch(ctx, lane, "bench", rec, strconv.Itoa(round))
}

func rows(schema *record.Schema, round, partitions int) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema.Arrow)
	defer b.Release()
	for i := range 100 * partsEach {
		hour := (round*partsEach + i%partsEach) % partitions
		b.Field(0).(*array.Int64Builder).Append(int64(i))
		b.Field(1).(*array.TimestampBuilder).Append(arrow.Timestamp(firstHour.Add(time.Duration(hour) * time.Hour).UnixMicro()))
		b.Field(2).(*array.StringBuilder).Append("name")
	}
	return b.NewRecordBatch()
}

func ms(since time.Time) float64 { return float64(time.Since(since).Microseconds()) / 1000 }

// cpu is the processor time of this process in milliseconds.
func cpu() float64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e6
}

// rss is the resident memory of this process in MB, 0 where /proc is not there.
func rss() float64 {
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.SplitSeq(string(data), "\n") {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return kb / 1024
		}
	}
	return 0
}

// child is a process of its own that measures and prints.
func child(ctx context.Context, args []string) error {
	partitions, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	rounds, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	m, err := measure(ctx, args[0], partitions, rounds)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(m)
}
