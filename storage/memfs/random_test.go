package memfs

import (
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/hivesink/hivesink/storage"
)

// mess makes random changes and keeps no account of them but the file system.
type mess struct {
	t     *testing.T
	m     *FS
	rng   *rand.Rand
	files int
}

func (x *mess) pick(dirs bool) string {
	var all []string
	check(x.t, storage.Walk(x.m, "/", func(name string, info storage.Info) error {
		if info.Dir == dirs {
			all = append(all, name)
		}
		return nil
	}))
	if dirs {
		all = append(all, "/")
	}
	if len(all) == 0 {
		return "/none"
	}
	return all[x.rng.IntN(len(all))]
}

func (x *mess) name() string {
	return path.Join(x.pick(true), string(rune('a'+x.rng.IntN(4))))
}

// step makes one change; many are refused, and that is fine. Every file's bytes
// are its own number.
func (x *mess) step(syncs bool) {
	switch x.rng.IntN(12) {
	case 0, 1:
		x.files++
		_ = storage.WriteFile(x.m, x.name(), fmt.Appendf(nil, "%d", x.files))
	case 2:
		_ = x.m.Mkdir(x.name())
	case 3, 4:
		_ = x.m.Rename(x.pick(false), x.name())
	case 5:
		_ = x.m.Rename(x.pick(true), x.name())
	case 6:
		_ = x.m.Replace(x.pick(false), x.name())
	case 7:
		_ = x.m.Remove(x.pick(x.rng.IntN(2) == 0))
	case 8:
		_ = x.m.Exchange(x.pick(true), x.pick(true))
	default:
		if syncs {
			check(x.t, x.m.SyncDir(x.pick(true)))
		}
	}
}

func (x *mess) syncAll() {
	check(x.t, x.m.SyncDir("/"))
	check(x.t, storage.Walk(x.m, "/", func(name string, info storage.Info) error {
		if info.Dir {
			return x.m.SyncDir(name)
		}
		return nil
	}))
}

// contents maps each file's number to its path, and fails when one has two.
func contents(t *testing.T, m *FS) map[string]string {
	t.Helper()
	all := map[string]string{}
	check(t, storage.Walk(m, "/", func(name string, info storage.Info) error {
		if info.Dir {
			return nil
		}
		b, err := m.ReadFile(name)
		if err != nil {
			return err
		}
		if first, twice := all[string(b)]; twice {
			return fmt.Errorf("file %s is both %s and %s", b, first, name)
		}
		all[string(b)] = name
		return nil
	}))
	return all
}

// M4, M5: whatever moves, what was durable and was not removed is in every
// image exactly once; and nothing has two names.
func TestNothingDurableIsLost(t *testing.T) {
	kept := 0
	for seed := range 300 {
		x := &mess{t: t, m: New(), rng: rand.New(rand.NewPCG(uint64(seed), 1))}
		for range 30 {
			x.step(true)
		}
		x.syncAll()
		before := contents(t, x.m)
		for range 20 {
			x.step(false)
		}
		after := contents(t, x.m)
		for _, mode := range Modes {
			for i := range 5 {
				image := contents(t, x.m.Crash(mode, uint64(i)))
				for number, name := range before {
					if _, alive := after[number]; !alive {
						continue
					}
					kept++
					if _, ok := image[number]; !ok {
						t.Fatalf("seed %d, %v %d: file %s, durable at %s and now at %s, is lost",
							seed, mode, i, number, name, after[number])
					}
				}
			}
		}
	}
	if kept < 10_000 {
		t.Errorf("only %d files were looked at", kept)
	}
}

// M6: after everything was synced, in whatever order it came, all images agree
// with what is seen; and however little was synced, no image is malformed.
func TestSyncedAllIsSeenAll(t *testing.T) {
	for seed := range 300 {
		x := &mess{t: t, m: New(), rng: rand.New(rand.NewPCG(uint64(seed), 2))}
		for range 60 {
			x.step(true)
			contents(t, x.m.Crash(Random, uint64(seed)))
		}
		if got, want := x.m.Crash(Everything, 0).Tree("/"), x.m.Tree("/"); got != want {
			t.Fatalf("seed %d: everything is\n%swant\n%s", seed, got, want)
		}
		x.syncAll()
		if n := len(x.m.log); n != 0 {
			t.Fatalf("seed %d: %d changes are pending after all was synced, first %+v", seed, n, *x.m.log[0])
		}
		for _, mode := range Modes {
			if got, want := x.m.Crash(mode, 7).Tree("/"), x.m.Tree("/"); got != want {
				t.Fatalf("seed %d, %v: image is\n%swant\n%s", seed, mode, got, want)
			}
		}
	}
}

// Equal seeds give equal images.
func TestDeterminism(t *testing.T) {
	dump := func() string {
		x := &mess{t: t, m: New(), rng: rand.New(rand.NewPCG(5, 5))}
		for range 100 {
			x.step(true)
		}
		f, err := x.m.Create("/unsynced")
		check(t, err)
		_, err = f.Write([]byte(strings.Repeat("x", 20_000)))
		check(t, err)
		var b strings.Builder
		for seed := range 20 {
			image := x.m.Crash(Random, uint64(seed))
			b.WriteString(image.Tree("/"))
			data, _ := image.ReadFile("/unsynced")
			fmt.Fprintf(&b, "%x\n", data)
			info, _ := image.Stat("/")
			fmt.Fprintln(&b, info.ModTime)
		}
		return b.String()
	}
	if first, second := dump(), dump(); first != second {
		t.Error("two equal runs differ")
	}
}

// Unsynced bytes are lost in every way there is, synced ones in none (M6).
func TestTornBytes(t *testing.T) {
	const synced, size = 5000, 20_000
	m := New()
	f, err := m.Create("/f")
	check(t, err)
	data := make([]byte, size)
	for i := range data {
		data[i] = byte(1 + i%251) // never zero
	}
	_, err = f.Write(data[:synced])
	check(t, err)
	check(t, f.Sync())
	check(t, m.SyncDir("/"))
	_, err = f.Write(data[synced:])
	check(t, err)

	seen := map[string]int{}
	for seed := range 500 {
		b, err := m.Crash(Random, uint64(seed)).ReadFile("/f")
		check(t, err)
		if !slices.Equal(b[:synced], data[:synced]) {
			t.Fatalf("seed %d: synced bytes changed", seed)
		}
		if len(b) > size {
			t.Fatalf("seed %d: %d bytes", seed, len(b))
		}
		seen[fate(b, data, synced)]++
	}
	for _, fate := range []string{"whole", "lost", "short", "short and spoilt", "zeros", "garbage"} {
		if seen[fate] == 0 {
			t.Errorf("no image in 500 is %q: %v", fate, seen)
		}
	}
	if b, _ := m.ReadFile("/f"); !slices.Equal(b, data) {
		t.Error("making images changed the file system")
	}
}

func fate(got, data []byte, synced int) string {
	same := slices.Equal(got, data[:len(got)])
	switch {
	case len(got) == len(data) && same:
		return "whole"
	case len(got) == synced:
		return "lost"
	case len(got) < len(data) && same:
		return "short"
	case len(got) < len(data):
		return "short and spoilt"
	}
	for i, b := range got {
		if b != data[i] && b != 0 {
			return "garbage"
		}
	}
	return "zeros"
}
