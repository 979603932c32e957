package spool

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/hivesink/hivesink/storage"
	"github.com/hivesink/hivesink/storage/memfs"
)

// remote is memfs as a Putter, whose next uploads may fail.
type remote struct {
	storage.FS
	fail error
	puts int
}

func (r *remote) Put(name string, src io.ReaderAt, size int64) error {
	r.puts++
	if r.fail != nil {
		return &storage.Error{Op: storage.OpCreate, Name: name, Err: r.fail}
	}
	b, err := io.ReadAll(io.NewSectionReader(src, 0, size))
	if err != nil {
		return err
	}
	return storage.WriteFile(r.FS, name, b)
}

func newSpool(t *testing.T, memory, small int64) (*FS, *remote, string) {
	t.Helper()
	r, dir := &remote{FS: memfs.New()}, filepath.Join(t.TempDir(), "spool")
	f, err := New(r, Options{Dir: dir, Memory: memory, Small: small})
	if err != nil {
		t.Fatal(err)
	}
	return f, r, dir
}

func write(t *testing.T, f storage.File, text []byte) {
	t.Helper()
	for len(text) > 0 {
		n := min(len(text), 100)
		if m, err := f.Write(text[:n]); err != nil || m != n {
			t.Fatalf("wrote %d of %d: %v", m, n, err)
		}
		text = text[n:]
	}
}

// TestMemoryThenDisk: L2, few bytes wait in memory, many on disk, and a spool
// that finds the memory taken waits on disk however small it is.
func TestMemoryThenDisk(t *testing.T) {
	f, r, dir := newSpool(t, 1500, 1000)
	for i, c := range []struct{ size, memory, disk int64 }{
		{900, 900, 0}, {1000, 900, 1000}, {500, 1400, 1000}, {5000, 1400, 6000}, {0, 1400, 6000},
	} {
		file, err := f.Create(fmt.Sprintf("/f%d", i))
		if err != nil {
			t.Fatal(err)
		}
		text := bytes.Repeat([]byte{byte(i)}, int(c.size))
		write(t, file, text)
		if memory, disk := f.Used(); memory != c.memory || disk != c.disk {
			t.Errorf("with %d bytes more: %d in memory, %d on disk; want %d, %d", c.size, memory, disk, c.memory, c.disk)
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
			t.Errorf("L3: a spool file has a name: %v, %v", entries, err)
		}
		defer func() {
			if err := errors.Join(file.Sync(), file.Close()); err != nil {
				t.Error(err)
			}
			got, err := r.ReadFile(fmt.Sprintf("/f%d", i))
			if err != nil || !bytes.Equal(got, text) {
				t.Errorf("file %d has %d bytes, %v; want %d", i, len(got), err, len(text))
			}
			if i == 0 { // the last to end
				if memory, disk := f.Used(); memory != 0 || disk != 0 {
					t.Errorf("%d in memory and %d on disk are left", memory, disk)
				}
			}
		}()
	}
}

// TestOnlySyncedIsThere: L1.
func TestOnlySyncedIsThere(t *testing.T) {
	f, r, _ := newSpool(t, 1000, 10)
	file, err := f.Create("/f")
	if err != nil {
		t.Fatal(err)
	}
	write(t, file, make([]byte, 500))
	if err := file.Close(); err == nil {
		t.Error("closed without Sync, and no error")
	}
	if r.puts != 0 {
		t.Error("what was not synced was uploaded")
	}
	file, err = f.Create("/f")
	if err != nil {
		t.Fatal(err)
	}
	write(t, file, []byte("text"))
	r.fail = storage.ErrExist
	if err := file.Sync(); !errors.Is(err, storage.ErrExist) {
		t.Errorf("sync: %v", err)
	}
	r.fail = nil
	if err := file.Sync(); !errors.Is(err, storage.ErrCondemned) {
		t.Errorf("a second sync: %v", err)
	}
	if _, err := file.Write([]byte("x")); !errors.Is(err, storage.ErrCondemned) {
		t.Errorf("a write after a failed sync: %v", err)
	}
	if err := file.Close(); !errors.Is(err, storage.ErrCondemned) {
		t.Errorf("close: %v", err)
	}
	if _, err := r.Stat("/f"); !errors.Is(err, storage.ErrNotExist) {
		t.Errorf("a condemned file is there: %v", err)
	}
	if memory, disk := f.Used(); memory != 0 || disk != 0 {
		t.Errorf("%d in memory and %d on disk are left", memory, disk)
	}
	file, err = f.Create("/f")
	if err != nil {
		t.Fatal(err)
	}
	if err := file.Sync(); err != nil {
		t.Fatal(err)
	}
	if _, err := file.Write([]byte("x")); err == nil {
		t.Error("a write after the upload, and no error")
	}
	if err := file.Close(); err != nil {
		t.Error(err)
	}
}

// TestOldSpoolGoes: L3.
func TestOldSpoolGoes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "spool")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "part-1"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := New(&remote{FS: memfs.New()}, Options{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Fatalf("%v, %v", entries, err)
	}
}

// TestDirectoryStays: what a killed process has left is removed; the directory,
// which may be a link to another disk or one that is mounted, is not, nor what is
// not the spool's.
func TestDirectoryStays(t *testing.T) {
	disk, dir := t.TempDir(), filepath.Join(t.TempDir(), "spool")
	if err := os.Symlink(disk, dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"part-1", "lost+found"} {
		if err := os.WriteFile(filepath.Join(disk, name), []byte("text"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := New(&remote{FS: memfs.New()}, Options{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(dir); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link has become %v, %v", info, err)
	}
	if left, err := os.ReadDir(disk); err != nil || len(left) != 1 || left[0].Name() != "lost+found" {
		t.Errorf("left is %v, %v", left, err)
	}
}
