package ledger

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"time"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/internal/kv"
	"github.com/hivesink/hivesink/layout"
	"github.com/hivesink/hivesink/storage"
)

// Options are what a ledger needs.
type Options struct {
	FS       storage.FS
	Table    string // absolute root of the table
	Pipeline string
	Host     string // for people
	Version  string
	PID      int
	// Identity must equal what the log has, for the keys in both.
	Identity      map[string]string
	StateDir      string   // for messages
	Index         kv.Store // nil: none
	Lock          bool     // local disk: the lock decides who owns
	Now           func() time.Time
	Random        func() uint64
	History       time.Duration // how long records are kept
	SnapshotEvery int           // records; default 64
}

// Ledger is an open table log: this process owns the table.
type Ledger struct {
	o        Options
	st       *State
	epoch    uint64
	dir      string // the random name of our staging directory
	staging  string
	lock     io.Closer
	index    *index
	places   map[string]string // staged directories of former epochs
	sealed   uint64            // sequence of our epoch record
	snapshot uint64            // of the newest snapshot
	broken   error
}

func metaDir(table string) string { return path.Join(table, layout.MetaDir) }

// Open takes the ownership of a table, in the order of the numbered steps of
// the package comment, and adopts what the log names.
func Open(ctx context.Context, o Options) (*Ledger, error) {
	if o.SnapshotEvery == 0 {
		o.SnapshotEvery = 64
	}
	l := &Ledger{o: o, places: make(map[string]string)}
	if err := l.open(ctx); err != nil {
		if l.lock != nil {
			err = errors.Join(err, l.lock.Close())
		}
		return nil, err
	}
	return l, nil
}

