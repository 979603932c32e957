package hdfsfs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/colinmarc/hdfs/v2"

	"github.com/hivesink/hivesink/storage"
)

func (f *FS) Open(name string) (storage.Reader, error) {
	if err := storage.CheckName(name); err != nil {
		return nil, f.wrap(storage.OpOpen, name, "", err)
	}
	r := &reader{f: f, name: name}
	err := f.do("open "+name, r.open)
	if err != nil {
		return nil, f.wrap(storage.OpOpen, name, "", err)
	}
	return r, nil
}

func (f *FS) ReadFile(name string) ([]byte, error) {
	if err := storage.CheckName(name); err != nil {
		return nil, f.wrap(storage.OpReadFile, name, "", err)
	}
	var out []byte
	err := f.do("read "+name, func(s *session) error {
		r, err := s.client.Open(name)
		if err != nil {
			return err
		}
		defer r.Close()
		if r.Stat().IsDir() {
			return errIsDir
		}
		out = make([]byte, 0, r.Stat().Size()+bytes.MinRead)
		b := bytes.NewBuffer(out)
		_, err = io.Copy(b, r)
		out = b.Bytes()
		return err
	})
	return out, f.wrap(storage.OpReadFile, name, "", err)
}

var errIsDir = fmt.Errorf("is a directory: %w", fs.ErrInvalid)

// Rename asks for a rename without replacement (H1). An empty directory is in
// the way like a full one.
func (f *FS) Rename(oldName, newName string) error {
	if err := checkTwo(oldName, newName); err != nil {
		return f.wrap(storage.OpRename, oldName, newName, err)
	}
	return f.wrap(storage.OpRename, oldName, newName, f.rename(oldName, newName, false))
}

// rename knows the inode it moves, so that after a lost answer it can tell its
// own doing from another's (H5).
func (f *FS) rename(oldName, newName string, overwrite bool) error {
	var id uint64
	lost := false
	return f.do("rename "+oldName, func(s *session) error {
		if lost {
			if now, err := inode(s, newName); err == nil && now == id {
				return nil
			} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		} else {
			var err error
			if id, err = inode(s, oldName); err != nil {
				return err
			}
		}
		err := s.calls.rename(oldName, newName, overwrite)
		switch was, said := judge(err); {
		case was == unknown:
			lost = true
		case was == answered && lost && (errors.Is(said, fs.ErrNotExist) || errors.Is(said, fs.ErrExist)):
			// The lost one may have been done after the look above: then this
			// one has found its work done.
			if now, serr := inode(s, newName); serr == nil && now == id {
				return nil
			}
		case was == answered && err != nil && !overwrite && !known(said):
			// A file onto a directory and other refusals have no exception of
			// their own.
			_, serr := s.client.Stat(newName)
			if serr == nil {
				return &remoteError{fs.ErrExist, said.Error()}
			}
			if was, _ := judge(serr); was != answered {
				return serr // why it was refused is not known; nothing was done
			}
		}
		return err
	})
}

// known says whether an error is one that callers tell apart.
func known(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrPermission)
}

func inode(s *session, name string) (uint64, error) {
	info, err := s.client.Stat(name)
	if err != nil {
		return 0, err
	}
	status, ok := info.Sys().(*hdfs.FileStatus)
	if !ok {
		return 0, errForeignClient
	}
	return status.GetFileId(), nil
}

// Replace refuses directories itself: HDFS would replace an empty one.
func (f *FS) Replace(oldName, newName string) error {
	if err := checkTwo(oldName, newName); err != nil {
		return f.wrap(storage.OpReplace, oldName, newName, err)
	}
	for _, name := range []string{oldName, newName} {
		info, err := f.Stat(name)
		if err == nil && info.Dir {
			return f.wrap(storage.OpReplace, oldName, newName, errIsDir)
		}
		if err != nil && (name == oldName || !errors.Is(err, fs.ErrNotExist)) {
			var named *storage.Error
			if errors.As(err, &named) {
				err = named.Err
			}
			return f.wrap(storage.OpReplace, oldName, newName, err)
		}
	}
	return f.wrap(storage.OpReplace, oldName, newName, f.rename(oldName, newName, true))
}

