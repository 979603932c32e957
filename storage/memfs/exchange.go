package memfs

import (
	"io"
	"path"
	"strings"
	"syscall"

	"github.com/hivesink/hivesink/storage"
)

// Exchange swaps two directories: one change of two inodes (M8).
func (m *FS) Exchange(a, b string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return wrapTwo(storage.OpExchange, a, b, m.exchange(a, b))
}

func (m *FS) exchange(a, b string) error {
	x, err := m.lookup(a)
	if err != nil {
		return err
	}
	y, err := m.lookup(b)
	switch {
	case err != nil:
		return err
	case !x.isDir || !y.isDir:
		return syscall.ENOTDIR
	case x == y, x == m.root, y == m.root, strings.HasPrefix(a, b+"/"), strings.HasPrefix(b, a+"/"):
		return syscall.EINVAL
	}
	m.apply(&change{node: x, from: x.at, to: y.at, partner: y})
	return nil
}

// Link gives a file a second name. There are no links here (M5): the new name
// is a file of its own with the same bytes, as durable as they are. For files
// that nobody writes any more that is the same.
func (m *FS) Link(oldName, newName string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.lookupFile(oldName)
	var p place
	if err == nil {
		p, err = m.vacant(newName)
	}
	if err == nil {
		twin := m.newInode(false)
		twin.data, twin.synced, twin.modTime = n.data[:len(n.data):len(n.data)], n.synced, n.modTime
		m.used += int64(len(n.data))
		m.apply(&change{node: twin, to: p})
	}
	return wrapTwo(storage.OpLink, oldName, newName, err)
}

// Mimic does nothing: there are no modes here.
func (m *FS) Mimic(like, name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, err := m.lookup(like)
	if err == nil {
		_, err = m.lookup(name)
	}
	return wrapTwo(storage.OpMimic, like, name, err)
}

// LockDir takes the exclusive lock of a directory (S7).
func (m *FS) LockDir(dir string) (io.Closer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.lookup(dir)
	switch {
	case err != nil:
	case !n.isDir:
		err = syscall.ENOTDIR
	case n.locked:
		err = storage.ErrLocked
	}
	if err != nil {
		return nil, wrap(storage.OpLockDir, dir, err)
	}
	n.locked = true
	n.open++
	return &lock{fsys: m, node: n, name: path.Clean(dir)}, nil
}
