package memfs

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/hivesink/hivesink/storage"
	"github.com/hivesink/hivesink/storage/storagetest"
)

func TestConformance(t *testing.T) {
	for name, model := range map[string]Model{"posix": Posix, "hdfs": HDFS} {
		t.Run(name, func(t *testing.T) {
			storagetest.Run(t, func(t *testing.T) (storage.FS, string) {
				m := NewWith(Options{Model: model})
				if err := m.Mkdir("/root"); err != nil {
					t.Fatal(err)
				}
				return m, "/root"
			})
		})
	}
}

// An image is a file system like any other.
func TestConformanceOfImages(t *testing.T) {
	for _, mode := range Modes {
		t.Run(mode.String(), func(t *testing.T) {
			storagetest.Run(t, func(t *testing.T) (storage.FS, string) {
				m := New()
				check(t, m.Mkdir("/root"))
				check(t, m.SyncDir("/"))
				check(t, storage.WriteFile(m, "/root/f", []byte("x")))
				check(t, m.Remove("/root/f"))
				check(t, m.SyncDir("/root"))
				return m.Crash(mode, 1), "/root"
			})
		})
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestCapacity(t *testing.T) {
	m := NewWith(Options{Capacity: 10})
	check(t, storage.WriteFile(m, "/a", make([]byte, 6)))
	f, err := m.Create("/b")
	check(t, err)
	n, err := f.Write(make([]byte, 6))
	if n != 4 || !errors.Is(err, storage.ErrNoSpace) {
		t.Fatalf("wrote %d, %v; want 4 and ErrNoSpace", n, err)
	}
	check(t, m.Remove("/a"))
	if _, err := f.Write([]byte("x")); !errors.Is(err, storage.ErrCondemned) {
		t.Errorf("after space was freed the condemned file takes more: %v", err)
	}
	if err := f.Close(); !errors.Is(err, storage.ErrCondemned) {
		t.Errorf("close: %v", err)
	}
	if used := m.Used(); used != 4 {
		t.Errorf("%d bytes used, want 4", used)
	}
	check(t, m.Remove("/b"))
	check(t, storage.WriteFile(m, "/c", make([]byte, 10)))
	if err := storage.WriteFile(m, "/d", []byte("x")); !errors.Is(err, storage.ErrNoSpace) {
		t.Errorf("write to a full disk: %v", err)
	}
	if ok, _ := storage.Exists(m, "/d"); ok {
		t.Error("the unfinished file was left")
	}
	m.SetCapacity(11)
	check(t, storage.WriteFile(m, "/d", []byte("x")))
}

// The bytes of a removed file are held while it is open, and come back once.
func TestCapacityOfOpenFiles(t *testing.T) {
	m := NewWith(Options{Capacity: 10})
	check(t, storage.WriteFile(m, "/a", make([]byte, 6)))
	r, err := m.Open("/a")
	check(t, err)
	check(t, m.Remove("/a"))
	if m.Used() != 6 {
		t.Errorf("%d bytes used while open, want 6", m.Used())
	}
	check(t, r.Close())
	if m.Used() != 0 {
		t.Errorf("%d bytes used, want 0", m.Used())
	}
	check(t, storage.WriteFile(m, "/a", make([]byte, 3)))
	check(t, storage.WriteFile(m, "/b", make([]byte, 4)))
	check(t, m.Replace("/a", "/b"))
	if m.Used() != 3 {
		t.Errorf("%d bytes used after a replacement, want 3", m.Used())
	}
	if image := m.Crash(Everything, 0); image.Used() != 3 {
		t.Errorf("image uses %d bytes, want 3", image.Used())
	}
	if next := m.Kill(); next.Used() != 3 {
		t.Errorf("after a kill %d bytes are used, want 3", next.Used())
	}
}

// M7: the image and its source go on without each other.
func TestImagesShareNothing(t *testing.T) {
	m := New()
	f, err := m.Create("/f")
	check(t, err)
	_, err = f.Write([]byte("common "))
	check(t, err)
	check(t, f.Sync())
	check(t, m.SyncDir("/"))
	l, err := m.Lock("/lock")
	check(t, err)

	images := []*FS{m.Crash(SyncedOnly, 0), m.Crash(Everything, 0), m.Kill()}
	_, err = f.Write([]byte("later"))
	check(t, err)
	check(t, m.Mkdir("/later"))
	for i, image := range images {
		check(t, image.Mkdir(fmt.Sprintf("/image-%d", i)))
		if b, _ := image.ReadFile("/f"); string(b) != "common " {
			t.Errorf("image %d holds %q", i, b)
		}
		if ok, _ := storage.Exists(image, "/later"); ok {
			t.Errorf("image %d sees what was made later", i)
		}
		il, err := image.Lock("/lock")
		if err != nil {
			t.Errorf("image %d: %v", i, err)
			continue
		}
		check(t, il.Close())
	}
	if _, err := m.Lock("/lock"); !errors.Is(err, storage.ErrLocked) {
		t.Errorf("lock: %v", err)
	}
	check(t, l.Close())
	if got := m.Tree("/"); got != "f 12\nlater/\nlock 0\n" {
		t.Errorf("tree:\n%s", got)
	}
}

// A kill loses nothing, but does not make it durable either.
func TestKillThenPowerCut(t *testing.T) {
	m := New()
	check(t, storage.WriteFile(m, "/f", []byte("text")))
	next := m.Kill()
	if b, err := next.ReadFile("/f"); err != nil || string(b) != "text" {
		t.Fatalf("after a kill: %q, %v", b, err)
	}
	if got := next.Crash(SyncedOnly, 0).Tree("/"); got != "" {
		t.Errorf("the entry was never synced, yet survives:\n%s", got)
	}
	check(t, next.SyncDir("/"))
	if got := next.Crash(SyncedOnly, 0).Tree("/"); got != "f 4\n" {
		t.Errorf("synced after the kill, but lost:\n%s", got)
	}
	if got := m.Crash(SyncedOnly, 0).Tree("/"); got != "" {
		t.Errorf("syncing the next one synced the dead one:\n%s", got)
	}
}

func TestConcurrentUse(t *testing.T) {
	m := New()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			dir := fmt.Sprintf("/d%d", i)
			if err := storage.MkdirAllSync(m, "/", dir); err != nil {
				t.Error(err)
				return
			}
			for j := range 50 {
				name := fmt.Sprintf("%s/%d", dir, j)
				if err := storage.WriteFile(m, name, []byte(name)); err != nil {
					t.Error(err)
				}
				if err := storage.Publish(m, name, name+".parquet"); err != nil {
					t.Error(err)
				}
				image := m.Crash(Random, uint64(j))
				if b, err := image.ReadFile(name + ".parquet"); err != nil || string(b) != name {
					t.Errorf("%s published, then %q, %v", name, b, err)
				}
			}
		})
	}
	wg.Wait()
	if n := strings.Count(m.Tree("/"), ".parquet"); n != 400 {
		t.Errorf("%d files, want 400", n)
	}
}
