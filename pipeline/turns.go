package pipeline

import (
	"context"
	"sync"
)

// turns counts checkpoints, so that somebody can wait for one that took
// everything written before. A checkpoint with nothing to append counts too.
type turns struct {
	mu      sync.Mutex
	begun   uint64
	ended   uint64
	changed chan struct{} // closed when ended changes; nil: nobody waits
}

func (t *turns) begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.begun++
}

func (t *turns) complete() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = t.begun
	if t.changed != nil {
		close(t.changed)
		t.changed = nil
	}
}

// next is the first checkpoint that begins after now.
func (t *turns) next() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.begun + 1
}

// await waits until a checkpoint is complete, or ctx ends.
func (t *turns) await(ctx context.Context, n uint64) error {
	for {
		t.mu.Lock()
		if t.ended >= n {
			t.mu.Unlock()
			return nil
		}
		if t.changed == nil {
			t.changed = make(chan struct{})
		}
		changed := t.changed
		t.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
