package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/hivesink/hivesink/pipeline"
)

// Progress is redrawn on a terminal, printed as a line now and then elsewhere.
const (
	redrawEvery = 500 * time.Millisecond
	printEvery  = 10 * time.Second
)

// showProgress reports how a run goes until the returned function is called.
func showProgress(w io.Writer, p *pipeline.Pipeline, src *input) (stop func()) {
	tty := false
	if f, ok := w.(*os.File); ok {
		tty = term.IsTerminal(int(f.Fd()))
	}
	every := printEvery
	if tty {
		every = redrawEvery
	}
	quit, done := make(chan struct{}), make(chan struct{})
	go func() { // joined by stop
		defer close(done)
		t := time.NewTicker(every)
		defer t.Stop()
		start, lastRows, lastBytes, lastTime := time.Now(), int64(0), int64(0), time.Now()
		for {
			select {
			case <-quit:
				if tty {
					fmt.Fprint(w, "\r\x1b[K")
				}
				return
			case now := <-t.C:
				rows, bytes := p.Stats.RowsRead.Load(), p.Stats.BytesRead.Load()
				dt := now.Sub(lastTime).Seconds()
				line := progressLine(rows, float64(rows-lastRows)/dt, float64(bytes-lastBytes)/dt, p, src.Progress(), src.Waiting(), now.Sub(start))
				lastRows, lastBytes, lastTime = rows, bytes, now
				if tty {
					fmt.Fprintf(w, "\r\x1b[K%s", line)
				} else {
					fmt.Fprintln(w, line)
				}
			}
		}
	}()
	return func() { close(quit); <-done }
}

func progressLine(rows int64, rowRate, byteRate float64, p *pipeline.Pipeline, fraction float64, waiting int, elapsed time.Duration) string {
	line := fmt.Sprintf("%s rows read  %s rows/s  %.1f MB/s  %d checkpoints  %s rows published",
		count(float64(rows)), count(rowRate), byteRate/(1<<20), p.Stats.Checkpoints.Load(), count(float64(p.Stats.PublishedRows.Load())))
	if fraction > 0 && fraction < 1 {
		eta := time.Duration(float64(elapsed) * (1 - fraction) / fraction).Round(time.Second)
		line += fmt.Sprintf("  %.0f %%  ETA %s", 100*fraction, eta)
	}
	if waiting > 0 {
		line += fmt.Sprintf("  %d source partitions cannot be read", waiting)
	}
	return line
}

// count prints a number the short way.
func count(n float64) string {
	switch {
	case n >= 1e9:
		return fmt.Sprintf("%.2f G", n/1e9)
	case n >= 1e6:
		return fmt.Sprintf("%.2f M", n/1e6)
	case n >= 1e4:
		return fmt.Sprintf("%.1f k", n/1e3)
	}
	return fmt.Sprintf("%.0f", n)
}
