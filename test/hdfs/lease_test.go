//go:build integration

package hdfs

import (
	"bytes"
	"errors"
	"path"
	"testing"
	"time"

	"github.com/hivesink/hivesink/storage/hdfsfs"
	"github.com/hivesink/hivesink/storage/spool"
	"github.com/hivesink/hivesink/test/services"
)

// TestNoLeaseWhileAPartGrows: HD-02. A lease that nobody renews, in a process
// that hangs, is lost with what was written under it, so no file is open while a
// part waits for rows. The name node hears of a part when it is
// whole: the first request that makes a file comes with Sync.
func TestNoLeaseWhileAPartGrows(t *testing.T) {
	p := newProxy(t, nameNode())
	fs := open(t, hdfsfs.Options{NameNodes: []string{p.addr}, CallTimeout: 30 * time.Second})
	dir := scratch(t, fs)
	s, err := spool.New(fs, spool.Options{Dir: t.TempDir(), Memory: 1 << 20, Small: 64 << 10})
	must(t, err)
	text := randomBytes(200 << 10) // past what waits in memory
	p.meddle("create", 1, nil)     // the answer to the first one is lost, which counts it
	f, err := s.Create(path.Join(dir, "f"))
	must(t, err)
	for b := text; len(b) > 0; b = b[min(len(b), 10<<10):] {
		_, err := f.Write(b[:min(len(b), 10<<10)])
		must(t, err)
	}
	p.mustFire(0)
	if names := listed(t, fs, dir); len(names) != 0 {
		t.Fatalf("the name node knows of %v while the part grows", names)
	}
	must(t, f.Sync())
	p.mustFire(1)
	must(t, f.Close())
	if got, err := fs.ReadFile(path.Join(dir, "f")); err != nil || !bytes.Equal(got, text) {
		t.Fatalf("%d bytes came back, %v; %d were written", len(got), err, len(text))
	}
}

// TestLeaseTakenAway: HD-02. Somebody recovers the lease of a file while it is
// uploaded, as the name node does itself when an upload takes longer than the
// hard limit: the upload is condemned, and repeated under another name (H2, H3).
func TestLeaseTakenAway(t *testing.T) {
	c := services.HDFSSingle
	h := home(t)
	fs := open(t, hdfsfs.Options{CallTimeout: 5 * time.Second, BlockSize: 1 << 20})
	dir := scratch(t, fs)
	text := randomBytes(4 << 20)
	src := &hooked{Reader: bytes.NewReader(text), at: 2 << 20}
	src.do = func() {
		names := listed(t, fs, dir)
		if len(names) != 1 {
			t.Errorf("%v lie in the directory during an upload", names)
			return
		}
		err := services.Until(patience, func() error {
			return c.Tool(h, "org.apache.hadoop.hdfs.tools.DebugAdmin", "recoverLease", "-path", path.Join(dir, names[0]), "-retries", "20")
		})
		if err != nil {
			t.Error(errors.Join(errors.New("the lease was not taken"), err))
		}
	}
	must(t, fs.Put(path.Join(dir, "f"), src, int64(len(text))))
	if tries := src.starts.Load(); tries < 2 {
		t.Fatalf("%d tries: the upload met no fault", tries)
	}
	if names := listed(t, fs, dir); len(names) != 1 {
		t.Errorf("left over: %v", names)
	}
	if got, err := fs.ReadFile(path.Join(dir, "f")); err != nil || !bytes.Equal(got, text) {
		t.Fatalf("%d bytes came back, %v; %d were written", len(got), err, len(text))
	}
}
