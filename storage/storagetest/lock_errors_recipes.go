package storagetest

import (
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/hivesink/hivesink/storage"
)

func testLock(e *env) {
	if e.may(Lockless) {
		_, err := e.Lock(e.at("lock"))
		e.is(err, errors.ErrUnsupported)
		e.gone("lock")
		return
	}
	l, err := e.Lock(e.at("lock"))
	e.ok(err)
	_, err = e.Stat(e.at("lock"))
	e.ok(err)
	for range 2 { // being refused changes nothing
		_, err = e.Lock(e.at("lock"))
		e.is(err, storage.ErrLocked)
	}
	other, err := e.Lock(e.at("other"))
	e.ok(err)
	e.ok(l.Close())
	l, err = e.Lock(e.at("lock"))
	e.ok(err)
	e.ok(l.Close())
	e.ok(other.Close())
	_, err = e.Lock(e.at("no/lock"))
	e.is(err, storage.ErrNotExist)
}

func testErrors(e *env) {
	no, to := e.at("no/f"), e.at("no/g")
	f, err := e.Create(e.at("f"))
	e.ok(err)
	e.ok(f.Close())
	_, create := e.Create(no)
	_, open := e.Open(no)
	_, readFile := e.ReadFile(no)
	_, stat := e.Stat(no)
	_, list := e.List(no)
	_, lock := e.Lock(no)
	_, write := f.Write([]byte("x"))
	for op, c := range map[storage.OpKind]struct {
		err  error
		name string
		to   string
	}{
		storage.OpCreate: {create, no, ""}, storage.OpOpen: {open, no, ""},
		storage.OpReadFile: {readFile, no, ""}, storage.OpStat: {stat, no, ""},
		storage.OpList: {list, no, ""}, storage.OpLock: {lock, no, ""},
		storage.OpRename:  {e.Rename(no, to), no, to},
		storage.OpReplace: {e.Replace(no, to), no, to},
		storage.OpRemove:  {e.Remove(no), no, ""}, storage.OpMkdir: {e.Mkdir(no), no, ""},
		storage.OpSyncDir: {e.SyncDir(no), no, ""},
		storage.OpWrite:   {write, e.at("f"), ""}, storage.OpSync: {f.Sync(), e.at("f"), ""},
		storage.OpClose: {f.Close(), e.at("f"), ""},
	} {
		var named *storage.Error
		if !errors.As(c.err, &named) {
			e.Errorf("%s: error is %T %v, want a storage.Error", op, c.err, c.err)
			continue
		}
		if named.Op != op || named.Name != c.name || named.To != c.to {
			e.Errorf("%s: error names %s %s %s", op, named.Op, named.Name, named.To)
		}
		for _, word := range []string{string(op), c.name, c.to} {
			if strings.Count(c.err.Error(), word) != 1 && word != "" && word != string(op) {
				e.Errorf("%s: %q should say %s once", op, c.err, word)
			}
		}
	}
}

func testNames(e *env) {
	e.write("f", "text")
	for _, bad := range []string{
		"", "f", "./f", e.root + "/./f", e.root + "/d/../f", e.root + "//f", e.root + "/f/", e.root + "/f\x00",
	} {
		_, err := e.Create(bad)
		e.is(err, fs.ErrInvalid)
		_, err = e.Open(bad)
		e.is(err, fs.ErrInvalid)
		_, err = e.ReadFile(bad)
		e.is(err, fs.ErrInvalid)
		_, err = e.Stat(bad)
		e.is(err, fs.ErrInvalid)
		_, err = e.List(bad)
		e.is(err, fs.ErrInvalid)
		_, err = e.Lock(bad)
		e.is(err, fs.ErrInvalid)
		e.is(e.Rename(bad, e.at("g")), fs.ErrInvalid)
		e.is(e.Rename(e.at("f"), bad), fs.ErrInvalid)
		e.is(e.Replace(bad, e.at("g")), fs.ErrInvalid)
		e.is(e.Replace(e.at("f"), bad), fs.ErrInvalid)
		e.is(e.Remove(bad), fs.ErrInvalid)
		e.is(e.Mkdir(bad), fs.ErrInvalid)
		e.is(e.SyncDir(bad), fs.ErrInvalid)
	}
	e.holds("f", "text")
}

func testPublish(e *env) {
	e.mkdir("staging", "table")
	e.write("staging/f", "first")
	e.ok(storage.Publish(e.FS, e.at("staging/f"), e.at("table/f")))
	e.write("staging/f", "second")
	e.is(storage.Publish(e.FS, e.at("staging/f"), e.at("table/f")), storage.ErrExist)
	e.holds("table/f", "first")
	e.holds("staging/f", "second")
}

func testMkdirAll(e *env) {
	for range 2 {
		e.ok(storage.MkdirAllSync(e.FS, e.root, e.at("dt=1/hr=2")))
	}
	e.ok(storage.MkdirAllSync(e.FS, e.root, e.root))
	e.is(storage.MkdirAllSync(e.FS, e.at("no"), e.at("no/a/b")), storage.ErrNotExist)
	e.gone("no")
	e.is(storage.MkdirAllSync(e.FS, e.at("dt=1"), e.at("dt=10/x")), fs.ErrInvalid)
	e.write("f", "")
	e.is(storage.MkdirAllSync(e.FS, e.root, e.at("f/x")), storage.ErrExist)
	e.write("dt=1/hr=2/f", "text")
}

func testRemoveAll(e *env) {
	e.mkdir("d", "d/b", "d/a", "d/a/deep", "e")
	e.write("d/a/deep/f", "")
	e.write("d/b.parquet", "")
	e.write("e/stays", "text")
	var seen []string
	walk := func(skip string) {
		seen = nil
		e.ok(storage.Walk(e.FS, e.at("d"), func(name string, info storage.Info) error {
			seen = append(seen, strings.TrimPrefix(name, e.root+"/"))
			if name == e.at(skip) {
				return fs.SkipDir
			}
			return nil
		}))
	}
	walk("")
	if want := []string{"d/a", "d/a/deep", "d/a/deep/f", "d/b", "d/b.parquet"}; !slices.Equal(seen, want) {
		e.Errorf("walk saw %q, want %q", seen, want)
	}
	walk("d/a")
	if want := []string{"d/a", "d/b", "d/b.parquet"}; !slices.Equal(seen, want) {
		e.Errorf("walk without d/a saw %q, want %q", seen, want)
	}
	for range 2 {
		e.ok(storage.RemoveAll(e.FS, e.at("d")))
		e.gone("d")
	}
	e.is(storage.Walk(e.FS, e.at("d"), nil), storage.ErrNotExist)
	e.holds("e/stays", "text")
}
