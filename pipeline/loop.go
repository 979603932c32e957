package pipeline

import (
	"context"
	"errors"
	"time"

	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/writer"
)

// request is work for the chain's goroutine.
type request struct {
	do   func(ctx context.Context, c *chain) error
	done chan error
}

// loop is the chain's goroutine: requests, timers, built targets.
func (p *Pipeline) loop(ctx context.Context) {
	defer close(p.stopped)
	// The first one comes early: what is wrong with storage or rows is seen
	// sooner, and so are the first rows.
	checkpoints := time.NewTicker(max(1, time.Duration(p.cfg.Checkpoint.Interval)/2))
	defer checkpoints.Stop()
	timed := func() error {
		checkpoints.Reset(time.Duration(p.cfg.Checkpoint.Interval))
		return p.c.checkpoint(ctx, false, false)
	}
	ticks := time.NewTicker(p.tickInterval())
	defer ticks.Stop()
	wake := time.NewTimer(0)
	defer wake.Stop()
	w := p.c.pool.(*workers)
	for ctx.Err() == nil { // also when the next checkpoint is always due already
		var err error
		select { // a checkpoint goes before what is left of the work
		case r := <-p.requests:
			err = p.serve(ctx, r)
		case <-checkpoints.C:
			err = timed()
		default:
			select {
			case <-ctx.Done():
				return
			case r := <-p.requests:
				err = p.serve(ctx, r)
			case <-checkpoints.C:
				err = timed()
			case <-ticks.C:
				err = p.c.tick()
			case <-w.ready:
			case <-wake.C:
			}
		}
		var next int64
		if err == nil {
			next, err = p.c.advance(ctx, false)
		}
		if err != nil {
			if ctx.Err() == nil {
				p.fail(p.c.judge(err))
			}
			return
		}
		wake.Reset(p.wakeIn(next))
	}
}

func (p *Pipeline) serve(ctx context.Context, r request) error {
	err := p.c.judge(r.do(ctx, p.c))
	r.done <- err
	return err
}

// tickInterval is how often the rolling policy's clocks are looked at.
func (p *Pipeline) tickInterval() time.Duration {
	r := p.cfg.Rolling
	return max(10*time.Millisecond, min(time.Duration(r.CheckInterval), time.Duration(r.RolloverInterval), time.Duration(r.InactivityInterval)))
}

// wakeIn turns a wall-clock time into a wait, at most a minute so that a clock
// that steps back cannot put the chain to sleep.
func (p *Pipeline) wakeIn(next int64) time.Duration {
	if next == 0 {
		return time.Minute
	}
	return min(time.Minute, max(time.Millisecond, time.Duration(next-p.c.now())*time.Microsecond))
}

// fail records the error that ends the pipeline, and ends what runs beside the
// chain (P5).
func (p *Pipeline) fail(err error) {
	p.err = err
	close(p.failed)
	p.budget.Close(err) // no memory will be given back
	p.cancel()
}

// whileAlive is ctx that ends when the pipeline fails, too: a reader that waits
// for records would not notice. stop gives it back.
func (p *Pipeline) whileAlive(ctx context.Context) (alive context.Context, stop func()) {
	alive, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() { // joined by stop
		defer close(ended)
		select {
		case <-p.failed:
			cancel()
		case <-alive.Done():
		}
	}()
	return alive, func() {
		cancel()
		<-ended
	}
}

// call runs f in the chain's goroutine. When ctx ends f is not begun, or not
// waited for.
func (p *Pipeline) call(ctx context.Context, f func(context.Context, *chain) error) error {
	if p.inline {
		return p.c.judge(f(ctx, p.c))
	}
	r := request{do: f, done: make(chan error, 1)}
	select {
	case p.requests <- r:
	case <-p.failed:
		return p.err
	case <-p.stopped:
		return p.ended()
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-r.done:
		return err
	case <-p.stopped:
		return p.ended()
	case <-ctx.Done(): // it goes on without us
		return ctx.Err()
	}
}

func (p *Pipeline) ended() error {
	select {
	case <-p.failed:
		return p.err
	default:
		return ErrClosed
	}
}

// ErrClosed is returned by calls after Close.
var ErrClosed = errors.New("the sink is closed")

