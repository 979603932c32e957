// Package memobj is storage.Objects in memory, for tests: exhaustive ones, which
// stop a process at every request, lose every answer, and let another process
// work between any two of them. It is as strict as a store may be, and knows
// both legal answers to a second completion of an upload.
//
// # Invariants
//
//	J1  What was done is durable: a process that dies takes nothing along.
//	J2  A View is one process. Its Hook is asked before each of its requests,
//	    without a lock: it may let other views work.
//	J3  A request without an answer was done or not as its Fate says, and Repeat
//	    does it twice and gives the second answer: what a client does whose
//	    first answer was lost.
package memobj

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hivesink/hivesink/storage"
)

// Store is a bucket.
type Store struct {
	// Idempotent: the second completion of an upload is fine, as versitygw and
	// AWS say; else there is no such upload any more, as MinIO says.
	Idempotent bool

	mu      sync.Mutex
	objects map[string]object
	uploads map[string]upload
	seq     int
}

type object struct {
	data []byte
	at   time.Time
	from string // the upload it was
}

type upload struct {
	name string
	data []byte
}

// New is an empty bucket.
func New() *Store { return &Store{objects: make(map[string]object), uploads: make(map[string]upload)} }

// Uploads are the uploads that are neither completed nor aborted: id and name.
func (s *Store) Uploads() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make(map[string]string, len(s.uploads))
	for id, u := range s.uploads {
		out[id] = u.name
	}
	return out
}

// Step is a request of a view, numbered from 1.
type Step struct {
	N    int
	Op   string
	Name string
}

func (s Step) String() string { return fmt.Sprintf("%d: %s %s", s.N, s.Op, s.Name) }

// Fate is what becomes of a request. The zero value is that it is done and
// answered.
type Fate struct {
	Before error // not done; the caller gets this
	After  error // done; the caller gets this
	Repeat bool  // done twice
}

// View is a process's view of the store.
type View struct {
	s    *Store
	hook func(Step) Fate
	mu   sync.Mutex
	n    int
}

var _ storage.Objects = (*View)(nil)

// View makes a view; hook may be nil.
func (s *Store) View(hook func(Step) Fate) *View { return &View{s: s, hook: hook} }

// Steps is how many requests were made.
func (v *View) Steps() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.n
}

// do makes a request: effect runs under the store's lock.
func (v *View) do(kind storage.OpKind, op, name string, effect func() error) error {
	if err := storage.CheckName(name); err != nil {
		return &storage.Error{Op: kind, Name: name, Err: err}
	}
	v.mu.Lock()
	v.n++
	step := Step{v.n, op, name}
	v.mu.Unlock()
	var fate Fate
	if v.hook != nil {
		fate = v.hook(step)
	}
	err := fate.Before
	if err == nil {
		v.s.mu.Lock()
		err = effect()
		if fate.Repeat {
			err = effect()
		}
		v.s.mu.Unlock()
		if fate.After != nil {
			err = fate.After
		}
	}
	if err != nil {
		return &storage.Error{Op: kind, Name: name, Err: err}
	}
	return nil
}

func (s *Store) put(name string, o object) {
	s.seq++
	o.at = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(s.seq) * time.Millisecond)
	s.objects[name] = o
}

// Make makes an object if there is none.
func (v *View) Make(name string, data []byte) error {
	return v.do(storage.OpCreate, "make", name, func() error {
		if _, taken := v.s.objects[name]; taken {
			return storage.ErrExist
		}
		v.s.put(name, object{data: slices.Clone(data)})
		return nil
	})
}

// Put makes an object if there is none.
func (v *View) Put(name string, r io.ReaderAt, size int64) error {
	data := make([]byte, size)
	if _, err := r.ReadAt(data, 0); err != nil && err != io.EOF {
		return err
	}
	err := v.Make(name, data)
	if errors.Is(err, storage.ErrExist) { // of an earlier try whose answer was lost?
		if there, rerr := v.ReadFile(name); rerr == nil && bytes.Equal(there, data) {
			return nil
		}
	}
	return err
}

// Overwrite makes an object.
func (v *View) Overwrite(name string, data []byte) error {
	return v.do(storage.OpReplace, "overwrite", name, func() error {
		v.s.put(name, object{data: slices.Clone(data)})
		return nil
	})
}

// ReadFile reads an object.
func (v *View) ReadFile(name string) (data []byte, err error) {
	err = v.do(storage.OpReadFile, "get", name, func() error {
		o, ok := v.s.objects[name]
		if !ok {
			return storage.ErrNotExist
		}
		data = slices.Clone(o.data)
		return nil
	})
	return data, err
}

type reader struct {
	*bytes.Reader
	closed bool
}

func (r *reader) Close() error {
	if r.closed {
		return errors.New("closed twice")
	}
	r.closed = true
	return nil
}

// Open opens an object.
func (v *View) Open(name string) (storage.Reader, error) {
	data, err := v.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return &reader{Reader: bytes.NewReader(data)}, nil
}

// Stat describes an object or directory.
func (v *View) Stat(name string) (info storage.Info, err error) {
	err = v.do(storage.OpStat, "head", name, func() error {
		info = storage.Info{Name: path.Base(name)}
		if o, ok := v.s.objects[name]; ok {
			info.Size, info.ModTime = int64(len(o.data)), o.at
			return nil
		}
		for other := range v.s.objects {
			if info.Dir = name == "/" || strings.HasPrefix(other, name+"/"); info.Dir {
				return nil
			}
		}
		return storage.ErrNotExist
	})
	return info, err
}

