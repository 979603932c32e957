package memfs

import (
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

// Model says what is durable when.
type Model int

// The models (M1–M3).
const (
	Posix Model = iota
	HDFS
)

// Options of a file system; the zero value is a Posix one without limits.
type Options struct {
	Model Model
	// Capacity is the number of bytes all files together may hold; a write
	// beyond it is cut short with ErrNoSpace. Removing a file that is not open
	// gives its bytes back. 0 means no limit.
	Capacity int64
	// Now tells the modification time of entries. Default: a clock that starts
	// in 2000 and ticks 1 ms at each change.
	Now func() time.Time
}

// FS is a file system in memory.
type FS struct {
	opts Options

	mu   sync.Mutex
	root *inode
	seq  int64     // last change
	log  []*change // those not yet durable, in order
	used int64     // bytes in files that are linked or open

	flushes int // see flush
}

var _ storage.Exchanger = (*FS)(nil)

// New makes an empty Posix file system; its root "/" exists and is durable.
func New() *FS { return NewWith(Options{}) }

// NewWith makes an empty file system with these options.
func NewWith(opts Options) *FS {
	fsys := &FS{opts: opts}
	fsys.root = fsys.newInode(true)
	return fsys
}

// SetCapacity changes Options.Capacity, as when somebody frees or fills a disk.
func (m *FS) SetCapacity(bytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.opts.Capacity = bytes
}

// Used is the number of bytes that count against the capacity.
func (m *FS) Used() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.used
}

// place is where an inode has its one name; the zero place is nowhere.
type place struct {
	dir  *inode
	name string
}

// inode is a file or directory. It lives in two worlds at once: the one that
// processes see and the one that survives a power cut.
type inode struct {
	isDir   bool
	modTime time.Time

	at, durableAt place

	// entries, and the durable ones, of a directory.
	entries, durable map[string]*inode

	// data is only ever appended to, so that images share its array; of it the
	// first synced bytes are durable.
	data   []byte
	synced int
	open   int // handles
	locked bool
}

func (m *FS) newInode(dir bool) *inode {
	n := &inode{isDir: dir, modTime: m.now()}
	if dir {
		n.entries, n.durable = map[string]*inode{}, map[string]*inode{}
	}
	return n
}

func (m *FS) now() time.Time {
	if m.opts.Now != nil {
		return m.opts.Now()
	}
	return time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(m.seq) * time.Millisecond)
}

// lookup finds an inode by its full name, as any caller would see it.
func (m *FS) lookup(name string) (*inode, error) {
	if err := storage.CheckName(name); err != nil {
		return nil, err
	}
	n := m.root
	for rest := name[1:]; rest != ""; {
		var part string
		part, rest, _ = strings.Cut(rest, "/")
		if !n.isDir {
			return nil, syscall.ENOTDIR
		}
		next, ok := n.entries[part]
		if !ok {
			return nil, syscall.ENOENT
		}
		n = next
	}
	return n, nil
}

// vacant finds the directory and base name of a name that must not be taken.
func (m *FS) vacant(name string) (place, error) {
	p, err := m.placeOf(name)
	if err != nil {
		return p, err
	}
	if _, taken := p.dir.entries[p.name]; taken {
		return p, syscall.EEXIST
	}
	return p, nil
}

func (m *FS) placeOf(name string) (place, error) {
	if err := storage.CheckName(name); err != nil {
		return place{}, err
	}
	if name == "/" {
		return place{}, syscall.EEXIST
	}
	dir, err := m.lookup(path.Dir(name))
	if err != nil {
		return place{}, err
	}
	if !dir.isDir {
		return place{}, syscall.ENOTDIR
	}
	return place{dir, path.Base(name)}, nil
}

// Create makes a new, empty file.
func (m *FS) Create(name string) (storage.File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p, err := m.vacant(name)
	if err != nil {
		return nil, wrap(storage.OpCreate, name, err)
	}
	n := m.newInode(false)
	n.open++
	m.apply(&change{node: n, to: p})
	return &file{fsys: m, node: n, name: name}, nil
}

// Open opens a file with the bytes it has now.
func (m *FS) Open(name string) (storage.Reader, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.lookupFile(name)
	if err != nil {
		return nil, wrap(storage.OpOpen, name, err)
	}
	n.open++
	return &reader{fsys: m, node: n, name: name, data: n.data}, nil
}

// ReadFile returns a copy of a file's bytes.
func (m *FS) ReadFile(name string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.lookupFile(name)
	if err != nil {
		return nil, wrap(storage.OpReadFile, name, err)
	}
	return append([]byte{}, n.data...), nil
}

func (m *FS) lookupFile(name string) (*inode, error) {
	n, err := m.lookup(name)
	if err == nil && n.isDir {
		err = syscall.EISDIR
	}
	return n, err
}

// Rename moves a file or directory; any existing target refuses (S1), an empty
// directory too.
func (m *FS) Rename(oldName, newName string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return wrapTwo(storage.OpRename, oldName, newName, m.rename(oldName, newName))
}

