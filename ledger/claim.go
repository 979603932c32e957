package ledger

import (
	"errors"
	"fmt"
	"maps"
	"path"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/layout"
	"github.com/hivesink/hivesink/storage"
)

// claim is step 1. The directory gets its one entry before it gets its name: a
// directory that is not empty is not renamed over, so that of all claimants of
// a number one wins.
func (l *Ledger) claim() error {
	meta := metaDir(l.o.Table)
	l.dir = layout.ID(l.o.Random())
	fresh := path.Join(meta, claimPrefix+l.dir)
	err := l.prepareClaim(fresh, path.Join(fresh, l.dir))
	if errors.Is(err, storage.ErrNotExist) {
		return l.fenced("another process has taken it over meanwhile") // and swept our claim
	}
	if err != nil {
		return storage.Classify(fmt.Errorf("prepare a claim: %w", err))
	}
	highest, err := l.highest()
	if err != nil {
		return err
	}
	l.epoch = highest + 1
	l.staging = path.Join(meta, layout.EpochDir(l.epoch), l.dir)
	err = storage.Publish(l.o.FS, fresh, path.Dir(l.staging))
	switch {
	case err == nil:
		return nil
	case errors.Is(err, storage.ErrExist):
		_ = storage.RemoveAll(l.o.FS, fresh) // the next owner sweeps
		return l.fenced("another process has claimed it at the same time")
	case errors.Is(err, storage.ErrNotExist):
		return l.fenced("another process has taken it over meanwhile") // and swept our claim
	}
	return storage.Classify(fmt.Errorf("claim epoch %d: %w", l.epoch, err))
}

func (l *Ledger) prepareClaim(fresh, inside string) error {
	if err := l.o.FS.Mkdir(fresh); err != nil {
		return err
	}
	if err := l.o.FS.Mkdir(inside); err != nil {
		return err
	}
	return l.o.FS.SyncDir(fresh)
}

// highest is the highest epoch that any directory or the log names.
func (l *Ledger) highest() (uint64, error) {
	entries, err := l.o.FS.List(metaDir(l.o.Table))
	if err != nil {
		return 0, storage.Classify(fmt.Errorf("look for other owners: %w", err))
	}
	n := l.st.Epoch
	for _, e := range entries {
		k, ok := layout.ParseEpochDir(e.Name)
		if !ok {
			k, _ = layout.ParseFencedDir(e.Name)
		}
		n = max(n, k)
	}
	return n, nil
}

// look is step 2: whoever sees a higher epoch removes its own directory and
// leaves.
func (l *Ledger) look() error {
	if err := l.readOn(); err != nil {
		return err
	}
	n, err := l.highest()
	if err != nil {
		return err
	}
	if n > l.epoch || l.st.Epoch >= l.epoch {
		_ = storage.RemoveAll(l.o.FS, path.Dir(l.staging)) // ours and empty; the next owner sweeps
		return l.fenced(fmt.Sprintf("epoch %d has been claimed", n))
	}
	return nil
}

// fence is step 3. A lower epoch that vanishes under our hands was fenced by
// another claimant.
func (l *Ledger) fence() error {
	meta := metaDir(l.o.Table)
	entries, err := l.o.FS.List(meta)
	if err != nil {
		return storage.Classify(fmt.Errorf("look for former owners: %w", err))
	}
	for _, e := range entries {
		k, ok := layout.ParseEpochDir(e.Name)
		if !ok || k >= l.epoch {
			continue
		}
		l.unclean = !l.o.Lock
		err := l.o.FS.Rename(path.Join(meta, e.Name), path.Join(meta, layout.FencedDir(k)))
		for again := 1; errors.Is(err, storage.ErrExist); again++ {
			err = l.o.FS.Rename(path.Join(meta, e.Name), path.Join(meta, layout.FencedDirAgain(k, again)))
		}
		if err != nil && !errors.Is(err, storage.ErrNotExist) {
			return storage.Classify(fmt.Errorf("fence epoch %d: %w", k, err))
		}
	}
	if err := l.o.FS.SyncDir(meta); err != nil {
		return storage.Classify(fmt.Errorf("make the fence durable: %w", err))
	}
	return l.readOn()
}

// seal is step 4. The former owner may have appended until the fence, and
// another newcomer may be here as well: a refused sequence means to read on.
func (l *Ledger) seal() error {
	for {
		if l.st.Epoch >= l.epoch {
			return l.fenced(fmt.Sprintf("epoch %d owns it", l.st.Epoch))
		}
		l.unclean = l.unclean || l.objects != nil && l.st.Epoch > 0 // nothing there tells
		err := l.append(&Record{NewEpoch: l.epochRecord()})
		if err == nil {
			l.sealed = l.st.Seq
			return l.knowSnapshots()
		}
		if !errors.Is(err, errTaken) {
			return err
		}
		if err := l.readOn(); err != nil {
			return err
		}
	}
}

func (l *Ledger) epochRecord() *Epoch {
	id := l.st.Owner.Table
	if id == "" {
		id = layout.ID(l.o.Random())
	}
	identity := make(map[string]string)
	maps.Copy(identity, l.st.Owner.Identity)
	maps.Copy(identity, l.o.Identity)
	if len(identity) == 0 {
		identity = nil
	}
	return &Epoch{Pipeline: l.o.Pipeline, Table: id, Host: l.o.Host, PID: l.o.PID, Version: l.o.Version, Identity: identity, Dir: l.dir}
}

// fenced is the error of an owner that has lost the table. It names the new
// owner when the log can be read.
func (l *Ledger) fenced(why string) error {
	hint := "another process owns the table now; see that only one runs"
	if st, err := replay(l.o.FS, l.o.Table, nil, nil); err == nil && st.Epoch > l.epoch {
		hint = fmt.Sprintf("epoch %d is owned by pipeline %q, process %d on %q; see that only one runs", st.Epoch, st.Owner.Pipeline, st.Owner.PID, st.Owner.Host)
	}
	return fault.New(fault.Fenced, hint, "table %s, epoch %d: %s", l.o.Table, l.epoch, why)
}

// Unclean says whether a former owner may not have ended yet: something of it
// was left, and no lock proves that its process is gone.
func (l *Ledger) Unclean() bool { return l.unclean }

// gone says whether we are fenced: our staging directory has been renamed away,
// or, where there are no renames, the log has a higher epoch. An error means
// that it is not known.
func (l *Ledger) gone() (bool, error) {
	if l.objects != nil {
		return l.outlived()
	}
	there, err := storage.Exists(l.o.FS, l.staging)
	return err == nil && !there, err
}
