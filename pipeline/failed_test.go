package pipeline

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/record"
	"github.com/hivesink/hivesink/source"
	"github.com/hivesink/hivesink/storage"
	"github.com/hivesink/hivesink/storage/faultfs"
	"github.com/hivesink/hivesink/storage/memfs"
	"github.com/hivesink/hivesink/writer"
)

// quiet is a source of one split: one batch, and then nothing for ever.
type quiet struct {
	source.Live // what is not used
	first       func() *record.Batch
	given       bool
	waiting     chan struct{} // closed when it has nothing more
}

func (q *quiet) Splits(context.Context, map[string]ledger.Source) ([]source.Split, error) {
	return []source.Split{{ID: simSources[0]}}, nil
}
func (q *quiet) Open(context.Context, source.Split, ledger.Source) (source.Reader, error) {
	return quietReader{q}, nil
}
func (q *quiet) Progress() float64         { return 0 }
func (q *quiet) Bounded() bool             { return false }
func (q *quiet) Durable(map[string]string) {}
func (q *quiet) Grown(ctx context.Context) ([]source.Split, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}
func (q *quiet) Reader(source.Watch) (source.LiveReader, error) { return quietLive{q}, nil }

func (q *quiet) read(ctx context.Context) (*record.Batch, error) {
	if !q.given {
		q.given = true
		return q.first(), nil
	}
	close(q.waiting)
	<-ctx.Done()
	return nil, ctx.Err()
}

type quietReader struct{ q *quiet }

func (r quietReader) Read(ctx context.Context) (*record.Batch, error) { return r.q.read(ctx) }
func (r quietReader) Close() error                                    { return nil }

type quietLive struct{ q *quiet }

func (r quietLive) Add(source.Split, ledger.Source) error { return nil }
func (r quietLive) Remove(string)                         {}
func (r quietLive) Close() error                          { return nil }
func (r quietLive) Read(ctx context.Context) (source.Event, error) {
	b, err := r.q.read(ctx)
	return source.Event{Split: simSources[0], Batch: b}, err
}

// openBeside opens a pipeline whose storage can be made to fail.
func openBeside(t *testing.T, policy *service) (*sim, *faultfs.FS, *Pipeline) {
	t.Helper()
	s := &sim{yaml: fmt.Sprintf(besideYAML, t.TempDir())}
	fs := faultfs.New(memfs.New())
	p, err := Open(t.Context(), Options{Config: s.config(t), Version: "test", FS: fs, NoLock: true, Random: s.random, catalog: policy})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Release() }) // of a pipeline that may have failed
	return s, fs, p
}

// ownLane is a lane for one source partition, where that stands.
func ownLane(t *testing.T, p *Pipeline, name string) *writer.Lane {
	t.Helper()
	from, err := p.Own(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	lane, err := p.NewLane()
	if err != nil {
		t.Fatal(err)
	}
	lane.Adopt(name, from)
	return lane
}

// writeOne writes the first batch of the first source partition.
func (s *sim) writeOne(t *testing.T, p *Pipeline) *writer.Lane {
	t.Helper()
	lane := ownLane(t, p, simSources[0])
	if _, err := lane.Write(t.Context(), simSources[0], s.batch(p.Schema(), 0, 0)); err != nil {
		t.Fatal(err)
	}
	return lane
}

// TestFailureEndsQuietReading: a disk fails while the source has nothing to
// read. The run ends with that error, and does not wait for a record that may
// never come.
func TestFailureEndsQuietReading(t *testing.T) {
	for name, run := range map[string]func(*Pipeline, context.Context, *quiet) error{
		"run":  func(p *Pipeline, ctx context.Context, q *quiet) error { return p.Run(ctx, q) },
		"live": func(p *Pipeline, ctx context.Context, q *quiet) error { return p.RunLive(ctx, q) },
	} {
		t.Run(name, func(t *testing.T) {
			policy := newService()
			policy.works()
			s, fs, p := openBeside(t, policy)
			q := &quiet{first: func() *record.Batch { return s.batch(p.Schema(), 0, 0) }, waiting: make(chan struct{})}
			fs.Inject(faultfs.Rule{Kind: storage.OpSync, Glob: "*.part", Times: faultfs.Always, Err: syscall.EIO})
			fs.Inject(faultfs.Rule{Kind: storage.OpSync, Glob: "*.bundle", Times: faultfs.Always, Err: syscall.EIO})
			done := make(chan error, 1)
			go func() { done <- run(p, t.Context(), q) }()
			<-q.waiting
			if err := p.Checkpoint(t.Context()); !errors.Is(err, syscall.EIO) {
				t.Fatalf("checkpoint: %v, want the disk's error", err)
			}
			select {
			case err := <-done:
				if !errors.Is(err, syscall.EIO) {
					t.Fatalf("the run ends with %v, want the disk's error", err)
				}
			case <-time.After(patience):
				t.Fatal("the run does not end")
			}
		})
	}
}

// TestFailureEndsWaitForMemory: a checkpoint that fails gives its memory not
// back. Who waits for it, or would, is told of the failure.
func TestFailureEndsWaitForMemory(t *testing.T) {
	s, fs, p := openBeside(t, newService())
	lane := s.writeOne(t, p)
	fs.Inject(faultfs.Rule{Kind: storage.OpSync, Err: syscall.EIO}).MustFire(t)
	if err := p.Checkpoint(t.Context()); !errors.Is(err, syscall.EIO) {
		t.Fatalf("checkpoint: %v, want the disk's error", err)
	}
	<-p.Failed()
	eventually(t, "a write is told", func() bool {
		_, err := lane.Write(t.Context(), simSources[0], s.batch(p.Schema(), 0, simBatch))
		return errors.Is(err, syscall.EIO)
	})
}

// TestCheckpointOutlivesItsCaller: a caller whose ctx ends is let go, and what he
// has begun is done all the same.
func TestCheckpointOutlivesItsCaller(t *testing.T) {
	policy := newService()
	policy.works()
	s, fs, p := openBeside(t, policy)
	s.writeOne(t, p)
	release := make(chan struct{})
	hang := fs.Inject(faultfs.Rule{Kind: storage.OpSync, Do: func(faultfs.Op) { <-release }}).MustFire(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Checkpoint(ctx) }()
	<-hang.FirstFired()
	cancel()
	select {
	case err := <-done:
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("checkpoint: %v", err)
		}
	case <-time.After(patience):
		t.Fatal("the caller is not let go")
	}
	close(release)
	st, err := p.State(t.Context())
	if err != nil || st.Checkpoint != 1 || st.Sources[simSources[0]].NextRow != simBatch {
		t.Fatalf("checkpoint %d of %+v, %v: it was not done", st.Checkpoint, st.Sources[simSources[0]], err)
	}
}
