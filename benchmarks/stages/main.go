// Command stages measures each stage of the ingest path by itself, on the
// lines of one file: nanoseconds of CPU and allocations a row, as JSON. With
// -cpuprofile DIR it writes a profile of each stage.
//
//	go run ./benchmarks/stages [-cpuprofile DIR] FILE.ndjson FILE.csv
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/hivesink/hivesink/benchmarks/hotpath"
)

const (
	rounds   = 5
	maxBytes = 64 << 20 // of a file
)

type result struct {
	Stage     string  `json:"stage"`
	NsPerRow  float64 `json:"ns_per_row"`
	MBPerS    float64 `json:"mb_per_second"` // of CPU, of the input's text
	AllocsRow float64 `json:"allocs_per_row"`
	BytesRow  float64 `json:"bytes_per_row"` // made, of stages that make a file
}

func main() {
	profiles := flag.String("cpuprofile", "", "directory of a CPU profile of each stage")
	flag.Parse()
	if err := run(flag.Args(), *profiles); err != nil {
		fmt.Fprintln(os.Stderr, "stages:", err)
		os.Exit(1)
	}
}

func run(args []string, profiles string) error {
	if len(args) != 2 {
		return fmt.Errorf("usage: stages [-cpuprofile DIR] FILE.ndjson FILE.csv")
	}
	lines, err := read(args[0])
	if err != nil {
		return err
	}
	fields, err := read(args[1])
	if err != nil {
		return err
	}
	stages, err := hotpath.New(lines, fields[1:])
	if err != nil {
		return err
	}
	var out []result
	for _, s := range stages {
		r, err := measure(s, profiles)
		if err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		out = append(out, r)
	}
	enc := json.NewEncoder(os.Stdout)
	enc.SetIndent("", "  ")
	return enc.Encode(out)
}

// read returns the lines of the start of a file.
func read(name string) ([][]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxBytes))
	if err != nil {
		return nil, err
	}
	end := bytes.LastIndexByte(data, '\n')
	if end < 0 {
		return nil, fmt.Errorf("%s has no whole line in its first %d bytes", name, maxBytes)
	}
	return bytes.Split(data[:end], []byte("\n")), nil
}

// measure runs a stage once to warm up, then several times; the median counts.
func measure(s hotpath.Stage, profiles string) (result, error) {
	made, err := s.Run()
	if err != nil {
		return result{}, err
	}
	if profiles != "" {
		stop, err := profile(filepath.Join(profiles, strings.ReplaceAll(s.Name, " ", "-")+".pprof"))
		if err != nil {
			return result{}, err
		}
		defer stop()
	}
	var ns, allocs []float64
	n := float64(s.Rows)
	for range rounds {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		start := cpuTime()
		if _, err := s.Run(); err != nil {
			return result{}, err
		}
		took := cpuTime() - start
		runtime.ReadMemStats(&after)
		ns = append(ns, float64(took.Nanoseconds())/n)
		allocs = append(allocs, float64(after.Mallocs-before.Mallocs)/n)
	}
	slices.Sort(ns)
	slices.Sort(allocs)
	median := ns[rounds/2]
	return result{Stage: s.Name, NsPerRow: median, MBPerS: float64(s.Text) / n / median * 1e3,
		AllocsRow: allocs[rounds/2], BytesRow: float64(made) / n}, nil
}

func profile(name string) (stop func(), err error) {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return nil, err
	}
	f, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, err
	}
	return func() {
		pprof.StopCPUProfile()
		if err := f.Close(); err != nil {
			fmt.Fprintln(os.Stderr, "stages:", err)
		}
	}, nil
}

// cpuTime is what the process has used, the garbage collector included: unlike
// the clock it does not count what other processes take.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
