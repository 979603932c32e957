package compactor

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/storage"
)

// TargetPath is the full path of a unit's target.
func (o *Options) TargetPath(u *ledger.Unit) string {
	return path.Join(o.Location(u.Table), u.Partition, u.Target)
}

// Publish makes built targets visible. It returns those that came to nothing
// and have to be built again, of which there are none but on an object store. An
// error leaves the rest to a redo.
func (o *Options) Publish(built ...*Built) (again []*Built, err error) {
	if o.Objects != nil {
		return o.complete(built)
	}
	return nil, o.rename(built)
}

// rename gives targets their final names and makes that durable (C1): all of
// them together, so that a directory they share is synced once.
func (o *Options) rename(built []*Built) error {
	if err := o.makeDirs(built); err != nil {
		return err
	}
	into, outOf := newDirs(), newDirs()
	for _, b := range built {
		to := o.TargetPath(&b.Unit)
		if err := o.FS.Rename(b.Path, to); err != nil {
			if err = o.refused(b, err); err != nil {
				return err
			}
		}
		into.add(path.Dir(to))
		outOf.add(path.Dir(b.Path))
	}
	// The targets' directories first, so that no moment has only the loss of
	// the old names on disk.
	for _, d := range []*dirs{into, outOf} {
		if err := o.sync(d); err != nil {
			return storage.Classify(fmt.Errorf("publish %d units: %w", len(built), err))
		}
	}
	for _, b := range built {
		if err := o.look(b); err != nil {
			return err
		}
	}
	return nil
}

// refused looks at the target of a rename that was refused: another rename of the
// same unit, sent by a former owner and carried out late, may have been first.
// Then it is published, by whomever (C3).
func (o *Options) refused(b *Built, cause error) error {
	taken := errors.Is(cause, storage.ErrExist)
	cause = fmt.Errorf("publish unit %s as %s: %w", b.Unit.ID, o.TargetPath(&b.Unit), cause)
	if !taken && !errors.Is(cause, storage.ErrNotExist) {
		return storage.Classify(cause)
	}
	there, err := o.Done(&b.Unit, b.Footer.Leaves)
	if err != nil {
		return fmt.Errorf("%w; the rename said: %w", err, cause)
	}
	if there == nil {
		return storage.Classify(cause)
	}
	b.Bytes, b.Footer, b.Mode = there.Bytes, there.Footer, there.Mode
	if taken { // what was built again is of no use
		if err := o.FS.Remove(b.Path); err != nil && !errors.Is(err, storage.ErrNotExist) {
			return storage.Classify(fmt.Errorf("remove what was built again for unit %s: %w", b.Unit.ID, err))
		}
	}
	return nil
}

// sync makes the entries of directories durable.
func (o *Options) sync(d *dirs) error {
	var g errgroup.Group
	g.SetLimit(max(1, o.Syncs))
	for _, dir := range d.list {
		g.Go(func() error { // joined by Wait below
			if err := o.FS.SyncDir(dir); err != nil {
				return &storage.UnsyncedError{Name: dir, Err: err}
			}
			return nil
		})
	}
	return g.Wait()
}

// look sees whether the rename was done: one that answers well and does nothing
// would lose the rows.
func (o *Options) look(b *Built) error {
	to := o.TargetPath(&b.Unit)
	info, err := o.FS.Stat(to)
	if err != nil {
		return fmt.Errorf("look at the target of unit %s after the rename: %w", b.Unit.ID, err)
	}
	if info.Size != b.Bytes {
		return fault.New(fault.Halt, "the storage did not keep its word", "publish unit %s: %s has %d bytes after the rename, want %d",
			b.Unit.ID, to, info.Size, b.Bytes)
	}
	return nil
}

// makeDirs makes the partition directories of targets, durable before anything
// is renamed into them (storage S6): level by level, so that what they have in
// common is synced once.
func (o *Options) makeDirs(built []*Built) error {
	done, above := newDirs(), newDirs()
	tops := make(map[string]bool)
	for _, b := range built {
		root := o.Location(b.Unit.Table)
		level := path.Dir(root)
		tops[level] = tops[level] || b.Unit.Table == ledger.MainTable // the ledger has made that
		for _, name := range append([]string{path.Base(root)}, levels(b.Unit.Partition)...) {
			parent := level
			if level = path.Join(level, name); !done.add(level) {
				continue
			}
			if err := storage.MkdirTolerant(o.FS, level); err != nil {
				return storage.Classify(fmt.Errorf("make partition directory: %w", err))
			}
			above.add(parent)
		}
	}
	for _, dir := range above.list {
		// What a table lies in need not be ours.
		if err := o.FS.SyncDir(dir); err != nil && !(tops[dir] && storage.NotOurs(err)) {
			return storage.Classify(fmt.Errorf("make partition directories: %w", &storage.UnsyncedError{Name: dir, Err: err}))
		}
	}
	return nil
}

func levels(partition string) []string {
	if partition == "" {
		return nil
	}
	return strings.Split(partition, "/")
}

// dirs is a set of directories, in the order they came.
type dirs struct {
	known map[string]bool
	list  []string
}

func newDirs() *dirs { return &dirs{known: make(map[string]bool)} }

// add says whether dir is new.
func (d *dirs) add(dir string) bool {
	if d.known[dir] {
		return false
	}
	d.known[dir] = true
	d.list = append(d.list, dir)
	return true
}

// Done looks whether a planned unit's target is visible already, from before a
// crash. A file under its name that is not the unit's halts (C3).
func (o *Options) Done(u *ledger.Unit, leaves []string) (*Built, error) {
	to := o.TargetPath(u)
	r, err := o.FS.Open(to)
	if errors.Is(err, storage.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for the target of unit %s: %w", u.ID, err)
	}
	defer r.Close()
	_, footer, err := check(r, u.Rows, leaves, u.Partition)
	if storage.Unanswered(err) { // it may well be the unit's: nobody should move it away
		return nil, storage.Classify(fmt.Errorf("look at the target of unit %s, %s: %w", u.ID, to, err))
	}
	if err != nil {
		return nil, fault.Wrap(fault.Halt, "move the file away, or run fsck to see what it is",
			fmt.Errorf("the target of unit %s, %s, is not that unit's: %w", u.ID, to, err))
	}
	// Visible before the crash, perhaps not durable: sync before it is noted.
	if err := o.FS.SyncDir(path.Dir(to)); err != nil {
		return nil, fmt.Errorf("sync partition directory: %w", err)
	}
	return &Built{Unit: *u, Path: to, Mode: u.Mode, Bytes: r.Size(), Footer: *footer}, nil
}

// SideLocation is the root directory of a side table: beside the table,
// <name>_dead or <name>_late.
func SideLocation(location, table string) string {
	if table == ledger.MainTable {
		return location
	}
	return location + "_" + table
}
