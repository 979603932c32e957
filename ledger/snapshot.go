package ledger

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"path"

	"github.com/hivesink/hivesink/layout"
	"github.com/hivesink/hivesink/storage"
)

// upkeep is what keeps the log short: when the next snapshot is due, and the
// one that is being made. Nothing of it is a fact.
type upkeep struct {
	tried   uint64     // sequence at the last snapshot, or try
	size    int64      // bytes of the last snapshot
	since   int64      // bytes of the records after it
	making  chan error // not nil: one is being made beside us
	err     error      // of the last one
	expired int64      // when the history was last looked through, wall clock, microseconds
}

const (
	// A snapshot has all partitions, a record those it is about. Written every
	// so many records, snapshots of a table with many partitions would cost
	// more than all else; so they also wait until the records amount to a part
	// of the last one, though not for ever: whoever reads the log reads those.
	snapshotShare = 2 // of the last snapshot's bytes
	snapshotWaits = 8 // times SnapshotEvery
	smallSnapshot = 64 << 10
)

// knowSnapshots notes where the newest snapshot is.
func (l *Ledger) knowSnapshots() error {
	files, err := list(l.o.FS, l.o.Table)
	if err != nil {
		return err
	}
	l.keep.tried, l.keep.size = files.newestSnapshot(), files.newestSize
	return nil
}

// snapshotDue says whether the log has grown enough for another snapshot.
func (l *Ledger) snapshotDue() bool {
	k, every := &l.keep, uint64(l.o.SnapshotEvery)
	records := l.st.Seq - k.tried
	return k.making == nil && records >= every &&
		(k.size < smallSnapshot || k.since >= k.size/snapshotShare || records >= snapshotWaits*every)
}

// maintain makes a snapshot when one is due: beside the caller, who does not
// wait for it, or at once.
func (l *Ledger) maintain() {
	l.settleUpkeep(false)
	if !l.snapshotDue() {
		return
	}
	l.keep.tried, l.keep.since = l.st.Seq, 0
	if !l.o.Background {
		l.keep.size, l.keep.err = l.snapshot(l.st)
		return
	}
	st := l.st.shallow()
	done := make(chan error, 1)
	l.keep.making = done
	go func() { // joined by settleUpkeep, at the latest in Close
		size, err := l.snapshot(st)
		l.keep.size = size // read after done only
		done <- err
	}()
}

// settleUpkeep takes the outcome of a snapshot that was made beside us.
func (l *Ledger) settleUpkeep(wait bool) {
	if l.keep.making == nil {
		return
	}
	if !wait {
		select {
		case l.keep.err = <-l.keep.making:
			l.keep.making = nil
		default:
		}
		return
	}
	l.keep.err = <-l.keep.making
	l.keep.making = nil
}

// shallow is a copy that later records do not change: they replace entities,
// and never change one in place.
func (s *State) shallow() *State {
	c := *s
	c.Sources, c.Parts, c.Units, c.Partitions = maps.Clone(s.Sources), maps.Clone(s.Parts), maps.Clone(s.Units), maps.Clone(s.Partitions)
	c.Replacements = maps.Clone(s.Replacements)
	c.unannounced = nil // not in a snapshot
	return &c
}

// snapshot writes a state down, reads it back, and removes what is no longer
// needed (T7). A name that is taken is as good: it says the same. It uses
// nothing of the ledger that changes after Open, so that it may run beside it.
func (l *Ledger) snapshot(st *State) (size int64, err error) {
	seq := st.Seq
	data, err := encodeSnapshot(st)
	if err != nil {
		return 0, fmt.Errorf("encode log snapshot %d: %w", seq, err)
	}
	tmp := path.Join(l.staging, "snapshot-"+layout.LogFile(seq)+"-"+layout.ID(l.o.Random()))
	if err := l.exclusive(tmp, snapshotPath(l.o.Table, seq), data); err != nil {
		return 0, l.lost(fmt.Errorf("write log snapshot %d: %w", seq, err))
	}
	if err := l.readBack(st, data); err != nil {
		return 0, err
	}
	return int64(len(data)), l.prune()
}

// exclusive makes a file whole and durable. A name that is taken is as good:
// what is made like this follows from the log, and says the same.
func (l *Ledger) exclusive(tmp, name string, data []byte) error {
	err := storage.PutExclusive(l.o.FS, tmp, name, data)
	if !errors.Is(err, storage.ErrExist) {
		return err
	}
	if l.objects != nil {
		return nil
	}
	return l.Trash(tmp)
}

// readBack looks whether the storage has kept the snapshot.
func (l *Ledger) readBack(st *State, data []byte) error {
	name := snapshotPath(l.o.Table, st.Seq)
	got, err := l.o.FS.ReadFile(name)
	if err != nil {
		return storage.Classify(fmt.Errorf("read log snapshot %d back: %w", st.Seq, err))
	}
	if bytes.Equal(got, data) {
		return nil
	}
	back, err := readSnapshot(l.o.FS, l.o.Table, st.Seq)
	if err != nil {
		return fmt.Errorf("read log snapshot %d back: %w", st.Seq, err)
	}
	if back.Checksum != st.Checksum {
		return damaged("snapshot", name, errors.New("it is of another log"), "")
	}
	return nil
}

// prune removes all snapshots but two, and moves the records that the older of
// the two covers into the history. Should the newest one be damaged one day, all
// that leads on from the other is there.
func (l *Ledger) prune() error {
	files, err := list(l.o.FS, l.o.Table)
	if err != nil {
		return err
	}
	n := len(files.snapshots)
	if n < 2 {
		return nil
	}
	for _, seq := range files.snapshots[:n-2] {
		if err := l.Trash(snapshotPath(l.o.Table, seq)); err != nil {
			return err
		}
	}
	older := files.snapshots[n-2]
	if err := checkSnapshot(l.o.FS, l.o.Table, older); err != nil {
		return err
	}
	return l.moveToHistory(files.records, older)
}