func (m *FS) rename(oldName, newName string) error {
	if err := storage.CheckName(newName); err != nil {
		return err
	}
	n, err := m.lookup(oldName)
	if err != nil {
		return err
	}
	if n == m.root || strings.HasPrefix(newName, oldName+"/") {
		return syscall.EINVAL // into itself
	}
	p, err := m.vacant(newName)
	if err != nil {
		return err
	}
	m.apply(&change{node: n, from: n.at, to: p})
	return nil
}

// Replace moves a file over another or to a vacant name.
func (m *FS) Replace(oldName, newName string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return wrapTwo(storage.OpReplace, oldName, newName, m.replace(oldName, newName))
}

func (m *FS) replace(oldName, newName string) error {
	n, err := m.lookupFile(oldName)
	if err != nil {
		return err
	}
	p, err := m.placeOf(newName)
	if err != nil {
		return err
	}
	victim := p.dir.entries[p.name]
	if victim == n {
		return nil
	}
	if victim != nil && victim.isDir {
		return syscall.EISDIR
	}
	m.apply(&change{node: n, from: n.at, to: p, victim: victim})
	return nil
}

// Remove unlinks a file or an empty directory.
func (m *FS) Remove(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.lookup(name)
	switch {
	case err != nil:
	case n == m.root:
		err = syscall.EBUSY
	case len(n.entries) > 0:
		err = syscall.ENOTEMPTY
	default:
		m.apply(&change{node: n, from: n.at})
	}
	return wrap(storage.OpRemove, name, err)
}

// Mkdir makes one directory.
func (m *FS) Mkdir(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	p, err := m.vacant(name)
	if err == nil {
		m.apply(&change{node: m.newInode(true), to: p})
	}
	return wrap(storage.OpMkdir, name, err)
}

// Stat describes a file or directory.
func (m *FS) Stat(name string) (storage.Info, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.lookup(name)
	if err != nil {
		return storage.Info{}, wrap(storage.OpStat, name, err)
	}
	return n.info(path.Base(name)), nil
}

func (n *inode) info(name string) storage.Info {
	return storage.Info{Name: name, Size: int64(len(n.data)), Dir: n.isDir, ModTime: n.modTime}
}

// List describes a directory's entries, sorted (S8).
func (m *FS) List(dir string) ([]storage.Info, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.lookup(dir)
	if err == nil && !n.isDir {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return nil, wrap(storage.OpList, dir, err)
	}
	infos := make([]storage.Info, 0, len(n.entries))
	for name, e := range n.entries {
		infos = append(infos, e.info(name))
	}
	slices.SortFunc(infos, func(a, b storage.Info) int { return strings.Compare(a.Name, b.Name) })
	return infos, nil
}

// SyncDir makes a directory's entries durable (M2).
func (m *FS) SyncDir(dir string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.lookup(dir)
	if err == nil && !n.isDir {
		err = syscall.ENOTDIR
	}
	if err == nil {
		m.syncDir(n)
	}
	return wrap(storage.OpSyncDir, dir, err)
}

// Lock takes the exclusive lock of a file, made when absent (S7).
func (m *FS) Lock(name string) (io.Closer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.lookupFile(name)
	if err == syscall.ENOENT {
		var p place
		if p, err = m.vacant(name); err == nil {
			n = m.newInode(false)
			m.apply(&change{node: n, to: p})
		}
	}
	if err == nil && n.locked {
		err = storage.ErrLocked
	}
	if err != nil {
		return nil, wrap(storage.OpLock, name, err)
	}
	n.locked = true
	n.open++
	return &lock{fsys: m, node: n, name: name}, nil
}

// release closes one handle; the bytes of a file without a name go with the
// last one.
func (m *FS) release(n *inode) {
	n.open--
	m.reclaim(n)
}

func (m *FS) reclaim(n *inode) {
	if n.open == 0 && n.at.dir == nil {
		m.used -= int64(len(n.data))
	}
}

// Tree lists everything below root that callers see, a line each: indented,
// sorted, directories with a slash, files with their length. For tests.
func (m *FS) Tree(root string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.lookup(root)
	if err != nil {
		return fmt.Sprintf("%s: %v\n", root, err)
	}
	var b strings.Builder
	n.tree(&b, "")
	return b.String()
}

func (n *inode) tree(b *strings.Builder, indent string) {
	for _, name := range sortedNames(n.entries) {
		e := n.entries[name]
		if !e.isDir {
			fmt.Fprintf(b, "%s%s %d\n", indent, name, len(e.data))
			continue
		}
		fmt.Fprintf(b, "%s%s/\n", indent, name)
		e.tree(b, indent+"  ")
	}
}

func sortedNames(entries map[string]*inode) []string {
	names := make([]string, 0, len(entries))
	for name := range entries {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func wrap(op storage.OpKind, name string, err error) error {
	return wrapTwo(op, name, "", err)
}

func wrapTwo(op storage.OpKind, name, to string, err error) error {
	if err == nil {
		return nil
	}
	return &storage.Error{Op: op, Name: name, To: to, Err: err}
}
