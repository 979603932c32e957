package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/hivesink/hivesink/compactor"
	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/storage"
)

// start hands units to the pool: as many as keep it busy while the chain
// publishes, few enough that their inputs take no memory.
func (c *chain) start() error {
	for len(c.queue) > 0 && c.building+len(c.built) < 2*c.atOnce {
		u := c.log.State().Units[c.queue[0]]
		c.queue = c.queue[1:]
		if err := c.submit(u); err != nil {
			return err
		}
	}
	return nil
}

func (c *chain) submit(u *ledger.Unit) error {
	job := compactor.Job{Unit: *u, Attempt: c.submitted[u.ID]}
	st := c.log.State()
	for _, id := range u.Inputs {
		part := st.Parts[id]
		if part == nil {
			return fault.New(fault.Halt, "", "unit %s names part %s, which the log does not know", u.ID, id)
		}
		where, err := c.log.Locate(part.Epoch, part.Name)
		if err != nil {
			return fmt.Errorf("unit %s of partition %q: locate part %s (%d rows): %w", u.ID, u.Partition, id, part.Rows, err)
		}
		job.Inputs = append(job.Inputs, compactor.Input{Part: *part, Path: where})
	}
	c.submitted[u.ID]++
	c.building++
	c.pool.submit(job)
	return nil
}

// maxAttempts is how often a unit is built when the storage says "try again".
const maxAttempts = 3

// collect publishes targets that are built, notes them, and deletes their
// inputs (P2).
func (c *chain) collect(ctx context.Context) error {
	fresh := c.pool.take()
	c.building -= len(fresh)
	c.built = append(c.built, fresh...)
	results := c.built[:min(len(c.built), c.atOnce)]
	c.built = c.built[len(results):]
	if len(results) == 0 {
		return nil
	}
	var targets []*compactor.Built
	for _, r := range results {
		if r.err != nil {
			if fault.ClassOf(r.err) == fault.Retry && c.submitted[r.job.Unit.ID] < maxAttempts && ctx.Err() == nil {
				c.emit(Event{Kind: "unit-retry", Unit: r.job.Unit.ID, Err: r.err})
				if err := c.submit(&r.job.Unit); err != nil {
					return err
				}
				continue
			}
			if err := c.unmerge(ctx, &r); err != nil {
				return err
			}
			continue
		}
		targets = append(targets, r.built)
	}
	if err := c.noteUploads(targets); err != nil {
		return err
	}
	again, err := c.compact.Publish(targets...)
	if err != nil {
		return err
	}
	var facts []ledger.Published
	for _, b := range targets {
		if slices.Contains(again, b) {
			if err := c.buildAgain(b); err != nil {
				return err
			}
			continue
		}
		facts = append(facts, c.publishedFact(b))
	}
	return c.notePublished(facts)
}

func (c *chain) publishedFact(b *compactor.Built) ledger.Published {
	u := &b.Unit
	file := u.Target
	if u.Partition != "" {
		file = u.Partition + "/" + u.Target
	}
	return ledger.Published{Unit: u.ID, Table: u.Table, Path: file, Mode: b.Mode, Rows: u.Rows, Bytes: b.Bytes,
		Leaves: b.Footer.Leaves, Sources: b.Footer.Sources, Time: c.now()}
}

func (c *chain) notePublished(facts []ledger.Published) error {
	if len(facts) == 0 {
		return nil
	}
	moved := make([]*ledger.Part, len(facts))
	for i := range facts {
		u := c.log.State().Units[facts[i].Unit]
		moved[i] = c.log.State().Parts[u.Inputs[0]]
	}
	if err := c.append(&ledger.Record{Published: facts}); err != nil {
		return fmt.Errorf("note %d published files: %w", len(facts), err)
	}
	for i := range facts {
		if u := c.log.State().Units[facts[i].Unit]; u != nil {
			c.staging.published(c.log.State(), u)
			continue
		}
		c.staging.gone(moved[i].File()) // mode publish: the input itself
		if err := c.dropCopied(moved[i]); err != nil {
			return err
		}
	}
	c.restage()
	for i := range facts {
		f := &facts[i]
		c.stats.PublishedFiles.Add(1)
		c.stats.PublishedRows.Add(f.Rows)
		c.emit(Event{Kind: "published", Unit: f.Unit, Path: f.Path, Rows: f.Rows, Bytes: f.Bytes, Mode: f.Mode})
		delete(c.submitted, f.Unit)
		if u := c.log.State().Units[f.Unit]; u != nil {
			if err := c.deleteInputs(u); err != nil {
				return err
			}
		}
	}
	return nil
}

// deleteInputs deletes the inputs of a published unit; the next record notes
// it. A bundle goes with the last of its parts.
func (c *chain) deleteInputs(u *ledger.Unit) error {
	for _, id := range u.Inputs {
		part := c.log.State().Parts[id]
		if part == nil || !c.staging.spent(part) {
			continue
		}
		where, err := c.log.Locate(part.Epoch, part.Name)
		if errors.Is(err, storage.ErrNotExist) {
			c.staging.gone(part.File())
			continue // deleted before a crash
		}
		if err == nil {
			err = c.log.Trash(where)
		}
		if err != nil && !errors.Is(err, storage.ErrNotExist) {
			return storage.Classify(fmt.Errorf("delete input %s of unit %s: %w", id, u.ID, err))
		}
		c.staging.gone(part.File())
	}
	c.deleted = append(c.deleted, u.ID)
	c.restage()
	return nil
}