// List describes what is directly below dir.
func (v *View) List(dir string) (infos []storage.Info, err error) {
	err = v.do(storage.OpList, "list", dir, func() error {
		infos = v.s.list(dir)
		if len(infos) == 0 && dir != "/" {
			return storage.ErrNotExist
		}
		return nil
	})
	return infos, err
}

func (s *Store) list(dir string) (infos []storage.Info) {
	prefix := strings.TrimSuffix(dir, "/") + "/"
	dirs := make(map[string]bool)
	for name, o := range s.objects {
		rest, ok := strings.CutPrefix(name, prefix)
		if !ok {
			continue
		}
		if sub, _, deep := strings.Cut(rest, "/"); !deep {
			infos = append(infos, storage.Info{Name: rest, Size: int64(len(o.data)), ModTime: o.at})
		} else if !dirs[sub] {
			dirs[sub] = true
			infos = append(infos, storage.Info{Name: sub, Dir: true})
		}
	}
	slices.SortFunc(infos, func(a, b storage.Info) int { return strings.Compare(a.Name, b.Name) })
	return infos
}

// ListAfter describes the first n objects after a name.
func (v *View) ListAfter(dir, after string, n int) (infos []storage.Info, err error) {
	err = v.do(storage.OpList, "list-after", dir, func() error {
		infos = nil
		for _, i := range v.s.list(dir) {
			if i.Name > after && !i.Dir && len(infos) < n {
				infos = append(infos, i)
			}
		}
		return nil
	})
	return infos, err
}

// Remove deletes an object.
func (v *View) Remove(name string) error {
	return v.do(storage.OpRemove, "delete", name, func() error {
		delete(v.s.objects, name)
		return nil
	})
}

// RemoveTree deletes what is below a name, request by request.
func (v *View) RemoveTree(name string) error {
	v.s.mu.Lock()
	var below []string
	for other := range v.s.objects {
		if other == name || strings.HasPrefix(other, name+"/") {
			below = append(below, other)
		}
	}
	v.s.mu.Unlock()
	slices.Sort(below)
	for _, other := range below {
		if err := v.Remove(other); err != nil {
			return err
		}
	}
	return nil
}

// Upload begins an upload.
func (v *View) Upload(_ context.Context, name string, content io.ReaderAt, size int64) (id string, err error) {
	data := make([]byte, size)
	if _, err := content.ReadAt(data, 0); err != nil && err != io.EOF {
		return "", err
	}
	return v.upload("upload", name, func() ([]byte, error) { return data, nil })
}

// UploadCopy begins an upload of an object's bytes.
func (v *View) UploadCopy(_ context.Context, name, from string, size int64) (id string, err error) {
	return v.upload("upload-copy", name, func() ([]byte, error) {
		o, ok := v.s.objects[from]
		if !ok || int64(len(o.data)) != size {
			return nil, storage.ErrNotExist
		}
		return o.data, nil
	})
}

func (v *View) upload(op, name string, content func() ([]byte, error)) (id string, err error) {
	err = v.do(storage.OpWrite, op, name, func() error {
		data, err := content()
		if err != nil {
			return err
		}
		v.s.seq++
		id = fmt.Sprintf("upload-%d", v.s.seq)
		v.s.uploads[id] = upload{name, data}
		return nil
	})
	return id, err
}

// Complete makes an upload an object, if there is none of its name.
func (v *View) Complete(name, id string) error {
	return v.do(storage.OpRename, "complete", name, func() error {
		u, ok := v.s.uploads[id]
		o, taken := v.s.objects[name]
		switch {
		case !ok && v.s.Idempotent && taken && o.from == id:
			return nil
		case !ok || u.name != name:
			return storage.ErrNotExist
		case taken:
			return storage.ErrExist
		}
		delete(v.s.uploads, id)
		v.s.put(name, object{data: u.data, from: id})
		return nil
	})
}

// Uploaded is the size of an upload that waits to be completed.
func (v *View) Uploaded(name, id string) (size int64, err error) {
	err = v.do(storage.OpStat, "list-parts", name, func() error {
		u, ok := v.s.uploads[id]
		if !ok || u.name != name {
			return storage.ErrNotExist
		}
		size = int64(len(u.data))
		return nil
	})
	return size, err
}

// Abort ends an upload.
func (v *View) Abort(name, id string) error {
	return v.do(storage.OpRemove, "abort", name, func() error {
		delete(v.s.uploads, id)
		return nil
	})
}

// AbortLeft has nothing to do: an upload is one request here.
func (v *View) AbortLeft(string) error { return nil }

// AbortAt aborts all uploads to a name.
func (v *View) AbortAt(name string) error {
	return v.do(storage.OpRemove, "abort-at", name, func() error {
		for id, u := range v.s.uploads {
			if u.name == name {
				delete(v.s.uploads, id)
			}
		}
		return nil
	})
}

// Probe has nothing to find out.
func (v *View) Probe(context.Context, string) error { return nil }

// Mkdir, SyncDir: there are no directories.
func (v *View) Mkdir(string) error   { return nil }
func (v *View) SyncDir(string) error { return nil }

func none(op storage.OpKind, name, to string) error {
	return &storage.Error{Op: op, Name: name, To: to, Err: errors.ErrUnsupported}
}

// Rename, Replace and Lock are not to be had.
func (v *View) Rename(from, to string) error        { return none(storage.OpRename, from, to) }
func (v *View) Replace(from, to string) error       { return none(storage.OpReplace, from, to) }
func (v *View) Lock(name string) (io.Closer, error) { return nil, none(storage.OpLock, name, "") }
func (v *View) Create(name string) (storage.File, error) {
	return nil, &storage.Error{Op: storage.OpCreate, Name: name, Err: syscall.ENOTSUP} // Put is there
}
