// Package spool keeps the bytes of a file that is being written until a remote
// storage has all of them: in memory while there are few, else in a local file.
//
// # Invariants
//
//	L1  The bytes are kept until the storage has acknowledged the whole file:
//	    Sync returns nil only then. A failed upload is repeated from them
//	    (storage.Putter), and nothing has to be read or encoded again.
//	L2  All spools together keep at most Options.Memory in memory, each at most
//	    Options.Small; the rest is on disk.
//	L3  Nothing of a spool outlives its process: its file has no name from the
//	    moment it is open. What the table log names is in the storage.
//
// # Crash story
//
// Die before Sync returns: no file, or one that nobody was told about.
package spool

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/hivesink/hivesink/storage"
)

// Options say where the bytes wait.
type Options struct {
	Dir    string // directory for spool files; made when missing
	Memory int64  // bytes that all spools keep in memory
	Small  int64  // bytes that one keeps in memory; default 1 MB
	Eased  func() // told, if not nil, that fewer bytes wait than before
}

// FS is a storage whose files are written by way of a spool. Everything else
// goes to the storage as it is.
type FS struct {
	storage.Putter
	o Options

	mu   sync.Mutex
	used int64 // bytes in memory
	disk int64 // bytes on disk
}

// partPrefix begins the names of spool files, as long as they have one.
const partPrefix = "part-"

// New makes the directory for spool files and removes what a killed process may
// have left between making a file and taking its name.
func New(p storage.Putter, o Options) (*FS, error) {
	if o.Small <= 0 {
		o.Small = 1 << 20
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the directory of the spool: %w", err)
	}
	// The directory stays: it may be a link to another disk, or one mounted.
	left, err := os.ReadDir(o.Dir)
	for _, e := range left {
		if strings.HasPrefix(e.Name(), partPrefix) {
			err = errors.Join(err, os.Remove(filepath.Join(o.Dir, e.Name())))
		}
	}
	if err != nil {
		return nil, fmt.Errorf("empty the spool: %w", err)
	}
	return &FS{Putter: p, o: o}, nil
}

// OpenSlice opens a part of a file as the storage does (storage.Slicer).
func (f *FS) OpenSlice(name string, offset, size int64) (storage.Reader, error) {
	return storage.OpenSlice(f.Putter, name, offset, size)
}

// Used is how many bytes wait in memory and on disk.
func (f *FS) Used() (memory, disk int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.used, f.disk
}

// Waiting is how many bytes wait, in memory and on disk.
func (f *FS) Waiting() int64 {
	memory, disk := f.Used()
	return memory + disk
}

// Create begins a file. Whether its name is free is found out when it is
// uploaded: names in a staging directory are drawn at random.
func (f *FS) Create(name string) (storage.File, error) {
	if err := storage.CheckName(name); err != nil {
		return nil, &storage.Error{Op: storage.OpCreate, Name: name, Err: err}
	}
	return &file{fs: f, name: name}, nil
}

// reserve takes memory for n bytes more of a file that has had bytes so far.
func (f *FS) reserve(had, n int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if had+n > f.o.Small || f.used+n > f.o.Memory {
		return false
	}
	f.used += n
	return true
}

func (f *FS) free(memory, disk int64) {
	f.mu.Lock()
	f.used -= memory
	f.disk -= disk
	f.mu.Unlock()
}

// file is a file being written.
type file struct {
	fs     *FS
	name   string
	memory []byte   // all bytes, while disk is nil
	held   int64    // bytes of memory reserved
	disk   *os.File // all bytes, once they are many
	size   int64
	failed bool // condemned (storage S5)
	placed bool // the storage has it
	closed bool
}

func (w *file) wrap(op storage.OpKind, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		err = &storage.NoSpaceError{Err: fmt.Errorf("the spool in state_dir: %w", err)}
	}
	return &storage.Error{Op: op, Name: w.name, Err: err}
}

func (w *file) usable() error {
	switch {
	case w.closed:
		return fs.ErrClosed
	case w.failed:
		return storage.ErrCondemned
	case w.placed:
		return errors.New("the file has been uploaded, and takes nothing more")
	}
	return nil
}

func (w *file) Write(p []byte) (int, error) {
	if err := w.usable(); err != nil {
		return 0, w.wrap(storage.OpWrite, err)
	}
	if w.disk == nil && w.fs.reserve(w.size, int64(len(p))) {
		w.memory = append(w.memory, p...)
		w.held += int64(len(p))
		w.size += int64(len(p))
		return len(p), nil
	}
	if err := w.spill(); err != nil {
		w.failed = true
		return 0, w.wrap(storage.OpWrite, err)
	}
	n, err := w.toDisk(p)
	w.failed = err != nil
	return n, w.wrap(storage.OpWrite, err)
}

// spill moves the bytes to a file without a name (L3).
func (w *file) spill() error {
	if w.disk != nil {
		return nil
	}
	d, err := os.CreateTemp(w.fs.o.Dir, partPrefix+"*")
	if err != nil {
		return err
	}
	if err := os.Remove(d.Name()); err != nil {
		return errors.Join(err, d.Close())
	}
	kept := w.memory
	w.disk, w.size = d, 0
	if _, err := w.toDisk(kept); err != nil {
		return err
	}
	w.fs.free(w.held, 0)
	w.memory, w.held = nil, 0
	return nil
}

func (w *file) toDisk(p []byte) (int, error) {
	n, err := w.disk.Write(p)
	w.size += int64(n)
	w.fs.free(0, -int64(n))
	return n, err
}

// Sync hands the bytes over; they are durable afterwards, and the file is
// complete (L1).
func (w *file) Sync() error {
	if err := w.usable(); err != nil {
		return w.wrap(storage.OpSync, err)
	}
	if err := w.fs.Put(w.name, w, w.size); err != nil {
		w.failed = true
		return err // names operation and path
	}
	w.placed = true
	w.release()
	return nil
}

// ReadAt reads what was written.
func (w *file) ReadAt(p []byte, off int64) (int, error) {
	if w.disk != nil {
		return w.disk.ReadAt(p, off)
	}
	if off >= int64(len(w.memory)) {
		return 0, io.EOF
	}
	n := copy(p, w.memory[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// release gives memory and disk back.
func (w *file) release() {
	disk := int64(0)
	if w.disk != nil {
		disk = w.size
		_ = w.disk.Close() // nobody reads it again, and it has no name
		w.disk = nil
	}
	w.fs.free(w.held, disk)
	w.memory, w.held = nil, 0
	if w.fs.o.Eased != nil {
		w.fs.o.Eased()
	}
}

// Close ends the file; one that was not synced is nowhere.
func (w *file) Close() error {
	err := error(nil)
	switch {
	case w.closed:
		err = fs.ErrClosed
	case w.failed:
		err = storage.ErrCondemned
	case !w.placed:
		err = errors.New("closed before it was synced: it was not uploaded")
	}
	if !w.closed && !w.placed {
		w.release()
	}
	w.closed = true
	return w.wrap(storage.OpClose, err)
}

// Room is room for bytes that are to be read before anything is sent.
func (f *FS) Room() storage.Scratch { return &room{file{fs: f, name: f.o.Dir}} }

type room struct{ file file }

func (r *room) Write(p []byte) (int, error)             { return r.file.Write(p) }
func (r *room) ReadAt(p []byte, off int64) (int, error) { return r.file.ReadAt(p, off) }
func (r *room) Size() int64                             { return r.file.size }

func (r *room) Close() error {
	if !r.file.closed {
		r.file.release()
	}
	r.file.closed = true
	return nil
}
