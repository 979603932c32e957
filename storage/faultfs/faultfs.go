package faultfs

import (
	"errors"
	"io"
	"slices"
	"sync"

	"github.com/hivesink/hivesink/storage"
)

// ErrCrashed is what every operation gets after the crash.
var ErrCrashed = errors.New("crashed")

// FS is a file system that can be made to fail.
type FS struct {
	inner storage.FS

	mu       sync.Mutex
	idle     *sync.Cond // signalled when inflight falls to 0
	trace    []Op
	rules    []*Injected
	inflight int // operations at work below

	crashAt    int // 0: never
	crashAfter bool
	dead       bool
	crashed    chan struct{}
	onCrash    func()
	locks      map[*lock]struct{}
}

var _ storage.Exchanger = (*FS)(nil)

// New wraps a file system. Until told otherwise it only counts and records.
func New(inner storage.FS) *FS {
	f := &FS{inner: inner, crashed: make(chan struct{}), locks: map[*lock]struct{}{}}
	f.idle = sync.NewCond(&f.mu)
	return f
}

// Trace is every operation so far, in order; its number is the index + 1.
func (f *FS) Trace() []Op {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.trace)
}

// Ops is the number of operations so far.
func (f *FS) Ops() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.trace)
}

// Count is the number of operations of one kind so far.
func (f *FS) Count(kind storage.OpKind) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, op := range f.trace {
		if op.Kind == kind {
			n++
		}
	}
	return n
}

// Inject puts a rule to work. The first injected of several due rules acts; all
// count the match. A rule that makes no sense panics: the test is wrong.
func (f *FS) Inject(r Rule) *Injected {
	if problem := r.check(); problem != "" {
		panic("faultfs: " + problem)
	}
	i := &Injected{rule: r, first: make(chan struct{})}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules = append(f.rules, i)
	return i
}

// Heal ends all rules.
func (f *FS) Heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, i := range f.rules {
		i.Heal()
	}
	f.rules = nil
}

// CrashAt stops the file system at its n-th operation, counted from New, before
// or after that took effect (X2). That one and all later ones get ErrCrashed.
// The file system below is then as a kill would leave it, free of our locks.
func (f *FS) CrashAt(n int, after bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.crashAt, f.crashAfter = n, after
}

// OnCrash calls fn once at the crash, when nothing moves any more and before
// the crashing operation returns: the place to take an image.
func (f *FS) OnCrash(fn func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.onCrash = fn
}

// Crashed is closed when the crash is complete.
func (f *FS) Crashed() <-chan struct{} { return f.crashed }

// Crash stops the file system now, between two operations. A second crash does
// nothing.
func (f *FS) Crash() {
	f.mu.Lock()
	if f.dead {
		f.mu.Unlock()
		<-f.crashed
		return
	}
	f.dead = true
	f.mu.Unlock()
	f.die(nil)
}

// die waits for operations at work, lets the last one act and buries us. The
// caller has set dead, so that no operation can begin.
func (f *FS) die(last func() error) {
	f.mu.Lock()
	for f.inflight > 0 {
		f.idle.Wait()
	}
	f.mu.Unlock()
	if last != nil {
		_ = last()
	}
	f.mu.Lock()
	held, onCrash := f.locks, f.onCrash
	f.locks = nil
	f.mu.Unlock()
	for l := range held { // X3
		_ = l.inner.Close()
	}
	if onCrash != nil {
		onCrash()
	}
	close(f.crashed)
}

// do runs one operation. effect takes an error to report after the fact; it is
// given half = true when a write is to stop half way.
func (f *FS) do(op Op, effect func(half bool) error) error {
	f.mu.Lock()
	if f.dead {
		f.mu.Unlock()
		return wrap(op, ErrCrashed)
	}
	f.trace = append(f.trace, op)
	if len(f.trace) == f.crashAt {
		f.dead = true
		after := f.crashAfter
		f.mu.Unlock()
		if after {
			f.die(func() error { return effect(false) })
		} else {
			f.die(nil)
		}
		return wrap(op, ErrCrashed)
	}
	rule := f.dueRule(op)
	if rule == nil {
		f.inflight++
		f.mu.Unlock()
		defer f.leave()
		return effect(false)
	}
	f.mu.Unlock()
	return f.fire(rule, op, effect)
}

func (f *FS) dueRule(op Op) *Rule {
	var act *Rule
	for _, i := range f.rules {
		if i.due(op) && act == nil {
			act = &i.rule
		}
	}
	return act
}

