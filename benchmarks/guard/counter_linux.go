package main

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// counter counts the instructions of the calling thread in user mode.
type counter struct{ fd int }

// openCounter returns nil and the reason where there is none: the machine has
// no counters (most virtual ones), or kernel.perf_event_paranoid is above 2.
func openCounter() (*counter, string) {
	attr := unix.PerfEventAttr{Type: unix.PERF_TYPE_HARDWARE, Config: unix.PERF_COUNT_HW_INSTRUCTIONS,
		Bits: unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv}
	attr.Size = uint32(unsafe.Sizeof(attr))
	fd, err := unix.PerfEventOpen(&attr, 0, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return nil, fmt.Sprintf("this machine does not count them (perf_event_open: %v)", err)
	}
	return &counter{fd}, ""
}

// read is the count so far, 0 without a counter.
func (c *counter) read() uint64 {
	if c == nil {
		return 0
	}
	var b [8]byte
	if n, err := unix.Read(c.fd, b[:]); err != nil || n != len(b) {
		return 0
	}
	return binary.NativeEndian.Uint64(b[:])
}

func (c *counter) close() { _ = unix.Close(c.fd) }
