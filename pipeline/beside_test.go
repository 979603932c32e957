package pipeline

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/storage/memfs"
	"github.com/hivesink/hivesink/writer"
)

// service is a policy whose service hangs or fails as told.
type service struct {
	entered chan struct{} // a token for each call
	answer  chan error    // what the call answers; it hangs until there is something

	mu    sync.Mutex
	calls [][]string
	open  bool // answers at once
	down  bool // fails at once
}

func newService() *service {
	return &service{entered: make(chan struct{}, 1000), answer: make(chan error)}
}

func (s *service) Name() string { return "metastore" }

func (s *service) Announce(ctx context.Context, as []ledger.Announcement) error {
	s.mu.Lock()
	var names []string
	for _, a := range as {
		names = append(names, ledger.PartitionKey(a.Table, a.Partition))
	}
	s.calls = append(s.calls, names)
	open, down := s.open, s.down
	s.mu.Unlock()
	s.entered <- struct{}{}
	if open {
		return nil
	}
	if down {
		return fault.New(fault.Retry, "", "refused")
	}
	select {
	case err := <-s.answer:
		return err
	case <-ctx.Done():
		return fault.Wrap(fault.Retry, "", ctx.Err())
	}
}

func (s *service) works() {
	s.mu.Lock()
	s.open = true
	s.mu.Unlock()
}

// beside is a pipeline that runs as in a process, its timers long.
func beside(t *testing.T, s *sim, policy *service) (*Pipeline, []*writer.Lane) {
	t.Helper()
	ctx := t.Context()
	p, err := Open(ctx, Options{Config: s.config(t), Version: "test", FS: memfs.New(), NoLock: true, Random: s.random, catalog: policy})
	if err != nil {
		t.Fatal(err)
	}
	var lanes []*writer.Lane
	for _, name := range simSources {
		lanes = append(lanes, ownLane(t, p, name))
	}
	return p, lanes
}

// besideYAML announces a partition as soon as it has a file.
var besideYAML = `
pipeline: sim
state_dir: %s
source:
  datagen: {rows: 1}
  event_time: {column: ts, out_of_orderness: 1h}
  bad_records: {policy: dead-letter, limit: 1000}
table:
  database: d
  name: t
  location: ` + simTable + `
  columns: [id bigint, ts timestamp, name string]
  partitioned_by: [{dt: date(ts)}]
checkpoint: {interval: 1h}
compaction: {policy: checkpoint}
commit: {policies: [metastore, success-file]}
`

