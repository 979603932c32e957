package pipeline

import (
	"fmt"
	"testing"
	"time"

	"github.com/hivesink/hivesink/storage/memfs"
)

// An hour by which clocks are set back.
const setBack = int64(time.Hour / time.Microsecond)

// clocked is a pipeline in the caller's goroutine, whose clock the test sets,
// with one batch of each source partition in a checkpoint.
func clocked(t *testing.T, s *sim, policy *service) (p *Pipeline, now *int64) {
	t.Helper()
	ctx := t.Context()
	now = new(int64)
	*now = s.clock()
	o := Options{Config: s.config(t), Version: "test", FS: memfs.New(), NoLock: true, Inline: true, Random: s.random,
		Now: func() int64 { *now++; return *now }}
	if policy != nil {
		o.catalog = policy
	}
	p, err := Open(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Release() })
	for i, name := range simSources {
		lane := ownLane(t, p, name)
		b := s.batch(p.Schema(), i, 0)
		_, err := lane.Write(ctx, name, b)
		b.Record.Release()
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Checkpoint(ctx); err != nil {
		t.Fatal(err)
	}
	return p, now
}

func advance(t *testing.T, p *Pipeline) {
	t.Helper()
	if err := p.Advance(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestHoldWhenTheClockIsSetBack: CL-01. What is held when the clock is set back
// by an hour does not wait until the clock is there again, also when no
// checkpoint comes any more.
func TestHoldWhenTheClockIsSetBack(t *testing.T) {
	p, now := clocked(t, newSim(), nil)
	advance(t, p)
	if n := p.Stats.PublishedFiles.Load(); n != 0 {
		t.Fatalf("%d files published: nothing is held, and this test tests nothing", n)
	}
	*now -= setBack
	advance(t, p)
	if n := p.Stats.PublishedFiles.Load(); n == 0 {
		t.Fatal("what is held waits for the clock")
	}
}

// TestRetryWhenTheClockIsSetBack: CL-01. An announcement that waits for its next
// try when the clock is set back by an hour does not wait until the clock is
// there again.
func TestRetryWhenTheClockIsSetBack(t *testing.T) {
	policy := newService()
	policy.down = true
	p, now := clocked(t, &sim{yaml: fmt.Sprintf(besideYAML, t.TempDir()), rounds: 1}, policy)
	advance(t, p)
	if len(policy.calls) != 1 || p.c.ann.retryAt == 0 {
		t.Fatalf("calls %v, next try at %d: nothing waits, and this test tests nothing", policy.calls, p.c.ann.retryAt)
	}
	advance(t, p)
	if len(policy.calls) != 1 {
		t.Fatalf("tried again at once: %v", policy.calls)
	}
	*now -= setBack
	policy.works()
	advance(t, p)
	if n := p.Stats.Announced.Load(); n == 0 {
		t.Fatal("what is to be announced waits for the clock")
	}
	// Nor is it forgotten to look while units are built.
	p.c.building = 1
	defer func() { p.c.building = 0 }()
	*now -= setBack
	if !p.c.mayAnnounce(p.c.now()) {
		t.Error("nobody looks for what is due until the clock is there again")
	}
	*now += setBack + time.Hour.Microseconds()
	if _, err := p.c.announce(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	if at := p.c.ann.lookAt - p.c.now(); at > time.Minute.Microseconds() {
		t.Errorf("the next look is %s away", time.Duration(at)*time.Microsecond)
	}
}
