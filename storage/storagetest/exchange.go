package storagetest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/hivesink/hivesink/storage"
)

// exchanger is the file system's other half; a file system without it has
// nothing to keep.
func (e *env) exchanger() storage.Exchanger {
	e.Helper()
	x, ok := e.FS.(storage.Exchanger)
	if !ok {
		e.Skip("no storage.Exchanger")
	}
	return x
}

func testExchange(e *env) {
	x := e.exchanger()
	e.mkdir("p", "p/a", "p/a/sub", "q", "q/b")
	e.write("p/a/f", "from a")
	e.write("p/a/sub/g", "below a")
	e.write("q/b/f", "from b")
	e.ok(x.Exchange(e.at("p/a"), e.at("q/b")))
	e.holds("q/b/f", "from a")
	e.holds("q/b/sub/g", "below a")
	e.holds("p/a/f", "from b")
	e.gone("p/a/sub")
	e.ok(x.Exchange(e.at("p/a"), e.at("q/b")))
	e.holds("p/a/f", "from a")
	e.holds("q/b/f", "from b")
	// Within one directory.
	e.mkdir("p/c")
	e.ok(x.Exchange(e.at("p/a"), e.at("p/c")))
	e.holds("p/c/f", "from a")
	e.gone("p/a/f")
}

func testExchangeRefuses(e *env) {
	x := e.exchanger()
	e.mkdir("a", "a/in")
	e.write("a/f", "text")
	e.write("f", "file")
	e.is(x.Exchange(e.at("a"), e.at("no")), storage.ErrNotExist)
	e.is(x.Exchange(e.at("no"), e.at("a")), storage.ErrNotExist)
	e.fails(x.Exchange(e.at("a"), e.at("f")))
	e.fails(x.Exchange(e.at("f"), e.at("a")))
	e.fails(x.Exchange(e.at("a"), e.at("a/in")))
	e.fails(x.Exchange(e.at("a/in"), e.at("a")))
	e.holds("a/f", "text")
	e.holds("f", "file")
}

// A reader beside many exchanges finds the one file of either directory at
// every look.
func testExchangeIsOneStep(e *env) {
	x := e.exchanger()
	e.mkdir("hidden", "hidden/b", "a")
	e.write("a/f", "old")
	e.write("hidden/b/f", "new")
	quit := make(chan struct{})
	var looks atomic.Int64
	var err error
	var wg sync.WaitGroup
	wg.Go(func() {
		for ; ; looks.Add(1) {
			select {
			case <-quit:
				return
			default:
			}
			entries, lerr := e.List(e.at("a"))
			if lerr == nil && len(entries) != 1 {
				lerr = fmt.Errorf("look %d found %v", looks.Load(), entries)
			}
			if err == nil {
				err = lerr
			}
		}
	})
	times := 0
	for ; times < 300 || times%2 != 0 || looks.Load() < 100; times++ {
		e.ok(x.Exchange(e.at("hidden/b"), e.at("a")))
	}
	close(quit)
	wg.Wait()
	e.ok(err)
	e.holds("a/f", "old")
}

func testLink(e *env) {
	x := e.exchanger()
	e.mkdir("d")
	e.write("f", "text")
	err := x.Link(e.at("f"), e.at("d/g"))
	if errors.Is(err, errors.ErrUnsupported) {
		e.gone("d/g")
		return
	}
	e.ok(err)
	e.holds("d/g", "text")
	e.is(x.Link(e.at("f"), e.at("d/g")), storage.ErrExist)
	e.is(x.Link(e.at("no"), e.at("d/h")), storage.ErrNotExist)
	e.is(x.Link(e.at("f"), e.at("no/h")), storage.ErrNotExist)
	e.ok(e.Remove(e.at("f")))
	e.holds("d/g", "text")
}

func testMimic(e *env) {
	x := e.exchanger()
	e.mkdir("a", "b")
	e.write("f", "text")
	e.ok(x.Mimic(e.at("a"), e.at("b")))
	e.ok(x.Mimic(e.at("f"), e.at("f")))
	e.is(x.Mimic(e.at("no"), e.at("b")), storage.ErrNotExist)
	e.is(x.Mimic(e.at("a"), e.at("no")), storage.ErrNotExist)
}

func testLockDir(e *env) {
	x := e.exchanger()
	e.mkdir("d")
	lock, err := x.LockDir(e.at("d"))
	e.ok(err)
	_, err = x.LockDir(e.at("d"))
	e.is(err, storage.ErrLocked)
	e.ok(lock.Close())
	lock, err = x.LockDir(e.at("d"))
	e.ok(err)
	e.ok(lock.Close())
	_, err = x.LockDir(e.at("no"))
	e.is(err, storage.ErrNotExist)
	e.write("f", "")
	_, err = x.LockDir(e.at("f"))
	e.fails(err)
	if infos, err := e.List(e.at("d")); err != nil || len(infos) != 0 {
		e.Fatalf("the lock left %v, %v", infos, err)
	}
}
