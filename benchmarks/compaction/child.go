package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// job is what a child process is to do. It is handed over on standard input.
type job struct {
	Mode    string     `json:"mode"`
	Shape   string     `json:"shape"`
	Codec   string     `json:"codec"`
	Inputs  [][]string `json:"inputs"` // of each target
	Dir     string     `json:"dir"`    // where targets go; it exists
	Threads int        `json:"threads,omitempty"`
	Profile string     `json:"profile,omitempty"` // CPU profile of the work

	Scenario scenario `json:"scenario"` // of mode generate
}

// outcome is what a child says of its work.
type outcome struct {
	Seconds     float64  `json:"seconds"`
	SyncSeconds float64  `json:"sync_seconds"` // of Seconds, waiting for the disk
	CPUSeconds  float64  `json:"cpu_seconds"`
	PeakRSSMB   float64  `json:"peak_rss_mb"`
	Written     int64    `json:"bytes_written"`
	Outputs     []string `json:"outputs"`
	// Of the process as a whole, start and end included.
	ProcessSeconds    float64 `json:"process_seconds"`
	ProcessCPUSeconds float64 `json:"process_cpu_seconds"`
}

// spawn runs a job as a child process. argv is this binary or Python.
func spawn(ctx context.Context, argv []string, j any, to any) (*os.ProcessState, time.Duration, error) {
	input, err := json.Marshal(j)
	if err != nil {
		return nil, 0, err
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(input), os.Stderr
	start := time.Now()
	out, err := cmd.Output()
	took := time.Since(start)
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %w", strings.Join(argv, " "), err)
	}
	if err := json.Unmarshal(out, to); err != nil {
		return nil, 0, fmt.Errorf("%s: answer %q: %w", strings.Join(argv, " "), out, err)
	}
	return cmd.ProcessState, took, nil
}

// measure runs a job and adds what the kernel says of the process.
func measure(ctx context.Context, argv []string, j job) (outcome, error) {
	var o outcome
	state, took, err := spawn(ctx, argv, j, &o)
	if err != nil {
		return o, err
	}
	o.ProcessSeconds = took.Seconds()
	o.ProcessCPUSeconds = (state.UserTime() + state.SystemTime()).Seconds()
	return o, nil
}

// child does one job and prints its outcome.
func child() error {
	var j job
	if err := json.NewDecoder(os.Stdin).Decode(&j); err != nil {
		return err
	}
	work, ok := modes[j.Mode]
	if !ok {
		return fmt.Errorf("no mode %q", j.Mode)
	}
	prepared, err := work(j)
	if err != nil {
		return fmt.Errorf("%s: %w", j.Mode, err)
	}
	if j.Profile != "" {
		return profile(j.Profile, prepared)
	}
	var o outcome
	// The start of the process is not the work.
	runtime.GC()
	start, cpu, written := time.Now(), cpuSeconds(), bytesWritten()
	if err := prepared(&o); err != nil {
		return fmt.Errorf("%s: %w", j.Mode, err)
	}
	o.Seconds, o.CPUSeconds, o.Written = time.Since(start).Seconds(), cpuSeconds()-cpu, bytesWritten()-written
	o.PeakRSSMB = peakRSS()
	return json.NewEncoder(os.Stdout).Encode(o)
}

// profile repeats the work until there are samples enough.
func profile(name string, work func(*outcome) error) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := pprof.StartCPUProfile(f); err != nil {
		return err
	}
	var o outcome
	for cpu := cpuSeconds(); cpuSeconds()-cpu < profileSeconds; {
		o = outcome{}
		if err := work(&o); err != nil {
			return err
		}
	}
	pprof.StopCPUProfile()
	return cmp.Or(json.NewEncoder(os.Stdout).Encode(o), f.Close())
}

// profileSeconds of CPU give some hundred samples.
const profileSeconds = 3

func cpuSeconds() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

// peakRSS is in MB. rusage would do, but Linux counts there what the parent had
// when it started the child.
func peakRSS() float64 {
	if kb := proc("/proc/self/status", "VmHWM:"); kb > 0 {
		return float64(kb) * 1024 / 1e6
	}
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return float64(u.Maxrss) / 1e6 // bytes, where there is no /proc
}

// bytesWritten counts what this process has handed to write, 0 where the
// kernel does not say.
func bytesWritten() int64 { return proc("/proc/self/io", "wchar:") }

// proc reads a number of a file of /proc.
func proc(name, key string) int64 {
	f, err := os.Open(name)
	if err != nil {
		return 0
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); len(fields) > 1 && fields[0] == key {
			n, err := strconv.ParseInt(fields[1], 10, 64)
			if err != nil {
				return 0
			}
			return n
		}
	}
	return 0
}
