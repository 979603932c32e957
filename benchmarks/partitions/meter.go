package main

import (
	"bytes"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hivesink/hivesink/pipeline"
	"github.com/hivesink/hivesink/storage"
)

// counters counts what a file system is asked for.
type counters struct {
	storage.FS
	created, hidden, synced, dirs, renamed atomic.Int64
}

func (c *counters) Create(name string) (storage.File, error) {
	f, err := c.FS.Create(name)
	if err != nil {
		return nil, err
	}
	c.created.Add(1)
	if ext := path.Ext(name); ext == ".part" || ext == ".bundle" {
		c.hidden.Add(1)
	}
	return counted{f, &c.synced}, nil
}

type counted struct {
	storage.File
	synced *atomic.Int64
}

func (f counted) Sync() error {
	f.synced.Add(1)
	return f.File.Sync()
}

func (c *counters) Rename(from, to string) error {
	c.renamed.Add(1)
	return c.FS.Rename(from, to)
}

func (c *counters) Replace(from, to string) error {
	c.renamed.Add(1)
	return c.FS.Replace(from, to)
}

func (c *counters) SyncDir(dir string) error {
	c.dirs.Add(1)
	return c.FS.SyncDir(dir)
}

// meter samples memory while the pipeline runs.
type meter struct {
	counts *counters
	quit   chan struct{}
	done   sync.WaitGroup
	mu     sync.Mutex
	times  []float64 // seconds
	rss    []float64 // MB
	start  time.Time
}

func newMeter(c *counters) *meter {
	m := &meter{counts: c, quit: make(chan struct{}), start: time.Now()}
	m.done.Go(func() {
		t := time.NewTicker(time.Second)
		defer t.Stop()
		for {
			select {
			case <-t.C:
				m.sample()
			case <-m.quit:
				return
			}
		}
	})
	return m
}

func (m *meter) sample() {
	mb := statusMB("VmRSS:")
	m.mu.Lock()
	defer m.mu.Unlock()
	m.times, m.rss = append(m.times, time.Since(m.start).Seconds()), append(m.rss, mb)
}

// mark prints a line of progress now and then.
func (m *meter) mark(n int, s *pipeline.Stats) {
	if n%10 == 0 {
		fmt.Fprintf(os.Stderr, "checkpoint %d, %.0f s, RSS %.0f MB, %d parts, %d files visible, %d announced\n", n, time.Since(m.start).Seconds(),
			statusMB("VmRSS:"), s.PartFiles.Load(), s.PublishedFiles.Load(), s.Announced.Load())
	}
}

func (m *meter) stop() {
	close(m.quit)
	m.done.Wait()
}

func (m *meter) fill(r *result) {
	c := m.counts
	r.Created, r.HiddenCreated, r.Synced = c.created.Load(), c.hidden.Load(), c.synced.Load()
	r.DirSynced, r.Renamed = c.dirs.Load(), c.renamed.Load()
	if v := float64(r.VisibleFiles); v > 0 {
		r.CreatedPerVisible, r.SyncsPerVisible = float64(r.Created)/v, float64(r.Synced+r.DirSynced)/v
	}
	r.PeakRSSMB = statusMB("VmHWM:")
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err == nil {
		r.CPUSeconds = time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
	}
	// The samples of the run itself, not of its end.
	n := 0
	for n < len(m.times) && m.times[n] <= r.RunSeconds {
		n++
	}
	r.SlopeMBPerHour = 3600 * slope(m.times[n/2:n], m.rss[n/2:n])
	for i := 0; i < n; i += max(1, n/60) {
		r.RSSMB = append(r.RSSMB, m.rss[i])
	}
}

// slope is the least squares line's.
func slope(x, y []float64) float64 {
	var sx, sy, sxx, sxy float64
	for i := range x {
		sx, sy, sxx, sxy = sx+x[i], sy+y[i], sxx+x[i]*x[i], sxy+x[i]*y[i]
	}
	n := float64(len(x))
	if d := n*sxx - sx*sx; d > 0 {
		return (n*sxy - sx*sy) / d
	}
	return 0
}

// statusMB is a field of the process's status that is in kB.
func statusMB(field string) float64 {
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(data) {
		if rest, ok := strings.CutPrefix(string(line), field); ok {
			var kb float64
			fmt.Sscan(rest, &kb)
			return kb / 1024
		}
	}
	return 0
}

// profiles starts a CPU profile; stop ends it and writes a heap profile.
func profiles(dir string) (stop func() error, err error) {
	if dir == "" {
		return func() error { return nil }, nil
	}
	cpu, err := os.Create(filepath.Join(dir, "cpu.pprof"))
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(cpu); err != nil {
		return nil, err
	}
	return func() error {
		pprof.StopCPUProfile()
		if err := cpu.Close(); err != nil {
			return err
		}
		heap, err := os.Create(filepath.Join(dir, "heap.pprof"))
		if err != nil {
			return err
		}
		runtime.GC()
		if err := pprof.WriteHeapProfile(heap); err != nil {
			return err
		}
		return heap.Close()
	}, nil
}
