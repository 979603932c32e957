package ledger

import (
	"errors"
	"fmt"
	"path"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/layout"
	"github.com/hivesink/hivesink/storage"
)

// errTaken: the next sequence holds somebody else's record.
var errTaken = errors.New("the next log record is another process's")

// Append makes a record durable in the log, then applies it to the state, then
// to the index. It fills in everything but the facts.
//
// An error of class Retry (no space) means that nothing has happened; the
// ledger stays usable. So does it after a record that contradicts the state
// (class Halt), which never gets into the log (T6). After any other error the
// ledger takes nothing more: class Fenced means that another process owns the
// table, class Halt that the next owner has to find out (T9).
func (l *Ledger) Append(r *Record) error {
	if l.over != nil {
		return l.over
	}
	if r.NewEpoch != nil {
		return fault.New(fault.Halt, "", "an epoch is opened by Open only")
	}
	err := l.append(r)
	if errors.Is(err, errTaken) {
		l.over = l.fenced(errTaken.Error())
		return l.over
	}
	if err != nil {
		return err
	}
	l.maintain()
	return nil
}

func (l *Ledger) append(r *Record) error {
	r.Version, r.Seq, r.Epoch = formatVersion, l.st.Seq+1, l.epoch
	r.Nonce, r.Time, r.Previous = layout.ID(l.o.Random()), l.o.Now().UnixMicro(), l.st.Checksum
	data, sum, err := Encode(r)
	if err != nil {
		return err
	}
	// Applied first: what contradicts the state must not get into the log. The
	// state is nobody else's, so that it may be ahead for the time of a write.
	touched, err := l.st.Apply(r, sum)
	if err != nil {
		return err
	}
	if err := l.write(r, data); err != nil {
		l.st.revert(touched)
		if !errors.Is(err, errTaken) && fault.ClassOf(err) != fault.Retry {
			l.over = err
		}
		return err
	}
	l.keep.since += int64(len(data))
	if l.index != nil {
		l.index.note(&touched)
		l.index.flush(l.st)
	}
	return nil
}

// write puts a record under its sequence: written and synced in our staging
// directory, then renamed without replacement. A fenced owner's directory is
// gone (T3), and a sequence is given once.
func (l *Ledger) write(r *Record, data []byte) error {
	if l.objects != nil {
		return l.put(r, data)
	}
	tmp := path.Join(l.staging, "record-"+layout.LogFile(r.Seq)+"-"+r.Nonce)
	if err := storage.WriteFile(l.o.FS, tmp, data); err != nil {
		return l.lost(fmt.Errorf("write log record %d: %w", r.Seq, err))
	}
	err := storage.Publish(l.o.FS, tmp, recordPath(l.o.Table, r.Seq))
	var unsynced *storage.UnsyncedError
	if err == nil {
		return l.landed(r, int64(len(data)))
	}
	err = fmt.Errorf("append log record %d: %w", r.Seq, err)
	if errors.As(err, &unsynced) {
		return l.lost(err) // it may or may not stand after a power cut
	}
	return l.outcome(r, tmp, err)
}

// landed sees whether the rename was done: after one that answers well and does
// nothing, what was acknowledged would be nowhere, and the next record would
// follow none (T9).
func (l *Ledger) landed(r *Record, size int64) error {
	name := recordPath(l.o.Table, r.Seq)
	info, err := l.o.FS.Stat(name)
	switch {
	case err == nil && info.Size == size:
		return nil
	case err == nil:
		err = fmt.Errorf("it has %d bytes, want %d", info.Size, size)
	case !errors.Is(err, storage.ErrNotExist): // it may well be there
		return l.lost(fmt.Errorf("append log record %d: look at it after the rename: %w", r.Seq, &storage.UnsyncedError{Name: name, Err: err}))
	}
	return l.lost(fault.Wrap(fault.Halt, "the storage did not keep its word", fmt.Errorf("append log record %d: look at it after the rename: %w", r.Seq, err)))
}

// outcome decides what a rename that returned an error has done, by reading
// back (T9). Ours is what carries our epoch and nonce.
func (l *Ledger) outcome(r *Record, tmp string, cause error) error {
	got, _, err := readRecord(l.o.FS, l.o.Table, r.Seq)
	switch {
	case err == nil && got.Epoch == r.Epoch && got.Nonce == r.Nonce:
		for _, dir := range []string{logDir(l.o.Table), l.staging} {
			if err := l.o.FS.SyncDir(dir); err != nil {
				return l.lost(fmt.Errorf("%w; it was done, but is not known to be durable: %w", cause, err))
			}
		}
		return nil
	case err == nil && got.Epoch == r.Epoch:
		return fault.New(fault.Halt, "start again; the record will be adopted", "log record %d, given up before, has appeared", r.Seq)
	case err == nil:
		_ = l.o.FS.Remove(tmp) // the next owner sweeps
		return errTaken
	case errors.Is(err, storage.ErrNotExist):
		_ = l.o.FS.Remove(tmp) // nothing was done; the next owner sweeps
		return l.lost(cause)
	}
	return fault.Wrap(fault.Halt, "start again; the log tells whether it was done", fmt.Errorf("%w; and read it back: %w", cause, err))
}

// lost classes an error of a step in our staging directory: Fenced when that
// has been renamed away.
func (l *Ledger) lost(err error) error {
	gone, serr := l.gone()
	if gone {
		return fmt.Errorf("%w: %w", l.fenced("its staging directory has been renamed away"), err)
	}
	if serr != nil {
		// Whether we still own the table is not known: no retry.
		return fault.Wrap(fault.Halt, "", fmt.Errorf("%w; and look for the staging directory: %w", err, serr))
	}
	return storage.Classify(err)
}
