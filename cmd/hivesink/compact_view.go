package main

import (
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/hivesink/hivesink/maintenance"
)

// compactView shows how a compaction goes: partitions on stdout as they are
// done (with --json all at the end), progress on stderr.
type compactView struct {
	a     *app
	stats *maintenance.Stats
	tty   bool
	mu    sync.Mutex // a line of one kind at a time
	quit  chan struct{}
	wg    sync.WaitGroup
}

func newCompactView(a *app, stats *maintenance.Stats) *compactView {
	v := &compactView{a: a, stats: stats, quit: make(chan struct{})}
	if f, ok := a.err.(*os.File); ok {
		v.tty = term.IsTerminal(int(f.Fd()))
	}
	v.wg.Go(v.progress) // joined by stop
	return v
}

func (v *compactView) progress() {
	every := printEvery
	if v.tty {
		every = redrawEvery
	}
	t := time.NewTicker(every)
	defer t.Stop()
	start, last, lastBytes := time.Now(), time.Now(), int64(0)
	for {
		select {
		case <-v.quit:
			v.clear()
			return
		case now := <-t.C:
			bytes := v.stats.BytesRead.Load()
			line := compactLine(v.stats, float64(bytes-lastBytes)/now.Sub(last).Seconds(), now.Sub(start))
			last, lastBytes = now, bytes
			v.mu.Lock()
			if v.tty {
				fmt.Fprintf(v.a.err, "\r\x1b[K%s", line)
			} else {
				fmt.Fprintln(v.a.err, line)
			}
			v.mu.Unlock()
		}
	}
}

func compactLine(s *maintenance.Stats, rate float64, elapsed time.Duration) string {
	done, all := s.Done.Load(), s.Partitions.Load()
	line := fmt.Sprintf("%d of %d partitions  %s files  %s rows  %.1f MB/s", done, all, count(float64(s.Files.Load())), count(float64(s.Rows.Load())), rate/(1<<20))
	if done > 0 && done < all {
		eta := time.Duration(float64(elapsed) * float64(all-done) / float64(done)).Round(time.Second)
		line += fmt.Sprintf("  ETA %s", eta)
	}
	return line
}

func (v *compactView) clear() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.tty {
		fmt.Fprint(v.a.err, "\r\x1b[K")
	}
}

func (v *compactView) partition(p maintenance.Partition) {
	if v.a.json {
		return
	}
	v.clear()
	v.mu.Lock()
	defer v.mu.Unlock()
	describePartition(v.a.out, &p)
}

func (v *compactView) stop() {
	close(v.quit)
	v.wg.Wait()
}
