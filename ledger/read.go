package ledger

import (
	"errors"
	"fmt"
	"path"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/layout"
	"github.com/hivesink/hivesink/storage"
)

func logDir(table string) string { return path.Join(table, layout.MetaDir, layout.LogDir) }

// listing is what lies in the log directory.
type listing struct {
	records   map[uint64]bool
	snapshots []uint64 // ascending
	first     uint64   // lowest and highest record, 0: none
	last      uint64
}

func list(fs storage.FS, table string) (*listing, error) {
	entries, err := fs.List(logDir(table))
	if err != nil {
		return nil, err
	}
	l := &listing{records: make(map[uint64]bool)}
	for _, e := range entries {
		if n, ok := layout.ParseSnapshotFile(e.Name); ok {
			l.snapshots = append(l.snapshots, n)
		} else if n, ok := layout.ParseLogFile(e.Name); ok {
			l.records[n] = true
			if l.first == 0 {
				l.first = n
			}
			l.last = n
		} else {
			return nil, fault.New(fault.Halt, "move it away", "%s/%s is not a file of the table log", logDir(table), e.Name)
		}
	}
	return l, nil
}

// Read reads what the log says, beside a run: the newest snapshot and the
// records after it. A table without a log is an error of class config.
func Read(fs storage.FS, table string) (*State, error) {
	st, err := readState(fs, table)
	if err != nil {
		return nil, err
	}
	if st == nil {
		return nil, noTable(table)
	}
	return st, nil
}

func noTable(table string) error {
	return fault.New(fault.Config, "check table.location; hivesink run makes the table", "%s is not a table of hivesink: it has no %s/%s", table, layout.MetaDir, layout.LogDir)
}

// readState returns nil when there is no log. A record that vanishes between
// listing and reading was removed by the owner after a newer snapshot: start
// again there.
func readState(fs storage.FS, table string) (*State, error) {
	for try := 0; ; try++ {
		l, err := list(fs, table)
		if errors.Is(err, storage.ErrNotExist) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("list the table log: %w", err)
		}
		st, err := l.replay(fs, table, NewState())
		if errors.Is(err, storage.ErrNotExist) && try < 10 {
			continue
		}
		if err != nil {
			return nil, err
		}
		if st.Seq == 0 {
			return nil, nil
		}
		return st, nil
	}
}

// replay brings st, or the newest snapshot where that is further, up to the
// end of the log.
func (l *listing) replay(fs storage.FS, table string, st *State) (*State, error) {
	if n := len(l.snapshots); n > 0 && l.snapshots[n-1] > st.Seq {
		snap, err := readSnapshot(fs, table, l.snapshots[n-1])
		if err != nil {
			return nil, err
		}
		st = snap
	}
	for seq := st.Seq + 1; seq <= l.last; seq++ {
		name := path.Join(logDir(table), layout.LogFile(seq))
		if !l.records[seq] {
			return nil, fault.New(fault.Halt, "restore the file from a copy; nothing was changed",
				"log record %s is missing: everything after %s is affected", name, after(st))
		}
		r, sum, err := readRecord(fs, name)
		if err != nil {
			if errors.Is(err, storage.ErrNotExist) {
				return nil, err
			}
			return nil, fmt.Errorf("%w; everything after %s is affected", err, after(st))
		}
		if r.Seq != seq {
			return nil, damaged(name, fmt.Errorf("it says it is record %d", r.Seq))
		}
		if _, err := st.Apply(r, sum); err != nil {
			return nil, err
		}
	}
	return st, nil
}

func after(st *State) string { return fmt.Sprintf("checkpoint %d", st.Checkpoint) }

func readRecord(fs storage.FS, name string) (*Record, string, error) {
	data, err := fs.ReadFile(name)
	if err != nil {
		return nil, "", err
	}
	return Decode(name, data)
}

func readSnapshot(fs storage.FS, table string, seq uint64) (*State, error) {
	name := path.Join(logDir(table), layout.SnapshotFile(seq))
	data, err := fs.ReadFile(name)
	if err != nil {
		return nil, err
	}
	st := NewState()
	if _, err := unseal(data, st); err != nil {
		return nil, damaged(name, err)
	}
	if st.Seq != seq || st.Version != formatVersion {
		return nil, damaged(name, fmt.Errorf("it says it is of record %d, format version %d", st.Seq, st.Version))
	}
	return st, nil
}

// ReadLog calls fn for every record the log still has, in order.
func ReadLog(fs storage.FS, table string, fn func(*Record) error) error {
	l, err := list(fs, table)
	if errors.Is(err, storage.ErrNotExist) {
		return noTable(table)
	}
	if err != nil {
		return fmt.Errorf("list the table log: %w", err)
	}
	for seq := l.first; seq <= l.last && seq > 0; seq++ {
		name := path.Join(logDir(table), layout.LogFile(seq))
		r, _, err := readRecord(fs, name)
		if errors.Is(err, storage.ErrNotExist) {
			continue // removed meanwhile, older than history
		}
		if err != nil {
			return err
		}
		if err := fn(r); err != nil {
			return err
		}
	}
	return nil
}

// FindStaged finds a staged file of an epoch: in its own directory, or in one
// that has been fenced. Not found is storage.ErrNotExist.
func FindStaged(fs storage.FS, table string, epoch uint64, name string) (string, error) {
	meta := path.Join(table, layout.MetaDir)
	entries, err := fs.List(meta)
	if err != nil {
		return "", err
	}
	for _, e := range entries {
		n, ok := layout.ParseEpochDir(e.Name)
		if !ok {
			n, ok = layout.ParseFencedDir(e.Name)
		}
		if !ok || n != epoch {
			continue
		}
		subs, err := fs.List(path.Join(meta, e.Name))
		if err != nil && !errors.Is(err, storage.ErrNotExist) {
			return "", err
		}
		for _, s := range subs {
			full := path.Join(meta, e.Name, s.Name, name)
			if ok, err := storage.Exists(fs, full); err != nil {
				return "", err
			} else if ok {
				return full, nil
			}
		}
	}
	return "", fmt.Errorf("staged file %s of epoch %d: %w", name, epoch, storage.ErrNotExist)
}
