// Command profile runs a pipeline as `hivesink run` does, and writes what the
// runtime says of it: a CPU profile, a profile of the allocations, a profile of
// the live heap at its largest, an execution trace; and how much was allocated.
//
//	go run ./benchmarks/profile [-out DIR] [-trace] [-memory] CONFIG [KEY=VALUE]...
//
// Without -out nothing is recorded, and the times are a run's own.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"runtime/pprof"
	"runtime/trace"
	"syscall"
	"time"

	"github.com/hivesink/hivesink"
	"github.com/hivesink/hivesink/config"
	"github.com/hivesink/hivesink/pipeline"
	"github.com/hivesink/hivesink/source"
	"github.com/hivesink/hivesink/source/kafka"
)

func main() {
	out := flag.String("out", "", "directory of the profiles; \"\": none")
	traced := flag.Bool("trace", false, "write an execution trace too")
	memory := flag.Bool("memory", false, "record every 64 KB allocated, and the live heap at its largest (slower)")
	flag.Parse()
	if flag.NArg() < 1 {
		fmt.Fprintln(os.Stderr, "usage: profile [-out DIR] [-trace] [-memory] CONFIG [KEY=VALUE]...")
		os.Exit(2)
	}
	if *memory {
		runtime.MemProfileRate = 64 << 10
	}
	if err := run(*out, *traced, *memory, flag.Arg(0), flag.Args()[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "profile:", err)
		os.Exit(1)
	}
}

// facts are printed as JSON.
type facts struct {
	Rows          int64   `json:"rows"`
	Seconds       float64 `json:"seconds"`
	ReadSeconds   float64 `json:"read_seconds"` // until the last row was taken
	CPUSeconds    float64 `json:"cpu_seconds"`
	GCCPUSeconds  float64 `json:"gc_cpu_seconds"`
	Allocations   uint64  `json:"allocations"`
	AllocsPerRow  float64 `json:"allocs_per_row"`
	AllocatedMB   float64 `json:"allocated_mb"`
	PeakRSSMB     float64 `json:"peak_rss_mb"`
	LargestHeapMB float64 `json:"largest_heap_mb"` // live, as the garbage collector saw it
	GCs           uint32  `json:"gcs"`
}

func run(dir string, traced, memory bool, name string, sets []string) error {
	cfg, err := config.Load(name, sets)
	if err != nil {
		return err
	}
	schema, err := pipeline.Schema(cfg)
	if err != nil {
		return err
	}
	so, err := pipeline.SourceOptions(cfg, schema)
	if err != nil {
		return err
	}
	read, done, err := open(cfg, so)
	if err != nil {
		return err
	}
	defer done()
	stop, err := record(dir, traced)
	if err != nil {
		return err
	}
	largest := watchHeap(dir, memory)
	started := time.Now()
	ctx := context.Background()
	p, err := pipeline.Open(ctx, pipeline.Options{Config: cfg, Version: hivesink.Version})
	if err != nil {
		return err
	}
	lastRow := watchRows(p, started)
	if err := read(ctx, p); err != nil {
		return err
	}
	if err := p.Release(); err != nil {
		return err
	}
	f := facts{Rows: p.Stats.RowsRead.Load(), Seconds: time.Since(started).Seconds(), ReadSeconds: lastRow().Seconds()}
	if err := stop(); err != nil {
		return err
	}
	f.LargestHeapMB = float64(largest()) / 1e6
	f.fill()
	return json.NewEncoder(os.Stdout).Encode(f)
}

// open opens the files or topics of a configuration.
func open(cfg *config.Config, o source.Options) (read func(context.Context, *pipeline.Pipeline) error, done func() error, err error) {
	if cfg.Source.Kafka == nil {
		src, err := source.NewFiles(cfg.Source.Files.Paths, o)
		return func(ctx context.Context, p *pipeline.Pipeline) error { return p.Run(ctx, src) }, func() error { return nil }, err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	src, err := kafka.New(kafka.Options{Options: o, Config: cfg.Source.Kafka, Memory: int64(cfg.Limits.Memory) / 8, Readers: cfg.Source.Readers, Log: log})
	if err != nil {
		return nil, nil, err
	}
	return func(ctx context.Context, p *pipeline.Pipeline) error { return p.RunLive(ctx, src) }, src.Close, nil
}

// record starts the profiles of the run; stop writes them.
func record(dir string, traced bool) (stop func() error, err error) {
	if dir == "" {
		return func() error { return nil }, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	cpu, err := os.Create(filepath.Join(dir, "cpu.pprof"))
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(cpu); err != nil {
		return nil, err
	}
	var events *os.File
	if traced {
		if events, err = os.Create(filepath.Join(dir, "trace.out")); err != nil {
			return nil, err
		}
		if err := trace.Start(events); err != nil {
			return nil, err
		}
	}
	return func() error {
		pprof.StopCPUProfile()
		if err := cpu.Close(); err != nil {
			return err
		}
		if events != nil {
			trace.Stop()
			if err := events.Close(); err != nil {
				return err
			}
		}
		return writeHeap(filepath.Join(dir, "allocs.pprof"), "allocs")
	}, nil
}

func writeHeap(name, profile string) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	if err := pprof.Lookup(profile).WriteTo(f, 0); err != nil {
		return err
	}
	return f.Close()
}

// watchHeap follows the live heap; with memory it keeps a profile of its
// largest.
func watchHeap(dir string, memory bool) (largest func() uint64) {
	end, ended := make(chan struct{}), make(chan uint64)
	go func() { // ends when largest is called
		sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		var most uint64
		for {
			select {
			case <-end:
				ended <- most
				return
			case <-time.After(20 * time.Millisecond):
			}
			metrics.Read(sample)
			if live := sample[0].Value.Uint64(); live > most {
				if memory && dir != "" && live > most+most/20 {
					_ = writeHeap(filepath.Join(dir, "heap.pprof"), "heap") // the one before stays
				}
				most = live
			}
		}
	}()
	return func() uint64 {
		close(end)
		return <-ended
	}
}

// watchRows follows the rows that the writers have taken.
func watchRows(p *pipeline.Pipeline, started time.Time) (last func() time.Duration) {
	end, ended := make(chan struct{}), make(chan time.Duration)
	go func() { // ends when last is called
		var rows int64
		var at time.Duration
		for {
			select {
			case <-end:
				ended <- at
				return
			case <-time.After(2 * time.Millisecond):
			}
			if n := p.Stats.RowsRead.Load(); n > rows {
				rows, at = n, time.Since(started)
			}
		}
	}()
	return func() time.Duration {
		close(end)
		return <-ended
	}
}

func (f *facts) fill() {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	f.Allocations, f.AllocatedMB, f.GCs = m.Mallocs, float64(m.TotalAlloc)/1e6, m.NumGC
	if f.Rows > 0 {
		f.AllocsPerRow = float64(m.Mallocs) / float64(f.Rows)
	}
	sample := []metrics.Sample{{Name: "/cpu/classes/gc/total:cpu-seconds"}}
	metrics.Read(sample)
	f.GCCPUSeconds = sample[0].Value.Float64()
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) == nil {
		f.CPUSeconds = time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
		f.PeakRSSMB = float64(u.Maxrss) / 1e3
	}
}
