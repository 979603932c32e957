package memfs

import (
	"io"
	"io/fs"
	"syscall"

	"github.com/hivesink/hivesink/storage"
)

// file is a handle of a file being written. It stays with the inode, wherever
// that is renamed to, as a descriptor does.
type file struct {
	fsys   *FS
	node   *inode
	name   string
	failed bool // condemned (S5)
	closed bool
}

func (f *file) Write(p []byte) (int, error) {
	m := f.fsys
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := f.usable(); err != nil {
		return 0, wrap(storage.OpWrite, f.name, err)
	}
	var err error
	if m.opts.Capacity > 0 && m.used+int64(len(p)) > m.opts.Capacity {
		p = p[:max(0, m.opts.Capacity-m.used)]
		err = &storage.NoSpaceError{Err: syscall.ENOSPC}
		f.failed = true
	}
	m.seq++
	m.used += int64(len(p))
	f.node.data = append(f.node.data, p...)
	f.node.modTime = m.now()
	return len(p), wrap(storage.OpWrite, f.name, err)
}

func (f *file) Sync() error {
	f.fsys.mu.Lock()
	defer f.fsys.mu.Unlock()
	if err := f.usable(); err != nil {
		return wrap(storage.OpSync, f.name, err)
	}
	f.node.synced = len(f.node.data)
	return nil
}

func (f *file) Close() error {
	m := f.fsys
	m.mu.Lock()
	defer m.mu.Unlock()
	if f.closed {
		return wrap(storage.OpClose, f.name, fs.ErrClosed)
	}
	err := f.usable()
	if err == nil && m.opts.Model == HDFS {
		f.node.synced = len(f.node.data) // M3
	}
	f.closed = true
	m.release(f.node)
	return wrap(storage.OpClose, f.name, err)
}

func (f *file) usable() error {
	switch {
	case f.closed:
		return fs.ErrClosed
	case f.failed:
		return storage.ErrCondemned
	}
	return nil
}

// reader reads the bytes that were there when it was opened.
type reader struct {
	fsys   *FS
	node   *inode
	name   string
	data   []byte
	closed bool
}

func (r *reader) ReadAt(p []byte, off int64) (int, error) {
	r.fsys.mu.Lock()
	closed := r.closed
	r.fsys.mu.Unlock()
	switch {
	case closed:
		return 0, wrap(storage.OpReadAt, r.name, fs.ErrClosed)
	case off < 0:
		return 0, wrap(storage.OpReadAt, r.name, fs.ErrInvalid)
	case off >= int64(len(r.data)):
		if len(p) == 0 {
			return 0, nil
		}
		return 0, io.EOF
	}
	n := copy(p, r.data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (r *reader) Size() int64 { return int64(len(r.data)) }

func (r *reader) Close() error {
	r.fsys.mu.Lock()
	defer r.fsys.mu.Unlock()
	if r.closed {
		return wrap(storage.OpClose, r.name, fs.ErrClosed)
	}
	r.closed = true
	r.fsys.release(r.node)
	return nil
}

type lock struct {
	fsys   *FS
	node   *inode
	name   string
	closed bool
}

func (l *lock) Close() error {
	l.fsys.mu.Lock()
	defer l.fsys.mu.Unlock()
	if l.closed {
		return wrap(storage.OpClose, l.name, fs.ErrClosed)
	}
	l.closed = true
	l.node.locked = false
	l.fsys.release(l.node)
	return nil
}
