package compactor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/hivesink/hivesink/format/parquet"
	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/storage"
)

// On an object store a target is a hidden upload to its final name (C1): built
// and verified in a storage.Scratch, sent, named in the log, and completed only then, if
// there is no object of that name. What Complete answers decides nothing by
// itself: an answer may be lost, and stores differ in what they say to the second
// try. Who is not told plainly that it is done looks at the target (C3).

// buildUp builds a target, verifies it and sends it to a hidden upload.
func (o *Options) buildUp(ctx context.Context, j Job, files []*parquetfile.File, b *Built, meta map[string]string) (err error) {
	b.Path = o.TargetPath(&j.Unit)
	room := o.Room()
	defer room.Close()
	if err := o.fill(ctx, j, files, b, room, meta); err != nil {
		return storage.Classify(fmt.Errorf("unit %s of partition %q: write target: %w", j.Unit.ID, j.Unit.Partition, err))
	}
	if err := o.verify(j, b, files[0], room); err != nil {
		return err
	}
	if b.Upload, err = o.Objects.Upload(ctx, b.Path, room, room.Size()); err != nil {
		return storage.Classify(fmt.Errorf("unit %s of partition %q: send target: %w", j.Unit.ID, j.Unit.Partition, err))
	}
	return nil
}

// copyUp is mode publish: the store copies the one input to a hidden upload.
// Copying in one request could not be aborted by the next owner.
func (o *Options) copyUp(ctx context.Context, j Job, b *Built) (err error) {
	from := b.Path
	b.Path = o.TargetPath(&j.Unit)
	if b.Upload, err = o.Objects.UploadCopy(ctx, b.Path, from, b.Bytes); err != nil {
		return storage.Classify(fmt.Errorf("unit %s of partition %q: copy its input to the target: %w", j.Unit.ID, j.Unit.Partition, err))
	}
	return nil
}

// complete makes uploads visible. The log names them already.
func (o *Options) complete(built []*Built) (again []*Built, err error) {
	lost := make([]bool, len(built))
	var g errgroup.Group
	g.SetLimit(max(1, o.Syncs))
	for i, b := range built {
		g.Go(func() (err error) { // joined by Wait below
			lost[i], err = o.completeOne(b)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	for i, b := range built {
		if lost[i] {
			again = append(again, b)
		}
	}
	return again, nil
}

// completeOne says whether an upload came to nothing.
func (o *Options) completeOne(b *Built) (lost bool, err error) {
	cause := o.Objects.Complete(b.Path, b.Upload)
	if cause == nil {
		return false, o.look(b)
	}
	there, err := o.Done(&b.Unit, b.Footer.Leaves)
	if err != nil {
		return false, fmt.Errorf("%w; completing it said: %w", err, cause)
	}
	if there != nil {
		b.Bytes, b.Footer = there.Bytes, there.Footer
	} else if !errors.Is(cause, storage.ErrNotExist) && !errors.Is(cause, storage.ErrConflict) {
		// Not done, or not yet: the next owner aborts the upload and looks.
		return false, fault.Wrap(fault.Halt, "start again; the redo looks whether it was done",
			fmt.Errorf("publish unit %s as %s: %w", b.Unit.ID, b.Path, cause))
	}
	// Whatever made the target, or did not: this upload makes nothing any more.
	if err := o.Objects.Abort(b.Path, b.Upload); err != nil {
		return false, storage.Classify(fmt.Errorf("abort upload %s of unit %s: %w", b.Upload, b.Unit.ID, err))
	}
	if there != nil {
		return false, nil
	}
	// Completed between the look and the abort, perhaps: look once more.
	if there, err = o.Done(&b.Unit, b.Footer.Leaves); err != nil || there == nil {
		return err == nil, err
	}
	b.Bytes, b.Footer = there.Bytes, there.Footer
	return false, nil
}

// Ready is a unit whose part is an upload to the target already (ledger T14):
// nothing is built.
func (o *Options) Ready(u *ledger.Unit, p *ledger.Part) *Built {
	return &Built{Unit: *u, Path: o.TargetPath(u), Upload: p.Upload, Mode: u.Mode, Bytes: p.Bytes,
		Footer: ledger.Footer{Pipeline: o.Pipeline, TableID: o.TableID, Epoch: p.Epoch, Table: u.Table, Partition: u.Partition,
			Leaves: []string{p.ID}, Sources: p.Sources}}
}

// PublishReady makes them visible (C6). An error leaves the rest to a redo.
func (o *Options) PublishReady(built ...*Built) error {
	var g errgroup.Group
	g.SetLimit(max(1, o.Syncs))
	for _, b := range built {
		g.Go(func() error { return o.completeReady(b) }) // joined by Wait below
	}
	return g.Wait()
}

// conflicts is how often a completion that met another one is tried.
const conflicts = 5

// completeReady completes an upload that a former or later owner may complete as
// well: it is of the same bytes, and of one upload one object is made. It has
// the only copy of the rows, so that it is never aborted (C6).
func (o *Options) completeReady(b *Built) error {
	rows := fmt.Sprintf("unit %s of partition %q: publish %d rows as %s", b.Unit.ID, b.Unit.Partition, b.Unit.Rows, b.Path)
	var cause error
	gone := false
	for try := range conflicts {
		if cause = o.Objects.Complete(b.Path, b.Upload); cause == nil {
			return o.look(b)
		}
		there, err := o.Done(&b.Unit, b.Footer.Leaves)
		if err != nil {
			return fmt.Errorf("%w; completing it said: %w", err, cause)
		}
		if there != nil {
			b.Bytes, b.Footer = there.Bytes, there.Footer
			return nil
		}
		if gone || !errors.Is(cause, storage.ErrNotExist) && !errors.Is(cause, storage.ErrConflict) {
			break
		}
		// Another completion, which ends one way or the other; or no such upload.
		// That is true only when the store does not know its parts either, and if
		// it is, the target is looked for once more.
		if _, err := o.Objects.Uploaded(b.Path, b.Upload); errors.Is(err, storage.ErrNotExist) {
			gone = true
			continue
		}
		time.Sleep(100 * time.Millisecond << try)
	}
	if gone {
		return fault.Wrap(fault.Halt, "run fsck to see which rows are affected, and see whether the bucket has a rule, or the store a default, that aborts uploads sooner than hivesink was down",
			fmt.Errorf("%s: the upload that held them is gone, and the file is not there: %w", rows, cause))
	}
	return fault.Wrap(fault.Halt, "start again; the redo looks whether it was done", fmt.Errorf("%s: %w", rows, cause))
}

// AbortOthers ends the uploads to the target of a published unit that a former
// owner had begun twice, the first answer being lost: for room only.
func (o *Options) AbortOthers(b *Built) error {
	if err := o.Objects.AbortAt(b.Path); err != nil {
		return storage.Classify(fmt.Errorf("abort the uploads left of unit %s: %w", b.Unit.ID, err))
	}
	return nil
}

// AbortUploads ends every upload of a planned unit that a former owner may still
// complete, before the unit is looked at and done again.
func (o *Options) AbortUploads(u *ledger.Unit) error {
	if o.Objects == nil {
		return nil
	}
	for _, id := range u.Uploads {
		if err := o.Objects.Abort(o.TargetPath(u), id); err != nil {
			return storage.Classify(fmt.Errorf("abort upload %s of unit %s: %w", id, u.ID, err))
		}
	}
	if err := o.Objects.AbortAt(o.TargetPath(u)); err != nil { // those that died before they were logged
		return storage.Classify(fmt.Errorf("abort the uploads of unit %s: %w", u.ID, err))
	}
	return nil
}
