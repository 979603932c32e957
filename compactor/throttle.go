package compactor

import (
	"context"
	"sync"
	"time"

	"github.com/hivesink/hivesink/storage"
)

// Throttle bounds the bytes that all workers together read in a second. A nil
// Throttle has no limit.
type Throttle struct {
	perSecond float64
	mu        sync.Mutex
	free      time.Time // when the bytes handed out so far have been paid for
}

// burst is how far a worker may run ahead of the limit: a page or two, so that
// small reads need not wait one by one.
const burst = 100 * time.Millisecond

// NewThrottle limits to so many bytes per second; nil when that is 0.
func NewThrottle(bytesPerSecond int64) *Throttle {
	if bytesPerSecond <= 0 {
		return nil
	}
	return &Throttle{perSecond: float64(bytesPerSecond)}
}

// take waits until n more bytes may be read, or ctx ends.
func (t *Throttle) take(ctx context.Context, n int) error {
	now := time.Now()
	t.mu.Lock()
	if t.free.Before(now) {
		t.free = now
	}
	wait := t.free.Sub(now) - burst
	t.free = t.free.Add(time.Duration(float64(n) / t.perSecond * float64(time.Second)))
	t.mu.Unlock()
	if wait <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Slow is a reader at the throttle's pace, until ctx ends. A nil Throttle
// returns it as it is.
func (t *Throttle) Slow(ctx context.Context, r storage.Reader) storage.Reader {
	if t == nil {
		return r
	}
	return slowed{r, ctx, t}
}

// slowed is an input that is read at the throttle's pace.
type slowed struct {
	storage.Reader
	ctx context.Context // of the unit: a reader lives no longer
	t   *Throttle
}

func (s slowed) ReadAt(p []byte, off int64) (int, error) {
	if err := s.t.take(s.ctx, len(p)); err != nil {
		return 0, err
	}
	return s.Reader.ReadAt(p, off)
}
