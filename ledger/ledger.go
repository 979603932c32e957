package ledger

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/layout"
	"github.com/hivesink/hivesink/storage"
)

// errTaken: the next sequence is somebody else's record.
var errTaken = errors.New("the sequence is taken")

// State is what the log says. It belongs to the goroutine that appends.
func (l *Ledger) State() *State { return l.st }

// Epoch is ours.
func (l *Ledger) Epoch() uint64 { return l.epoch }

// Staging is the full path of our staging directory.
func (l *Ledger) Staging() string { return l.staging }

// IndexErr is why the index is behind, nil when it is not. The next Open
// rebuilds it.
func (l *Ledger) IndexErr() error {
	if l.index == nil {
		return nil
	}
	return l.index.err
}

// Append makes a record durable and applies it. It fills in all fields but the
// facts. After any error but one of a full disk before the record was written,
// the ledger is poisoned: whether the fact stands is for the next owner to
// read.
func (l *Ledger) Append(r *Record) error {
	err := l.append(r)
	if errors.Is(err, errTaken) {
		return l.fencedOff("its next log record is another process's")
	}
	if err != nil {
		return err
	}
	if l.st.Seq-l.snapshot >= uint64(l.o.SnapshotEvery) {
		if err := l.takeSnapshot(); err != nil {
			l.broken = err
			return err
		}
	}
	return nil
}

func (l *Ledger) append(r *Record) error {
	if l.broken != nil {
		return l.broken
	}
	r.Version, r.Seq, r.Epoch = formatVersion, l.st.Seq+1, l.epoch
	r.Nonce, r.Time, r.Previous = layout.ID(l.o.Random()), l.o.Now().UnixMicro(), l.st.Checksum
	data, sum, err := Encode(r)
	if err != nil {
		return fmt.Errorf("encode log record %d: %w", r.Seq, err)
	}
	// Applied to a copy first: a record that contradicts the state must not get
	// into the log.
	next := l.st.Clone()
	touched, err := next.Apply(r, sum)
	if err != nil {
		return err
	}
	if err := l.write(r, data); err != nil {
		if !errors.Is(err, errTaken) {
			l.broken = err
		}
		return err
	}
	l.st = next
	if l.index != nil {
		l.index.update(next, touched)
	}
	return nil
}

// write puts a record under its sequence. It is written and synced in our
// staging directory and renamed without replacement: a fenced owner's directory
// is gone, and a sequence is given once.
func (l *Ledger) write(r *Record, data []byte) error {
	tmp := path.Join(l.staging, "record-"+r.Nonce)
	name := path.Join(logDir(l.o.Table), layout.LogFile(r.Seq))
	err := storage.WriteFile(l.o.FS, tmp, data)
	if errors.Is(err, storage.ErrNotExist) {
		return l.fencedOff("its staging directory is gone")
	}
	if err != nil {
		return storage.Classify(fmt.Errorf("write log record %d: %w", r.Seq, err))
	}
	if err := l.o.FS.Rename(tmp, name); err != nil {
		if err := l.outcome(r, tmp, name, err); err != nil {
			return err
		}
	}
	if err := l.o.FS.SyncDir(logDir(l.o.Table)); err != nil {
		return fmt.Errorf("sync the table log after record %d: %w", r.Seq, err)
	}
	return nil
}

// outcome decides what a rename that returned an error has done, by reading the
// name back: ours if it carries our epoch and nonce.
func (l *Ledger) outcome(r *Record, tmp, name string, cause error) error {
	got, _, err := readRecord(l.o.FS, name)
	switch {
	case err == nil && got.Epoch == r.Epoch && got.Nonce == r.Nonce:
		return nil
	case err == nil:
		_ = l.o.FS.Remove(tmp) // garbage of ours
		return errTaken
	case !errors.Is(err, storage.ErrNotExist):
		return fmt.Errorf("append log record %d: %w (and reading it back: %w)", r.Seq, cause, err)
	}
	if there, err := storage.Exists(l.o.FS, l.staging); err == nil && !there {
		return l.fencedOff("its staging directory is gone")
	}
	return storage.Classify(fmt.Errorf("append log record %d: %w", r.Seq, cause))
}

