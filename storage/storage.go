package storage

import (
	"io"
	"io/fs"
	"time"
)

// FS is what hivesink needs of a file system. Names are absolute, cleaned,
// slash-separated paths, resolved anew at every call: a handle that follows a
// renamed directory would get past the fence (ledger), so there is none.
//
// Errors satisfy errors.Is with fs.ErrNotExist, fs.ErrExist, fs.ErrPermission
// and ErrNoSpace where they apply, and name operation and path.
type FS interface {
	// Create makes a new file for writing. It fails with fs.ErrExist if the
	// name is taken and with fs.ErrNotExist if the parent is missing; it never
	// creates parents.
	Create(name string) (File, error)
	// Open opens a file for reading at any offset.
	Open(name string) (Reader, error)
	// ReadFile reads a whole (small) file.
	ReadFile(name string) ([]byte, error)
	// Rename moves a file or directory atomically. It fails with fs.ErrExist
	// when the target exists (a directory target: unless it is empty) and with
	// fs.ErrNotExist when the source or the target's parent is missing. It
	// never overwrites.
	Rename(oldName, newName string) error
	// Replace moves a file atomically over newName, present or not. Only
	// markers such as _SUCCESS may be replaced.
	Replace(oldName, newName string) error
	// Remove unlinks a file or an empty directory.
	Remove(name string) error
	// Mkdir makes one directory; fs.ErrExist if the name is taken.
	Mkdir(name string) error
	// Stat describes a file or directory.
	Stat(name string) (Info, error)
	// List describes a directory's entries, sorted by name. Beside a
	// StrayError they are all there, too.
	List(dir string) ([]Info, error)
	// SyncDir makes the entries of a directory durable.
	SyncDir(dir string) error
	// Lock takes an exclusive lock on a file, creating it when absent; it
	// fails at once with ErrLocked when somebody holds it.
	Lock(name string) (io.Closer, error)
}

// Exchanger is an FS that can do what compaction at rest needs beyond it: a
// local disk. Backends that have no such thing do not implement it, and one
// that finds out at the call says errors.ErrUnsupported.
type Exchanger interface {
	FS
	// Exchange swaps two directories in one step (S11): whoever looks sees both
	// where they were or both where the other was. ErrNotExist when one is
	// missing; files and links are refused.
	Exchange(a, b string) error
	// Link gives a file a second name, durable as Rename is. It fails with
	// fs.ErrExist when the name is taken, and with errors.ErrUnsupported where
	// there can be no further name.
	Link(oldName, newName string) error
	// Mimic gives a file or directory the mode of another one, and its owner as
	// far as that is allowed.
	Mimic(like, name string) error
	// LockDir takes the exclusive lock of a directory that exists, as Lock does
	// of a file, and leaves nothing behind.
	LockDir(dir string) (io.Closer, error)
}

// Putter is a remote FS, where a file that breaks while it is written must be
// written again from its first byte: whoever has the bytes (a buffer, storage's
// spool) hands them over as a whole, and the FS repeats what passes by itself.
type Putter interface {
	FS
	// Put makes a file of the first size bytes of r, whole and durable, or none.
	// It fails with fs.ErrExist if the name is taken and with fs.ErrNotExist if
	// the parent is missing. It may take long: as long as the FS has patience
	// with its servers.
	Put(name string, r io.ReaderAt, size int64) error
}

// File is a file being written. Close does not imply Sync. After a failed
// Write, Sync or Close the file is condemned: it must not be used (a later
// sync may succeed without the bytes being there).
type File interface {
	io.Writer
	Sync() error
	Close() error
}

// Reader reads a complete file.
type Reader interface {
	io.ReaderAt
	io.Closer
	Size() int64
}

// Info describes a directory entry.
type Info struct {
	Name    string // base name
	Size    int64
	Dir     bool
	ModTime time.Time
	// Irregular: neither a file nor a directory, but a link, a pipe or a device.
	// List says so; Stat describes what a link points to.
	Irregular bool
}

// ErrNotExist and ErrExist are io/fs's, named here for the callers' sake.
var (
	ErrNotExist   = fs.ErrNotExist
	ErrExist      = fs.ErrExist
	ErrPermission = fs.ErrPermission
)
