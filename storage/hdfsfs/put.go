package hdfsfs

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"time"

	"github.com/colinmarc/hdfs/v2"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/storage"
)

// Put makes a file of size bytes, whole and durable (H3). Each try writes under
// a name of its own; the one that succeeded is renamed, replacing nothing.
func (f *FS) Put(name string, r io.ReaderAt, size int64) error {
	return f.put(name, r, size, 0)
}

func (f *FS) put(name string, r io.ReaderAt, size int64, limit time.Duration) error {
	if err := storage.CheckName(name); err != nil {
		return f.wrap(storage.OpCreate, name, "", err)
	}
	p := patience{f: f, what: "write " + name, limit: limit}
	defer p.done()
	for {
		tried := name + "~" + suffix()
		err := f.upload(tried, r, size)
		if err == nil {
			p.answered()
			return f.place(tried, name)
		}
		f.discard(tried)
		if !repeatable(err) {
			return f.wrap(storage.OpCreate, name, "", err)
		}
		if err := p.pause(err); err != nil {
			return f.wrap(storage.OpCreate, name, "", err)
		}
	}
}

func suffix() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// repeatable says whether another try at an upload may succeed. Only what the
// name node has refused for good may not.
func repeatable(err error) bool {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrInvalid) {
		return false
	}
	var classed *fault.Error
	return !errors.As(err, &classed)
}

// place gives an uploaded file its name.
func (f *FS) place(tried, name string) error {
	err := f.rename(tried, name, false)
	if err != nil {
		f.discard(tried)
	}
	return f.wrap(storage.OpCreate, name, "", err)
}

// discard removes what a try has left, once: what stays is in a staging
// directory, which the next owner sweeps.
func (f *FS) discard(name string) {
	s, err := f.acquire()
	if err != nil {
		return
	}
	_, err = s.calls.remove(name)
	was, _ := judge(err)
	f.giveBack(s, was == unknown)
}

// upload writes a new file and closes it, once. Whatever the error is, the file
// is condemned (H2).
func (f *FS) upload(name string, r io.ReaderAt, size int64) error {
	s, err := f.acquire()
	if err != nil {
		return err
	}
	err = f.send(s, name, io.NewSectionReader(r, 0, size))
	was, err := judge(err)
	// A data node's failure is not the session's; but what it was cannot be
	// told from here, and another session costs little.
	f.giveBack(s, was == unknown)
	if was == answered && err == nil {
		f.worked.Store(true)
	}
	return err
}

func (f *FS) send(s *session, name string, r io.Reader) error {
	w, err := s.client.CreateFile(name, f.replication, f.blockSize, 0o666&^f.o.umask)
	if err != nil {
		return err
	}
	if _, err := io.CopyBuffer(struct{ io.Writer }{w}, r, make([]byte, 256<<10)); err != nil {
		return err
	}
	return closeFile(w, f.o.CallTimeout)
}

// closeFile closes a file that is written. "Replication in progress" means that
// every byte was acknowledged by the pipeline and the name node has not heard so
// yet; that alone is asked again (H2).
func closeFile(w *hdfs.FileWriter, limit time.Duration) error {
	wait := 5 * time.Millisecond
	for end := time.Now().Add(limit); ; wait = min(2*wait, 500*time.Millisecond) {
		err := w.Close()
		if !hdfs.IsErrReplicating(err) || time.Now().After(end) {
			return err
		}
		time.Sleep(wait)
	}
}