func (f *FS) Remove(name string) error {
	if err := storage.CheckName(name); err != nil {
		return f.wrap(storage.OpRemove, name, "", err)
	}
	lost := false
	err := f.do("remove "+name, func(s *session) error {
		there, err := s.calls.remove(name)
		if was, _ := judge(err); was == unknown {
			lost = true
		}
		if err == nil && !there && !lost {
			return fs.ErrNotExist
		}
		return err
	})
	return f.wrap(storage.OpRemove, name, "", err)
}

func (f *FS) Mkdir(name string) error {
	if err := storage.CheckName(name); err != nil {
		return f.wrap(storage.OpMkdir, name, "", err)
	}
	lost := false
	err := f.do("make directory "+name, func(s *session) error {
		err := s.client.Mkdir(name, 0o777&^f.o.umask)
		if was, _ := judge(err); was == unknown {
			lost = true
		}
		if lost && errors.Is(err, fs.ErrExist) {
			// Ours or another's: nobody asks whose a directory is.
			if info, serr := s.client.Stat(name); serr == nil && info.IsDir() {
				return nil
			}
		}
		return err
	})
	return f.wrap(storage.OpMkdir, name, "", err)
}

func (f *FS) Stat(name string) (storage.Info, error) {
	if err := storage.CheckName(name); err != nil {
		return storage.Info{}, f.wrap(storage.OpStat, name, "", err)
	}
	info, err := f.stat(name)
	return info, f.wrap(storage.OpStat, name, "", err)
}

func (f *FS) stat(name string) (out storage.Info, err error) {
	err = f.do("stat "+name, func(s *session) error {
		info, err := s.client.Stat(name)
		if err == nil {
			out = infoOf(info)
			out.Name = path.Base(name)
		}
		return err
	})
	return out, err
}

func (f *FS) List(dir string) ([]storage.Info, error) {
	if err := storage.CheckName(dir); err != nil {
		return nil, f.wrap(storage.OpList, dir, "", err)
	}
	var out []storage.Info
	err := f.do("list "+dir, func(s *session) error {
		r, err := s.client.Open(dir)
		if err != nil {
			return err
		}
		defer r.Close()
		if !r.Stat().IsDir() {
			return errNoDir
		}
		infos, err := r.Readdir(0)
		if err != nil {
			return err
		}
		out = make([]storage.Info, len(infos))
		for i, info := range infos {
			out[i] = infoOf(info)
		}
		return nil
	})
	slices.SortFunc(out, func(a, b storage.Info) int { return strings.Compare(a.Name, b.Name) })
	return out, f.wrap(storage.OpList, dir, "", err)
}

var errNoDir = fmt.Errorf("is not a directory: %w", fs.ErrInvalid)

// SyncDir looks whether the directory is there: what was acknowledged of it is
// durable.
func (f *FS) SyncDir(dir string) error {
	if err := storage.CheckName(dir); err != nil {
		return f.wrap(storage.OpSyncDir, dir, "", err)
	}
	info, err := f.stat(dir)
	if err == nil && !info.Dir {
		err = errNoDir
	}
	return f.wrap(storage.OpSyncDir, dir, "", err)
}

// Lock is not to be had: HDFS has no lock that ends with its process. Epochs
// decide who owns a table (ledger).
func (f *FS) Lock(name string) (io.Closer, error) {
	if err := storage.CheckName(name); err != nil {
		return nil, f.wrap(storage.OpLock, name, "", err)
	}
	return nil, f.wrap(storage.OpLock, name, "", errors.ErrUnsupported)
}

func infoOf(i os.FileInfo) storage.Info {
	info := storage.Info{Name: i.Name(), Dir: i.IsDir(), ModTime: i.ModTime()}
	if !info.Dir {
		info.Size = i.Size()
	}
	return info
}

func checkTwo(oldName, newName string) error {
	if err := storage.CheckName(oldName); err != nil {
		return err
	}
	return storage.CheckName(newName)
}
