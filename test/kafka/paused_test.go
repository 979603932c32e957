//go:build integration

package kafkatest

import (
	"fmt"
	"syscall"
	"testing"
	"time"
)

// A run that is stopped for longer than any request may take, as on a laptop that
// sleeps, goes on as if nothing had been: what came meanwhile to a partition that
// was idle before is not late because another one has moved on.
func TestPausedRun(t *testing.T) {
	w := newWorld(t, 2, nil)
	w.hours(idle)
	w.produce(append(timed(0, 0, 10, "10:00:00"), timed(1, 10, 10, "10:00:00")...)...)
	p := w.start()
	eventually(t, "the first rows", func() error { return w.committed(10, 10) })
	next := 20
	for began := time.Now(); time.Since(began) < 3*idle; next++ { // partition 1 becomes idle
		w.produce(timed(0, next, 1, "10:10:00")...)
		eventually(t, "the busy partition", func() error { return w.committed(int64(next-9), 10) })
	}
	for range 2 {
		p.signal(syscall.SIGSTOP)
		w.produce(timed(1, next, 5, "10:20:00")...)
		w.produce(timed(0, next+5, 5, "10:20:00")...)
		next += 10
		time.Sleep(15 * time.Second)
		p.signal(syscall.SIGCONT)
		eventually(t, "all rows", func() error {
			if got, err := w.allCommitted(); err != nil || got != int64(next) {
				return fmt.Errorf("%d of %d, %v", got, next, err)
			}
			return nil
		})
	}
	p.signal(syscall.SIGSTOP)
	w.produce(timed(1, next, 5, "10:59:00")...)
	w.produce(timed(0, next+5, 5, "12:30:00")...)
	next += 10
	time.Sleep(15 * time.Second)
	p.signal(syscall.SIGCONT)
	eventually(t, "10 o'clock to be announced", func() error {
		if !w.announced("10") {
			return fmt.Errorf("it is not")
		}
		return nil
	})
	if s := p.stop(); s.RowsLate != 0 {
		t.Errorf("%+v", s)
	}
	w.wantIDs(0, int64(next)-1)
	w.fsck()
}
