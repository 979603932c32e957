package maintenance

import (
	"context"
	"errors"
	"fmt"
	"path"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/layout"
	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/storage"
)

// replace builds a plan's targets and puts them in the place of their inputs.
// ctx ends it until the new files are to become visible; from then on it goes
// through.
func (c *compaction) replace(ctx context.Context, h *handles, p *plan) (err error) {
	if err := c.stage.ready(); err != nil {
		return err
	}
	pl := c.describe(p)
	defer func() {
		if _, late := errors.AsType[visible](err); err != nil && !late {
			// The marker decides, for an exchange that failed may have been done.
			if serr := settle(pl, c.log()); serr != nil {
				err = errors.Join(err, fmt.Errorf("give up unit %s: %w", pl.ID, serr))
			}
		}
	}()
	if err := pl.writeDown(); err != nil {
		return err
	}
	if err := c.FS.Mkdir(pl.dir()); err != nil {
		return err
	}
	for _, t := range p.targets {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := c.build(ctx, h, p, pl, t); err != nil {
			return err
		}
	}
	h.close() // the inputs may go
	if err := c.unchanged(p); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := c.note(&ledger.Record{Replacing: c.replacement(p, pl)}); err != nil {
		return err
	}
	if pl.Window {
		return c.throughWindow(p, pl)
	}
	return c.exchange(p, pl)
}

// describe draws a unit and the names of its files.
func (c *compaction) describe(p *plan) *place {
	pl := &place{fs: c.FS, root: c.Root, staging: c.stage.dir}
	pl.unit = unit{Version: unitVersion, ID: layout.ID(c.Random()), Partition: p.rel, Window: c.needsWindow(p)}
	epoch := uint64(0)
	if c.Log != nil {
		epoch = c.Log.Epoch()
	}
	for _, t := range p.targets {
		t.File = layout.PartFile(epoch, c.Random())
		pl.Add = append(pl.Add, t.File)
		if pl.Window {
			for _, d := range t.inputs {
				pl.Old = append(pl.Old, d.entry)
			}
		}
	}
	if !pl.Window {
		pl.Old = p.entries
	}
	return pl
}

// replacement is the unit as the log has it.
func (c *compaction) replacement(p *plan, pl *place) []ledger.Replacement {
	if c.Log == nil {
		return nil
	}
	r := ledger.Replacement{ID: pl.ID, Table: ledger.MainTable, Partition: p.rel, Epoch: c.Log.Epoch()}
	for _, t := range p.targets {
		for _, d := range t.inputs {
			r.Removed = append(r.Removed, d.Name)
			r.RemovedBytes += d.Size
		}
		r.Added = append(r.Added, ledger.ReplacedFile{Name: t.File, Mode: t.Mode, Rows: t.Rows, Bytes: t.BytesOut,
			Leaves: t.footer.Leaves, Sources: t.footer.Sources})
	}
	return []ledger.Replacement{r}
}

// exchange finishes the new directory and swaps it for the old one.
func (c *compaction) exchange(p *plan, pl *place) error {
	if err := c.FS.Mimic(pl.partition(), pl.dir()); err != nil {
		return err
	}
	for _, t := range p.targets {
		if err := c.FS.Rename(pl.staged(t.File), path.Join(pl.dir(), t.File)); err != nil {
			return err
		}
	}
	if err := c.carry(p, pl); err != nil {
		return err
	}
	if err := pl.mark(pl.dir()); err != nil {
		return err
	}
	for _, dir := range []string{pl.dir(), pl.staging} {
		if err := c.FS.SyncDir(dir); err != nil {
			return err
		}
	}
	if err := c.unchanged(p); err != nil {
		return err
	}
	if err := c.FS.Exchange(pl.dir(), pl.partition()); err != nil {
		if errors.Is(err, errors.ErrUnsupported) {
			return leaveAlone("its directory cannot be exchanged: %v", err)
		}
		return err
	}
	return c.afterwards(pl)
}

// afterwards is what remains to be done once the exchange is visible; its error
// leaves the rest to the next Settle.
func (c *compaction) afterwards(pl *place) error {
	if err := finishExchange(pl, c.log()); err != nil {
		return visible{storage.Classify(fmt.Errorf("after the exchange of partition %q: %w", pl.Partition, err))}
	}
	return nil
}

// visible is an error after the new files became visible: nothing is undone.
type visible struct{ error }

func (v visible) Unwrap() error { return v.error }

// throughWindow replaces file by file where there is no exchange.
func (c *compaction) throughWindow(p *plan, pl *place) error {
	for _, dir := range []string{pl.dir(), pl.staging} {
		if err := c.FS.SyncDir(dir); err != nil {
			return err
		}
	}
	if err := c.unchanged(p); err != nil {
		return err
	}
	if err := pl.mark(pl.dir()); err != nil {
		return err
	}
	// From here on a successor would go on, whatever comes.
	err := c.FS.SyncDir(pl.dir())
	if err == nil {
		err = finishWindow(pl, c.log())
	}
	if err != nil {
		return visible{storage.Classify(fmt.Errorf("in the window of %s: %w", pl.partition(), err))}
	}
	return nil
}

// needsWindow: the directory cannot be exchanged as a whole. The root holds the
// staging itself, and in a table with a log what owns it.
func (c *compaction) needsWindow(p *plan) bool { return p.rel == "" || c.noExchange }

// log is the ledger behind its mutex, nil for a table without one.
func (c *compaction) log() *sharedLog {
	if c.Log == nil {
		return nil
	}
	return &sharedLog{mu: &c.logMu, log: c.Log}
}

func (c *compaction) note(r *ledger.Record) error { return c.log().append(r) }

// fatal says whether an error concerns the whole run: the table is somebody
// else's, or the disk is full.
func fatal(err error) bool {
	if _, ok := errors.AsType[visible](err); ok {
		return true
	}
	return fault.ClassOf(err) == fault.Fenced || errors.Is(err, storage.ErrNoSpace)
}
