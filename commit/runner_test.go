package commit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/ledger"
)

// fake is a policy that notes what it is told and fails as told.
type fake struct {
	name  string
	calls *[]string
	fail  func(as []Announcement) error
}

func (f *fake) Name() string { return f.name }

func (f *fake) Announce(_ context.Context, as []Announcement) error {
	var names []string
	for _, a := range as {
		names = append(names, fmt.Sprintf("%s#%d", a.Partition, a.Number))
	}
	*f.calls = append(*f.calls, f.name+" "+strings.Join(names, " "))
	if f.fail != nil {
		return f.fail(as)
	}
	return nil
}

var errDown = fault.New(fault.Retry, "", "the service is down")

func one(name string) Announcement {
	return Announcement{Partition: "k=" + name, Values: []string{name}, Number: 1, Cut: 7, Files: 2, Rows: 20, Bytes: 200}
}

// failing makes a fail that refuses the named partitions.
func failing(err error, names ...string) func([]Announcement) error {
	return func(as []Announcement) error {
		f := make(Failures, len(as))
		for i, a := range as {
			if slices.Contains(names, a.Values[0]) {
				f[i] = err
			}
		}
		return f.Err()
	}
}

type bench struct {
	t     *testing.T
	calls []string
	r     *Runner
}

func newBench(t *testing.T, policies ...*fake) *bench {
	b := &bench{t: t}
	var list []Policy
	for _, p := range policies {
		p.calls = &b.calls
		list = append(list, p)
	}
	b.r = NewRunner(Options{Policies: []string{"metastore", "success-file", "third"}}, list)
	return b
}

// run runs as at a second and holds what happened against want.
func (b *bench) run(second int64, as []Announcement, wantCalls, wantDone string, wantClass fault.Class, wantNext int64) error {
	b.t.Helper()
	b.calls = nil
	done, err := b.r.Run(context.Background(), as, second*1_000_000)
	var names []string
	for _, d := range done {
		names = append(names, d.Partition)
	}
	if got := strings.Join(b.calls, ", "); got != wantCalls {
		b.t.Errorf("second %d: calls %q, want %q", second, got, wantCalls)
	}
	if got := strings.Join(names, " "); got != wantDone {
		b.t.Errorf("second %d: done %q, want %q", second, got, wantDone)
	}
	if got := fault.ClassOf(err); got != wantClass {
		b.t.Errorf("second %d: class %q (%v), want %q", second, got, err, wantClass)
	}
	if got := b.r.NextTry(); got != wantNext*1_000_000 {
		b.t.Errorf("second %d: next try at %d µs, want second %d", second, got, wantNext)
	}
	return err
}

// TestRunnerOrder: policies run in the listed order, whatever order they were
// given in, and facts are what was announced (A6, checklist 76).
func TestRunnerOrder(t *testing.T) {
	b := newBench(t, &fake{name: "success-file"}, &fake{name: "metastore"})
	b.run(5, []Announcement{one("a"), one("b")}, "metastore k=a#1 k=b#1, success-file k=a#1 k=b#1", "k=a k=b", "", 0)

	done, err := b.r.Run(context.Background(), []Announcement{one("a")}, 9)
	want := ledger.Announced{Partition: "k=a", Number: 1, Cut: 7, Files: 2, Rows: 20, Bytes: 200, Time: 9}
	if err != nil || len(done) != 1 || done[0] != want {
		t.Errorf("got %+v %v, want %+v", done, err, want)
	}
}

// TestRunnerNoPolicies: an announcement without policies is just a fact.
func TestRunnerNoPolicies(t *testing.T) {
	newBench(t).run(5, []Announcement{one("a")}, "", "k=a", "", 0)
}

// TestRunnerRegister: only the catalogue is told of registrations.
func TestRunnerRegister(t *testing.T) {
	b := newBench(t, &fake{name: "metastore"}, &fake{name: "success-file"})
	a := one("a")
	a.Register = true
	b.run(5, []Announcement{a, one("b")}, "metastore k=a#1 k=b#1, success-file k=b#1", "k=a k=b", "", 0)
}