// fire acts out a rule. Do may block for long, so the operation counts as at
// work only afterwards: a crash need not wait for a hang.
func (f *FS) fire(r *Rule, op Op, effect func(half bool) error) error {
	if r.Do != nil {
		r.Do(op)
	}
	f.mu.Lock()
	if f.dead {
		f.mu.Unlock()
		return wrap(op, ErrCrashed)
	}
	f.inflight++
	f.mu.Unlock()
	defer f.leave()
	switch {
	case r.NoEffect, r.Err != nil && r.When == Before && !r.Short:
	default:
		if err := effect(r.Short); err != nil {
			return err
		}
	}
	if r.Err == nil {
		return nil
	}
	return wrap(op, r.Err)
}

func (f *FS) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.inflight--
	if f.inflight == 0 {
		f.idle.Broadcast()
	}
}

func wrap(op Op, err error) error {
	return &storage.Error{Op: op.Kind, Name: op.Name, To: op.To, Err: err}
}

// Create makes a new file. A lie gives a file that swallows everything.
func (f *FS) Create(name string) (storage.File, error) {
	w := &file{fsys: f, name: name}
	err := f.do(Op{Kind: storage.OpCreate, Name: name}, func(bool) (err error) {
		w.inner, err = f.inner.Create(name)
		return err
	})
	if err != nil {
		return nil, err
	}
	return w, nil
}

// Open opens a file for reading.
func (f *FS) Open(name string) (storage.Reader, error) {
	r := &reader{fsys: f, name: name}
	err := f.do(Op{Kind: storage.OpOpen, Name: name}, func(bool) (err error) {
		r.Reader, err = f.inner.Open(name)
		return err
	})
	if err != nil {
		if r.Reader != nil {
			_ = r.Reader.Close()
		}
		return nil, err
	}
	return r, nil
}

// ReadFile reads a whole file.
func (f *FS) ReadFile(name string) (b []byte, err error) {
	err = f.do(Op{Kind: storage.OpReadFile, Name: name}, func(bool) (err error) {
		b, err = f.inner.ReadFile(name)
		return err
	})
	if err != nil {
		return nil, err
	}
	return b, nil
}

// Rename moves a file or directory.
func (f *FS) Rename(oldName, newName string) error {
	return f.do(Op{Kind: storage.OpRename, Name: oldName, To: newName}, func(bool) error {
		return f.inner.Rename(oldName, newName)
	})
}

// Replace moves a file over another.
func (f *FS) Replace(oldName, newName string) error {
	return f.do(Op{Kind: storage.OpReplace, Name: oldName, To: newName}, func(bool) error {
		return f.inner.Replace(oldName, newName)
	})
}

// Remove unlinks a file or an empty directory.
func (f *FS) Remove(name string) error {
	return f.do(Op{Kind: storage.OpRemove, Name: name}, func(bool) error { return f.inner.Remove(name) })
}

// Mkdir makes one directory.
func (f *FS) Mkdir(name string) error {
	return f.do(Op{Kind: storage.OpMkdir, Name: name}, func(bool) error { return f.inner.Mkdir(name) })
}

// Stat describes a file or directory.
func (f *FS) Stat(name string) (info storage.Info, err error) {
	err = f.do(Op{Kind: storage.OpStat, Name: name}, func(bool) (err error) {
		info, err = f.inner.Stat(name)
		return err
	})
	if err != nil {
		return storage.Info{}, err
	}
	return info, nil
}

// List describes a directory's entries.
func (f *FS) List(dir string) (infos []storage.Info, err error) {
	err = f.do(Op{Kind: storage.OpList, Name: dir}, func(bool) (err error) {
		infos, err = f.inner.List(dir)
		return err
	})
	if err != nil {
		return nil, err
	}
	return infos, nil
}

// SyncDir makes a directory's entries durable.
func (f *FS) SyncDir(dir string) error {
	return f.do(Op{Kind: storage.OpSyncDir, Name: dir}, func(bool) error { return f.inner.SyncDir(dir) })
}

// Lock takes a lock. A lie gives one that excludes nobody.
func (f *FS) Lock(name string) (io.Closer, error) {
	l := &lock{fsys: f, name: name, inner: nopCloser{}}
	err := f.do(Op{Kind: storage.OpLock, Name: name}, func(bool) error {
		inner, err := f.inner.Lock(name)
		if err == nil {
			l.inner = inner
			f.hold(l)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return l, nil
}

func (f *FS) hold(l *lock) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.locks[l] = struct{}{}
}
