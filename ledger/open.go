package ledger

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
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
	Pipeline string // who wants to own it
	Host     string // for people
	Version  string // of hivesink, for people
	PID      int    // for people
	// Identity must equal what the log has, for the keys that both have; the
	// log keeps the union.
	Identity map[string]string
	// StateDir is named in messages only; the caller locks it.
	StateDir string
	Index    kv.Store // nil: none. The caller closes it, after the ledger.
	// Lock: take the lock of the table (local file systems). Without it the
	// directory rules alone fence.
	Lock          bool
	Now           func() time.Time // default time.Now
	Random        func() uint64    // 64 random bits; default crypto/rand
	History       time.Duration    // how long records are kept at least; default 7 days; below 0: as long as they are needed
	SnapshotEvery int              // records at least between two snapshots; default 64
	// Background: snapshots are made beside Append, which does not wait for
	// them. FS, Now and Random must then be safe for concurrent use.
	Background bool

	indexKeys int // in one transaction of the index; default transactionKeys
}

const (
	defaultHistory       = 7 * 24 * time.Hour
	defaultSnapshotEvery = 64
)

func (o *Options) defaults() error {
	if err := storage.CheckName(o.Table); err != nil {
		return fault.New(fault.Config, "give an absolute path", "table root %q: %w", o.Table, err)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Random == nil {
		o.Random = randomBits
	}
	if o.History == 0 {
		o.History = defaultHistory
	}
	o.History = max(0, o.History)
	if o.indexKeys <= 0 {
		o.indexKeys = transactionKeys
	}
	if o.SnapshotEvery <= 0 {
		o.SnapshotEvery = defaultSnapshotEvery
	}
	return nil
}

// Keep is Options.History for a user's choice, of which 0 means that nothing is
// kept longer than it is needed.
func Keep(history time.Duration) time.Duration {
	if history <= 0 {
		return -1
	}
	return history
}

func randomBits() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return binary.LittleEndian.Uint64(b[:])
}

// Ledger is a table log that this process owns. It serves one goroutine, save
// for Epoch and Staging.
type Ledger struct {
	o       Options
	st      *State
	index   *index // nil: none
	lock    io.Closer
	epoch   uint64
	dir     string // name of our directory in epoch-<n>
	staging string // its full path

	places  map[uint64][]string // staging directories of former epochs
	sealed  uint64              // sequence of our epoch record
	keep    upkeep
	unclean bool  // see Unclean
	over    error // not nil: the ledger takes nothing more (T9)

	objects storage.Objects // not nil: the table lies on an object store
	uploads *Uploads        // once asked for
}

// Open takes the ownership of a table and adopts what its log names, in the
// order of the steps in the package comment. Errors: class Fenced when another
// process or pipeline has the table, Halt when only a person can decide.
func Open(ctx context.Context, o Options) (*Ledger, error) {
	if err := o.defaults(); err != nil {
		return nil, err
	}
	l := &Ledger{o: o, places: make(map[uint64][]string)}
	l.objects, _ = o.FS.(storage.Objects)
	steps := []func() error{l.inspect, l.takeLock, l.recall, l.claim, l.look, l.fence, l.seal, l.adopt}
	if l.objects != nil {
		steps = []func() error{l.inspect, func() error { return l.probe(ctx) }, l.recall, l.number, l.seal, l.adopt}
	}
	for _, step := range steps {
		err := ctx.Err()
		if err == nil {
			err = step()
		}
		if err != nil {
			return nil, errors.Join(err, l.unlock())
		}
	}
	return l, nil
}

// inspect is step 0 before the lock: it reads the state, from the index on where
// that is good, and touches nothing (T4) until it is known that nothing speaks
// against us; then it makes the directories of a new table.
func (l *Ledger) inspect() error {
	if l.o.Index != nil {
		l.index = newIndex(l.o.Index, l.o.indexKeys)
		l.st = l.index.load(l.o.FS, l.o.Table)
	}
	if err := l.readOn(); err != nil {
		return err
	}
	if l.st.Seq > 0 || l.objects != nil {
		return nil
	}
	return l.makeDirectories()
}

// admit says whether this pipeline may have this table at all.
func (l *Ledger) admit(st *State) error {
	if st.Seq == 0 {
		err := l.admitNew()
		if err == nil {
			return nil
		}
		// Another process may have made the table since the log was read: the
		// files are its own then.
		if now, rerr := replay(l.o.FS, l.o.Table, nil, nil); rerr == nil && now.Seq > 0 {
			return l.admit(now)
		}
		return err
	}
	if st.Owner.Pipeline != l.o.Pipeline && !st.Released {
		return fault.New(fault.Fenced, "run `hivesink drain` with that pipeline's configuration to release the table",
			"table %s belongs to pipeline %q, this is pipeline %q", l.o.Table, st.Owner.Pipeline, l.o.Pipeline)
	}
	for _, k := range sortedKeys(l.o.Identity) {
		if was, ok := st.Owner.Identity[k]; ok && was != l.o.Identity[k] {
			return fault.New(fault.Halt, "the table must go on from the source it was filled from; use a new table for another one",
				"table %s: %s is %q, the table log has %q", l.o.Table, k, l.o.Identity[k], was)
		}
	}
	return nil
}

