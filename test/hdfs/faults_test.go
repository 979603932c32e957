//go:build integration

package hdfs

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hivesink/hivesink/storage"
	"github.com/hivesink/hivesink/storage/hdfsfs"
	"github.com/hivesink/hivesink/test/services"
)

// home controls the daemons.
func home(t testing.TB) *services.Home {
	t.Helper()
	h, err := services.DefaultHome()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// clusterUp starts a cluster that is not part of the default services, unless it
// runs, and stops it at the end of the test.
func clusterUp(t testing.TB, c services.HDFS) *services.Home {
	t.Helper()
	h := home(t)
	if h.Running(c.Daemon("nn1")) {
		return h
	}
	must(t, h.Up(func(s string) { t.Log("up", s) }, c.Service))
	t.Cleanup(func() {
		if err := h.Down(c.Service); err != nil {
			t.Error(err)
		}
	})
	return h
}

// heal brings every daemon of a cluster back at the end of a test.
func heal(t testing.TB, c services.HDFS) *services.Home {
	t.Helper()
	h := home(t)
	t.Cleanup(func() {
		daemons, err := h.Daemons()
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range daemons {
			if !strings.HasPrefix(d, c.Prefix+"-") {
				continue
			}
			if err := h.Resume(d); err != nil {
				t.Error(err)
			}
			if err := h.Again(d); err != nil {
				t.Error(err)
			}
		}
		if err := c.Ready(h); err != nil {
			t.Error(err)
		}
	})
	return h
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func randomBytes(n int) []byte {
	b := make([]byte, n)
	rng := rand.NewChaCha8([32]byte{1})
	_, _ = rng.Read(b)
	return b
}

// hooked is a source of bytes that calls a function when it is read at an offset
// for the first time, and counts how often it is read from the start.
type hooked struct {
	*bytes.Reader
	at     int64
	do     func()
	once   sync.Once
	again  func() // nil, or called when it is read from the start once more
	starts atomic.Int64
}

func (r *hooked) ReadAt(p []byte, off int64) (int, error) {
	if off == 0 && r.starts.Add(1) > 1 && r.again != nil {
		r.again()
	}
	if off >= r.at {
		r.once.Do(r.do)
	}
	return r.Reader.ReadAt(p, off)
}

// listed are the names in a directory.
func listed(t testing.TB, fs storage.FS, dir string) (names []string) {
	t.Helper()
	infos, err := fs.List(dir)
	must(t, err)
	for _, info := range infos {
		names = append(names, info.Name)
	}
	return names
}

// written is the data node that this process has a connection to: the first of
// the pipeline of the one file that is being written.
func written(t testing.TB, c services.HDFS) string {
	t.Helper()
	own := map[string]bool{}
	fds, err := filepath.Glob("/proc/self/fd/*")
	must(t, err)
	for _, fd := range fds {
		if link, err := os.Readlink(fd); err == nil && strings.HasPrefix(link, "socket:[") {
			own[strings.TrimSuffix(strings.TrimPrefix(link, "socket:["), "]")] = true
		}
	}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, _ := os.ReadFile(table)
		for _, line := range strings.Split(string(text), "\n")[1:] {
			f := strings.Fields(line)
			if len(f) < 10 || f[3] != "01" || !own[f[9]] { // established, ours
				continue
			}
			_, hex, _ := strings.Cut(f[2], ":")
			port, err := strconv.ParseInt(hex, 16, 32)
			must(t, err)
			if role := c.DataNode(int(port)); role != "" {
				return c.Daemon(role)
			}
		}
	}
	t.Error("no connection to a data node")
	return ""
}

// TestUploadWithoutDataNode: the data node that takes the bytes is killed or
// hangs in the middle of a block. The upload is condemned and repeated, from its
// first byte and under another name (H2, H3).
func TestUploadWithoutDataNode(t *testing.T) {
	for name, fault := range map[string]func(*services.Home, string) error{
		"kill": (*services.Home).Kill, "hang": (*services.Home).Pause,
	} {
		t.Run(name, func(t *testing.T) {
			fs := open(t, hdfsfs.Options{CallTimeout: 2 * time.Second, BlockSize: 8 << 20, Replication: 2})
			dir := scratch(t, fs)
			h := heal(t, services.HDFSSingle)
			text := randomBytes(20 << 20)
			src := &hooked{Reader: bytes.NewReader(text), at: 11 << 20, do: func() {
				if err := fault(h, written(t, services.HDFSSingle)); err != nil {
					t.Error(err)
				}
			}}
			began := time.Now()
			must(t, fs.Put(path.Join(dir, "f"), src, int64(len(text))))
			t.Logf("%d tries in %s", src.starts.Load(), time.Since(began).Round(10*time.Millisecond))
			if src.starts.Load() < 2 {
				t.Fatal("the upload met no fault")
			}
			if names := listed(t, fs, dir); len(names) != 1 {
				t.Fatalf("condemned tries are left: %v", names)
			}
			got, err := fs.ReadFile(path.Join(dir, "f"))
			must(t, err)
			if !bytes.Equal(got, text) {
				t.Fatal("other bytes came back")
			}
		})
	}
}

// TestCondemnedFile: what the client says after an error is not believed; the
// file takes nothing more, and its Close is an error (H2).
func TestCondemnedFile(t *testing.T) {
	fs := open(t, hdfsfs.Options{CallTimeout: 2 * time.Second, BlockSize: 64 << 20, Replication: 2})
	dir := scratch(t, fs)
	h := heal(t, services.HDFSSingle)
	f, err := fs.Create(path.Join(dir, "f"))
	must(t, err)
	text := randomBytes(1 << 20)
	_, err = f.Write(text)
	must(t, err)
	must(t, h.Pause(written(t, services.HDFSSingle)))
	for i := 0; err == nil && i < 60; i++ {
		_, err = f.Write(text)
	}
	if err == nil {
		t.Fatal("no error although the data node hangs")
	}
	t.Log(err)
	if _, err := f.Write(text); !errors.Is(err, storage.ErrCondemned) {
		t.Fatalf("a write afterwards: %v", err)
	}
	if err := f.Close(); !errors.Is(err, storage.ErrCondemned) {
		t.Fatalf("close afterwards: %v", err)
	}
	// Nobody has committed the block with more bytes than there are.
	info, err := fs.Stat(path.Join(dir, "f"))
	must(t, err)
	if info.Size != 0 {
		t.Fatalf("the condemned file has %d bytes: somebody has closed it", info.Size)
	}
	must(t, fs.Remove(path.Join(dir, "f")))
}

// TestReadWithoutDataNodes: a read is bounded by the time limit of the nodes
// that do not answer, and finds the others.
func TestReadWithoutDataNodes(t *testing.T) {
	fs := open(t, hdfsfs.Options{CallTimeout: time.Second, BlockSize: 1 << 20, Replication: 3})
	dir := scratch(t, fs)
	h := heal(t, services.HDFSSingle)
	text := randomBytes(3 << 20)
	must(t, fs.Put(path.Join(dir, "f"), bytes.NewReader(text), int64(len(text))))
	r, err := fs.Open(path.Join(dir, "f"))
	must(t, err)
	defer r.Close()
	must(t, h.Pause(services.HDFSSingle.Daemon("dn1")))
	must(t, h.Pause(services.HDFSSingle.Daemon("dn3")))
	began := time.Now()
	got, err := io.ReadAll(io.NewSectionReader(r, 0, r.Size()))
	must(t, err)
	took := time.Since(began)
	t.Logf("read in %s with one node of three", took.Round(10*time.Millisecond))
	if !bytes.Equal(got, text) {
		t.Fatal("other bytes came back")
	}
	if took > time.Minute {
		t.Fatalf("it took %s", took)
	}
	// None left: the read waits until one answers again.
	must(t, h.Pause(services.HDFSSingle.Daemon("dn2")))
	p := make([]byte, 100_000)
	waits(t, fs, func() error {
		_, err := r.ReadAt(p, 1<<20)
		return err
	}, func() error { return h.Resume(services.HDFSSingle.Daemon("dn2")) })
	if !bytes.Equal(p, text[1<<20:][:len(p)]) {
		t.Fatal("other bytes came back after all nodes were gone")
	}
}

// patience is how long an event may take on a machine that is busy with others.
const patience = 3 * time.Minute

// waits runs an operation, sees it wait, lets the cluster heal, and sees the
// operation succeed.
func waits(t *testing.T, fs *hdfsfs.FS, op func() error, healing func() error) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- op() }()
	must(t, services.Until(patience, func() error {
		if fs.Waiting() == 0 {
			return errors.New("nothing waits")
		}
		return nil
	}))
	must(t, healing())
	select {
	case err := <-done:
		must(t, err)
	case <-time.After(patience):
		t.Fatal("the operation does not end although the cluster is well")
	}
}

