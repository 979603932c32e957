package hdfsfs

import (
	"errors"
	"io/fs"

	"github.com/colinmarc/hdfs/v2"

	"github.com/hivesink/hivesink/storage"
)

// Create begins a file that is written as its bytes come. What must survive a
// lost data node goes through Put instead (storage/spool).
func (f *FS) Create(name string) (storage.File, error) {
	if err := storage.CheckName(name); err != nil {
		return nil, f.wrap(storage.OpCreate, name, "", err)
	}
	out := &file{f: f, name: name}
	lost := false
	err := f.do("create "+name, func(s *session) error {
		w, err := s.client.CreateFile(name, f.replication, f.blockSize, 0o666&^f.o.umask)
		if was, _ := judge(err); was == unknown {
			lost = true
		}
		if lost && errors.Is(err, fs.ErrExist) {
			return errPerhapsOurs
		}
		if err == nil {
			out.w, out.s = w, f.hold(s)
		}
		return err
	})
	if err != nil {
		return nil, f.wrap(storage.OpCreate, name, "", err)
	}
	return out, nil
}

var errPerhapsOurs = errors.Join(fs.ErrExist, errors.New("an earlier try of unknown outcome may have made it"))

// hold is another use of a session that is in use.
func (f *FS) hold(s *session) *session {
	f.mu.Lock()
	s.users++
	f.mu.Unlock()
	return s
}

// file is a file being written.
type file struct {
	f      *FS
	name   string
	w      *hdfs.FileWriter
	s      *session
	failed bool // condemned (H2)
	closed bool
}

func (w *file) Write(p []byte) (int, error) {
	if err := w.usable(); err != nil {
		return 0, w.f.wrap(storage.OpWrite, w.name, "", err)
	}
	n, err := w.w.Write(p)
	if err != nil {
		w.condemn(err)
	}
	return n, w.f.wrap(storage.OpWrite, w.name, "", err)
}

func (w *file) usable() error {
	switch {
	case w.closed:
		return fs.ErrClosed
	case w.failed:
		return storage.ErrCondemned
	}
	return nil
}

// condemn gives the session back: Close is not called after an error.
func (w *file) condemn(err error) {
	w.failed = true
	was, _ := judge(err)
	w.f.giveBack(w.s, was == unknown)
}

// Sync has nothing to do: bytes are durable when Close has succeeded.
func (w *file) Sync() error { return w.f.wrap(storage.OpSync, w.name, "", w.usable()) }

func (w *file) Close() error {
	err := w.usable()
	if err == nil {
		if err = closeFile(w.w, w.f.o.CallTimeout); err != nil {
			w.condemn(err)
		} else {
			w.f.giveBack(w.s, false)
		}
	}
	w.closed = true
	return w.f.wrap(storage.OpClose, w.name, "", err)
}
