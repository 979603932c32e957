//go:build integration

package hdfs

import (
	"bytes"
	"errors"
	"path"
	"testing"
	"time"

	"github.com/hivesink/hivesink/storage"
	"github.com/hivesink/hivesink/storage/hdfsfs"
)

// TestLostAnswers: the name node does what it was asked, and its answer is lost.
// Each operation still ends as if it had come (H5, reliability R10).
func TestLostAnswers(t *testing.T) {
	p := newProxy(t, nameNode())
	fs := open(t, hdfsfs.Options{NameNodes: []string{p.addr}, CallTimeout: 30 * time.Second})
	dir := scratch(t, fs)
	at := func(name string) string { return path.Join(dir, name) }
	must(t, storage.WriteFile(fs, at("f"), []byte("f")))
	must(t, storage.WriteFile(fs, at("other"), []byte("other")))
	must(t, fs.Mkdir(at("full")))
	must(t, fs.Mkdir(at("full/in")))
	for _, c := range []struct {
		method string
		op     func() error
		want   error
	}{
		{"rename2", func() error { return fs.Rename(at("f"), at("g")) }, nil},
		// Refused, and the refusal is lost: the target is another's.
		{"rename2", func() error { return fs.Rename(at("g"), at("other")) }, storage.ErrExist},
		{"rename2", func() error { return fs.Replace(at("g"), at("other")) }, nil},
		{"mkdirs", func() error { return fs.Mkdir(at("d")) }, nil},
		{"delete", func() error { return fs.Remove(at("d")) }, nil},
		{"delete", func() error { return fs.Remove(at("full")) }, storage.ErrExist},
		{"getFileInfo", func() error { _, err := fs.Stat(at("other")); return err }, nil},
		{"getListing", func() error { _, err := fs.List(dir); return err }, nil},
		{"getBlockLocations", func() error { _, err := fs.ReadFile(at("other")); return err }, nil},
		{"create", func() error { return storage.WriteFile(fs, at("new"), []byte("new")) }, nil},
		{"addBlock", func() error { return storage.WriteFile(fs, at("new2"), []byte("new")) }, nil},
		{"updateBlockForPipeline", func() error { return storage.WriteFile(fs, at("new3"), []byte("new")) }, nil},
		{"complete", func() error { return storage.WriteFile(fs, at("new4"), []byte("new")) }, nil},
		{"rename2", func() error { return storage.WriteFile(fs, at("new5"), []byte("new")) }, nil},
		{"rename2", func() error { return storage.WriteFile(fs, at("new5"), []byte("again")) }, storage.ErrExist},
	} {
		p.meddle(c.method, 1, nil)
		if err := c.op(); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.method, err, c.want)
		}
		p.mustFire(1)
	}
	for name, want := range map[string]string{"other": "f", "new": "new", "new2": "new", "new3": "new", "new4": "new", "new5": "new"} {
		if got, err := fs.ReadFile(at(name)); err != nil || string(got) != want {
			t.Errorf("%s holds %q, %v; want %q", name, got, err, want)
		}
	}
	if got := listed(t, fs, dir); len(got) != 7 {
		t.Errorf("left over: %v", got)
	}
}

// TestLateRename: the first request of a rename is still on its way when the
// client, without an answer, has looked and asks again. What the second one finds
// done is its own doing (H5): the claim of an epoch, a file that is published.
func TestLateRename(t *testing.T) {
	p := newProxy(t, nameNode())
	fs := open(t, hdfsfs.Options{NameNodes: []string{p.addr}, CallTimeout: 30 * time.Second})
	dir := scratch(t, fs)
	p.late = true
	for name, rename := range map[string]func(from, to string) error{"rename": fs.Rename, "replace": fs.Replace} {
		from, to := path.Join(dir, "from"), path.Join(dir, name)
		must(t, storage.WriteFile(fs, from, []byte(name)))
		p.meddle("rename2", 1, nil)
		if err := rename(from, to); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		p.mustFire(1)
		if p.held != nil {
			t.Errorf("%s: the first request never came", name)
		}
		if got, err := fs.ReadFile(to); err != nil || string(got) != name {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// notYet is the answer of complete that the file is not complete: field 1, false.
var notYet = []byte{8, 0}

// TestCloseNotYet: HD-03. The name node says three times that the last block is
// not complete, then that it is: one try. It says so for longer than a call may
// take: the try is condemned, and another one succeeds. In neither case is the
// file named before the name node has said that it is complete.
func TestCloseNotYet(t *testing.T) {
	p := newProxy(t, nameNode())
	dir := scratch(t, open(t, hdfsfs.Options{}))
	for name, times := range map[string]int{"short": 3, "long": 1000} {
		limit := 2 * time.Second
		if name == "short" {
			limit = time.Minute // which no busy machine needs
		}
		fs := open(t, hdfsfs.Options{NameNodes: []string{p.addr}, CallTimeout: limit})
		src := &hooked{Reader: bytes.NewReader([]byte("text")), do: func() {}}
		p.meddle("complete", times, notYet)
		src.again = func() { // the next try
			p.meddle("complete", 0, nil)
		}
		must(t, fs.Put(path.Join(dir, name), src, 4))
		if name == "short" {
			p.mustFire(times)
		}
		if tries := src.starts.Load(); (name == "short") != (tries == 1) {
			t.Errorf("%s: %d tries", name, tries)
		}
		if got, err := fs.ReadFile(path.Join(dir, name)); err != nil || string(got) != "text" {
			t.Errorf("%s holds %q, %v", name, got, err)
		}
	}
	if names := listed(t, open(t, hdfsfs.Options{}), dir); len(names) != 2 {
		t.Errorf("left over: %v", names)
	}
}