// Err is the error that ended the pipeline, nil while it runs.
func (p *Pipeline) Err() error {
	select {
	case <-p.failed:
		return p.err
	default:
		return nil
	}
}

// Failed is closed when the pipeline has ended with an error.
func (p *Pipeline) Failed() <-chan struct{} { return p.failed }

// Checkpoint makes everything written so far durable (P1).
func (p *Pipeline) Checkpoint(ctx context.Context) error {
	return p.call(ctx, func(ctx context.Context, c *chain) error { return c.checkpoint(ctx, false, false) })
}

// Advance plans, publishes and announces what can be now. Only an inline
// pipeline needs to be asked.
func (p *Pipeline) Advance(ctx context.Context) error {
	return p.call(ctx, func(ctx context.Context, c *chain) error {
		_, err := c.advance(ctx, false)
		return err
	})
}

// Finish is the end of the input: a last checkpoint, everything published;
// with complete, every partition is announced.
func (p *Pipeline) Finish(ctx context.Context, complete bool) error {
	return p.call(ctx, func(ctx context.Context, c *chain) error {
		if err := c.checkpoint(ctx, true, complete); err != nil {
			return err
		}
		return c.settle(ctx, endTries)
	})
}

// Stop is the end of the run, not of the input: a last checkpoint, everything
// held is published, and what its trigger allows is announced.
func (p *Pipeline) Stop(ctx context.Context) error {
	return p.call(ctx, func(ctx context.Context, c *chain) error {
		if err := c.checkpoint(ctx, false, false); err != nil {
			return err
		}
		return c.settle(ctx, stopTries)
	})
}

// Drain publishes everything and releases the ownership of the table.
func (p *Pipeline) Drain(ctx context.Context) error {
	return p.call(ctx, func(ctx context.Context, c *chain) error {
		if err := c.settle(ctx, endTries); err != nil {
			return err
		}
		return c.append(&ledger.Record{Released: true})
	})
}

// Release closes the pipeline without finishing anything: what kill -9 does,
// in order. Work under way is redone by the next Open. A second Release waits for
// the first and returns its error.
func (p *Pipeline) Release() error {
	p.end.Do(func() { p.released = p.giveUp() })
	return p.released
}

func (p *Pipeline) giveUp() error {
	if p.cancel != nil {
		p.cancel()
		<-p.stopped
		p.budget.Close(ErrClosed)
		p.c.pool.close()
	} else if p.inline {
		close(p.stopped)
	}
	return p.release()
}

// State is a copy of what the log says.
func (p *Pipeline) State(ctx context.Context) (*ledger.State, error) {
	out := make(chan *ledger.State, 1) // nobody may be waiting any more
	err := p.call(ctx, func(_ context.Context, c *chain) error {
		out <- c.log.State().Clone()
		return nil
	})
	if err != nil {
		return nil, err
	}
	return <-out, nil
}

// tick lets the rolling policy's clocks close parts.
func (c *chain) tick() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.lanes {
		if _, err := l.Tick(c.now()); err != nil {
			return err
		}
	}
	return nil
}

// NewLane opens a writer that takes part in every checkpoint from now on.
func (p *Pipeline) NewLane() (*writer.Lane, error) {
	l, err := p.c.writer.NewLane()
	if err != nil {
		return nil, err
	}
	p.c.mu.Lock()
	p.c.lanes = append(p.c.lanes, l)
	p.c.mu.Unlock()
	return l, nil
}

// Own lets a source partition take part in the watermark, in the state the
// last complete checkpoint left it in, and returns that state. It does not wait
// for the chain.
func (p *Pipeline) Own(ctx context.Context, name string) (ledger.Source, error) {
	if err := p.alive(ctx); err != nil {
		return ledger.Source{}, err
	}
	return p.c.intake.own(name), nil
}

// Sources is what the last complete checkpoint says of each source partition.
// It does not wait for the chain.
func (p *Pipeline) Sources(ctx context.Context) (map[string]ledger.Source, error) {
	if err := p.alive(ctx); err != nil {
		return nil, err
	}
	return p.c.intake.all(), nil
}

// alive is why there is no use in going on, nil when there is.
func (p *Pipeline) alive(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return p.over()
}

// over is why the pipeline has ended, nil when it has not.
func (p *Pipeline) over() error {
	select {
	case <-p.stopped:
		return p.ended()
	default:
		return p.Err()
	}
}
