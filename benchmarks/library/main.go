// Command library measures the library's way in: a program that has its records
// as Arrow batches hands them to hivesink's Writers. The batches are those of
// the files that the configuration names, decoded before the clock starts and
// kept outside the Go heap, so that neither their making nor their size counts.
//
//	go run ./benchmarks/library CONFIG [KEY=VALUE]...
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"golang.org/x/sync/errgroup"

	"github.com/hivesink/hivesink"
	"github.com/hivesink/hivesink/config"
	"github.com/hivesink/hivesink/pipeline"
	"github.com/hivesink/hivesink/source"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: library CONFIG [KEY=VALUE]...")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "library:", err)
		os.Exit(1)
	}
}

// facts are printed as JSON.
type facts struct {
	Rows         int64   `json:"rows"`
	Batches      int     `json:"batches"`
	Writers      int     `json:"writers"`
	Seconds      float64 `json:"seconds"`
	CPUSeconds   float64 `json:"cpu_seconds"`
	AllocsPerRow float64 `json:"allocs_per_row"`
	PeakRSSMB    float64 `json:"peak_rss_mb"` // beyond what the prepared batches take
	PreparedMB   float64 `json:"prepared_mb"`
}

func run(name string, sets []string) error {
	cfg, err := hivesink.LoadConfig(name, sets...)
	if err != nil {
		return err
	}
	var mem arena
	parts, err := prepare(cfg, &mem)
	if err != nil {
		return err
	}
	writers := cfg.Source.Readers
	cfg.Source = nil // the program is the source
	debug.FreeOSMemory()
	base, err := restartPeak()
	if err != nil {
		return err
	}
	f := facts{Writers: writers, PreparedMB: float64(mem.used) / 1e6}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpu, started := cpuSeconds(), time.Now()
	if err := feed(cfg, parts, writers); err != nil {
		return err
	}
	f.Seconds, f.CPUSeconds = time.Since(started).Seconds(), cpuSeconds()-cpu
	runtime.ReadMemStats(&after)
	peak, err := peakMemory()
	if err != nil {
		return err
	}
	for _, p := range parts {
		f.Batches += len(p)
		for _, b := range p {
			f.Rows += b.NumRows()
		}
	}
	f.PeakRSSMB = float64(peak-base) / 1e6
	f.AllocsPerRow = float64(after.Mallocs-before.Mallocs) / float64(f.Rows)
	return json.NewEncoder(os.Stdout).Encode(f)
}

// feed is the program that is measured: each writer takes source partitions
// from a queue and hands over their batches.
func feed(cfg *config.Config, parts [][]arrow.RecordBatch, writers int) error {
	ctx := context.Background()
	sink, err := hivesink.Open(ctx, cfg)
	if err != nil {
		return err
	}
	queue := make(chan int, len(parts))
	for i := range parts {
		queue <- i
	}
	close(queue)
	var g errgroup.Group
	for range writers {
		g.Go(func() error { // joined by Wait below
			for i := range queue {
				w, err := sink.Writer("part-" + strconv.Itoa(i))
				if err != nil {
					return err
				}
				for k, b := range parts[i] {
					if err := w.Write(ctx, b, strconv.Itoa(k+1)); err != nil {
						return err
					}
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return errors.Join(err, sink.Close(ctx))
	}
	if err := sink.Finish(ctx); err != nil {
		return errors.Join(err, sink.Close(ctx))
	}
	return sink.Close(ctx)
}

// prepare decodes the files; each is a source partition.
func prepare(cfg *config.Config, mem *arena) ([][]arrow.RecordBatch, error) {
	ctx := context.Background()
	schema, err := pipeline.Schema(cfg)
	if err != nil {
		return nil, err
	}
	o, err := pipeline.SourceOptions(cfg, schema)
	if err != nil {
		return nil, err
	}
	src, err := source.NewFiles(cfg.Source.Files.Paths, o)
	if err != nil {
		return nil, err
	}
	splits, err := src.Splits(ctx, nil)
	if err != nil {
		return nil, err
	}
	var parts [][]arrow.RecordBatch
	for _, s := range splits {
		batches, err := decode(ctx, src, s, mem)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.Name, err)
		}
		parts = append(parts, batches)
	}
	return parts, nil
}

func decode(ctx context.Context, src source.Source, s source.Split, mem *arena) ([]arrow.RecordBatch, error) {
	r, err := src.Open(ctx, s, noSource)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var out []arrow.RecordBatch
	for {
		b, err := r.Read(ctx)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		if len(b.Bad) > 0 {
			return nil, fmt.Errorf("%s: %s", b.Bad[0].Place, b.Bad[0].Reason)
		}
		if b.Record == nil {
			continue
		}
		columns := make([]arrow.Array, b.Record.NumCols())
		for i := range columns {
			if columns[i], err = array.Concatenate([]arrow.Array{b.Record.Column(i)}, mem); err != nil {
				return nil, err
			}
		}
		out = append(out, array.NewRecordBatch(b.Record.Schema(), columns, b.Record.NumRows()))
		b.Record.Release()
	}
}