// TestRunnerOutage: a policy that fails as a whole is left alone for growing
// pauses, whatever else becomes due meanwhile, and for ever (A7; MS-02b and
// MS-03: it comes back without a restart).
func TestRunnerOutage(t *testing.T) {
	meta := &fake{name: "metastore", fail: func([]Announcement) error { return errDown }}
	b := newBench(t, meta, &fake{name: "success-file"})
	as := []Announcement{one("a")}
	b.run(100, as, "metastore k=a#1", "", fault.Retry, 101)
	as = append(as, one("b"))
	b.run(100, as, "", "", fault.Retry, 101) // b waits as well
	b.run(101, as, "metastore k=a#1 k=b#1", "", fault.Retry, 103)
	err := b.run(102, as, "", "", fault.Retry, 103)
	var w *Waiting
	if !errors.As(err, &w) || w.Attempts != 2 || w.Until != 103_000_000 || !errors.Is(w, errDown) {
		t.Errorf("waiting is %+v", w)
	}
	now, pause := int64(103), int64(0)
	for range 10 {
		b.calls = nil
		_, _ = b.r.Run(context.Background(), as, now*1_000_000)
		pause = b.r.NextTry()/1_000_000 - now
		now += pause
	}
	if pause != 60 {
		t.Errorf("the longest pause is %d s, want 60", pause)
	}
	// A clock that is set back does not make it wait for years.
	b.run(50, as, "metastore k=a#1 k=b#1", "", fault.Retry, 110)
	meta.fail = nil
	b.run(110, as, "metastore k=a#1 k=b#1, success-file k=a#1 k=b#1", "k=a k=b", "", 0)
	// And it starts with a short pause the next time.
	meta.fail = func([]Announcement) error { return errDown }
	b.run(200, as, "metastore k=a#1 k=b#1", "", fault.Retry, 201)
}

// TestRunnerSome: what all policies have done is done, although others failed;
// a retry does not repeat the policies that were passed, unless the totals have
// grown (A6).
// TestRunnerManyInOutage: while a policy is paused as a whole, nothing is left
// for another Run at once, however many announcements are due.
func TestRunnerManyInOutage(t *testing.T) {
	m := &fake{name: "metastore", fail: func([]Announcement) error { return errDown }}
	b := newBench(t, m)
	b.r.AtOnce = 1
	as := []Announcement{one("a"), one("b"), one("c")}
	b.run(0, as, "metastore k=a#1", "", fault.Retry, 1)
	for range 2 { // the first may have found some untried; a pause tries none
		b.run(0, as, "", "", fault.Retry, 1)
	}
	if b.r.More() {
		t.Fatal("More in a pause of all: the caller would ask again at once, for ever")
	}
	m.fail = nil
	b.run(2, as, "metastore k=a#1", "k=a", "", 0)
	if !b.r.More() {
		t.Fatal("two were too many, and the runner says that nothing is left")
	}
	b.run(2, as[1:], "metastore k=b#1", "k=b", "", 0)
	b.run(2, as[2:], "metastore k=c#1", "k=c", "", 0)
	if b.r.More() {
		t.Fatal("More after the last one")
	}
}

func TestRunnerSome(t *testing.T) {
	marker := &fake{name: "success-file", fail: failing(errDown, "b")}
	b := newBench(t, &fake{name: "metastore"}, marker, &fake{name: "third"})
	as := []Announcement{one("a"), one("b"), one("c")}
	err := b.run(100, as, "metastore k=a#1 k=b#1 k=c#1, success-file k=a#1 k=b#1 k=c#1, third k=a#1 k=c#1", "k=a k=c", fault.Retry, 101)
	if !strings.Contains(err.Error(), `policy success-file: announce "k=b": the service is down`) {
		t.Errorf("the error does not name policy and partition: %v", err)
	}
	// d is not held up by b.
	as = []Announcement{one("b"), one("d")}
	b.run(100, as, "metastore k=d#1, success-file k=d#1, third k=d#1", "k=d", fault.Retry, 101)
	b.run(101, as[:1], "success-file k=b#1", "", fault.Retry, 103)
	as[0].Files++
	b.run(103, as[:1], "metastore k=b#1, success-file k=b#1", "", fault.Retry, 107)
	marker.fail = nil
	b.run(107, as[:1], "success-file k=b#1, third k=b#1", "k=b", "", 0)
	// The next announcement of b starts from the beginning.
	as[0].Number++
	b.run(107, as[:1], "metastore k=b#2, success-file k=b#2, third k=b#2", "k=b", "", 0)
}