func (l *Ledger) open(ctx context.Context) error {
	st, err := readState(l.o.FS, l.o.Table)
	if err != nil {
		return err
	}
	if err := l.admit(st); err != nil {
		return err
	}
	if st == nil {
		if err := l.create(); err != nil {
			return err
		}
	}
	if err := l.takeLock(); err != nil {
		return err
	}
	if st, err = l.recall(); err != nil {
		return err
	}
	if err := l.admit(st); err != nil { // it may have changed before we had the lock
		return err
	}
	l.st = st
	if l.st == nil {
		l.st = NewState()
	}
	steps := []func() error{l.claim, l.look, l.fence, l.seal, l.adopt}
	for _, step := range steps {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// admit is step 0: may this pipeline have this table at all? It touches
// nothing.
func (l *Ledger) admit(st *State) error {
	if st == nil {
		return nil
	}
	if st.Owner.Pipeline != l.o.Pipeline && !st.Released {
		return fault.New(fault.Fenced, "run `hivesink drain` with that pipeline's configuration to release the table",
			"table %s belongs to pipeline %q, this is pipeline %q", l.o.Table, st.Owner.Pipeline, l.o.Pipeline)
	}
	for _, k := range sortedKeys(l.o.Identity) {
		if was, ok := st.Owner.Identity[k]; ok && was != l.o.Identity[k] {
			return fault.New(fault.Halt, "the source is not the one this table was filled from",
				"%s is %q, the table log says %q", k, l.o.Identity[k], was)
		}
	}
	return nil
}

// create makes the directories of a new table. A place with files of others is
// refused: fsck could prove nothing there.
func (l *Ledger) create() error {
	entries, err := l.o.FS.List(l.o.Table)
	if err != nil && !errors.Is(err, storage.ErrNotExist) {
		return fmt.Errorf("look at the table's location: %w", err)
	}
	for _, e := range entries {
		if !layout.Hidden(e.Name) {
			return fault.New(fault.Halt, "use an empty location, or move the files away",
				"%s holds %s, which hivesink did not write", l.o.Table, path.Join(l.o.Table, e.Name))
		}
	}
	root := l.o.Table
	for {
		ok, err := storage.Exists(l.o.FS, root)
		if err != nil {
			return fmt.Errorf("look at the table's location: %w", err)
		}
		if ok || root == "/" {
			break
		}
		root = path.Dir(root)
	}
	if err := storage.MkdirAllSync(l.o.FS, root, logDir(l.o.Table)); err != nil {
		return storage.Classify(fmt.Errorf("make the table's directories: %w", err))
	}
	return nil
}

func (l *Ledger) takeLock() error {
	if !l.o.Lock {
		return nil
	}
	name := path.Join(metaDir(l.o.Table), "lock")
	lock, err := l.o.FS.Lock(name)
	if errors.Is(err, storage.ErrLocked) {
		return fault.Wrap(fault.Fenced, "one process owns a table; stop the other one first", fmt.Errorf("table %s is in use: %w", l.o.Table, err))
	}
	if err != nil {
		return fmt.Errorf("lock the table: %w", err)
	}
	l.lock = lock
	return nil
}

// recall reads the state: from the index where that is of this log, else from
// the log alone.
func (l *Ledger) recall() (*State, error) {
	if l.o.Index == nil {
		return readState(l.o.FS, l.o.Table)
	}
	l.index = &index{store: l.o.Index}
	known := l.index.load(l.o.FS, l.o.Table)
	if known != nil {
		files, err := list(l.o.FS, l.o.Table)
		if err != nil {
			return nil, fmt.Errorf("list the table log: %w", err)
		}
		return files.replay(l.o.FS, l.o.Table, known)
	}
	return readState(l.o.FS, l.o.Table)
}

// claim is step 1: a fresh directory renamed to the next epoch's name; of all
// claimants of a number one wins.
func (l *Ledger) claim() error {
	meta := metaDir(l.o.Table)
	l.dir = layout.ID(l.o.Random())
	fresh := path.Join(meta, "claim-"+l.dir)
	if err := l.o.FS.Mkdir(fresh); err != nil {
		return storage.Classify(fmt.Errorf("claim the table: %w", err))
	}
	if err := l.o.FS.Mkdir(path.Join(fresh, l.dir)); err != nil {
		return storage.Classify(fmt.Errorf("claim the table: %w", err))
	}
	if err := l.o.FS.SyncDir(fresh); err != nil {
		return fmt.Errorf("claim the table: %w", err)
	}
	for {
		highest, err := l.highest()
		if err != nil {
			return err
		}
		l.epoch = highest + 1
		err = l.o.FS.Rename(fresh, path.Join(meta, layout.EpochDir(l.epoch)))
		if errors.Is(err, storage.ErrExist) {
			continue
		}
		if errors.Is(err, storage.ErrNotExist) {
			return l.fencedOff("its claim was removed by another process")
		}
		if err != nil {
			return fmt.Errorf("claim epoch %d: %w", l.epoch, err)
		}
		break
	}
	l.staging = path.Join(meta, layout.EpochDir(l.epoch), l.dir)
	return l.syncMeta()
}

func (l *Ledger) syncMeta() error {
	if err := l.o.FS.SyncDir(metaDir(l.o.Table)); err != nil {
		return fmt.Errorf("sync the table's own directory: %w", err)
	}
	return nil
}

// highest is the highest epoch any directory or the log names.
func (l *Ledger) highest() (uint64, error) {
	entries, err := l.o.FS.List(metaDir(l.o.Table))
	if err != nil {
		return 0, fmt.Errorf("look for other owners: %w", err)
	}
	n := l.st.Epoch
	for _, e := range entries {
		if k, ok := layout.ParseEpochDir(e.Name); ok {
			n = max(n, k)
		} else if k, ok := layout.ParseFencedDir(e.Name); ok {
			n = max(n, k)
		}
	}
	return n, nil
}

// look is step 2: whoever sees a higher epoch leaves.
func (l *Ledger) look() error {
	n, err := l.highest()
	if err != nil {
		return err
	}
	if n > l.epoch {
		_ = storage.RemoveAll(l.o.FS, path.Dir(l.staging)) // ours, and empty
		return l.fencedOff(fmt.Sprintf("epoch %d has been claimed", n))
	}
	return nil
}

func (l *Ledger) fencedOff(why string) error {
	return fault.New(fault.Fenced, "another process has taken the table over", "table %s, epoch %d: %s", l.o.Table, l.epoch, why)
}

// fence is step 3: every lower epoch's directory is renamed away, so that all
// paths of its owner lead nowhere.
func (l *Ledger) fence() error {
	meta := metaDir(l.o.Table)
	entries, err := l.o.FS.List(meta)
	if err != nil {
		return fmt.Errorf("look for other owners: %w", err)
	}
	for _, e := range entries {
		k, ok := layout.ParseEpochDir(e.Name)
		if !ok || k >= l.epoch {
			continue
		}
		to := layout.FencedDir(k)
		for again := 1; ; again++ {
			err := l.o.FS.Rename(path.Join(meta, e.Name), path.Join(meta, to))
			if errors.Is(err, storage.ErrExist) {
				to = layout.FencedDirAgain(k, again)
				continue
			}
			if err != nil && !errors.Is(err, storage.ErrNotExist) { // fenced by another claimant
				return fmt.Errorf("fence epoch %d: %w", k, err)
			}
			break
		}
	}
	if err := l.syncMeta(); err != nil {
		return err
	}
	st, err := l.readOn()
	if err != nil {
		return err
	}
	return l.admit(st)
}

// readOn reads what others have appended since.
func (l *Ledger) readOn() (*State, error) {
	files, err := list(l.o.FS, l.o.Table)
	if err != nil {
		return nil, fmt.Errorf("list the table log: %w", err)
	}
	st, err := files.replay(l.o.FS, l.o.Table, l.st)
	if err != nil {
		return nil, err
	}
	l.st = st
	if st.Seq == 0 {
		return nil, nil
	}
	return st, nil
}

// seal is step 4: the epoch record. Until it stands nothing is adopted,
// planned, published or removed.
func (l *Ledger) seal() error {
	id := l.st.Owner.Table
	if id == "" {
		id = layout.ID(l.o.Random())
	}
	for {
		if l.st.Epoch > l.epoch {
			return l.fencedOff(fmt.Sprintf("epoch %d owns it", l.st.Epoch))
		}
		err := l.append(&Record{NewEpoch: &Epoch{Pipeline: l.o.Pipeline, Table: id, Host: l.o.Host, PID: l.o.PID,
			Version: l.o.Version, Identity: l.o.Identity, Dir: l.dir}})
		if errors.Is(err, errTaken) {
			st, err := l.readOn()
			if err != nil {
				return err
			}
			if err := l.admit(st); err != nil {
				return err
			}
			if st != nil {
				id = st.Owner.Table
			}
			continue
		}
		if err != nil {
			return err
		}
		l.sealed = l.st.Seq
		return nil
	}
}

// adopt keeps what the log names where it lies and removes the rest of former
// owners' staging.
func (l *Ledger) adopt() error {
	meta := metaDir(l.o.Table)
	named := make(map[string]bool, len(l.st.Parts))
	for _, p := range l.st.Parts {
		named[fmt.Sprintf("%d/%s", p.Epoch, p.Name)] = true
	}
	entries, err := l.o.FS.List(meta)
	if err != nil {
		return fmt.Errorf("look for leftovers: %w", err)
	}
	for _, e := range entries {
		full := path.Join(meta, e.Name)
		if n, ok := layout.ParseFencedDir(e.Name); ok {
			if err := l.sweep(full, n, named); err != nil {
				return storage.Classify(fmt.Errorf("remove leftovers of epoch %d: %w", n, err))
			}
		} else if len(e.Name) > 6 && e.Name[:6] == "claim-" {
			if err := storage.RemoveAll(l.o.FS, full); err != nil {
				return storage.Classify(fmt.Errorf("remove an abandoned claim: %w", err))
			}
		}
	}
	return nil
}

func (l *Ledger) sweep(dir string, epoch uint64, named map[string]bool) error {
	subs, err := l.o.FS.List(dir)
	if err != nil {
		return err
	}
	kept := false
	for _, s := range subs {
		sub := path.Join(dir, s.Name)
		files, err := l.o.FS.List(sub)
		if err != nil {
			return err
		}
		left := 0
		for _, f := range files {
			if named[fmt.Sprintf("%d/%s", epoch, f.Name)] {
				left++
				continue
			}
			if err := storage.RemoveAll(l.o.FS, path.Join(sub, f.Name)); err != nil {
				return err
			}
		}
		if left > 0 {
			kept = true
		} else if err := l.o.FS.Remove(sub); err != nil {
			return err
		}
	}
	if kept {
		return nil
	}
	return l.o.FS.Remove(dir)
}
