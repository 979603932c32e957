package pipeline

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/internal/kv"
	"github.com/hivesink/hivesink/storage"
	"github.com/hivesink/hivesink/storage/localfs"
)

// openState locks state_dir and opens the index in it.
func (p *Pipeline) openState(o Options) (kv.Store, error) {
	dir := o.Config.StateDir
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("state_dir: %w", err)
	}
	if o.Config.Table.Location.IsLocal() && inside(TableRoot(o.Config), abs) {
		return nil, fault.New(fault.Config, "put it elsewhere: nothing but the table belongs there",
			"state_dir: %s is inside the table's location %s", dir, TableRoot(o.Config))
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("state_dir: %w", err)
	}
	if !o.NoLock {
		lock, err := localfs.New().Lock(filepath.ToSlash(filepath.Join(abs, "lock")))
		if errors.Is(err, storage.ErrLocked) {
			return nil, fault.Wrap(fault.Fenced, "stop the other process, or give this one a state_dir of its own",
				fmt.Errorf("state_dir %s is in use: %w", dir, err))
		}
		if err != nil {
			return nil, fmt.Errorf("lock state_dir: %w", err)
		}
		p.closers = append(p.closers, lock)
	}
	index, err := kv.OpenBadger(filepath.Join(abs, "index"))
	if err != nil {
		return nil, fmt.Errorf("open the index in state_dir: %w", err)
	}
	p.closers = append(p.closers, index)
	// That it waits for space is told when the first record is not in it.
	if w := index.Warning(); w != nil && fault.ClassOf(w) != fault.Retry && o.Events != nil {
		o.Events(Event{Kind: "index-rebuilt", Err: w})
	}
	return index, nil
}

// inside says whether file is dir or lies in it, whatever links lead there.
func inside(dir, file string) bool {
	rel, err := filepath.Rel(resolved(dir), resolved(file))
	return err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
}

// resolved is a path without links, of which the end may not exist yet.
func resolved(name string) string {
	for at, rest := name, ""; ; {
		if to, err := filepath.EvalSymlinks(at); err == nil {
			return filepath.Join(to, rest)
		}
		if filepath.Dir(at) == at {
			return name
		}
		at, rest = filepath.Dir(at), filepath.Join(filepath.Base(at), rest)
	}
}
