package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// commandConfig is all that a table at rest needs to be compacted. A codec is
// given where it is to change.
const commandConfig = `pipeline: bench
state_dir: %s/state
table: {name: bench, location: %s/table, partitioned_by: [p]%s}
`

// compactCommand runs `hivesink compact` on a table whose partitions are the
// targets, and measures the process as a whole: start, plan, exchange of
// directories and all. The inputs are linked into the table, so that they
// outlive it.
func (b *bench) compactCommand(ctx context.Context, dir string, s scenario, inputs [][]string) (outcome, error) {
	for i, names := range inputs {
		partition := filepath.Join(dir, "table", fmt.Sprintf("p=%d", i))
		if err := os.MkdirAll(partition, 0o755); err != nil {
			return outcome{}, err
		}
		for _, name := range names {
			if err := os.Link(name, filepath.Join(partition, filepath.Base(name))); err != nil {
				return outcome{}, err
			}
		}
	}
	codec := ""
	if s.From != s.To {
		codec = ", compression: " + s.To
	}
	config := filepath.Join(dir, "compact.yaml")
	if err := os.WriteFile(config, fmt.Appendf(nil, commandConfig, dir, dir, codec), 0o600); err != nil {
		return outcome{}, err
	}
	cmd := exec.CommandContext(ctx, b.o.binary, "compact", "-c", config, "--json")
	var said bytes.Buffer // progress, of interest only when it fails
	cmd.Stderr = &said
	start := time.Now()
	if out, err := cmd.Output(); err != nil {
		return outcome{}, fmt.Errorf("%s: %w: %s%s", cmd, err, &said, out)
	}
	o := outcome{Seconds: time.Since(start).Seconds(), CPUSeconds: (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()}
	o.ProcessSeconds, o.ProcessCPUSeconds = o.Seconds, o.CPUSeconds
	if u, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		o.PeakRSSMB = float64(u.Maxrss) * 1024 / 1e6
		o.Written = u.Oublock * 512
	}
	var err error
	o.Outputs, err = filepath.Glob(filepath.Join(dir, "table", "p=*", "*.parquet"))
	slices.Sort(o.Outputs)
	if err == nil && len(o.Outputs) != s.Targets {
		err = fmt.Errorf("%d files are left, want %d", len(o.Outputs), s.Targets)
	}
	return o, err
}
