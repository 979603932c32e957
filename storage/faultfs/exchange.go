package faultfs

import (
	"errors"
	"io"

	"github.com/hivesink/hivesink/storage"
)

// within runs an operation of storage.Exchanger; a file system below that has
// none says so.
func (f *FS) within(op Op, effect func(storage.Exchanger) error) error {
	return f.do(op, func(bool) error {
		x, ok := f.inner.(storage.Exchanger)
		if !ok {
			return wrap(op, errors.ErrUnsupported)
		}
		return effect(x)
	})
}

// Exchange swaps two directories.
func (f *FS) Exchange(a, b string) error {
	return f.within(Op{Kind: storage.OpExchange, Name: a, To: b}, func(x storage.Exchanger) error { return x.Exchange(a, b) })
}

// Link gives a file a second name.
func (f *FS) Link(oldName, newName string) error {
	return f.within(Op{Kind: storage.OpLink, Name: oldName, To: newName}, func(x storage.Exchanger) error { return x.Link(oldName, newName) })
}

// Mimic copies mode and owner.
func (f *FS) Mimic(like, name string) error {
	return f.within(Op{Kind: storage.OpMimic, Name: like, To: name}, func(x storage.Exchanger) error { return x.Mimic(like, name) })
}

// LockDir locks a directory. A lie gives a lock that excludes nobody.
func (f *FS) LockDir(dir string) (io.Closer, error) {
	l := &lock{fsys: f, name: dir, inner: nopCloser{}}
	err := f.within(Op{Kind: storage.OpLockDir, Name: dir}, func(x storage.Exchanger) error {
		inner, err := x.LockDir(dir)
		if err == nil {
			l.inner = inner
			f.hold(l)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return l, nil
}