// TestHungService: a service that does not answer holds up announcing and
// nothing else (P6): batches are read, made durable and published. What has
// become due meanwhile is announced when it answers, in order, a bounded number
// at a time.
func TestHungService(t *testing.T) {
	s := &sim{yaml: fmt.Sprintf(besideYAML, t.TempDir()), rounds: 20}
	policy := newService()
	p, lanes := beside(t, s, policy)
	defer p.Release()
	p.c.ann.runner.AtOnce = 3 // nothing runs yet
	ctx := t.Context()
	round := func(n int64) {
		t.Helper()
		for i, lane := range lanes {
			b := s.batch(p.Schema(), i, n*simBatch)
			_, err := lane.Write(ctx, simSources[i], b)
			b.Record.Release()
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := p.Checkpoint(ctx); err != nil {
			t.Fatal(err)
		}
	}
	round(0)
	<-policy.entered // and it hangs
	for n := range int64(9) {
		round(n + 1)
	}
	eventually(t, "all parts published", func() bool {
		st, err := p.State(ctx)
		return err == nil && !slices.ContainsFunc(slices.Collect(maps.Values(st.Units)), func(u *ledger.Unit) bool { return !u.Published })
	})
	if n := p.Stats.Announced.Load(); n != 0 {
		t.Fatalf("%d partitions announced by a service that hangs", n)
	}
	// A failure is tried again, and what came meanwhile goes along.
	policy.answer <- fault.New(fault.Retry, "", "out of order")
	<-policy.entered
	policy.works()
	policy.answer <- nil
	eventually(t, "everything announced", func() bool {
		st, err := p.State(ctx)
		return err == nil && !slices.ContainsFunc(slices.Collect(maps.Values(st.Partitions)), (*ledger.Partition).Unannounced)
	})
	policy.mu.Lock()
	defer policy.mu.Unlock()
	var order []string
	for _, c := range policy.calls[1:] {
		if len(c) > 3 {
			t.Errorf("%d partitions in one call, want at most 3", len(c))
		}
		order = append(order, c...)
	}
	if len(policy.calls) < 5 || !slices.IsSorted(order) {
		t.Errorf("calls %v: want several, in the order of the partitions", policy.calls)
	}
}

// outage is a pipeline whose service refuses everything; so many partitions are
// due.
func outage(t *testing.T, atOnce int) (*Pipeline, *service) {
	t.Helper()
	s := &sim{yaml: fmt.Sprintf(besideYAML, t.TempDir()), rounds: 20}
	policy := newService()
	policy.down = true
	p, lanes := beside(t, s, policy)
	p.c.ann.runner.AtOnce = atOnce // nothing runs yet
	for n := range int64(4) {
		for i, lane := range lanes {
			b := s.batch(p.Schema(), i, n*simBatch)
			_, err := lane.Write(t.Context(), simSources[i], b)
			b.Record.Release()
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := p.Checkpoint(t.Context()); err != nil {
		t.Fatal(err)
	}
	return p, policy
}

// TestOutageIsWaitedFor: while a service refuses everything, the process waits
// for the next try; it does not go round (P6).
func TestOutageIsWaitedFor(t *testing.T) {
	p, policy := outage(t, 1)
	for range 3 { // three tries, with growing pauses in between
		<-policy.entered
	}
	if err := p.Release(); err != nil {
		t.Fatal(err)
	}
	policy.mu.Lock()
	defer policy.mu.Unlock()
	// Beside the tries there are looks at what has become due meanwhile: at most
	// one for each unit that was published.
	if most := len(policy.calls) + int(p.Stats.PublishedFiles.Load()) + 1; p.c.ann.batches > most {
		t.Fatalf("%d batches for %d calls of the service, want at most %d", p.c.ann.batches, len(policy.calls), most)
	}
}

// TestStopInOutage: a stop tries so often and no more, also when more is due than
// goes into one batch.
func TestStopInOutage(t *testing.T) {
	p, policy := outage(t, 1)
	policy.mu.Lock()
	before := len(policy.calls)
	policy.mu.Unlock()
	done := make(chan error, 1)
	go func() { done <- p.Stop(t.Context()) }()
	select {
	case err := <-done:
		if fault.ClassOf(err) != fault.Retry {
			t.Fatalf("class %s: %v", fault.ClassOf(err), err)
		}
	case <-time.After(patience):
		t.Fatal("the stop does not end")
	}
	policy.mu.Lock()
	defer policy.mu.Unlock()
	// A busy machine may let some more tries pass before the stop begins.
	if n := len(policy.calls) - before; n < stopTries || n > stopTries+4 {
		t.Fatalf("%d calls of the service, want %d and those that were on their way", n, stopTries)
	}
}

// TestReleaseBesideHungService: a process ends while a service hangs.
func TestReleaseBesideHungService(t *testing.T) {
	s := &sim{yaml: fmt.Sprintf(besideYAML, t.TempDir()), rounds: 20}
	policy := newService()
	p, lanes := beside(t, s, policy)
	b := s.batch(p.Schema(), 0, 0)
	defer b.Record.Release()
	if _, err := lanes[0].Write(t.Context(), simSources[0], b); err != nil {
		t.Fatal(err)
	}
	if err := p.Checkpoint(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-policy.entered
	done := make(chan error, 1)
	go func() { done <- p.Release() }()
	select {
	case err := <-done:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(patience):
		t.Fatal("Release waits for a service that hangs")
	}
}

// TestFencedPolicy: a policy that finds the table taken over ends the pipeline.
func TestFencedPolicy(t *testing.T) {
	s := &sim{yaml: fmt.Sprintf(besideYAML, t.TempDir()), rounds: 20}
	policy := newService()
	p, lanes := beside(t, s, policy)
	defer p.Release()
	b := s.batch(p.Schema(), 0, 0)
	defer b.Record.Release()
	if _, err := lanes[0].Write(t.Context(), simSources[0], b); err != nil {
		t.Fatal(err)
	}
	if err := p.Checkpoint(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-policy.entered
	policy.answer <- fault.New(fault.Fenced, "", "epoch 9 owns it")
	<-p.Failed()
	if c := fault.ClassOf(p.Err()); c != fault.Fenced {
		t.Fatalf("class %s: %v", c, p.Err())
	}
}

// patience is how long an event may take on a machine that is busy with others.
const patience = 3 * time.Minute

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %s: %s", patience, what)
		}
	}
}
