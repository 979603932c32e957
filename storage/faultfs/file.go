package faultfs

import (
	"io"

	"github.com/hivesink/hivesink/storage"
)

// file wraps a file being written; like any File it serves one goroutine.
type file struct {
	fsys   *FS
	inner  storage.File // nil when the creation was a lie
	name   string
	failed bool // condemned (X4)
}

func (w *file) Write(p []byte) (int, error) {
	op := Op{Kind: storage.OpWrite, Name: w.name}
	if w.failed {
		return 0, wrap(op, storage.ErrCondemned)
	}
	n := -1
	err := w.fsys.do(op, func(half bool) (err error) {
		if w.inner == nil {
			return nil
		}
		q := p
		if half {
			q = p[:len(p)/2]
		}
		n, err = w.inner.Write(q)
		return err
	})
	w.failed = err != nil
	switch {
	case err == nil:
		return len(p), nil // also of a lie
	case n < 0:
		return 0, err // had no effect
	default:
		return n, err
	}
}

func (w *file) Sync() error {
	op := Op{Kind: storage.OpSync, Name: w.name}
	if w.failed {
		return wrap(op, storage.ErrCondemned)
	}
	err := w.fsys.do(op, func(bool) error {
		if w.inner == nil {
			return nil
		}
		return w.inner.Sync()
	})
	w.failed = err != nil
	return err
}

// Close closes a condemned file as well, and says that it is condemned.
func (w *file) Close() error {
	op := Op{Kind: storage.OpClose, Name: w.name}
	err := w.fsys.do(op, func(bool) error {
		if w.inner == nil {
			return nil
		}
		return w.inner.Close()
	})
	if err == nil && w.failed {
		err = wrap(op, storage.ErrCondemned)
	}
	w.failed = w.failed || err != nil
	return err
}

type reader struct {
	storage.Reader
	fsys *FS
	name string
}

func (r *reader) ReadAt(p []byte, off int64) (n int, err error) {
	var below error // io.EOF must stay as it is
	err = r.fsys.do(Op{Kind: storage.OpReadAt, Name: r.name}, func(bool) error {
		n, below = r.Reader.ReadAt(p, off)
		return nil
	})
	if err != nil {
		return 0, err
	}
	return n, below
}

// lock is released by its holder or by the crash, whichever comes first.
type lock struct {
	fsys  *FS
	name  string
	inner io.Closer
}

// Close counts as an operation at work, so that a crash waits for it and finds
// the lock released.
func (l *lock) Close() error {
	f := l.fsys
	f.mu.Lock()
	if f.dead {
		f.mu.Unlock()
		return &storage.Error{Op: storage.OpClose, Name: l.name, Err: ErrCrashed}
	}
	delete(f.locks, l)
	f.inflight++
	f.mu.Unlock()
	defer f.leave()
	return l.inner.Close()
}

type nopCloser struct{}

func (nopCloser) Close() error { return nil }
