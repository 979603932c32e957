package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/hivesink/hivesink/ledger"
)

// noSource is the state of a source partition that nothing was read of.
var noSource = ledger.Source{Watermark: ledger.NoWatermark}

// arena is an Arrow allocator of memory that the garbage collector does not
// know and that is never given back.
type arena struct {
	free []byte
	used int64
}

const arenaBlock = 64 << 20

// Allocate implements memory.Allocator.
func (a *arena) Allocate(n int) []byte {
	n64 := (n + 63) &^ 63
	if n64 > len(a.free) {
		block, err := syscall.Mmap(-1, 0, max(arenaBlock, n64), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
		if err != nil {
			panic(fmt.Sprintf("map %d bytes: %v", n64, err))
		}
		a.free = block
	}
	b := a.free[:n:n64]
	a.free = a.free[n64:]
	a.used += int64(n64)
	return b
}

// Reallocate implements memory.Allocator.
func (a *arena) Reallocate(n int, b []byte) []byte {
	if n <= cap(b) {
		return b[:n]
	}
	out := a.Allocate(n)
	copy(out, b)
	return out
}

// Free implements memory.Allocator.
func (a *arena) Free([]byte) {}

func cpuSeconds() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}

// restartPeak makes the kernel forget the largest memory so far, and returns
// what is in use.
func restartPeak() (int64, error) {
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		return 0, err
	}
	return status("VmRSS:")
}

func peakMemory() (int64, error) { return status("VmHWM:") }

// status reads a number of kilobytes from /proc/self/status.
func status(key string) (int64, error) {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	_, rest, ok := bytes.Cut(b, []byte(key))
	if !ok {
		return 0, fmt.Errorf("/proc/self/status has no %s", key)
	}
	n, err := strconv.ParseInt(string(bytes.Fields(rest)[0]), 10, 64)
	return n << 10, err
}
