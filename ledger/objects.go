package ledger

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/layout"
	"github.com/hivesink/hivesink/storage"
)

// On an object store there is no directory to rename, so that taking the table
// is one step: the epoch record, made under the next sequence if nobody has made
// one there. It fences the former owner, which can append nothing under that
// sequence any more, and whoever claims the same number: of two one wins.
//
// A sequence is given once only while its record is there. A process that was
// stopped between reading the log and appending may find its sequence free
// again, since the records of others moved into the history meanwhile. So an
// append counts only after a look that finds nothing behind it (T13): what is
// moved leaves newer snapshots behind.

// probe finds out, before the claim, whether the store keeps what this is built
// on.
func (l *Ledger) probe(ctx context.Context) error {
	if err := l.objects.Probe(ctx, metaDir(l.o.Table)); err != nil {
		return fmt.Errorf("table %s: %w", l.o.Table, err)
	}
	return nil
}

// staleProbe says whether an object was left by a probe whose process died. A
// probe takes seconds; one that is under way must not be disturbed.
func (l *Ledger) staleProbe(e storage.Info) bool {
	return strings.HasPrefix(e.Name, storage.ProbePrefix) && !e.Dir && l.o.Now().Sub(e.ModTime) > time.Hour
}

// number draws our epoch, which the seal claims.
func (l *Ledger) number() error {
	l.dir = layout.ID(l.o.Random())
	l.epoch = l.st.Epoch + 1
	l.staging = path.Join(metaDir(l.o.Table), layout.EpochDir(l.epoch), l.dir)
	return nil
}

// put puts a record under its sequence, in one step.
func (l *Ledger) put(r *Record, data []byte) error {
	name := recordPath(l.o.Table, r.Seq)
	err := l.objects.Make(name, data)
	if err != nil {
		err = l.putOutcome(r, fmt.Errorf("append log record %d: %w", r.Seq, err))
	}
	if err != nil {
		return err
	}
	return l.counts(r)
}

// putOutcome decides what a Put that returned an error has done, by reading back
// (T9). What is not there may still come: the next append of that sequence finds
// out, and is told that it is taken.
func (l *Ledger) putOutcome(r *Record, cause error) error {
	got, _, err := readRecord(l.o.FS, l.o.Table, r.Seq)
	switch {
	case err == nil && got.Epoch == r.Epoch && got.Nonce == r.Nonce:
		return nil
	case err == nil && got.Epoch == r.Epoch && got.NewEpoch == nil && r.NewEpoch == nil:
		return fault.New(fault.Halt, "start again; the record will be adopted", "log record %d, given up before, has appeared", r.Seq)
	case err == nil:
		return errTaken
	case errors.Is(err, storage.ErrNotExist):
		return l.lost(cause)
	}
	return fault.Wrap(fault.Halt, "start again; the log tells whether it was done", fmt.Errorf("%w; and read it back: %w", cause, err))
}

// counts says whether a record that stands is the last one (T13).
func (l *Ledger) counts(r *Record) error {
	behind, err := l.objects.ListAfter(logDir(l.o.Table), layout.LogFile(r.Seq), 1)
	if err != nil {
		return fault.Wrap(fault.Halt, "start again; the log tells whether it was done",
			fmt.Errorf("look for other owners after log record %d: %w", r.Seq, err))
	}
	if len(behind) > 0 {
		l.withdraw(r)
		return errTaken
	}
	return nil
}

// withdraw removes a record that was made where another one had been, as far as
// that goes: readers of the state pass over it, those of the history would not.
// Records leave the log in their order, so that one of the chain is followed by
// its successor, or gone.
func (l *Ledger) withdraw(r *Record) {
	got, sum, err := readRecord(l.o.FS, l.o.Table, r.Seq)
	if err != nil || got.Epoch != r.Epoch || got.Nonce != r.Nonce {
		return
	}
	next, _, err := readRecord(l.o.FS, l.o.Table, r.Seq+1)
	if errors.Is(err, storage.ErrNotExist) || err == nil && next.Previous != sum {
		_ = l.objects.Remove(recordPath(l.o.Table, r.Seq)) // nothing depends on it
	}
}

// tidy removes what a fenced owner has put into its staging after its successor
// swept it, as far as that goes: what the log does not name it will never name.
func (l *Ledger) tidy() {
	st, err := replay(l.o.FS, l.o.Table, nil, nil)
	if err != nil || st.Epoch <= l.epoch {
		return
	}
	left := l.abandon(st) != nil
	files, err := l.o.FS.List(l.staging)
	if err != nil {
		return
	}
	named := stagedFiles(st)
	for _, f := range files {
		_, note := layout.ParseUploadsNote(f.Name)
		if !named[StagedFile{l.epoch, f.Name}] && !(note && left) {
			_ = l.objects.Remove(path.Join(l.staging, f.Name)) // else the next owner sweeps
		}
	}
}

// outlived says whether the log has a higher epoch than ours.
func (l *Ledger) outlived() (bool, error) {
	st, err := replay(l.o.FS, l.o.Table, nil, nil)
	if err != nil {
		return false, err
	}
	return st.Epoch > l.epoch, nil
}

// former says whether a directory is the staging of a former owner, and of
// which epoch. On an object store nobody renames it.
func (l *Ledger) former(name string) (uint64, bool) {
	epoch, ok := layout.ParseFencedDir(name)
	if !ok && l.objects != nil {
		epoch, ok = layout.ParseEpochDir(name)
	}
	return epoch, ok && epoch < l.epoch
}

// Confirm looks whether we still own the table: before something that a former
// owner must not do and that storage does not refuse it. Class Fenced: we do
// not. An error of another class means that it is not known.
func (l *Ledger) Confirm() error {
	gone, err := l.gone()
	switch {
	case gone:
		return l.fenced("another process has taken it over")
	case err != nil:
		return storage.Classify(fmt.Errorf("look whether epoch %d still owns the table: %w", l.epoch, err))
	}
	return nil
}
