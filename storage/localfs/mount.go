//go:build linux || darwin

package localfs

import (
	"errors"
	"path/filepath"

	"github.com/hivesink/hivesink/storage"
	"golang.org/x/sys/unix"
)

// NetworkMount says whether a path lies on a network file system, and of which
// kind (nfs, smb, cifs), by the file system's type. Of a path that does not
// exist yet the nearest directory above it counts.
func NetworkMount(path string) (kind string, network bool) {
	st, err := statfs(path)
	if err != nil {
		return "", false
	}
	kind = networkKind(&st)
	return kind, kind != ""
}

// Free is the number of bytes that an ordinary user may still write on the file
// system of path (or of the nearest directory above it that exists).
func Free(path string) (bytes uint64, err error) {
	st, err := statfs(path)
	if err != nil {
		return 0, wrap(storage.OpStat, path, err)
	}
	return st.Bavail * blockSize(&st), nil
}

func statfs(path string) (st unix.Statfs_t, err error) {
	for {
		err = unix.Statfs(path, &st)
		if err == unix.EINTR {
			continue
		}
		parent := filepath.Dir(path)
		if !errors.Is(err, unix.ENOENT) || parent == path {
			return st, err
		}
		path = parent
	}
}
