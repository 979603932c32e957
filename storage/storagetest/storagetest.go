package storagetest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/hivesink/hivesink/storage"
)

// New makes a file system for one test, and names an empty directory on it that
// the test may fill.
type New func(t *testing.T) (fsys storage.FS, root string)

// Trait is what a backend is allowed to do otherwise.
type Trait string

const (
	// Volatile: who has a file open that is renamed or removed may read
	// fs.ErrNotExist from then on, though never other bytes.
	Volatile Trait = "volatile"
	// Lockless: Lock says errors.ErrUnsupported, and epochs alone decide who owns
	// a table.
	Lockless Trait = "lockless"
)

// Run tests every rule, each on a file system of its own.
func Run(t *testing.T, newFS New, traits ...Trait) {
	for _, rule := range rules {
		t.Run(strings.ReplaceAll(rule.says, " ", "-"), func(t *testing.T) {
			fsys, root := newFS(t)
			rule.test(&env{T: t, FS: fsys, root: root, traits: traits})
		})
	}
}

var rules = []struct {
	says string
	test func(*env)
}{
	{"create and read back", testCreate},
	{"create refuses a taken name", testCreateTaken}, // S1
	{"create makes no parents", testCreateOrphan},
	{"a closed file takes nothing more", testClosed},
	{"open and read-file refuse what is no file", testOpenRefuses},
	{"read-at keeps the rules of io.ReaderAt", testReadAt},
	{"a reader outlives rename and remove of its file", testReaderOutlives},
	{"rename moves a file", testRenameFile},
	{"rename moves a directory with all in it", testRenameDir},
	{"rename never overwrites", testRenameTaken}, // S1
	{"rename onto an empty directory is all or nothing", testRenameEmptyDir},
	{"rename needs source and target directory", testRenameOrphan},
	{"rename of a directory into itself fails", testRenameIntoItself},
	{"of many renames to one name one wins", testRenameRace},      // S1
	{"of many directories that claim a name one wins", testClaim}, // S1
	{"of many creates of one name one wins", testCreateRace},      // S1
	{"paths are resolved at every call", testResolve},             // S2
	{"replace moves over a file", testReplace},
	{"replace spares directories", testReplaceDir},
	{"remove unlinks files and empty directories", testRemove},
	{"remove spares what is not empty", testRemoveFull},
	{"mkdir makes one level", testMkdir},
	{"stat describes", testStat},
	{"list is sorted and describes", testList}, // S8
	{"sync-dir needs a directory", testSyncDir},
	{"lock excludes until closed", testLock},       // S7
	{"errors name operation and path", testErrors}, // S3
	{"names are absolute and cleaned", testNames},  // S9
	{"publish overwrites nothing", testPublish},    // S1
	{"mkdir-all-sync keeps below an existing root", testMkdirAll},
	{"remove-all and walk see everything", testRemoveAll},
	{"exchange swaps directories with all in them", testExchange}, // S11
	{"exchange refuses what are not two directories", testExchangeRefuses},
	{"exchange is one step", testExchangeIsOneStep}, // S11
	{"link gives a second name", testLink},
	{"mimic needs both names", testMimic},
	{"lock-dir excludes until closed", testLockDir}, // S7
}

// env is a test, a file system and the shortest ways to use both.
type env struct {
	*testing.T
	storage.FS
	root   string
	traits []Trait
}

func (e *env) may(t Trait) bool { return slices.Contains(e.traits, t) }

func (e *env) at(name string) string { return path.Join(e.root, name) }

func (e *env) ok(err error) {
	e.Helper()
	if err != nil {
		e.Fatal(err)
	}
}

func (e *env) is(err, want error) {
	e.Helper()
	if !errors.Is(err, want) {
		e.Fatalf("error is %v, want %v", err, want)
	}
}

func (e *env) fails(err error) {
	e.Helper()
	if err == nil {
		e.Fatal("no error")
	}
}

func (e *env) write(name, text string) {
	e.Helper()
	e.ok(storage.WriteFile(e.FS, e.at(name), []byte(text)))
}

func (e *env) mkdir(names ...string) {
	e.Helper()
	for _, name := range names {
		e.ok(e.Mkdir(e.at(name)))
	}
}

func (e *env) holds(name, text string) {
	e.Helper()
	b, err := e.ReadFile(e.at(name))
	e.ok(err)
	if string(b) != text {
		e.Fatalf("%s holds %q, want %q", name, b, text)
	}
}

func (e *env) gone(name string) {
	e.Helper()
	_, err := e.Stat(e.at(name))
	e.is(err, storage.ErrNotExist)
}

