package pipeline

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/hivesink/hivesink/commit"
	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/ledger"
)

// recover redoes what the log has planned and not noted as done.
func (c *chain) recover() error {
	st := c.log.State()
	var facts []ledger.Published
	var ready []string
	for _, id := range slices.Sorted(maps.Keys(st.Units)) {
		u := st.Units[id]
		if u.Published {
			if err := c.deleteInputs(u); err != nil {
				return err
			}
			continue
		}
		if st.Ready(u) != nil {
			ready = append(ready, id)
			continue
		}
		if err := c.compact.AbortUploads(u); err != nil {
			return err
		}
		built, err := c.compact.Done(u, u.Inputs)
		if err != nil {
			return err
		}
		if built != nil {
			facts = append(facts, c.publishedFact(built))
		}
	}
	if err := c.notePublished(facts); err != nil {
		return err
	}
	if err := c.redoReady(ready); err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(st.Units)) {
		if !st.Units[id].Published {
			c.queue = append(c.queue, id)
		}
	}
	return c.start()
}

// How often announcing is tried at the end of the input, which nothing else
// follows, and at a stop, after which the next run announces.
const (
	endTries  = 6
	stopTries = 3
)

// settle brings everything that is in flight to its end: every part is
// published. A policy that goes on failing does not keep the process for ever:
// what is not announced then is announced by the next run.
func (c *chain) settle(ctx context.Context, maxTries int) error {
	c.ann.afresh = true
	for tries := 0; ; {
		next, err := c.advance(ctx, true)
		if err != nil {
			return err
		}
		st := c.log.State()
		inFlight := 0
		for _, u := range st.Units {
			if !u.Published {
				inFlight++
			}
		}
		if c.more() {
			continue
		}
		if inFlight > 0 || c.ann.busy {
			if err := c.pool.wait(ctx); err != nil {
				return err
			}
			continue
		}
		if wait := c.ann.retryAt; wait != 0 && next == wait {
			if tries++; tries == maxTries {
				return fault.Wrap(fault.Retry, "all rows are published; run again when the policy's service is up",
					fmt.Errorf("partitions could not be announced in %d tries: %w", maxTries, c.ann.failed))
			}
			if err := c.pool.sleep(ctx, min(wait-c.now(), commit.MaxPause.Microseconds())); err != nil {
				return err
			}
			continue
		}
		break
	}
	if len(c.deleted) > 0 {
		return c.append(&ledger.Record{})
	}
	return nil
}
