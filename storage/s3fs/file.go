package s3fs

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"strings"

	"github.com/hivesink/hivesink/storage"
)

// Put makes an object of any size, if there is none of its name (storage O1).
func (f *FS) Put(name string, r io.ReaderAt, size int64) error {
	if size <= f.o.PartSize {
		return wrap(storage.OpCreate, name, f.put(name, r, size, true))
	}
	return wrap(storage.OpCreate, name, f.putParts(name, r, size))
}

// putParts sends an object in parts, with a note of it meanwhile (X3).
func (f *FS) putParts(name string, r io.ReaderAt, size int64) error {
	note := name + noteExt
	id, err := f.upload(background(), name, size, withCRC32, func(ctx context.Context, k, id string, n int32, off, length int64) (sentPart, error) {
		return f.sendPart(ctx, k, id, n, io.NewSectionReader(r, off, length), length)
	}, func(id string) error { return f.put(note, strings.NewReader(id), int64(len(id)), false) })
	if err != nil {
		_ = f.Remove(note) // where the upload could not be aborted, AbortLeft may still find it listed
		return err
	}
	if err := cause(f.Complete(name, id)); err != nil && !f.made(name, id, size, err) {
		if aerr := f.Abort(name, id); aerr != nil {
			return errors.Join(err, aerr) // the note names it
		}
		_ = f.Remove(note)
		return err
	}
	return f.Remove(note)
}

// made decides what a Complete that returned an error has done (storage O2).
// After one whose answer was lost MinIO says that the name is taken, others that
// there is no such upload. Names of large objects are drawn by one process, so
// that an object of this name and size, whose upload is gone, is what was
// completed.
func (f *FS) made(name, id string, size int64, err error) bool {
	if !errors.Is(err, storage.ErrNotExist) && !errors.Is(err, storage.ErrExist) {
		return false
	}
	info, serr := f.Stat(name)
	_, _, perr := f.listParts(name[1:], id)
	return serr == nil && info.Size == size && errors.Is(perr, storage.ErrNotExist)
}

// Create begins an object that Close makes. It is for little: the bytes wait in
// memory. What may be much goes by way of storage's spool, and Put.
func (f *FS) Create(name string) (storage.File, error) {
	_, err := f.Stat(name)
	switch {
	case err == nil:
		return nil, wrap(storage.OpCreate, name, storage.ErrExist)
	case !errors.Is(err, storage.ErrNotExist):
		return nil, wrap(storage.OpCreate, name, cause(err))
	}
	return &file{f: f, name: name}, nil
}

type file struct {
	f      *FS
	name   string
	data   bytes.Buffer
	closed bool
}

func (w *file) Write(p []byte) (int, error) {
	if w.closed {
		return 0, wrap(storage.OpWrite, w.name, fs.ErrClosed)
	}
	return w.data.Write(p)
}

// Sync has nothing to do: the object is durable, and there, when Close says so.
func (w *file) Sync() error {
	if w.closed {
		return wrap(storage.OpSync, w.name, fs.ErrClosed)
	}
	return nil
}

func (w *file) Close() error {
	if w.closed {
		return wrap(storage.OpClose, w.name, fs.ErrClosed)
	}
	w.closed = true
	return wrap(storage.OpClose, w.name, cause(w.f.Put(w.name, bytes.NewReader(w.data.Bytes()), int64(w.data.Len()))))
}

// cause takes an error out of storage.Error, to be named anew.
func cause(err error) error {
	var named *storage.Error
	if errors.As(err, &named) {
		return named.Err
	}
	return err
}
