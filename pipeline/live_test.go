package pipeline

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/hivesink/hivesink/config"
	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/record"
	"github.com/hivesink/hivesink/source"
	"github.com/hivesink/hivesink/storage/memfs"
)

// played is a bounded live source whose readers do as a test says.
type played struct {
	source.Live // what is not used
	readers     []*playedReader
	made        int
}

func (s *played) Bounded() bool { return true }
func (s *played) Grown(ctx context.Context) ([]source.Split, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (s *played) Reader(source.Watch) (source.LiveReader, error) {
	s.made++
	return s.readers[s.made-1], nil
}

// playedReader has the splits that it is given; read is its Read.
type playedReader struct {
	t      *testing.T
	read   func(context.Context) (source.Event, error)
	adding func(id string) // nil: nothing happens before a split is there

	mu      sync.Mutex
	added   []string
	has     map[string]ledger.Source
	removed chan string
}

func newPlayedReader(t *testing.T) *playedReader {
	return &playedReader{t: t, has: make(map[string]ledger.Source), removed: make(chan string, 10)}
}

func (r *playedReader) Add(s source.Split, from ledger.Source) error {
	if r.adding != nil {
		r.adding(s.ID)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.added = append(r.added, s.ID)
	r.has[s.ID] = from
	return nil
}

func (r *playedReader) Remove(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.has[id]; !ok {
		r.t.Errorf("%s is taken from a reader that does not have it", id)
	}
	delete(r.has, id)
	r.removed <- id
}

func (r *playedReader) Read(ctx context.Context) (source.Event, error) { return r.read(ctx) }
func (r *playedReader) Close() error                                   { return nil }

func (r *playedReader) splits() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.added...)
}

// TestSplitEndsWhileItIsChosenToMove: a reader has read the end of a split when
// balance picks that split. It ends once: it is not given to another reader,
// where it would end again and the run with it, while the last split has rows
// that nobody has read.
func TestSplitEndsWhileItIsChosenToMove(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	s := &sim{yaml: fmt.Sprintf(besideYAML, t.TempDir())}
	cfg := s.config(t)
	cfg.Source.Readers = 2
	p, err := Open(ctx, Options{Config: cfg, Version: "test", FS: memfs.New(), NoLock: true, Random: s.random, catalog: newService()})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Release()

	a, b := newPlayedReader(t), newPlayedReader(t)
	l := &live{p: p, src: &played{readers: []*playedReader{a, b}}}
	end := func(id string) (source.Event, error) {
		return source.Event{Split: id, Batch: &record.Batch{Position: "end", End: true}}, nil
	}
	chosen, last := false, false
	step := 0
	a.read = func(ctx context.Context) (source.Event, error) {
		step++
		switch step {
		case 1: // the end of a/1 was read; before it is noted, the split is chosen
			select {
			case id := <-a.removed:
				chosen = id == "a/1"
			case <-ctx.Done():
				return source.Event{}, ctx.Err()
			}
			return end("a/1")
		case 2:
			return source.Event{Split: "a/1", Removed: true}, nil
		case 3: // a/0 has nothing to read until the move is over
			for ctx.Err() == nil {
				l.mu.Lock()
				moving := l.moving
				l.mu.Unlock()
				if !moving && len(b.splits()) == 2 {
					last = true
					return end("a/0")
				}
				time.Sleep(time.Millisecond)
			}
		}
		<-ctx.Done()
		return source.Event{}, ctx.Err()
	}
	ended := make(map[string]bool)
	b.read = func(ctx context.Context) (source.Event, error) {
		for ctx.Err() == nil {
			for _, id := range b.splits()[len(ended):] {
				ended[id] = true
				return end(id)
			}
			time.Sleep(time.Millisecond)
		}
		return source.Event{}, ctx.Err()
	}
	finished, err := l.run(ctx, []source.Split{{ID: "a/0"}, {ID: "b/0"}, {ID: "a/1"}, {ID: "b/1"}})
	if err != nil || !finished {
		t.Fatalf("finished: %v, %v", finished, err)
	}
	if !chosen {
		t.Fatal("the split was not chosen: this test tests nothing")
	}
	if got := b.splits(); len(got) != 2 || !last {
		t.Errorf("the run ended when a/0 was at its end: %v; the other reader was given %v", last, got)
	}
}

