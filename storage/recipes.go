package storage

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// WriteFile makes a new file with these bytes and syncs it (S4). The entry is
// not synced: Publish it, or SyncDir its directory. A file that could not be
// finished is removed as well as that goes.
func WriteFile(fsys FS, name string, data []byte) error {
	if p, ok := fsys.(Putter); ok {
		return p.Put(name, bytes.NewReader(data), int64(len(data)))
	}
	f, err := fsys.Create(name)
	if err != nil {
		return err // not ours to remove: the name may be taken
	}
	if err := fill(f, data); err != nil {
		_ = fsys.Remove(name) // the first error is the one that counts
		return err
	}
	return nil
}

// fill writes, syncs and closes; after an error it only closes (S5).
func fill(f File, data []byte) error {
	if _, err := f.Write(data); err != nil {
		_ = f.Close()
		return err
	}
	if err := f.Sync(); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}

// Publish moves a synced and closed file, or a directory, to its final name,
// overwriting nothing (S1), and makes that durable (S6): target's directory
// first, so that no moment has only the loss of the old name on disk.
//
// ErrExist and ErrNotExist mean that nothing was done. UnsyncedError means
// that the rename was done and may or may not survive.
func Publish(fsys FS, from, to string) error {
	if err := fsys.Rename(from, to); err != nil {
		return err
	}
	if err := fsys.SyncDir(path.Dir(to)); err != nil {
		return &UnsyncedError{Name: to, Err: err}
	}
	if path.Dir(from) == path.Dir(to) {
		return nil
	}
	if err := fsys.SyncDir(path.Dir(from)); err != nil {
		return &UnsyncedError{Name: to, Err: err}
	}
	return nil
}

// MkdirAllSync makes the missing levels of dir below root, which must exist and
// is never made (ErrNotExist), and syncs the directory above each level. Levels
// that exist are synced as well (S6); callers that publish often remember what
// they made durable. Another process making the same level is no error; a file
// in the way is (ErrExist).
func MkdirAllSync(fsys FS, root, dir string) error {
	if dir == root {
		return nil
	}
	prefix := root
	if root != "/" {
		prefix += "/"
	}
	rest, ok := strings.CutPrefix(dir, prefix)
	if !ok || CheckName(dir) != nil {
		return fmt.Errorf("make directory %s: not below %s: %w", dir, root, fs.ErrInvalid)
	}
	parent := root
	for _, name := range strings.Split(rest, "/") {
		level := path.Join(parent, name)
		if err := MkdirTolerant(fsys, level); err != nil {
			return err
		}
		if err := fsys.SyncDir(parent); err != nil {
			return &UnsyncedError{Name: level, Err: err}
		}
		parent = level
	}
	return nil
}

// NotOurs says of an error of SyncDir that the directory is nobody's who runs
// this: it may not be read, or its file system makes none durable (an automount
// point, a read-only image). Above a table that is no fault: what lies in it has
// been there before.
func NotOurs(err error) bool {
	return errors.Is(err, ErrPermission) || errors.Is(err, errors.ErrUnsupported)
}

// MkdirTolerant makes one directory that may be there already. Nothing is
// synced.
func MkdirTolerant(fsys FS, dir string) error {
	mkErr := fsys.Mkdir(dir)
	if mkErr == nil || !errors.Is(mkErr, ErrExist) {
		return mkErr
	}
	info, err := fsys.Stat(dir)
	if err != nil {
		return err
	}
	if !info.Dir {
		return fmt.Errorf("a file is where a directory should be: %w", mkErr)
	}
	return nil
}

// Limits of RemoveAll and Walk.
const (
	maxDepth  = 64 // levels of directories
	maxPasses = 4  // listings of one directory that others keep filling
)

// RemoveAll removes a file or a directory with all that is in it, depth first.
// What is gone already is fine. It unlinks before it lists, so a symbolic link
// goes and what it points to stays (S10). Nothing is synced.
func RemoveAll(fsys FS, dir string) error { return removeAll(fsys, dir, 0) }

func removeAll(fsys FS, dir string, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("remove %s: more than %d levels deep", dir, maxDepth)
	}
	var err error
	for pass := 0; pass <= maxPasses; pass++ {
		err = fsys.Remove(dir)
		if err == nil || errors.Is(err, ErrNotExist) {
			return nil
		}
		if !errors.Is(err, ErrExist) { // ErrExist: not empty
			return err
		}
		entries, lerr := fsys.List(dir)
		if errors.Is(lerr, ErrNotExist) {
			return nil
		}
		if lerr != nil {
			return lerr
		}
		for _, e := range entries {
			if err := removeEntry(fsys, path.Join(dir, e.Name), e.Dir, depth); err != nil {
				return err
			}
		}
	}
	return err
}

func removeEntry(fsys FS, name string, dir bool, depth int) error {
	if dir {
		return removeAll(fsys, name, depth+1)
	}
	if err := fsys.Remove(name); err != nil && !errors.Is(err, ErrNotExist) {
		return err
	}
	return nil
}

// Walk calls fn for everything below dir, sorted, a directory before its
// entries (S8). fn may return fs.SkipDir for a directory to leave it out; any
// other error ends the walk. A directory below dir that vanishes between its
// listing and the descent is passed over; dir itself must exist.
func Walk(fsys FS, dir string, fn func(name string, info Info) error) error {
	return walk(fsys, dir, 0, fn)
}

func walk(fsys FS, dir string, depth int, fn func(string, Info) error) error {
	if depth > maxDepth {
		return fmt.Errorf("walk %s: more than %d levels deep", dir, maxDepth)
	}
	entries, err := fsys.List(dir)
	if depth > 0 && errors.Is(err, ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := path.Join(dir, e.Name)
		err := fn(name, e)
		if err == fs.SkipDir && e.Dir {
			continue
		}
		if err != nil {
			return err
		}
		if e.Dir {
			if err := walk(fsys, name, depth+1, fn); err != nil {
				return err
			}
		}
	}
	return nil
}

// Exists says whether the name is taken; an error means that it is not known.
func Exists(fsys FS, name string) (bool, error) {
	_, err := fsys.Stat(name)
	if errors.Is(err, ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
