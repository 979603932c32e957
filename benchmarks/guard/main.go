// Command guard compares what the hot paths of ingest and compaction cost with
// the figures committed in benchmarks/guard.json, and fails when one has grown:
// allocations, bytes allocated and bytes made, per thousand rows, and
// instructions where the machine counts them for an ordinary user. None of them
// depends on how fast or how busy the machine is.
//
//	go run ./benchmarks/guard [-write]
//
// -write replaces the committed figures: do it in the commit that changes a
// cost on purpose, and say why. Instructions are kept for the architecture they
// were counted on; virtual machines often count none, and then they are not
// compared, which the guard says.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"

	"github.com/hivesink/hivesink/benchmarks/hotpath"
)

const (
	rows   = 32 << 10
	passes = 5
)

// cost is what a stage takes for a thousand rows.
type cost struct {
	Allocations  float64            `json:"allocations"`
	Allocated    float64            `json:"allocated_bytes"`
	Made         float64            `json:"made_bytes,omitempty"`
	Instructions map[string]float64 `json:"instructions,omitempty"` // by architecture
}

// committed is benchmarks/guard.json.
type committed struct {
	Unit   string          `json:"unit"`
	Stages map[string]cost `json:"stages"`
}

func main() {
	write := flag.Bool("write", false, "replace the committed figures")
	file := flag.String("file", filepath.Join("benchmarks", "guard.json"), "the committed figures")
	flag.Parse()
	if err := run(os.Stdout, *file, *write); err != nil {
		fmt.Fprintln(os.Stderr, "guard:", err)
		os.Exit(1)
	}
}

func run(w io.Writer, file string, write bool) error {
	lines, fields := hotpath.Lines(rows)
	stages, err := hotpath.New(lines, fields)
	if err != nil {
		return err
	}
	now, why, err := measureAll(stages)
	if err != nil {
		return err
	}
	old, err := load(file)
	if err != nil && !(write && os.IsNotExist(err)) {
		return err
	}
	if write {
		return save(file, now, old)
	}
	if why != "" {
		fmt.Fprintln(w, "instructions are not compared:", why)
	}
	return report(w, stages, now, old)
}

// measureAll takes the least of several passes of each stage: what happens
// beside the work only adds.
func measureAll(stages []hotpath.Stage) (map[string]cost, string, error) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a collection empties the pools
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))  // each processor has pools of its own
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	counter, why := openCounter()
	if counter != nil {
		defer counter.close()
	}
	out := make(map[string]cost, len(stages))
	for _, s := range stages {
		c, err := measure(s, counter)
		if err != nil {
			return nil, "", fmt.Errorf("%s: %w", s.Name, err)
		}
		out[s.Name] = c
	}
	return out, why, nil
}

func measure(s hotpath.Stage, counter *counter) (cost, error) {
	var least cost
	for pass := range passes + 1 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		from := counter.read()
		made, err := s.Run()
		if err != nil {
			return cost{}, err
		}
		instructions := counter.read() - from
		runtime.ReadMemStats(&after)
		if pass == 0 {
			continue // grows the buffers
		}
		per := 1000 / float64(s.Rows)
		c := cost{Allocations: float64(after.Mallocs-before.Mallocs) * per, Allocated: float64(after.TotalAlloc-before.TotalAlloc) * per,
			Made: float64(made) * per}
		if instructions > 0 {
			c.Instructions = map[string]float64{runtime.GOARCH: float64(instructions) * per}
		}
		if pass == 1 {
			least = c
			continue
		}
		least.Allocations, least.Allocated = min(least.Allocations, c.Allocations), min(least.Allocated, c.Allocated)
		if n, ok := c.Instructions[runtime.GOARCH]; ok {
			least.Instructions[runtime.GOARCH] = min(least.Instructions[runtime.GOARCH], n)
		}
	}
	return least, nil
}

func load(file string) (committed, error) {
	var c committed
	b, err := os.ReadFile(file)
	if err != nil {
		return c, err
	}
	if err := json.Unmarshal(b, &c); err != nil {
		return c, fmt.Errorf("%s: %w", file, err)
	}
	return c, nil
}

// save keeps the instructions of other architectures, and those of this one
// where it cannot count them.
func save(file string, now map[string]cost, old committed) error {
	for name, c := range now {
		for arch, n := range old.Stages[name].Instructions {
			if _, counted := c.Instructions[arch]; !counted {
				if c.Instructions == nil {
					c.Instructions = make(map[string]float64)
				}
				c.Instructions[arch] = n
			}
		}
		now[name] = c
	}
	b, err := json.MarshalIndent(committed{Unit: "per thousand rows of benchmarks/hotpath", Stages: now}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(b, '\n'), 0o644)
}