func testCreate(e *env) {
	f, err := e.Create(e.at("f"))
	e.ok(err)
	for _, part := range []string{"one ", "", "two"} {
		n, err := f.Write([]byte(part))
		e.ok(err)
		if n != len(part) {
			e.Fatalf("wrote %d of %d bytes", n, len(part))
		}
	}
	e.ok(f.Sync())
	_, err = f.Write([]byte(" three"))
	e.ok(err)
	e.ok(f.Close())
	e.holds("f", "one two three")
}

func testCreateTaken(e *env) {
	e.write("f", "old")
	e.mkdir("d")
	for _, name := range []string{"f", "d"} {
		_, err := e.Create(e.at(name))
		e.is(err, storage.ErrExist)
	}
	e.is(storage.WriteFile(e.FS, e.at("f"), []byte("new")), storage.ErrExist)
	e.holds("f", "old")
}

func testCreateOrphan(e *env) {
	_, err := e.Create(e.at("no/f"))
	e.is(err, storage.ErrNotExist)
	e.gone("no")
	e.write("f", "")
	_, err = e.Create(e.at("f/below-a-file"))
	e.fails(err)
}

func testClosed(e *env) {
	f, err := e.Create(e.at("f"))
	e.ok(err)
	e.ok(f.Close())
	_, err = f.Write([]byte("x"))
	e.fails(err)
	e.fails(f.Sync())
	e.fails(f.Close())
	e.holds("f", "")
}

func testOpenRefuses(e *env) {
	e.mkdir("d")
	_, err := e.Open(e.at("d"))
	e.fails(err)
	_, err = e.ReadFile(e.at("d"))
	e.fails(err)
	_, err = e.Open(e.at("no"))
	e.is(err, storage.ErrNotExist)
	_, err = e.ReadFile(e.at("no"))
	e.is(err, storage.ErrNotExist)
}

func testReadAt(e *env) {
	e.write("f", "0123456789")
	r, err := e.Open(e.at("f"))
	e.ok(err)
	if r.Size() != 10 {
		e.Fatalf("size %d, want 10", r.Size())
	}
	for _, c := range []struct {
		off  int64
		want int
		n    int
		err  error
	}{
		{0, 10, 10, nil}, {3, 4, 4, nil}, {9, 1, 1, nil},
		{8, 4, 2, io.EOF}, {10, 1, 0, io.EOF}, {99, 1, 0, io.EOF}, {5, 0, 0, nil},
	} {
		b := make([]byte, c.want)
		n, err := r.ReadAt(b, c.off)
		if c.err == nil && err == io.EOF && c.off+int64(n) == 10 {
			err = nil // io.ReaderAt allows either at the end
		}
		if n != c.n || err != c.err {
			e.Errorf("read %d at %d: %d, %v; want %d, %v", c.want, c.off, n, err, c.n, c.err)
		}
		if want := []byte("0123456789")[min(c.off, 10):min(c.off+int64(n), 10)]; !bytes.Equal(b[:n], want) {
			e.Errorf("read %d at %d: %q, want %q", c.want, c.off, b[:n], want)
		}
	}
	if _, err := r.ReadAt(make([]byte, 1), -1); err == nil || err == io.EOF {
		e.Errorf("read at -1: %v", err)
	}
	e.ok(r.Close())
	if _, err := r.ReadAt(make([]byte, 1), 0); err == nil || err == io.EOF {
		e.Errorf("read after close: %v", err)
	}
}

func testReaderOutlives(e *env) {
	e.write("f", "bytes")
	r, err := e.Open(e.at("f"))
	e.ok(err)
	e.ok(e.Rename(e.at("f"), e.at("g")))
	e.ok(e.Remove(e.at("g")))
	b, err := io.ReadAll(io.NewSectionReader(r, 0, r.Size()))
	if e.may(Volatile) && errors.Is(err, storage.ErrNotExist) {
		return
	}
	e.ok(err)
	if string(b) != "bytes" {
		e.Fatalf("read %q", b)
	}
	e.ok(r.Close())
}

func testRenameFile(e *env) {
	e.mkdir("d")
	e.write("f", "text")
	e.ok(e.Rename(e.at("f"), e.at("g")))
	e.gone("f")
	e.ok(e.Rename(e.at("g"), e.at("d/g")))
	e.gone("g")
	e.holds("d/g", "text")
}

func testRenameDir(e *env) {
	e.mkdir("a", "a/b", "c")
	e.write("a/b/f", "text")
	e.ok(e.Rename(e.at("a"), e.at("c/z")))
	e.gone("a")
	e.holds("c/z/b/f", "text")
}

