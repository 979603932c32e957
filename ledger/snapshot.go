package ledger

import (
	"errors"
	"fmt"
	"path"

	"github.com/hivesink/hivesink/layout"
	"github.com/hivesink/hivesink/storage"
)

// knowSnapshots notes where the newest snapshot is.
func (l *Ledger) knowSnapshots() error {
	files, err := list(l.o.FS, l.o.Table)
	if err != nil {
		return err
	}
	l.snapshotTried = files.newestSnapshot()
	return nil
}

// snapshot writes the state down, reads it back, and removes what is no longer
// needed (T7). A name that is taken is as good: it says the same.
func (l *Ledger) snapshot() error {
	seq := l.st.Seq
	data, err := encodeSnapshot(l.st)
	if err != nil {
		return fmt.Errorf("encode log snapshot %d: %w", seq, err)
	}
	tmp := path.Join(l.staging, "snapshot-"+layout.LogFile(seq)+"-"+layout.ID(l.o.Random()))
	if err := storage.WriteFile(l.o.FS, tmp, data); err != nil {
		return l.lost(fmt.Errorf("write log snapshot %d: %w", seq, err))
	}
	err = storage.Publish(l.o.FS, tmp, snapshotPath(l.o.Table, seq))
	if errors.Is(err, storage.ErrExist) {
		err = l.Trash(tmp)
	}
	if err != nil {
		return l.lost(fmt.Errorf("write log snapshot %d: %w", seq, err))
	}
	back, err := readSnapshot(l.o.FS, l.o.Table, seq)
	if err != nil {
		return fmt.Errorf("read log snapshot %d back: %w", seq, err)
	}
	if back.Checksum != l.st.Checksum {
		return damaged("snapshot", snapshotPath(l.o.Table, seq), errors.New("it is of another log"), "")
	}
	return l.prune()
}

// prune removes all snapshots but two, and the records that the older of the
// two covers and that are older than history. Should the newest one be damaged
// one day, all that leads on from the other is there.
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
	if _, err := readSnapshot(l.o.FS, l.o.Table, older); err != nil {
		return err
	}
	limit := l.o.Now().Add(-l.o.History).UnixMicro()
	for _, seq := range files.records {
		if seq > older {
			return nil
		}
		if seq == l.sealed {
			continue
		}
		r, _, err := readRecord(l.o.FS, l.o.Table, seq)
		if err != nil {
			return err
		}
		if r.Time > limit {
			return nil
		}
		if err := l.Trash(recordPath(l.o.Table, seq)); err != nil {
			return err
		}
	}
	return nil
}
