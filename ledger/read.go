package ledger

import (
	"errors"
	"fmt"
	"path"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/layout"
	"github.com/hivesink/hivesink/storage"
)

func metaDir(table string) string { return path.Join(table, layout.MetaDir) }

func logDir(table string) string { return path.Join(table, layout.MetaDir, layout.LogDir) }

func recordPath(table string, seq uint64) string {
	return path.Join(logDir(table), layout.LogFile(seq))
}

func snapshotPath(table string, seq uint64) string {
	return path.Join(logDir(table), layout.SnapshotFile(seq))
}

// Read reads what the log says, beside a run if need be: the newest snapshot
// and the records after it. A table without a log is an error of class Config.
func Read(fs storage.FS, table string) (*State, error) {
	st, err := replay(fs, table, nil, nil)
	if err != nil {
		return nil, err
	}
	if st.Seq == 0 {
		return nil, noTable(table)
	}
	return st, nil
}

func noTable(table string) error {
	return fault.New(fault.Config, "check table.location; hivesink run makes the table",
		"%s is not a table of hivesink: it has no %s/%s", table, layout.MetaDir, layout.LogDir)
}

// link is what the record after this one must fit (T2). Between records that
// were kept for their age others may be gone.
type link struct {
	seq, epoch     uint64
	checksum, name string
}

func (b link) check(r *Record, seq uint64) error {
	switch {
	case r.Seq != seq:
		return damaged("record", layout.LogFile(seq), fmt.Errorf("it says it is record %d", r.Seq), "")
	case r.Epoch < b.epoch:
		return damaged("record", layout.LogFile(seq), fmt.Errorf("it is of epoch %d, after one of epoch %d", r.Epoch, b.epoch), "")
	case b.seq+1 == seq && r.Previous != b.checksum:
		return damaged("record", layout.LogFile(seq), fmt.Errorf("it does not follow %s", b.name), "")
	}
	return nil
}

// listing is what lies in the log directory, both ascending.
type listing struct {
	records    []uint64
	snapshots  []uint64
	newestSize int64 // bytes of the newest snapshot
}

func (l *listing) newestSnapshot() uint64 { return last(l.snapshots) }

// end is the highest sequence that is known to be in the log.
func (l *listing) end() uint64 { return max(last(l.records), last(l.snapshots)) }

func last(s []uint64) uint64 {
	if len(s) == 0 {
		return 0
	}
	return s[len(s)-1]
}

// list lists the log; one that is missing is empty. What is no file of the log
// is refused: a half-restored copy must not pass for the whole.
func list(fs storage.FS, table string) (*listing, error) {
	l := new(listing)
	entries, err := fs.List(logDir(table))
	if errors.Is(err, storage.ErrNotExist) {
		return l, nil
	}
	if err != nil {
		return nil, storage.Classify(fmt.Errorf("list the table log: %w", err))
	}
	for _, e := range entries {
		if seq, ok := layout.ParseSnapshotFile(e.Name); ok && !e.Dir {
			l.snapshots = append(l.snapshots, seq)
			l.newestSize = e.Size
		} else if seq, ok := layout.ParseLogFile(e.Name); ok && !e.Dir {
			l.records = append(l.records, seq)
		} else {
			return nil, fault.New(fault.Halt, "move it out of the directory", "%s is not a file of the table log", path.Join(logDir(table), e.Name))
		}
	}
	return l, nil
}

// restarts is how often a reader begins again because the owner removed what
// it was about to read. Each time the owner has made a newer snapshot.
const restarts = 20

// replay brings a state up to the end of the log. from (nil: the state before
// the first record) belongs to replay from here on, also on an error. seen is
// told what each record changed; where the state came from a snapshot instead
// of from, it is told nil before.
func replay(fs storage.FS, table string, from *State, seen func(*Touched)) (*State, error) {
	if from == nil {
		from = NewState()
	}
	if seen == nil {
		seen = func(*Touched) {}
	}
	var newest uint64
	for try := 0; ; try++ {
		l, err := list(fs, table)
		if err != nil {
			return nil, err
		}
		st, err := replayListed(fs, table, l, from, seen)
		if !errors.Is(err, storage.ErrNotExist) {
			return st, err
		}
		// Something vanished. Unless a newer snapshot explains it, it is a gap
		// (T2); the first look only learns which is the newest.
		if try > 0 && l.newestSnapshot() <= newest || try == restarts {
			return nil, fault.Wrap(fault.Halt, "restore the file from a copy of the table and start again; nothing was changed", err)
		}
		newest = l.newestSnapshot()
	}
}

