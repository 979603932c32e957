package pipeline

import (
	"context"
	"sync"
	"time"

	"github.com/hivesink/hivesink/compactor"
)

// pool builds targets beside the chain.
type pool interface {
	submit(compactor.Job)
	// take returns what has been built since the last call.
	take() []result
	// wait returns when take would return something, or what was run aside
	// is done.
	wait(context.Context) error
	// aside runs f beside the chain; wait returns when it is done.
	aside(ctx context.Context, f func(context.Context))
	// sleep waits for micros microseconds of the pipeline's clock.
	sleep(ctx context.Context, micros int64) error
	close()
}

type result struct {
	job   compactor.Job
	built *compactor.Built
	err   error
}

// workers is the pool of a running pipeline. Its goroutines end when ctx does
// and are joined by close.
type workers struct {
	ctx    context.Context
	cancel context.CancelFunc
	build  func(context.Context, compactor.Job) (*compactor.Built, error)
	slots  chan struct{}
	wg     sync.WaitGroup
	mu     sync.Mutex
	done   []result
	ready  chan struct{} // holds a token when done is not empty, or aside is done
}

func newWorkers(ctx context.Context, n int, build func(context.Context, compactor.Job) (*compactor.Built, error)) *workers {
	ctx, cancel := context.WithCancel(ctx)
	return &workers{ctx: ctx, cancel: cancel, build: build, slots: make(chan struct{}, max(1, n)), ready: make(chan struct{}, 1)}
}

func (w *workers) submit(j compactor.Job) {
	w.wg.Go(func() {
		select {
		case w.slots <- struct{}{}:
			defer func() { <-w.slots }()
		case <-w.ctx.Done():
			return
		}
		b, err := w.build(w.ctx, j)
		w.mu.Lock()
		w.done = append(w.done, result{j, b, err})
		w.mu.Unlock()
		w.signal()
	})
}

// aside gives f the context of the workers: who asked may be gone before it is
// done.
func (w *workers) aside(_ context.Context, f func(context.Context)) {
	w.wg.Go(func() { // joined by close
		f(w.ctx)
		w.signal()
	})
}

func (w *workers) signal() {
	select {
	case w.ready <- struct{}{}:
	default:
	}
}

func (w *workers) take() []result {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.done
	w.done = nil
	return out
}

func (w *workers) wait(ctx context.Context) error {
	select {
	case <-w.ready:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (w *workers) sleep(ctx context.Context, micros int64) error {
	t := time.NewTimer(time.Duration(max(0, micros)) * time.Microsecond)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (w *workers) close() {
	w.cancel()
	w.wg.Wait()
}

// inline builds at once, in the caller's goroutine: a test's pool.
type inline struct {
	build func(context.Context, compactor.Job) (*compactor.Built, error)
	done  []result
}

func (p *inline) submit(j compactor.Job) {
	b, err := p.build(context.Background(), j)
	p.done = append(p.done, result{j, b, err})
}

func (p *inline) aside(ctx context.Context, f func(context.Context)) { f(ctx) }

func (p *inline) take() []result {
	out := p.done
	p.done = nil
	return out
}

func (p *inline) wait(ctx context.Context) error           { return ctx.Err() }
func (p *inline) sleep(ctx context.Context, _ int64) error { return ctx.Err() }
func (p *inline) close()                                   {}
