package kv

import (
	"errors"
	"fmt"
	"os"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"
	"golang.org/x/sys/unix"

	"github.com/hivesink/hivesink/internal/fault"
)

// minFree is the free space below which nothing is written: Badger maps its
// files and dies by SIGBUS on a full disk.
const minFree = 64 << 20

// Badger is a Store on disk.
type Badger struct {
	db  *badger.DB
	dir string
}

// OpenBadger opens the store in dir, making it when absent. One that cannot be
// opened (cut short by a kill, a foreign format) is removed and begun anew:
// what it held can be rebuilt.
func OpenBadger(dir string) (*Badger, error) {
	if err := room(dir); err != nil {
		return nil, err
	}
	db, err := open(dir)
	if err != nil {
		if rerr := os.RemoveAll(dir); rerr != nil {
			return nil, errors.Join(fmt.Errorf("open the index %s: %w", dir, err), rerr)
		}
		if db, err = open(dir); err != nil {
			return nil, fmt.Errorf("open the index %s: %w", dir, err)
		}
	}
	return &Badger{db: db, dir: dir}, nil
}

func open(dir string) (*badger.DB, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return badger.Open(badger.DefaultOptions(dir).
		WithLogger(nil).
		WithSyncWrites(true).
		WithMemTableSize(8 << 20).
		WithNumMemtables(2).
		WithValueLogFileSize(16 << 20).
		WithValueThreshold(64 << 10).
		WithCompression(options.None).
		WithBlockCacheSize(0).
		WithIndexCacheSize(0).
		WithNumCompactors(2).
		WithMetricsEnabled(false))
}

func room(dir string) error {
	var st unix.Statfs_t
	for d := dir; ; d = parent(d) {
		err := unix.Statfs(d, &st)
		if errors.Is(err, unix.ENOENT) && d != "/" && d != "." {
			continue
		}
		if err != nil {
			return fmt.Errorf("free space of %s: %w", dir, err)
		}
		break
	}
	if free := st.Bavail * uint64(st.Bsize); free < minFree {
		return fault.New(fault.Retry, "free some space, or move state_dir", "%s has %d MB free, the index needs %d MB", dir, free>>20, minFree>>20)
	}
	return nil
}

func parent(d string) string {
	for i := len(d) - 1; i > 0; i-- {
		if d[i] == '/' {
			return d[:i]
		}
	}
	if len(d) > 0 && d[0] == '/' {
		return "/"
	}
	return "."
}

// View reads.
func (b *Badger) View(fn func(Reader) error) error {
	return b.db.View(func(t *badger.Txn) error { return fn(badgerTxn{t}) })
}

// Update writes, after a look at the free space.
func (b *Badger) Update(fn func(Writer) error) error {
	if err := room(b.dir); err != nil {
		return err
	}
	return b.db.Update(func(t *badger.Txn) error { return fn(badgerTxn{t}) })
}

// Close closes the store.
func (b *Badger) Close() error { return b.db.Close() }

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
