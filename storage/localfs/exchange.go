//go:build linux || darwin

package localfs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/hivesink/hivesink/storage"
	"golang.org/x/sys/unix"
)

var _ storage.Exchanger = localFS{}

// Exchange swaps two directories (S11).
func (l localFS) Exchange(a, b string) error {
	err := checkTwo(a, b)
	for _, name := range []string{a, b} {
		if err == nil {
			err = mustBeDir(name)
		}
	}
	if err == nil {
		if err = renameExchange(a, b); unsupported(err) || errors.Is(err, unix.EXDEV) {
			err = fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
		}
	}
	return wrapTwo(storage.OpExchange, a, b, err)
}

func mustBeDir(name string) error {
	info, err := os.Lstat(name)
	if err == nil && !info.IsDir() {
		err = unix.ENOTDIR
	}
	return err
}

// Link gives a file a second name. What forbids it (another device, too many
// links, hard links of other users' files) is ErrUnsupported: the bytes can be
// copied.
func (localFS) Link(oldName, newName string) error {
	err := checkTwo(oldName, newName)
	if err == nil {
		err = unix.Linkat(unix.AT_FDCWD, oldName, unix.AT_FDCWD, newName, 0)
	}
	if unsupported(err) || errors.Is(err, unix.EXDEV) || errors.Is(err, unix.EMLINK) || errors.Is(err, unix.EPERM) {
		err = fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
	}
	return wrapTwo(storage.OpLink, oldName, newName, err)
}

// Mimic sets the mode; the owner is set where the kernel lets us (root, or a
// group that we are in).
func (localFS) Mimic(like, name string) error {
	if err := checkTwo(like, name); err != nil {
		return wrapTwo(storage.OpMimic, like, name, err)
	}
	info, err := os.Stat(like)
	if err != nil {
		return wrapTwo(storage.OpMimic, like, name, err)
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		if err := os.Chown(name, int(st.Uid), int(st.Gid)); errors.Is(err, unix.EPERM) {
			_ = os.Chown(name, -1, int(st.Gid)) // as far as it goes
		} else if err != nil {
			return wrapTwo(storage.OpMimic, like, name, err)
		}
	}
	// After the owner: changing that clears set-user-id and set-group-id.
	return wrapTwo(storage.OpMimic, like, name, os.Chmod(name, info.Mode()))
}

// LockDir locks the directory itself with flock(2) (S7).
func (localFS) LockDir(dir string) (io.Closer, error) {
	if err := storage.CheckName(dir); err != nil {
		return nil, wrap(storage.OpLockDir, dir, err)
	}
	f, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, wrap(storage.OpLockDir, dir, err)
	}
	if err := flock(f); err != nil {
		if err == unix.EWOULDBLOCK {
			err = storage.ErrLocked
		}
		_ = f.Close()
		return nil, wrap(storage.OpLockDir, dir, err)
	}
	return &lock{f: f, name: dir}, nil
}
