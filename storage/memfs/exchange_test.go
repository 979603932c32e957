package memfs

import (
	"testing"

	"github.com/hivesink/hivesink/storage"
)

// swap makes a durable /t/p with file "old" and /t/.s/n with file "new", and
// exchanges them.
func swap(t *testing.T) *FS {
	t.Helper()
	m := New()
	for _, dir := range []string{"/t/p", "/t/.s/n"} {
		check(t, storage.MkdirAllSync(m, "/", dir))
	}
	for name, text := range map[string]string{"/t/p/f": "old", "/t/.s/n/f": "new"} {
		check(t, storage.WriteFile(m, name, []byte(text)))
	}
	for _, dir := range []string{"/t/p", "/t/.s/n"} {
		check(t, m.SyncDir(dir))
	}
	check(t, m.Exchange("/t/.s/n", "/t/p"))
	return m
}

func text(t *testing.T, m *FS, name string) string {
	t.Helper()
	b, err := m.ReadFile(name)
	check(t, err)
	return string(b)
}

// M8: no image has half of an exchange, whatever was synced after it.
func TestExchangeIsWhole(t *testing.T) {
	seen := map[string]int{}
	for _, synced := range [][]string{nil, {"/t"}, {"/t/.s"}, {"/t", "/t/.s"}} {
		m := swap(t)
		for _, dir := range synced {
			check(t, m.SyncDir(dir))
		}
		for _, mode := range Modes {
			for seed := range 20 {
				image := m.Crash(mode, uint64(seed))
				p, n := text(t, image, "/t/p/f"), text(t, image, "/t/.s/n/f")
				if p == n {
					t.Fatalf("%v after %v: both directories are the %s one", mode, synced, p)
				}
				if len(synced) == 2 && p != "new" {
					t.Fatalf("%v: a synced exchange is undone", mode)
				}
				seen[p]++
			}
		}
	}
	if seen["old"] == 0 || seen["new"] == 0 {
		t.Errorf("images show only one outcome: %v", seen)
	}
}

// M8: a later step of one of the two that is durable takes the exchange along.
func TestExchangeIsNotOvertaken(t *testing.T) {
	m := swap(t)
	check(t, m.Rename("/t/.s/n", "/t/.s/m"))
	check(t, m.SyncDir("/t/.s"))
	for _, mode := range Modes {
		image := m.Crash(mode, 3)
		if p, n := text(t, image, "/t/p/f"), text(t, image, "/t/.s/m/f"); p != "new" || n != "old" {
			t.Fatalf("%v: the partition is %q, the directory moved away %q", mode, p, n)
		}
	}
}

// An exchange of directories that are not durable themselves: neither is it,
// until their parents are.
func TestExchangeOfNewDirectories(t *testing.T) {
	m := New()
	for _, dir := range []string{"/a", "/b"} {
		check(t, m.Mkdir(dir))
		check(t, storage.WriteFile(m, dir+"/f", []byte(dir)))
		check(t, m.SyncDir(dir))
	}
	check(t, m.Exchange("/a", "/b"))
	if got := m.Crash(SyncedOnly, 0).Tree("/"); got != "" {
		t.Fatalf("not synced, and there: %s", got)
	}
	for seed := range 100 {
		image := m.Crash(Random, uint64(seed))
		if _, err := image.Stat("/a"); err != nil {
			continue
		}
		if _, err := image.Stat("/b"); err == nil && text(t, image, "/a/f") == text(t, image, "/b/f") {
			t.Fatalf("seed %d: half of the exchange", seed)
		}
	}
	check(t, m.SyncDir("/"))
	image := m.Crash(SyncedOnly, 0)
	if text(t, image, "/a/f") != "/b" || text(t, image, "/b/f") != "/a" {
		t.Fatal("synced, and not exchanged")
	}
}
