//go:build linux || darwin

package localfs

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/hivesink/hivesink/storage"
	"golang.org/x/sys/unix"
)

// Lock holds the file open with flock(2) until Close (S7). The holder's process
// number is written into it, for people and for the error of whoever comes
// second; nothing relies on it. The file is never removed: a lock on a removed
// file would not meet one on its successor.
func (localFS) Lock(name string) (io.Closer, error) {
	if err := storage.CheckName(name); err != nil {
		return nil, wrap(storage.OpLock, name, err)
	}
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, wrap(storage.OpLock, name, err)
	}
	if err := flock(f); err != nil {
		if err == unix.EWOULDBLOCK {
			err = fmt.Errorf("%w%s", storage.ErrLocked, holder(f))
		}
		_ = f.Close()
		return nil, wrap(storage.OpLock, name, err)
	}
	if f.Truncate(0) == nil {
		_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	return &lock{f: f, name: name}, nil
}

func flock(f *os.File) error {
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err != unix.EINTR {
			return err
		}
	}
}

func holder(f *os.File) string {
	b := make([]byte, 20)
	n, _ := f.ReadAt(b, 0)
	pid, err := strconv.Atoi(strings.TrimSpace(string(b[:n])))
	if err != nil {
		return ""
	}
	return fmt.Sprintf(" (process %d)", pid)
}

type lock struct {
	f    *os.File
	name string
}

func (l *lock) Close() error { return wrap(storage.OpClose, l.name, l.f.Close()) }
