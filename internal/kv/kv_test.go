package kv

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hivesink/hivesink/internal/fault"
)

func openBadger(t *testing.T, dir string) *Badger {
	t.Helper()
	b, err := OpenBadger(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func set(t *testing.T, s Store, pairs ...string) {
	t.Helper()
	if err := s.Update(func(w Writer) error {
		for i := 0; i < len(pairs); i += 2 {
			if err := w.Set(pairs[i], []byte(pairs[i+1])); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

func all(t *testing.T, s Store, prefix string) string {
	t.Helper()
	var out []string
	if err := s.View(func(r Reader) error {
		return r.Scan(prefix, func(key string, value []byte) error {
			out = append(out, key+"="+string(value))
			return nil
		})
	}); err != nil {
		t.Fatal(err)
	}
	return strings.Join(out, " ")
}

// TestStores: both stores keep the same rules.
func TestStores(t *testing.T) {
	for name, s := range map[string]Store{"mem": NewMem(), "badger": openBadger(t, filepath.Join(t.TempDir(), "a", "b"))} {
		t.Run(name, func(t *testing.T) {
			set(t, s, "b/2", "two", "b/1", "one", "c", "", "a", "x")
			if got := all(t, s, "b/"); got != "b/1=one b/2=two" {
				t.Errorf("scan: %s", got)
			}
			failed := errors.New("no")
			if err := s.Update(func(w Writer) error {
				return errors.Join(w.Set("b/1", []byte("lost")), w.Delete("a"), failed)
			}); !errors.Is(err, failed) {
				t.Errorf("update: %v", err)
			}
			if got := all(t, s, ""); got != "a=x b/1=one b/2=two c=" {
				t.Errorf("K1: after a refused update: %s", got)
			}
			if err := s.Update(func(w Writer) error { return errors.Join(w.Delete("a"), w.Delete("absent"), w.Set("b/1", []byte("1"))) }); err != nil {
				t.Fatal(err)
			}
			if got := all(t, s, ""); got != "b/1=1 b/2=two c=" {
				t.Errorf("after an update: %s", got)
			}
			if err := s.View(func(r Reader) error {
				if _, err := r.Get("a"); !errors.Is(err, ErrNotFound) {
					t.Errorf("get what is gone: %v", err)
				}
				v, err := r.Get("b/2")
				if string(v) != "two" {
					t.Errorf("get: %q", v)
				}
				return err
			}); err != nil {
				t.Fatal(err)
			}
			if err := s.Update(func(w Writer) error { return w.Set("", nil) }); err == nil {
				t.Error("an empty key was taken")
			}
		})
	}
}

func TestMemHookAndClone(t *testing.T) {
	m := NewMem()
	set(t, m, "a", "1")
	c := m.Clone()
	m.Hook = func(n int, after bool) error {
		if n == 2 && !after || n == 3 && after {
			return errors.New("killed")
		}
		return nil
	}
	for range 2 {
		if err := m.Update(func(w Writer) error { return w.Set("a", []byte(fmt.Sprint(m.updates))) }); err == nil {
			t.Error("the hook's error is lost")
		}
	}
	if got := all(t, m, "") + " " + all(t, c, ""); got != "a=3 a=1" || m.Updates() != 3 {
		t.Errorf("%s after %d updates", got, m.Updates())
	}
}

func TestBadgerKeeps(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "index")
	b := openBadger(t, dir)
	// Ten times the memtable, so that tables are written and merged.
	want := map[string]string{}
	value := strings.Repeat("v", 4000)
	for i := range 80 {
		pairs := make([]string, 0, 200)
		for k := range 100 {
			key := fmt.Sprintf("k%04d", (i*37+k)%1500)
			want[key] = fmt.Sprint(i, value)
			pairs = append(pairs, key, want[key])
		}
		set(t, b, pairs...)
	}
	check := func(b *Badger) {
		t.Helper()
		if b.Warning() != nil {
			t.Error(b.Warning())
		}
		n := 0
		if err := b.View(func(r Reader) error {
			return r.Scan("", func(key string, v []byte) error {
				n++
				if want[key] != string(v) {
					t.Errorf("%s holds %.20s…", key, v)
				}
				return nil
			})
		}); err != nil || n != len(want) {
			t.Errorf("%d of %d keys: %v", n, len(want), err)
		}
	}
	check(b)
	check(openBadger(t, frozen(t, dir)))
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	check(openBadger(t, dir))
}

// frozen copies a live store as kill -9 would leave it. Badger writes its first
// table when it likes, and merges and removes tables beside us: what was copied
// while the files were becoming others is no copy.
func frozen(t *testing.T, dir string) string {
	t.Helper()
	seen := func() string {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		var names strings.Builder
		for _, f := range entries {
			info, err := f.Info()
			if err != nil {
				continue // it has gone meanwhile
			}
			fmt.Fprintln(&names, f.Name(), info.Size(), info.ModTime().UnixNano())
		}
		return names.String()
	}
	to := filepath.Join(t.TempDir(), "frozen")
	for end := time.Now().Add(3 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		before := seen()
		if strings.Contains(before, ".sst") {
			err := os.CopyFS(to, os.DirFS(dir))
			if err == nil && seen() == before {
				return to
			}
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
			if err := os.RemoveAll(to); err != nil {
				t.Fatal(err)
			}
		}
		if time.Now().After(end) {
			t.Fatalf("no copy with a table in it: %s", before)
		}
	}
}

// TestBadgerDamaged: every file cut short, emptied or overwritten after a kill.
// The store opens, with what was in it or empty and a warning, and works (K3).
func TestBadgerDamaged(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "index")
	b := openBadger(t, dir)
	value := strings.Repeat("v", 100_000)
	want := map[string]bool{}
	for i := range 120 { // 12 MB: one table and one memtable
		set(t, b, fmt.Sprintf("k%03d", i), value)
		want[fmt.Sprintf("k%03d", i)] = true
	}
	dir = frozen(t, dir)
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	kinds, anew := map[string]bool{}, 0
	for _, f := range files {
		kinds[filepath.Ext(f.Name())] = true
		for _, how := range []string{"1", "7", "4096", "all", "garbage", "gone"} {
			copied := filepath.Join(root, f.Name()+how)
			if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
			if err := damage(filepath.Join(copied, f.Name()), how); err != nil {
				t.Fatal(err)
			}
			d, err := OpenBadger(copied)
			if err != nil {
				t.Errorf("%s damaged (%s): %v", f.Name(), how, err)
				continue
			}
			if d.Warning() != nil {
				anew++
				if got := all(t, d, ""); got != "" || !strings.Contains(d.Warning().Error(), copied) {
					t.Errorf("begun anew with %.50s: %v", got, d.Warning())
				}
			}
			set(t, d, "new", "1")
			if err := d.Close(); err != nil {
				t.Errorf("%s damaged (%s): close: %v", f.Name(), how, err)
			}
			if err := os.RemoveAll(copied); err != nil {
				t.Fatal(err)
			}
		}
	}
	if anew == 0 || !kinds[".sst"] || !kinds[".mem"] {
		t.Errorf("%d stores begun anew, kinds of files %v: nothing was tested", anew, slices.Collect(maps.Keys(kinds)))
	}
}

func damage(name, how string) error {
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	switch how {
	case "gone":
		return os.Remove(name)
	case "all":
		return os.Truncate(name, 0)
	case "garbage":
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		_, err = f.WriteAt([]byte(strings.Repeat("\xa5", 64)), max(0, info.Size()/2-32))
		return errors.Join(err, f.Close())
	}
	var cut int64
	if _, err := fmt.Sscan(how, &cut); err != nil {
		return err
	}
	return os.Truncate(name, max(0, info.Size()-cut))
}

// TestBadgerDiedOpening: a store that killed the process is not opened again.
func TestBadgerDiedOpening(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "index")
	b := openBadger(t, dir)
	set(t, b, "a", "1")
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if err := sentinelOf(dir).set(); err != nil {
		t.Fatal(err)
	}
	for n, want := range []string{"an earlier process died while opening it", "<nil>"} {
		b, err := OpenBadger(dir)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(fmt.Sprint(b.Warning()), want) || all(t, b, "") != "" {
			t.Errorf("opening %d: %v", n, b.Warning())
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestBadgerInUse: another process's store is not touched (K4).
func TestBadgerInUse(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "index")
	b := openBadger(t, dir)
	set(t, b, "a", "1")
	if _, err := OpenBadger(dir); fault.ClassOf(err) != fault.Fenced {
		t.Errorf("opened twice: %v", err)
	}
	if got := all(t, b, ""); got != "a=1" {
		t.Errorf("the first holds %s", got)
	}
}

// TestBadgerNoSpace: without space nothing is written, at opening and later,
// and the same store works again when there is some (K2).
func TestBadgerNoSpace(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "index")
	space := uint64(minFree - 1)
	b, err := openWith(dir, func(string) (uint64, error) { return space, nil })
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if fault.ClassOf(b.Warning()) != fault.Retry {
		t.Errorf("warning: %v", b.Warning())
	}
	update := func() error { return b.Update(func(w Writer) error { return w.Set("a", []byte("1")) }) }
	if err := update(); fault.ClassOf(err) != fault.Retry || !strings.Contains(err.Error(), "no space") {
		t.Errorf("update: %v", err)
	}
	if err := b.View(func(Reader) error { return nil }); err == nil {
		t.Error("read a store that is not open")
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("K2: something was made: %v", err)
	}
	space = minFree
	if err := update(); err != nil {
		t.Fatal(err)
	}
	space = 0
	if err := update(); fault.ClassOf(err) != fault.Retry {
		t.Errorf("update: %v", err)
	}
	if got := all(t, b, ""); got != "a=1" {
		t.Errorf("holds %s", got)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	space = minFree
	if err := update(); err == nil {
		t.Error("a closed store opens itself")
	}
}
