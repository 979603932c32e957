package pipeline

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hivesink/hivesink/audit"
	"github.com/hivesink/hivesink/internal/kv"
	"github.com/hivesink/hivesink/layout"
	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/maintenance"
	"github.com/hivesink/hivesink/storage"
	"github.com/hivesink/hivesink/storage/faultfs"
	"github.com/hivesink/hivesink/storage/memfs"
)

// atRest is a finished table of many small files: policy off publishes parts as
// they are.
func atRest(t testing.TB) (*sim, *memfs.FS) {
	t.Helper()
	fs := memfs.New()
	s := newSim()
	s.rounds = 2
	s.yaml = strings.Replace(s.yaml, "policy: hold", "policy: off", 1)
	if err := s.run(t, fs, nil); err != nil {
		t.Fatal(err)
	}
	s.checkDone(t, fs)
	return s, fs
}

// compactInParallel is the same with several workers on one log.
func (s *sim) compactInParallel(t *testing.T, fs storage.Exchanger) {
	t.Helper()
	s.now += 1000
	log, err := ledger.Open(context.Background(), ledger.Options{FS: fs, Table: simTable, Pipeline: "sim", Version: "test", Random: RandomBits,
		Now: func() time.Time { return time.UnixMicro(s.clock()) }})
	if err != nil {
		t.Fatal(err)
	}
	rep, err := maintenance.Run(context.Background(), maintenance.Options{FS: fs, Root: simTable, Log: log, FileSize: 1 << 20,
		Codec: "zstd", KeepCodec: true, Parallelism: 4, Random: RandomBits})
	if err := errors.Join(err, log.Close()); err != nil || rep.Failed > 0 {
		t.Fatal(err, rep)
	}
}

// compactOnce is one process of `hivesink compact`.
func (s *sim) compactOnce(fs storage.Exchanger, window bool) (*maintenance.Report, error) {
	s.now += 1000
	log, err := ledger.Open(context.Background(), ledger.Options{FS: fs, Table: simTable, Pipeline: "sim", Version: "test",
		Now: func() time.Time { return time.UnixMicro(s.clock()) }, Random: s.random})
	if err != nil {
		return nil, err
	}
	rep, err := maintenance.Run(context.Background(), maintenance.Options{FS: fs, Root: simTable, Log: log, FileSize: 1 << 20,
		Codec: "zstd", KeepCodec: true, Parallelism: 1, CreatedBy: "hivesink version test", Random: s.random, AllowWindow: window})
	return rep, errors.Join(err, log.Close())
}

