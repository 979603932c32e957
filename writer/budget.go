package writer

import (
	"context"
	"sync"
)

// Budget is the memory and the open files that all lanes of a process share.
type Budget struct {
	mu       sync.Mutex
	released chan struct{} // closed and replaced whenever memory is given back
	limit    int64
	used     int64
	maxOpen  int
	open     int
	peakOpen int
	over     error // not nil: nobody gives memory back any more
}

// NewBudget allows memory bytes of buffered rows and openFiles part files that
// stay open between writes.
func NewBudget(memory int64, openFiles int) *Budget {
	return &Budget{limit: memory, maxOpen: openFiles, released: make(chan struct{})}
}

// charge adds n bytes (less, when n is negative) to what is in use.
func (b *Budget) charge(n int64) {
	b.mu.Lock()
	b.used += n
	if n < 0 {
		close(b.released)
		b.released = make(chan struct{})
	}
	b.mu.Unlock()
}

func (b *Budget) exceeded() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used > b.limit
}

// Close ends every wait for memory, now and later, with err: a process that
// closes no parts any more gives none back.
func (b *Budget) Close(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over == nil {
		b.over = err
		close(b.released)
		b.released = make(chan struct{})
	}
}

// wait blocks while the budget is exceeded, until somebody gives memory back,
// the budget is closed or ctx ends.
func (b *Budget) wait(ctx context.Context) error {
	for {
		b.mu.Lock()
		if b.used <= b.limit || b.over != nil {
			defer b.mu.Unlock()
			return b.over
		}
		released := b.released
		b.mu.Unlock()
		select {
		case <-released:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// opened asks to keep one more part file open. With false the caller closes
// its file at once instead.
func (b *Budget) opened() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open >= b.maxOpen {
		return false
	}
	b.open++
	b.peakOpen = max(b.peakOpen, b.open)
	return true
}

func (b *Budget) closed() {
	b.mu.Lock()
	b.open--
	b.mu.Unlock()
}

// Used is the number of bytes buffered now.
func (b *Budget) Used() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// PeakOpen is the largest number of part files that were open at once.
func (b *Budget) PeakOpen() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.peakOpen
}
