package main

import (
	"os"
	"runtime/debug"

	"github.com/hivesink/hivesink/config"
)

const (
	// gcPercent is how much garbage, in percent of what lives, is let lie. What
	// lives are few and large buffers of numbers and text, which cost next to
	// nothing to mark: collecting twice as often as by Go's default takes 1 % of
	// the CPU and saves a tenth of the memory (docs/decisions.md, 11).
	gcPercent = 50
	// leastMemory is below what a process works well with: a lower limit would
	// make the garbage collector work without end.
	leastMemory = 512 << 20
)

// tuneMemory tells the runtime what limits.memory means, unless the
// environment does. It is the binary's: a library must not change its
// process.
func tuneMemory(cfg *config.Config) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	limitMemory(cfg)
}

// limitMemory is that part of it that costs nothing below the limit.
func limitMemory(cfg *config.Config) {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(max(int64(cfg.Limits.Memory), leastMemory))
	}
}