// takeSnapshot writes the state, reads it back, and then removes what it makes
// superfluous.
func (l *Ledger) takeSnapshot() error {
	seq := l.st.Seq
	data, _, err := seal(l.st)
	if err != nil {
		return fmt.Errorf("encode snapshot %d: %w", seq, err)
	}
	tmp := path.Join(l.staging, "snapshot-"+layout.ID(l.o.Random()))
	if err := storage.WriteFile(l.o.FS, tmp, data); err != nil {
		return storage.Classify(fmt.Errorf("write snapshot %d: %w", seq, err))
	}
	err = storage.Publish(l.o.FS, tmp, path.Join(logDir(l.o.Table), layout.SnapshotFile(seq)))
	if err != nil && !errors.Is(err, storage.ErrExist) {
		return storage.Classify(fmt.Errorf("write snapshot %d: %w", seq, err))
	}
	if _, err := readSnapshot(l.o.FS, l.o.Table, seq); err != nil {
		return fmt.Errorf("read snapshot %d back: %w", seq, err)
	}
	l.snapshot = seq
	return l.prune(seq)
}

// prune removes records that a snapshot covers and that are older than
// history, and all snapshots but two. Our own epoch's record stays.
func (l *Ledger) prune(snapshot uint64) error {
	files, err := list(l.o.FS, l.o.Table)
	if err != nil {
		return fmt.Errorf("list the table log: %w", err)
	}
	for i := 0; i+2 < len(files.snapshots); i++ {
		if err := l.Trash(path.Join(logDir(l.o.Table), layout.SnapshotFile(files.snapshots[i]))); err != nil {
			return err
		}
	}
	limit := l.o.Now().Add(-l.o.History).UnixMicro()
	for seq := files.first; seq <= snapshot && seq < l.sealed; seq++ {
		name := path.Join(logDir(l.o.Table), layout.LogFile(seq))
		r, _, err := readRecord(l.o.FS, name)
		if errors.Is(err, storage.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if r.Time > limit {
			break
		}
		if err := l.Trash(name); err != nil {
			return err
		}
	}
	return nil
}

// Trash deletes a file: a rename into our staging directory, then an unlink, so
// that a fenced owner deletes nothing. A file that is not there is
// storage.ErrNotExist.
func (l *Ledger) Trash(name string) error {
	if !strings.HasPrefix(name, l.staging+"/") {
		to := path.Join(l.staging, "trash-"+layout.ID(l.o.Random()))
		if err := l.o.FS.Rename(name, to); err != nil {
			return fmt.Errorf("move aside before deleting: %w", err)
		}
		name = to
	}
	if err := l.o.FS.Remove(name); err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	return nil
}

// Locate returns the full path of a staged file that a part names.
func (l *Ledger) Locate(epoch uint64, name string) (string, error) {
	if epoch == l.epoch {
		return path.Join(l.staging, name), nil
	}
	key := fmt.Sprintf("%d/%s", epoch, name)
	if dir, ok := l.places[key]; ok {
		return path.Join(dir, name), nil
	}
	full, err := FindStaged(l.o.FS, l.o.Table, epoch, name)
	if err != nil {
		return "", err
	}
	l.places[key] = path.Dir(full)
	return full, nil
}

// Close gives the table up. Staging that the log does not need is removed.
func (l *Ledger) Close() error {
	var errs []error
	ours := false
	for _, p := range l.st.Parts {
		ours = ours || p.Epoch == l.epoch
	}
	if !ours && l.broken == nil {
		// Best effort: the next owner removes what stays.
		if storage.RemoveAll(l.o.FS, l.staging) == nil {
			_ = l.o.FS.Remove(path.Dir(l.staging))
		}
	}
	if l.lock != nil {
		errs = append(errs, l.lock.Close())
		l.lock = nil
	}
	l.broken = fault.New(fault.Halt, "", "the ledger is closed")
	return errors.Join(errs...)
}