// replayListed reads on from the newest readable snapshot, or from the state it
// is given when that is further. ErrNotExist means that something listed, or
// below something listed, was not there.
func replayListed(fs storage.FS, table string, l *listing, st *State, seen func(*Touched)) (*State, error) {
	st, broken, err := bestSnapshot(fs, table, l, st, seen)
	if err != nil {
		return nil, err
	}
	for {
		seq := st.Seq + 1
		r, sum, err := readRecord(fs, table, seq)
		if errors.Is(err, storage.ErrNotExist) {
			switch {
			case seq > l.end():
				return st, nil
			case broken != nil:
				return nil, broken
			}
			return nil, fmt.Errorf("record %d is missing from the table log, which goes on to %d; affected: %s: %w", seq, l.end(), after(st), err)
		}
		if err != nil {
			return nil, withAffected(err, st)
		}
		if r.Seq != seq {
			return nil, damaged("record", recordPath(table, seq), fmt.Errorf("it says it is record %d", r.Seq), after(st))
		}
		t, err := st.Apply(r, sum)
		if err != nil {
			return nil, damaged("record", recordPath(table, seq), err, after(st))
		}
		seen(&t)
	}
}

// bestSnapshot is the newest snapshot that can be read and is further than st,
// else st. broken says why a newer one could not be used: not of interest as
// long as the records after the older one are there.
func bestSnapshot(fs storage.FS, table string, l *listing, st *State, seen func(*Touched)) (best *State, broken, err error) {
	for i := len(l.snapshots) - 1; i >= 0 && l.snapshots[i] > st.Seq; i-- {
		snapshot, err := readSnapshot(fs, table, l.snapshots[i])
		if err == nil {
			seen(nil)
			return snapshot, broken, nil
		}
		if errors.Is(err, storage.ErrNotExist) {
			return nil, nil, err
		}
		if broken == nil {
			broken = err
		}
	}
	return st, broken, nil
}

// after names what a damaged record may take along.
func after(st *State) string {
	return fmt.Sprintf("checkpoint %d and everything after it", st.Checkpoint+1)
}

func withAffected(err error, st *State) error {
	var newer *newerError
	if errors.As(err, &newer) {
		return err // nothing is lost
	}
	var classed *fault.Error
	if errors.As(err, &classed) && classed == err {
		return &fault.Error{Class: classed.Class, Hint: classed.Hint, Err: fmt.Errorf("%w; affected: %s", classed.Err, after(st))}
	}
	return fmt.Errorf("%w; affected: %s", err, after(st))
}

func readRecord(fs storage.FS, table string, seq uint64) (*Record, string, error) {
	name := recordPath(table, seq)
	data, err := fs.ReadFile(name)
	if err != nil {
		return nil, "", storage.Classify(fmt.Errorf("read log record %d: %w", seq, err))
	}
	return Decode(name, data)
}

func readSnapshot(fs storage.FS, table string, seq uint64) (*State, error) {
	name := snapshotPath(table, seq)
	data, err := fs.ReadFile(name)
	if err != nil {
		return nil, storage.Classify(fmt.Errorf("read log snapshot %d: %w", seq, err))
	}
	st, err := decodeSnapshot(data)
	if err == nil && st.Seq != seq {
		err = fmt.Errorf("it says it is of record %d", st.Seq)
	}
	if err != nil {
		return nil, damaged("snapshot", name, err, "")
	}
	return st, nil
}

// checkSnapshot says whether a snapshot's bytes are still what was written.
func checkSnapshot(fs storage.FS, table string, seq uint64) error {
	name := snapshotPath(table, seq)
	data, err := fs.ReadFile(name)
	if err != nil {
		return storage.Classify(fmt.Errorf("read log snapshot %d: %w", seq, err))
	}
	if _, _, err := unseal(data); err != nil {
		return damaged("snapshot", name, err, "")
	}
	return nil
}

// snapshotFile carries the state; its own checksum comes last, beside the
// record's that the state has.
type snapshotFile struct {
	Version int    `json:"v"`
	State   *State `json:"state"`
}

func encodeSnapshot(st *State) ([]byte, error) {
	data, _, err := sealJSON(snapshotFile{Version: formatVersion, State: st})
	return data, err
}

func decodeSnapshot(data []byte) (*State, error) {
	f := snapshotFile{State: NewState()}
	if _, err := unsealJSON(data, &f); err != nil {
		return nil, err
	}
	if f.State == nil {
		return nil, errors.New("it has no state")
	}
	f.State.derive()
	return f.State, nil
}