// TestSplitIsChosenBeforeItIsAdded: the end of another split makes balance
// choose one that is just being given to a reader. It is taken away when the
// reader has it: before, nobody would answer, and no split would move any more.
func TestSplitIsChosenBeforeItIsAdded(t *testing.T) {
	s := &sim{yaml: fmt.Sprintf(besideYAML, t.TempDir())}
	p, lanes := beside(t, s, newService())
	defer p.Release()
	a, b := newPlayedReader(t), newPlayedReader(t)
	l := &live{p: p, src: &played{}, left: 3, readers: []*liveReader{{LiveReader: a, lane: lanes[0]}, {LiveReader: b, lane: lanes[1]}}}
	if err := l.give(t.Context(), []source.Split{{ID: "a/0"}, {ID: "b/0"}}); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	a.adding = func(string) {
		go func() {
			defer close(done)
			l.ended(l.readers[1], "b/0")
		}()
		select {
		case <-done:
		case <-time.After(50 * time.Millisecond): // it waits for the split to be there
		}
	}
	if err := l.give(t.Context(), []source.Split{{ID: "a/1"}}); err != nil {
		t.Fatal(err)
	}
	<-done
	if id := <-a.removed; id != "a/1" {
		t.Errorf("%s is chosen: this test tests nothing", id)
	}
}

// TestMoreReadersThanSplits: WM-01b. Readers without a split neither hold the
// watermark nor push it on: it is that of the splits, nothing is late because of
// them, and the run ends with the splits.
func TestMoreReadersThanSplits(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	s := &sim{yaml: fmt.Sprintf(besideYAML, t.TempDir())}
	cfg := s.config(t)
	cfg.Source.Readers, cfg.Commit.Trigger = 4, config.TriggerPartitionTime
	policy := newService()
	policy.works()
	p, err := Open(ctx, Options{Config: cfg, Version: "test", FS: memfs.New(), NoLock: true, Random: s.random, catalog: policy})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Release()
	src := &played{}
	half := make(chan struct{}) // closed when both splits have rows in a lane
	var wrote sync.WaitGroup
	wrote.Add(2)
	for range 4 {
		r := newPlayedReader(t)
		step := 0
		r.read = func(ctx context.Context) (source.Event, error) {
			if got := r.splits(); len(got) == 1 {
				switch step++; step {
				case 1:
					return source.Event{Split: got[0], Batch: s.batch(p.Schema(), 0, 0)}, nil
				case 2:
					wrote.Done() // the batch before was taken
					select {
					case <-half:
						return source.Event{Split: got[0], Batch: &record.Batch{FirstRow: simBatch, Position: "end", End: true}}, nil
					case <-ctx.Done():
					}
				}
			}
			<-ctx.Done()
			return source.Event{}, ctx.Err()
		}
		src.readers = append(src.readers, r)
	}
	go func() { // ends with both splits, or the test has failed
		wrote.Wait()
		defer close(half)
		if err := p.Checkpoint(ctx); err != nil {
			t.Error(err)
			return
		}
		st, err := p.State(ctx)
		if err != nil {
			t.Error(err)
			return
		}
		// Rows 0 to 3 of each, less an hour of disorder.
		if want := simTime(3) - time.Hour.Microseconds(); st.Watermark != want {
			t.Errorf("watermark %v, want %v", time.UnixMicro(st.Watermark).UTC(), time.UnixMicro(want).UTC())
		}
	}()
	l := &live{p: p, src: src}
	finished, err := l.run(ctx, []source.Split{{ID: "a"}, {ID: "b"}})
	if err != nil || !finished {
		t.Fatalf("finished: %v, %v", finished, err)
	}
	if src.made != 4 {
		t.Fatalf("%d readers", src.made)
	}
	if n := p.Stats.RowsLate.Load(); n != 0 {
		t.Errorf("%d rows are late", n)
	}
	if n := p.Stats.RowsRead.Load(); n != 2*simBatch {
		t.Errorf("%d rows read", n)
	}
}