// compacted: one file in every partition, and all that the promise says.
func (s *sim) compacted(t testing.TB, fs storage.FS) {
	t.Helper()
	s.checkDone(t, fs)
	_, files := visible(t, fs, simTable)
	dirs := map[string]int{}
	for _, f := range files {
		dirs[path.Dir(f)]++
	}
	for _, dir := range slices.Sorted(maps.Keys(dirs)) {
		if dirs[dir] != 1 {
			t.Fatalf("%s has %d files after the compaction", dir, dirs[dir])
		}
	}
	st, err := ledger.Read(fs, simTable)
	if err != nil {
		t.Fatal(err)
	}
	if len(st.Replacements) > 0 {
		t.Fatalf("replacements have not ended: %v", st.Replacements)
	}
	for _, p := range st.Partitions {
		if p.Table == ledger.MainTable && (p.Files != 1 || p.AnnouncedFiles != 1) {
			t.Fatalf("partition %s has %d files, %d announced", p.Path, p.Files, p.AnnouncedFiles)
		}
	}
	err = storage.Walk(fs, simTable, func(name string, info storage.Info) error {
		if info.Name == layout.CompactMarker || strings.HasSuffix(name, ".unit") {
			return fmt.Errorf("left behind: %s", name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestCompactAtRest: a table with a log stays provable, and goes on.
func TestCompactAtRest(t *testing.T) {
	s, fs := atRest(t)
	_, before := visible(t, fs, simTable)
	rep, err := s.compactOnce(fs, false)
	if err != nil {
		t.Fatal(err)
	}
	if rep.Failed > 0 || rep.LeftAlone > 0 || rep.Compacted == 0 || int(rep.FilesBefore) != len(before) {
		t.Fatalf("%+v", rep)
	}
	s.compacted(t, fs)
	// More input comes: the pipeline goes on where it was.
	s.rounds = 5
	if err := s.run(t, fs, nil); err != nil {
		t.Fatal(err)
	}
	s.checkDone(t, fs)
	s.compactInParallel(t, fs)
	s.compacted(t, fs)
}

// TestCompactCrash stops a compaction of a table with a log before and after
// each storage operation. What is left is always provable, and is finished
// by the next compaction, or settled by the next run of the pipeline.
func TestCompactCrash(t *testing.T) {
	for _, window := range []bool{false, true} {
		t.Run(fmt.Sprintf("window=%v", window), func(t *testing.T) {
			s, whole := atRest(t)
			prepare := func(fs *faultfs.FS) *faultfs.FS {
				if window {
					fs.Inject(faultfs.Rule{Kind: storage.OpExchange, Err: errors.ErrUnsupported, Times: faultfs.Always}).MustFire(t)
				}
				return fs
			}
			clean := prepare(faultfs.New(whole.Kill()))
			c := *s
			if _, err := c.compactOnce(clean, window); err != nil {
				t.Fatal(err)
			}
			total := clean.Ops()
			c.compacted(t, clean)
			t.Logf("%d storage operations", total)
			settled := 0
			for k := 1; k <= total; k += stride() {
				for _, after := range []bool{false, true} {
					settled += compactCrash(t, s, whole, prepare, k, after, window)
				}
			}
			if settled == 0 {
				t.Fatal("no crash left anything to settle")
			}
		})
	}
}

func compactCrash(t *testing.T, s *sim, whole *memfs.FS, prepare func(*faultfs.FS) *faultfs.FS, k int, after, window bool) (settled int) {
	t.Helper()
	mem := whole.Kill()
	fs := faultfs.New(mem)
	if window {
		fs.Inject(faultfs.Rule{Kind: storage.OpExchange, Err: errors.ErrUnsupported, Times: faultfs.Always})
	}
	fs.CrashAt(k, after)
	first := *s
	_, err := first.compactOnce(fs, window)
	select {
	case <-fs.Crashed():
	default:
		t.Fatalf("operation %d: the crash did not fire: %v", k, err)
	}
	images := map[string]*memfs.FS{"kill": mem.Kill()}
	switch k % 3 {
	case 0:
		images["synced-only"] = mem.Crash(memfs.SyncedOnly, 0)
	case 1:
		images["random"] = mem.Crash(memfs.Random, uint64(k))
	case 2:
		images["ordered"] = mem.Crash(memfs.Ordered, uint64(k))
	}
	for _, name := range slices.Sorted(maps.Keys(images)) {
		image := images[name]
		if !window {
			s.checkNow(t, image)
			want, _ := s.wantRows()
			if got, _ := visible(t, image, simTable); !slices.Equal(got, want) {
				t.Fatalf("operation %d, after=%v, image %s: visible are %v", k, after, name, got)
			}
			if rep, err := audit.Run(context.Background(), image, simTable); err != nil || len(rep.Faults) > 0 {
				t.Fatalf("operation %d, after=%v, image %s: fsck: %v %+v", k, after, name, err, rep)
			}
		}
		// The next process is a pipeline, or a compaction.
		if st, err := ledger.Read(image, simTable); err == nil && len(st.Replacements) > 0 {
			settled++
		}
		r := first
		if k%2 == 0 && name == "kill" {
			if err := r.run(t, image, kv.NewMem()); err != nil {
				t.Fatalf("operation %d, after=%v, image %s: run: %v", k, after, name, err)
			}
			r.checkDone(t, image)
			st, err := ledger.Read(image, simTable)
			if err != nil || len(st.Replacements) > 0 {
				t.Fatalf("operation %d, after=%v, image %s: the run left replacements %v, %v", k, after, name, st.Replacements, err)
			}
		}
		fs := faultfs.New(image)
		if window {
			fs.Inject(faultfs.Rule{Kind: storage.OpExchange, Err: errors.ErrUnsupported, Times: faultfs.Always})
		}
		rep, err := r.compactOnce(fs, window)
		if err != nil || rep.Failed > 0 || rep.LeftAlone > 0 {
			t.Fatalf("operation %d, after=%v, image %s: the next compaction: %v %+v", k, after, name, err, rep)
		}
		r.compacted(t, image)
	}
	return settled
}