// TestRunnerHalt: an error that is not retried stops the policies behind it,
// and what was finished is reported (A6; checklist 81).
func TestRunnerHalt(t *testing.T) {
	lost := fault.New(fault.Halt, "", "the directory is gone")
	b := newBench(t, &fake{name: "metastore"}, &fake{name: "success-file", fail: failing(lost, "a")}, &fake{name: "third"})
	b.run(100, []Announcement{one("a"), one("b")}, "metastore k=a#1 k=b#1, success-file k=a#1 k=b#1", "", fault.Halt, 101)

	b = newBench(t, &fake{name: "metastore"}, &fake{name: "success-file", fail: failing(lost, "a")})
	b.run(100, []Announcement{one("a"), one("b")}, "metastore k=a#1 k=b#1, success-file k=a#1 k=b#1", "k=b", fault.Halt, 101)

	b = newBench(t, &fake{name: "metastore", fail: func([]Announcement) error { return errors.New("who knows") }})
	b.run(100, []Announcement{one("a")}, "metastore k=a#1", "", fault.Halt, 101)

	b = newBench(t, &fake{name: "metastore", fail: func([]Announcement) error { return fault.New(fault.Fenced, "", "taken over") }})
	b.run(100, []Announcement{one("a")}, "metastore k=a#1", "", fault.Fenced, 101)
}

// TestRunnerStrangePath: no policy is told of a path that has no values.
func TestRunnerStrangePath(t *testing.T) {
	b := newBench(t, &fake{name: "metastore"})
	err := b.run(100, []Announcement{{Partition: "lost+found", Number: 1}, one("a")}, "metastore k=a#1", "k=a", fault.Halt, 0)
	if !strings.Contains(err.Error(), "lost+found") {
		t.Errorf("the error does not name the path: %v", err)
	}
}

// TestRunnerCancelled: a process that is told to end starts no policy.
func TestRunnerCancelled(t *testing.T) {
	b := newBench(t, &fake{name: "metastore"})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	done, err := b.r.Run(ctx, []Announcement{one("a")}, 1)
	if len(done) != 0 || len(b.calls) != 0 || fault.ClassOf(err) != fault.Retry || !errors.Is(err, context.Canceled) {
		t.Errorf("done %v, calls %v, error %v", done, b.calls, err)
	}
}

func TestBackoff(t *testing.T) {
	var got []time.Duration
	for n := 1; n <= 8; n++ {
		got = append(got, Backoff(n)/time.Second)
	}
	if want := []time.Duration{1, 2, 4, 8, 16, 32, 60, 60}; !slices.Equal(got, want) {
		t.Errorf("pauses in seconds: %v, want %v", got, want)
	}
	if Backoff(1_000_000) != MaxPause || Backoff(0) != time.Second {
		t.Errorf("pauses out of range: %v %v", Backoff(1_000_000), Backoff(0))
	}
}

// TestFailuresText: the text names some and counts the rest, and says the same
// thing once.
func TestFailuresText(t *testing.T) {
	f := Failures{nil, errDown, errDown, errNotTried}
	if got := f.Error(); got != "the service is down" {
		t.Errorf("got %q", got)
	}
	f = nil
	for i := range 5 {
		f = append(f, fmt.Errorf("e%d", i))
	}
	if got := f.Error(); got != "e0; e1; e2; and 2 more" {
		t.Errorf("got %q", got)
	}
	if (Failures{nil, nil}).Err() != nil {
		t.Error("nothing failed, yet an error")
	}
}
