package pipeline

import (
	"context"
	"errors"
	"fmt"

	"github.com/hivesink/hivesink/compactor"
	"github.com/hivesink/hivesink/coordinator"
	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/storage"
)

// unmerge gives a unit up that could not be built, and plans each of its parts by
// itself (P8): a smaller target needs less space, and one bad pair of files must
// not keep the others hidden. It returns the unit's error when that is no remedy.
func (c *chain) unmerge(ctx context.Context, r *result) error {
	st := c.log.State()
	u := st.Units[r.job.Unit.ID]
	if u == nil || ctx.Err() != nil || !unbuildable(r.err) {
		return r.err
	}
	var parts []*ledger.Part
	for _, id := range u.Inputs {
		parts = append(parts, st.Parts[id])
	}
	if len(parts) == 1 && (u.Mode == ledger.ModePublish || parts[0].Bundle || !errors.Is(r.err, storage.ErrNoSpace)) {
		return r.err // nothing simpler is left; and what cannot be read must not be published as it is
	}
	if err := c.compact.AbortUploads(u); err != nil {
		return err
	}
	done, err := c.compact.Done(u, u.Inputs)
	if err != nil {
		return err
	}
	if done != nil { // an earlier try has made it after all
		return c.notePublished([]ledger.Published{c.publishedFact(done)})
	}
	plan := make([]ledger.Unit, len(parts))
	for i, p := range parts {
		one := coordinator.PublishUnit(p, c.random(), c.log.Epoch())
		one.Reason = fmt.Sprintf("unit %s could not be built", u.ID)
		if len(parts) > 1 {
			mode, why := compactor.Choose([]*ledger.Part{p}, c.compact.Codec)
			one.Mode = mode
			one.Reason += "; " + mode + ": " + why
		}
		plan[i] = one
	}
	if err := c.append(&ledger.Record{GivenUp: []string{u.ID}, Plan: plan}); err != nil {
		return fmt.Errorf("give up unit %s of partition %q: %w", u.ID, u.Partition, err)
	}
	delete(c.submitted, u.ID)
	for i := range plan {
		c.queue = append(c.queue, plan[i].ID)
	}
	c.stats.UnitsUnmerged.Add(1)
	c.emit(Event{Kind: "unit-unmerged", Unit: u.ID, Table: u.Table, Partition: u.Partition, Files: len(parts), Rows: u.Rows, Err: r.err})
	return nil
}

// unbuildable says whether a unit's error is about its target, and not that of a
// storage that fails: that would fail for each part as well.
func unbuildable(err error) bool {
	var target *compactor.TargetError
	if !errors.As(err, &target) || fault.ClassOf(err) == fault.Fenced {
		return false
	}
	var failed *storage.Error
	return errors.Is(err, storage.ErrNoSpace) || !errors.As(err, &failed)
}