// TestNameNodeRestart: killed and hanging name nodes, and safe mode, are waited
// for (H6, HD-01): create, rename, mkdir and remove in turn.
func TestNameNodeRestart(t *testing.T) {
	c := services.HDFSSingle
	h := heal(t, c)
	fs := open(t, hdfsfs.Options{CallTimeout: 2 * time.Second})
	dir := scratch(t, fs)
	nn := c.Daemon("nn1")
	safe := func(what string) func() error {
		return func() error { return c.Tool(h, "org.apache.hadoop.hdfs.tools.DFSAdmin", "-safemode", what) }
	}
	at := func(name string) string { return path.Join(dir, name) }
	must(t, storage.WriteFile(fs, at("a"), []byte("a")))
	must(t, fs.Mkdir(at("d")))

	must(t, h.Kill(nn))
	waits(t, fs, func() error { return storage.WriteFile(fs, at("b"), []byte("b")) }, func() error { return h.Again(nn) })
	must(t, c.Ready(h))

	must(t, h.Pause(nn))
	waits(t, fs, func() error { return fs.Rename(at("a"), at("d/a")) }, func() error { return h.Resume(nn) })

	must(t, safe("enter")())
	var all sync.WaitGroup
	errs := make([]error, 4)
	for i, op := range []func() error{
		func() error { return storage.WriteFile(fs, at("c"), []byte("c")) },
		func() error { return fs.Rename(at("b"), at("d/b")) },
		func() error { return fs.Mkdir(at("e")) },
		func() error { return fs.Remove(at("d/a")) },
	} {
		all.Go(func() { errs[i] = op() })
	}
	must(t, services.Until(patience, func() error {
		if n := fs.Waiting(); n != len(errs) {
			return errors.New("not all wait")
		}
		return nil
	}))
	must(t, safe("leave")())
	all.Wait()
	must(t, errors.Join(errs...))
	if got := strings.Join(listed(t, fs, dir), " ") + "; " + strings.Join(listed(t, fs, at("d")), " "); got != "c d e; b" {
		t.Fatalf("after all: %s", got)
	}
}
