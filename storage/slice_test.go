package storage_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/hivesink/hivesink/storage"
	"github.com/hivesink/hivesink/storage/memfs"
)

// counted counts the readers that are open.
type counted struct {
	storage.FS
	open int
}

type countedReader struct {
	storage.Reader
	c *counted
}

func (c *counted) Open(name string) (storage.Reader, error) {
	r, err := c.FS.Open(name)
	if err == nil {
		c.open++
		r = countedReader{r, c}
	}
	return r, err
}

func (r countedReader) Close() error {
	r.c.open--
	return r.Reader.Close()
}

// TestOpenSlice: a part of a file is like a file, and one that is not all there
// is refused.
func TestOpenSlice(t *testing.T) {
	fs := &counted{FS: memfs.New()}
	if err := storage.WriteFile(fs, "/bundle", []byte("firstsecondthird")); err != nil {
		t.Fatal(err)
	}
	r, err := storage.OpenSlice(fs, "/bundle", 5, 6)
	if err != nil {
		t.Fatal(err)
	}
	p := make([]byte, 10)
	if n, err := r.ReadAt(p, 2); string(p[:n]) != "cond" || !errors.Is(err, io.EOF) || r.Size() != 6 {
		t.Errorf("it has %d bytes, the last are %q, %v", r.Size(), p[:n], err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	for _, c := range [][2]int64{{11, 6}, {17, 0}, {-1, 3}, {3, -1}, {1 << 62, 1 << 62}} {
		r, err := storage.OpenSlice(fs, "/bundle", c[0], c[1])
		if err == nil {
			t.Errorf("%d bytes from %d on are opened, as %d", c[1], c[0], r.Size())
		} else if !strings.Contains(err.Error(), fmt.Sprintf("/bundle: it has 16 bytes, the part is the %d from byte %d", c[1], c[0])) {
			t.Error(err)
		}
	}
	if _, err := storage.OpenSlice(fs, "/none", 0, 1); !errors.Is(err, storage.ErrNotExist) {
		t.Errorf("no such bundle: %v", err)
	}
	if fs.open != 0 {
		t.Errorf("%d files stay open", fs.open)
	}
}