// admitNew looks at a place whose log has no record. Files of others would make
// every later proof impossible, and parts of ours mean that the log was lost.
func (l *Ledger) admitNew() error {
	file, err := l.visibleFile(l.o.Table)
	if err != nil {
		return err
	}
	// Side tables, too: of a table that was removed to begin anew they would have
	// their rows twice. One that we may not look at is nobody's concern here.
	for _, side := range []string{DeadTable, LateTable} {
		if file == "" {
			file, _ = l.visibleFile(l.o.Table + "_" + side)
		}
	}
	if file != "" {
		return fault.New(fault.Halt, "give the table an empty location, or move the files away",
			"%s is where table %s is to be, and in no table log", file, l.o.Table)
	}
	err = storage.Walk(l.o.FS, metaDir(l.o.Table), func(name string, _ storage.Info) error {
		_, part := layout.ParseStagedPart(path.Base(name))
		_, noted := layout.ParseUploadsNote(path.Base(name))
		if _, bundle := layout.ParseStagedBundle(path.Base(name)); !part && !bundle && !noted {
			return nil
		}
		return fault.New(fault.Halt, "restore the log from a copy of the table, or remove the directory to give up the rows in it",
			"the table log %s is gone, and %s was made under it", logDir(l.o.Table), name)
	})
	if err != nil && !errors.Is(err, storage.ErrNotExist) {
		return storage.Classify(fmt.Errorf("look for parts of a lost log: %w", err))
	}
	return nil
}

// visibleFile finds a file that readers of a directory would see.
func (l *Ledger) visibleFile(root string) (file string, err error) {
	err = storage.Walk(l.o.FS, root, func(name string, info storage.Info) error {
		switch {
		case layout.Hidden(info.Name) && info.Dir:
			return fs.SkipDir
		case layout.Hidden(info.Name) || info.Dir:
			return nil
		}
		file = name
		return errSeen
	})
	if err != nil && err != errSeen && !errors.Is(err, storage.ErrNotExist) {
		return "", storage.Classify(fmt.Errorf("look for foreign files: %w", err))
	}
	return file, nil
}

var errSeen = errors.New("seen")

// makeDirectories makes what a new table needs. Levels that a killed process
// has made are as good as new ones only when they are synced as well, and which
// they are nobody knows: all of them.
func (l *Ledger) makeDirectories() error {
	root := l.o.Table
	for root != "/" {
		there, err := storage.Exists(l.o.FS, root)
		if err != nil {
			return storage.Classify(fmt.Errorf("look for the table's directory: %w", err))
		}
		if there {
			break
		}
		root = path.Dir(root)
	}
	for dir := root; dir != "/"; dir = path.Dir(dir) {
		// What we may not sync, we have not made; nor what cannot be.
		if err := l.o.FS.SyncDir(path.Dir(dir)); err != nil && !storage.NotOurs(err) {
			return storage.Classify(fmt.Errorf("make the table's directory durable: %w", err))
		}
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
	lock, err := l.o.FS.Lock(path.Join(metaDir(l.o.Table), layout.LockFile))
	if err != nil {
		return storage.Classify(fmt.Errorf("own table %s: %w", l.o.Table, err))
	}
	l.lock = lock
	return nil
}

func (l *Ledger) unlock() error {
	if l.lock == nil {
		return nil
	}
	err := l.lock.Close()
	l.lock = nil
	return err
}

// recall repeats step 0: all may have changed before we had the lock.
func (l *Ledger) recall() error { return l.readOn() }

// readOn reads what others have appended, and looks whether we may have the
// table.
func (l *Ledger) readOn() error {
	st, err := replay(l.o.FS, l.o.Table, l.st, func(t *Touched) {
		if l.index != nil {
			l.index.note(t)
		}
	})
	if err != nil {
		return err
	}
	l.st = st
	return l.admit(st)
}

// State is what the log says. It belongs to the goroutine that appends and
// changes with Append; its entities must not be changed.
func (l *Ledger) State() *State { return l.st }

// Epoch is ours.
func (l *Ledger) Epoch() uint64 { return l.epoch }

// Staging is the full path of our staging directory. It is never made again:
// when it is gone, we are fenced.
func (l *Ledger) Staging() string { return l.staging }

// IndexErr is why the index is behind the log, nil when it is not. Of class
// Retry (no space) the next record tries again, else the next Open rebuilds.
func (l *Ledger) IndexErr() error {
	if l.index == nil {
		return nil
	}
	return l.index.err
}

// UpkeepErr is why the last snapshot was not made or garbage not removed, nil
// when all is well. No fact depends on either; it is tried again later.
func (l *Ledger) UpkeepErr() error {
	l.settleUpkeep(false)
	return l.keep.err
}

// Close gives the table up. A staging directory that the log does not need is
// removed; where that does not work the next owner does it.
func (l *Ledger) Close() error {
	l.settleUpkeep(true)
	if l.objects != nil && fault.ClassOf(l.over) == fault.Fenced {
		l.tidy()
	}
	if l.over == nil && !l.staged(l.epoch) {
		if l.objects != nil {
			if l.abandon(l.st) == nil {
				_ = l.objects.RemoveTree(l.staging) // the next owner sweeps
			}
		} else if storage.RemoveAll(l.o.FS, l.staging) == nil {
			_ = l.o.FS.Remove(path.Dir(l.staging)) // the next owner sweeps
		}
	}
	l.over = fault.New(fault.Halt, "", "the ledger is closed")
	return l.unlock()
}

// staged says whether the log names anything in the staging of this epoch.
func (l *Ledger) staged(epoch uint64) bool {
	for _, r := range l.st.Replacements {
		if r.Epoch == epoch {
			return true
		}
	}
	for _, p := range l.st.Parts {
		if p.Epoch == epoch {
			return true
		}
	}
	return false
}

// claimPrefix begins the name of a directory on its way to be epoch-<n>.
const claimPrefix = "claim-"

func isClaim(name string) bool { return strings.HasPrefix(name, claimPrefix) }
