package maintenance

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"sync"

	"github.com/hivesink/hivesink/layout"
	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/storage"
)

// Settle finishes or undoes the units that former processes have left (MT4):
// those that the log names, or in a table without a log those in its
// CompactDir. The caller owns the table. It returns how many there were.
func Settle(fs storage.FS, root string, log *ledger.Ledger) (int, error) {
	if log == nil {
		return settleForeign(fs, root)
	}
	shared := &sharedLog{mu: new(sync.Mutex), log: log}
	var ids []string
	for id := range log.State().Replacements {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		if err := settleLogged(fs, root, shared, log.State().Replacements[id]); err != nil {
			return 0, storage.Classify(fmt.Errorf("settle unit %s of a compaction that was interrupted: %w", id, err))
		}
	}
	return len(ids), nil
}

func settleLogged(fs storage.FS, root string, log *sharedLog, r *ledger.Replacement) error {
	file, err := log.log.Locate(r.Epoch, layout.UnitFile(r.ID))
	if err == nil {
		p, err := readUnit(fs, root, path.Dir(file), r.ID)
		if err != nil {
			return err
		}
		if p != nil {
			return settle(p, log)
		}
	} else if !errors.Is(err, storage.ErrNotExist) {
		return err
	}
	// Without its description nothing was exchanged yet, or all is cleaned up.
	if dir, err := log.log.Locate(r.Epoch, r.ID); err == nil {
		if err := log.trash(fs, dir); err != nil {
			return err
		}
	} else if !errors.Is(err, storage.ErrNotExist) {
		return err
	}
	return log.append(&ledger.Record{ReplacementsEnded: []string{r.ID}})
}

// settleForeign goes through CompactDir and removes it.
func settleForeign(fs storage.FS, root string) (int, error) {
	staging := path.Join(root, layout.CompactDir)
	entries, err := fs.List(staging)
	if errors.Is(err, storage.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, storage.Classify(fmt.Errorf("look for an interrupted compaction: %w", err))
	}
	n := 0
	for _, e := range entries {
		id, ok := layout.ParseUnitFile(e.Name)
		if !ok {
			continue
		}
		p, err := readUnit(fs, root, staging, id)
		if err == nil && p != nil {
			n++
			err = settle(p, nil)
		}
		if err != nil {
			return n, storage.Classify(fmt.Errorf("settle unit %s of a compaction that was interrupted: %w", id, err))
		}
	}
	// What no description names was never exchanged.
	if err := storage.RemoveAll(fs, staging); err != nil {
		return n, storage.Classify(fmt.Errorf("remove what an interrupted compaction left: %w", err))
	}
	return n, nil
}

// settle decides by the marker what became of a unit (MT4).
func settle(p *place, log *sharedLog) error {
	done := log.done(p.ID)
	if p.Window {
		begun, err := p.marked(p.dir())
		if err != nil {
			return err
		}
		if begun && !done {
			// Its entry may not be durable yet, and what comes next counts on it.
			if err := p.fs.SyncDir(p.dir()); err != nil {
				return &storage.UnsyncedError{Name: p.dir(), Err: err}
			}
		}
		if done || begun {
			return finishWindow(p, log)
		}
		return undo(p, log)
	}
	exchanged, err := p.marked(p.partition())
	if err != nil {
		return err
	}
	if done || exchanged {
		return finishExchange(p, log)
	}
	return undo(p, log)
}

// finishExchange does all that comes after an exchange; it may be repeated.
func finishExchange(p *place, log *sharedLog) error {
	if !log.done(p.ID) {
		if err := p.settleExchange(); err != nil { // MT3
			return err
		}
		if err := log.append(&ledger.Record{Replaced: []string{p.ID}}); err != nil {
			return err
		}
	}
	if err := p.rescue(); err != nil {
		return err
	}
	if err := log.trash(p.fs, p.dir()); err != nil {
		return err
	}
	if err := p.unmark(); err != nil {
		return err
	}
	return p.end(log)
}

// finishWindow does all that comes after the commit marker; it may be repeated.
func finishWindow(p *place, log *sharedLog) error {
	if !log.done(p.ID) {
		if err := p.moveIn(); err != nil {
			return err
		}
		if err := log.append(&ledger.Record{Replaced: []string{p.ID}}); err != nil {
			return err
		}
	}
	if err := log.trash(p.fs, p.dir()); err != nil {
		return err
	}
	return p.end(log)
}

// undo removes what was built; nothing of it was ever visible.
func undo(p *place, log *sharedLog) error {
	if err := log.trash(p.fs, p.dir()); err != nil {
		return err
	}
	return p.end(log)
}

// end takes the description away, last (MT10).
func (p *place) end(log *sharedLog) error {
	if err := log.trash(p.fs, p.file()); err != nil {
		return err
	}
	if log.knows(p.ID) {
		return log.append(&ledger.Record{ReplacementsEnded: []string{p.ID}})
	}
	return nil
}

// sharedLog is a ledger that several workers use. A nil one is that of a table
// without a log: nothing is noted, nothing known.
type sharedLog struct {
	mu  *sync.Mutex
	log *ledger.Ledger
}

func (l *sharedLog) append(r *ledger.Record) error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.log.Append(r)
}

func (l *sharedLog) done(id string) bool {
	r := l.replacement(id)
	return r != nil && r.Done
}

func (l *sharedLog) knows(id string) bool { return l.replacement(id) != nil }

func (l *sharedLog) replacement(id string) *ledger.Replacement {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.log.State().Replacements[id]
}

// trash removes what lies in a staging directory.
func (l *sharedLog) trash(fs storage.FS, name string) error {
	if l == nil {
		return storage.RemoveAll(fs, name)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.log.Trash(name)
}
