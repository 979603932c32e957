package kv

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/storage/localfs"
)

// minFree is the free space, in bytes, below which Badger is not touched (K2):
// a full memtable, its flush and a compaction fit in it.
const minFree = 64 << 20

// Sizes of Badger's files, in bytes.
const (
	memTableSize = 8 << 20
	valueLogSize = 16 << 20
)

// Badger is a Store on disk. It is safe for concurrent use.
type Badger struct {
	dir  string
	free func(dir string) (uint64, error)

	mu      sync.RWMutex
	db      *badger.DB // nil: not opened for lack of space, or closed
	closed  bool
	warning error
}

var _ Store = (*Badger)(nil)

// OpenBadger opens the store in dir, making it when absent (0700). One that
// cannot be opened is begun anew (K3); two processes must not open it at the same
// moment, so the caller has locked state_dir. Without space it is opened by the first
// Update that finds some (K2); until then it cannot be read.
func OpenBadger(dir string) (*Badger, error) { return openWith(dir, localfs.Free) }

func openWith(dir string, free func(string) (uint64, error)) (*Badger, error) {
	b := &Badger{dir: dir, free: free}
	err := b.ready()
	if err != nil && fault.ClassOf(err) == fault.Retry {
		b.warning = err
		return b, nil
	}
	if err != nil {
		return nil, err
	}
	return b, nil
}

// Warning says what happened to the store, nil when nothing did: it was begun
// anew because it could not be opened, or it waits for space.
func (b *Badger) Warning() error {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.warning
}

// ready checks the free space and opens the store if it is not open.
func (b *Badger) ready() error {
	free, err := b.free(b.dir)
	if err != nil {
		return fmt.Errorf("look for the free space of the index: %w", err)
	}
	if free < minFree {
		return fault.New(fault.Retry, "free some space or move state_dir; nothing is lost meanwhile",
			"no space left for the index %s: %d MB free, %d MB needed", b.dir, free>>20, minFree>>20)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
		return badger.ErrDBClosed
	case b.db != nil:
		return nil
	}
	return b.open()
}

func (b *Badger) open() error {
	if err := os.MkdirAll(filepath.Dir(b.dir), 0o700); err != nil {
		return fmt.Errorf("make a place for the index: %w", err)
	}
	mark := sentinelOf(b.dir)
	err := errDiedOpening
	if !mark.found() {
		if err := mark.set(); err != nil {
			return fmt.Errorf("open the index %s: %w", b.dir, err)
		}
		b.db, err = open(b.dir)
	}
	if err != nil && !inUse(err) {
		if err = b.beginAnew(err); err != nil {
			return err
		}
	}
	if cerr := mark.clear(); cerr != nil && err == nil {
		return fmt.Errorf("open the index %s: %w", b.dir, errors.Join(cerr, b.db.Close()))
	}
	if err != nil { // K4
		return fault.Wrap(fault.Fenced, "stop the other process, or give this one a state_dir of its own",
			fmt.Errorf("open the index %s: %w", b.dir, err))
	}
	return nil
}

var errDiedOpening = errors.New("an earlier process died while opening it")

// beginAnew throws the store away and makes an empty one (K3). It is renamed
// first: a kill in between must not leave half a store.
func (b *Badger) beginAnew(cause error) (err error) {
	b.warning = fmt.Errorf("the index %s could not be opened and is rebuilt from the table log: %w", b.dir, cause)
	aside := b.dir + ".damaged"
	err = os.RemoveAll(aside)
	if err == nil {
		err = os.Rename(b.dir, aside)
	}
	if err == nil || errors.Is(err, os.ErrNotExist) {
		err = os.RemoveAll(aside)
	}
	if err != nil {
		return fmt.Errorf("%w; and throw it away: %w", b.warning, err)
	}
	if b.db, err = open(b.dir); err != nil {
		return fmt.Errorf("open a new index %s: %w", b.dir, err)
	}
	return nil
}

// inUse recognises the only error of Badger that speaks of another process; it
// has no type.
func inUse(err error) bool { return strings.Contains(err.Error(), "Another process is using") }

// open turns a panic over damaged files into an error.
func open(dir string) (db *badger.DB, err error) {
	defer func() {
		if p := recover(); p != nil {
			db, err = nil, fmt.Errorf("badger panicked: %v", p)
		}
	}()
	if err := inspect(dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return badger.Open(badger.DefaultOptions(dir).
		WithLogger(nil).
		WithSyncWrites(true).
		WithMemTableSize(memTableSize).
		WithNumMemtables(2).
		WithValueLogFileSize(valueLogSize).
		WithCompression(options.None).
		WithBlockCacheSize(0).
		WithIndexCacheSize(0).
		WithNumCompactors(2).
		WithDetectConflicts(false). // there is one writer
		WithChecksumVerificationMode(tableChecks).
		WithVerifyValueChecksum(true).
		WithMetricsEnabled(false))
}

// View reads. It fails while the store waits for space.
func (b *Badger) View(fn func(Reader) error) error {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if b.db == nil {
		return fmt.Errorf("read the index %s: %w", b.dir, badger.ErrDBClosed)
	}
	return b.db.View(func(t *badger.Txn) error { return fn(badgerTxn{t}) })
}

// Update writes, after a look at the free space.
func (b *Badger) Update(fn func(Writer) error) error {
	if err := b.ready(); err != nil {
		return err
	}
	b.mu.RLock()
	defer b.mu.RUnlock()
	if b.db == nil {
		return fmt.Errorf("write the index %s: %w", b.dir, badger.ErrDBClosed)
	}
	return b.db.Update(func(t *badger.Txn) error { return fn(badgerTxn{t}) })
}

// Close closes the store; a second Close does nothing.
func (b *Badger) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	db := b.db
	b.db, b.closed = nil, true
	if db == nil {
		return nil
	}
	return db.Close()
}

type badgerTxn struct{ t *badger.Txn }

func (b badgerTxn) Get(key string) ([]byte, error) {
	item, err := b.t.Get([]byte(key))
	if errors.Is(err, badger.ErrKeyNotFound) {
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	return item.ValueCopy(nil)
}

func (b badgerTxn) Scan(prefix string, fn func(string, []byte) error) error {
	o := badger.DefaultIteratorOptions
	o.Prefix = []byte(prefix)
	it := b.t.NewIterator(o)
	defer it.Close()
	for it.Rewind(); it.Valid(); it.Next() {
		item := it.Item()
		if err := item.Value(func(v []byte) error { return fn(string(item.Key()), v) }); err != nil {
			return err
		}
	}
	return nil
}

func (b badgerTxn) Set(key string, value []byte) error { return b.t.Set([]byte(key), value) }

func (b badgerTxn) Delete(key string) error { return b.t.Delete([]byte(key)) }