func testRenameTaken(e *env) {
	e.mkdir("from", "to")
	e.write("from/f", "from/f")
	e.write("to/f", "to/f")
	e.write("f", "f")
	for _, c := range [][2]string{
		{"f", "to/f"}, {"f", "to"}, {"from", "to"}, {"from", "f"}, {"f", "f"},
	} {
		e.is(e.Rename(e.at(c[0]), e.at(c[1])), storage.ErrExist)
		e.holds("f", "f")
		e.holds("from/f", "from/f")
		e.holds("to/f", "to/f")
	}
}

func testRenameEmptyDir(e *env) {
	e.mkdir("from", "to")
	e.write("from/f", "text")
	err := e.Rename(e.at("from"), e.at("to"))
	if err == nil {
		e.gone("from")
		e.holds("to/f", "text")
		return
	}
	e.is(err, storage.ErrExist)
	e.holds("from/f", "text")
	e.gone("to/f")
}

func testRenameOrphan(e *env) {
	e.write("f", "text")
	e.is(e.Rename(e.at("no"), e.at("g")), storage.ErrNotExist)
	e.is(e.Rename(e.at("f"), e.at("no/g")), storage.ErrNotExist)
	e.holds("f", "text")
	e.gone("no")
}

func testRenameIntoItself(e *env) {
	e.mkdir("d", "d/e")
	e.fails(e.Rename(e.at("d"), e.at("d/e/d")))
	_, err := e.Stat(e.at("d/e"))
	e.ok(err)
}

const racers = 16

// race runs racers of try at once and expects one to win, the others to meet
// ErrExist.
func race(e *env, try func(i int) error) (winner int) {
	e.Helper()
	errs := make([]error, racers)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range racers {
		wg.Go(func() {
			<-start
			errs[i] = try(i)
		})
	}
	close(start)
	wg.Wait()
	winner = -1
	for i, err := range errs {
		switch {
		case err != nil:
			e.is(err, storage.ErrExist)
		case winner >= 0:
			e.Fatalf("both %d and %d won", winner, i)
		default:
			winner = i
		}
	}
	if winner < 0 {
		e.Fatal("nobody won")
	}
	return winner
}

func testRenameRace(e *env) {
	e.mkdir("from", "to")
	for round := range 8 {
		for i := range racers {
			e.write(fmt.Sprintf("from/%d-%d", round, i), fmt.Sprint(i))
		}
		target := fmt.Sprintf("to/%d", round)
		winner := race(e, func(i int) error {
			return e.Rename(e.at(fmt.Sprintf("from/%d-%d", round, i)), e.at(target))
		})
		e.holds(target, fmt.Sprint(winner))
		for i := range racers {
			if i != winner {
				e.holds(fmt.Sprintf("from/%d-%d", round, i), fmt.Sprint(i))
			}
		}
	}
}

// testClaim is how an epoch is claimed: a directory that holds something is
// renamed to a name that others want too.
func testClaim(e *env) {
	for i := range racers {
		dir := fmt.Sprintf("claim-%d", i)
		e.mkdir(dir, fmt.Sprintf("%s/%d", dir, i))
	}
	winner := race(e, func(i int) error { return e.Rename(e.at(fmt.Sprintf("claim-%d", i)), e.at("epoch-1")) })
	infos, err := e.List(e.at("epoch-1"))
	e.ok(err)
	if len(infos) != 1 || infos[0].Name != fmt.Sprint(winner) {
		e.Fatalf("%d won, the directory holds %v", winner, infos)
	}
	infos, err = e.List(e.root)
	e.ok(err)
	if len(infos) != racers {
		e.Fatalf("%d directories are left, want the losers' and the winner's: %v", len(infos), infos)
	}
}

func testCreateRace(e *env) {
	files := make([]storage.File, racers)
	winner := race(e, func(i int) (err error) {
		files[i], err = e.Create(e.at("f"))
		return err
	})
	_, err := files[winner].Write([]byte("won"))
	e.ok(err)
	e.ok(files[winner].Close())
	e.holds("f", "won")
}

func testResolve(e *env) {
	e.mkdir("epoch", "table")
	e.write("epoch/f", "text")
	e.ok(e.Rename(e.at("epoch"), e.at("fenced")))
	// Who still knows the old path can do nothing any more.
	_, err := e.Create(e.at("epoch/g"))
	e.is(err, storage.ErrNotExist)
	e.is(e.Rename(e.at("epoch/f"), e.at("table/f")), storage.ErrNotExist)
	e.is(e.Rename(e.at("table"), e.at("epoch/t")), storage.ErrNotExist)
	e.is(e.Mkdir(e.at("epoch/d")), storage.ErrNotExist)
	e.is(e.SyncDir(e.at("epoch")), storage.ErrNotExist)
	e.holds("fenced/f", "text")
}

