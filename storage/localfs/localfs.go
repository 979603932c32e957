//go:build linux || darwin

package localfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/hivesink/hivesink/storage"
	"golang.org/x/sys/unix"
)

// New returns the local file system. It holds no state.
func New() storage.FS { return localFS{noReplace: renameNoReplace} }

type localFS struct {
	// noReplace is the kernel's rename without replacement; tests put one here
	// that is not supported.
	noReplace func(from, to string) error
}

func (localFS) Create(name string) (storage.File, error) {
	if err := storage.CheckName(name); err != nil {
		return nil, wrap(storage.OpCreate, name, err)
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, wrap(storage.OpCreate, name, err)
	}
	return &file{f: f, name: name}, nil
}

func (localFS) Open(name string) (storage.Reader, error) {
	if err := storage.CheckName(name); err != nil {
		return nil, wrap(storage.OpOpen, name, err)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, wrap(storage.OpOpen, name, err)
	}
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		err = unix.EISDIR
	}
	if err != nil {
		_ = f.Close()
		return nil, wrap(storage.OpOpen, name, err)
	}
	return &reader{f: f, name: name, size: info.Size()}, nil
}

func (localFS) ReadFile(name string) ([]byte, error) {
	if err := storage.CheckName(name); err != nil {
		return nil, wrap(storage.OpReadFile, name, err)
	}
	b, err := os.ReadFile(name)
	return b, wrap(storage.OpReadFile, name, err)
}

func (l localFS) Rename(oldName, newName string) error {
	if err := checkTwo(oldName, newName); err != nil {
		return wrapTwo(storage.OpRename, oldName, newName, err)
	}
	err := l.noReplace(oldName, newName)
	if unsupported(err) {
		err = renameBySteps(oldName, newName)
	}
	return wrapTwo(storage.OpRename, oldName, newName, err)
}

// renameBySteps is for file systems without RENAME_NOREPLACE. EINVAL, which
// brings us here, may also mean a directory moved into itself: rename(2) says
// so again.
func renameBySteps(oldName, newName string) error {
	info, err := os.Lstat(oldName)
	if err != nil {
		return err
	}
	if info.IsDir() {
		// rename(2) takes an empty directory's place, which the interface allows.
		err := unix.Rename(oldName, newName)
		if _, taken := os.Lstat(newName); err == unix.ENOTDIR && taken == nil {
			err = unix.EEXIST // how it refuses a file
		}
		return err
	}
	if err := unix.Link(oldName, newName); err != nil { // EEXIST when taken (S1)
		return err
	}
	return unix.Unlink(oldName)
}

func unsupported(err error) bool {
	return errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) ||
		errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.EOPNOTSUPP)
}

func (localFS) Replace(oldName, newName string) error {
	if err := checkTwo(oldName, newName); err != nil {
		return wrapTwo(storage.OpReplace, oldName, newName, err)
	}
	info, err := os.Lstat(oldName)
	if err == nil && info.IsDir() {
		err = unix.EISDIR
	}
	if err == nil {
		err = unix.Rename(oldName, newName)
	}
	return wrapTwo(storage.OpReplace, oldName, newName, err)
}

func (localFS) Remove(name string) error {
	if err := storage.CheckName(name); err != nil {
		return wrap(storage.OpRemove, name, err)
	}
	return wrap(storage.OpRemove, name, os.Remove(name))
}

func (localFS) Mkdir(name string) error {
	if err := storage.CheckName(name); err != nil {
		return wrap(storage.OpMkdir, name, err)
	}
	return wrap(storage.OpMkdir, name, os.Mkdir(name, 0o777))
}

func (localFS) Stat(name string) (storage.Info, error) {
	if err := storage.CheckName(name); err != nil {
		return storage.Info{}, wrap(storage.OpStat, name, err)
	}
	info, err := os.Stat(name)
	if err != nil {
		return storage.Info{}, wrap(storage.OpStat, name, err)
	}
	return infoOf(info), nil
}

func (localFS) List(dir string) ([]storage.Info, error) {
	if err := storage.CheckName(dir); err != nil {
		return nil, wrap(storage.OpList, dir, err)
	}
	entries, err := os.ReadDir(dir) // sorted (S8)
	if err != nil {
		return nil, wrap(storage.OpList, dir, err)
	}
	infos := make([]storage.Info, 0, len(entries))
	for _, e := range entries {
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed since it was read
		}
		if err != nil {
			return nil, wrap(storage.OpList, dir, err)
		}
		infos = append(infos, infoOf(info))
	}
	return infos, nil
}

func (localFS) SyncDir(dir string) error {
	if err := storage.CheckName(dir); err != nil {
		return wrap(storage.OpSyncDir, dir, err)
	}
	d, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return wrap(storage.OpSyncDir, dir, err)
	}
	err = d.Sync()
	if errors.Is(err, unix.EINVAL) { // the file system has no such thing
		err = fmt.Errorf("%w: %w", errors.ErrUnsupported, unix.EINVAL)
	}
	if cerr := d.Close(); err == nil {
		err = cerr
	}
	return wrap(storage.OpSyncDir, dir, err)
}

func infoOf(i fs.FileInfo) storage.Info {
	size := i.Size()
	if i.IsDir() {
		size = 0 // a directory's size is the file system's own affair
	}
	return storage.Info{Name: i.Name(), Size: size, Dir: i.IsDir(), ModTime: i.ModTime(), Irregular: i.Mode().Type()&^fs.ModeDir != 0}
}

func checkTwo(oldName, newName string) error {
	if err := storage.CheckName(oldName); err != nil {
		return err
	}
	return storage.CheckName(newName)
}

// wrap names operation and path (S3) in place of what package os added.
func wrap(op storage.OpKind, name string, err error) error {
	return wrapTwo(op, name, "", err)
}

func wrapTwo(op storage.OpKind, name, to string, err error) error {
	if err == nil {
		return nil
	}
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		err = pathErr.Err
	}
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		err = &storage.NoSpaceError{Err: err}
	}
	return &storage.Error{Op: op, Name: name, To: to, Err: err}
}

// file is a file being written.
type file struct {
	f      *os.File
	name   string
	failed bool // condemned (S5)
	closed bool
}

func (f *file) Write(p []byte) (int, error) {
	if f.failed {
		return 0, wrap(storage.OpWrite, f.name, storage.ErrCondemned)
	}
	n, err := f.f.Write(p)
	f.failed = err != nil
	return n, wrap(storage.OpWrite, f.name, err)
}

func (f *file) Sync() error {
	if f.failed {
		return wrap(storage.OpSync, f.name, storage.ErrCondemned)
	}
	err := f.f.Sync()
	f.failed = err != nil
	return wrap(storage.OpSync, f.name, err)
}

// Close gives the descriptor back in any case; of a condemned file it is an
// error, so that nobody takes it for whole.
func (f *file) Close() error {
	err := f.f.Close()
	if f.failed && !f.closed {
		err = storage.ErrCondemned
	}
	f.closed, f.failed = true, f.failed || err != nil
	return wrap(storage.OpClose, f.name, err)
}

type reader struct {
	f    *os.File
	name string
	size int64
}

func (r *reader) ReadAt(p []byte, off int64) (int, error) {
	n, err := r.f.ReadAt(p, off)
	if err == io.EOF {
		return n, err // callers compare it
	}
	return n, wrap(storage.OpReadAt, r.name, err)
}

func (r *reader) Size() int64 { return r.size }

func (r *reader) Close() error { return wrap(storage.OpClose, r.name, r.f.Close()) }
