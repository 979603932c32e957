package pipeline

import (
	"context"

	"github.com/hivesink/hivesink/writer"
)

// token wakes one of those who wait for it; who is woken passes it on.
type token chan struct{}

func (t token) put() {
	select {
	case t <- struct{}{}:
	default:
	}
}

// Gate blocks while limits.staging is exceeded (P4): by hidden files, until some
// are published; by those that no checkpoint names yet, until one does; by the
// spool, until a checkpoint has handed its bytes over.
func (p *Pipeline) Gate(ctx context.Context) error {
	for waited := false; p.c.crowded(); waited = true {
		if !waited {
			p.Stats.Waits.Add(1)
		}
		if p.c.staged.Load() <= p.c.stage {
			// What fills the spool are files that are open, and what no checkpoint
			// names nothing can publish. Who waits here does not write, and perhaps
			// nobody else does or would ask for it.
			if err := p.Checkpoint(ctx); err != nil {
				return err
			}
			if !p.c.crowded() {
				break
			}
		}
		select {
		case <-p.c.eased:
			// One token for all who wait: pass it on. Kept, it would leave the
			// others waiting for the next decrease, which may never come.
			defer p.c.eased.put()
		case <-p.failed:
			return p.err
		case <-p.stopped:
			return p.ended()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return p.over()
}

// pass is the gate after a write. A lane that has met more new partitions than a
// checkpoint may name asks for one at once, which refuses them: until the next
// one they would fill the memory, whatever limits.memory says.
func (p *Pipeline) pass(ctx context.Context, out writer.Outcome) error {
	if out.NewPartitions > p.c.newPartitions {
		if err := p.Checkpoint(ctx); err != nil {
			return err
		}
	}
	return p.Gate(ctx)
}

// crowded says whether limits.staging is exceeded.
func (c *chain) crowded() bool {
	open, closed := c.writer.Hidden()
	if c.spooled != nil {
		open = c.spooled() // and there those are
	}
	return c.staged.Load()+open+closed > c.stage
}