func testReplace(e *env) {
	e.mkdir("d")
	e.write("new", "new")
	e.write("d/_SUCCESS", "old")
	e.ok(e.Replace(e.at("new"), e.at("d/_SUCCESS")))
	e.gone("new")
	e.holds("d/_SUCCESS", "new")
	e.write("newer", "newer")
	e.ok(e.Replace(e.at("newer"), e.at("d/other")))
	e.holds("d/other", "newer")
	e.is(e.Replace(e.at("no"), e.at("d/other")), storage.ErrNotExist)
	e.is(e.Replace(e.at("d/other"), e.at("no/other")), storage.ErrNotExist)
	e.holds("d/other", "newer")
}

func testReplaceDir(e *env) {
	e.mkdir("d", "empty")
	e.write("f", "text")
	e.fails(e.Replace(e.at("f"), e.at("empty")))
	e.fails(e.Replace(e.at("d"), e.at("empty")))
	e.fails(e.Replace(e.at("d"), e.at("vacant")))
	e.fails(e.Replace(e.at("d"), e.at("f")))
	e.holds("f", "text")
	e.gone("vacant")
	for _, dir := range []string{"d", "empty"} {
		info, err := e.Stat(e.at(dir))
		e.ok(err)
		if !info.Dir {
			e.Fatalf("%s is no directory any more", dir)
		}
	}
}

func testRemove(e *env) {
	e.mkdir("d")
	e.write("d/f", "text")
	e.ok(e.Remove(e.at("d/f")))
	e.gone("d/f")
	e.ok(e.Remove(e.at("d")))
	e.gone("d")
	e.is(e.Remove(e.at("d")), storage.ErrNotExist)
	e.is(e.Remove(e.at("no/f")), storage.ErrNotExist)
}

func testRemoveFull(e *env) {
	e.mkdir("d")
	e.write("d/.f", "text")
	e.is(e.Remove(e.at("d")), storage.ErrExist)
	e.holds("d/.f", "text")
}

func testMkdir(e *env) {
	e.mkdir("d")
	e.is(e.Mkdir(e.at("d")), storage.ErrExist)
	e.write("f", "text")
	e.is(e.Mkdir(e.at("f")), storage.ErrExist)
	e.is(e.Mkdir(e.at("no/d")), storage.ErrNotExist)
	e.gone("no")
	infos, err := e.List(e.at("d"))
	e.ok(err)
	if len(infos) != 0 {
		e.Fatalf("a new directory lists %v", infos)
	}
}

func testStat(e *env) {
	e.mkdir("d")
	e.write("d/f", "12345")
	info, err := e.Stat(e.at("d/f"))
	e.ok(err)
	if info.Name != "f" || info.Size != 5 || info.Dir || info.ModTime.IsZero() {
		e.Errorf("a file is %+v", info)
	}
	info, err = e.Stat(e.at("d"))
	e.ok(err)
	if info.Name != "d" || !info.Dir {
		e.Errorf("a directory is %+v", info)
	}
	e.gone("d/no")
	e.gone("no/f")
}

func testList(e *env) {
	names := []string{"b", "a=%2F", ".hidden", "_x", "a", "part-10", "part-9", "ß", "A"}
	for _, name := range names {
		e.write(name, name)
	}
	e.mkdir("dir")
	e.write("dir/below", "")
	names = append(names, "dir")
	slices.Sort(names)
	infos, err := e.List(e.root)
	e.ok(err)
	var got []string
	for _, info := range infos {
		got = append(got, info.Name)
		if info.Dir != (info.Name == "dir") {
			e.Errorf("%s: Dir is %v", info.Name, info.Dir)
		}
		if !info.Dir && info.Size != int64(len(info.Name)) {
			e.Errorf("%s: size %d", info.Name, info.Size)
		}
	}
	if !slices.Equal(got, names) {
		e.Errorf("list is %q, want %q", got, names)
	}
	_, err = e.List(e.at("no"))
	e.is(err, storage.ErrNotExist)
	_, err = e.List(e.at("a"))
	e.fails(err)
}

func testSyncDir(e *env) {
	e.mkdir("d")
	e.ok(e.SyncDir(e.at("d")))
	e.ok(e.SyncDir(e.root))
	e.is(e.SyncDir(e.at("no")), storage.ErrNotExist)
	e.write("f", "")
	e.fails(e.SyncDir(e.at("f")))
}
