package compactor

import (
	"errors"
	"fmt"
	"path"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/storage"
)

// TargetPath is the full path of a unit's target.
func (o *Options) TargetPath(u *ledger.Unit) string {
	return path.Join(o.Location(u.Table), u.Partition, u.Target)
}

// Publish renames a built target to its final name and makes that durable
// (C1).
func (o *Options) Publish(b *Built) error {
	to := o.TargetPath(&b.Unit)
	if err := storage.MkdirAllSync(o.FS, path.Dir(o.Location(b.Unit.Table)), path.Dir(to)); err != nil {
		return storage.Classify(fmt.Errorf("make partition directory: %w", err))
	}
	err := storage.Publish(o.FS, b.Path, to)
	if errors.Is(err, storage.ErrExist) {
		return fault.Wrap(fault.Halt, "move the file away, or run fsck to see what it is",
			fmt.Errorf("publish unit %s: a file is in the way: %w", b.Unit.ID, err))
	}
	if err != nil {
		return storage.Classify(fmt.Errorf("publish unit %s as %s: %w", b.Unit.ID, to, err))
	}
	// A rename that answers well and does nothing would lose the rows: look.
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
