package commit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/layout"
	"github.com/hivesink/hivesink/ledger"
)

// Runner has the policies announce partitions. It keeps what a retry needs to
// know and nothing else; a new Runner tries everything at once. It serves one
// goroutine.
type Runner struct {
	policies []Policy
	paused   map[string]pause   // by policy: it failed as a whole
	pending  map[string]pending // by PartitionKey: not announced yet
	next     int64
	more     bool

	// AtOnce is how many announcements one Run tries at most; 0: all.
	AtOnce int
}

// pause is a wait after failures.
type pause struct {
	attempts int
	until    int64 // wall clock, microseconds
	err      error // the last failure
}

// pending is what has been done of an announcement.
type pending struct {
	number            int64
	files, rows, size int64 // totals that the passed policies were told
	passed            int   // policies done, in listed order
	pause
}

// item is an announcement on its way through the policies.
type item struct {
	Announcement
	key    string
	passed int
	later  bool // not in this Run
	err    error
}

// Waiting is the error of announcements that are not tried yet: an earlier try
// has failed. Its class is retry.
type Waiting struct {
	Attempts int   // failed so far
	Until    int64 // when it is tried again, wall clock, microseconds
	Err      error // the last failure
}

func (w *Waiting) Error() string {
	return fmt.Sprintf("tried %d times, again at %s: %v", w.Attempts, time.UnixMicro(w.Until).UTC().Format(time.RFC3339), w.Err)
}

func (w *Waiting) Unwrap() error { return w.Err }

// NewRunner makes a runner of policies. They run in the order of o.Policies,
// those it does not name last. Of registrations only the policy named
// PolicyMetastore is told.
func NewRunner(o Options, policies []Policy) *Runner {
	rank := func(p Policy) int {
		if i := slices.Index(o.Policies, p.Name()); i >= 0 {
			return i
		}
		return len(o.Policies)
	}
	policies = slices.Clone(policies)
	slices.SortStableFunc(policies, func(a, b Policy) int { return rank(a) - rank(b) })
	return &Runner{policies: policies, paused: make(map[string]pause), pending: make(map[string]pending)}
}

// NextTry is when something that failed is to be tried again (wall clock,
// microseconds); 0 when the last Run left nothing behind.
func (r *Runner) NextTry() int64 { return r.next }

// Afresh lets the next Run try at once what waits after failures.
func (r *Runner) Afresh() {
	clear(r.paused)
	for key, p := range r.pending {
		p.pause = pause{}
		r.pending[key] = p
	}
}

// More says whether the last Run has left announcements untried because they
// were too many.
func (r *Runner) More() bool { return r.more }

// Run announces as, all that is due at now (microseconds), as far as AtOnce
// goes. It returns the facts
// of what every policy has done, also when others failed, and an error when
// anything was left: class retry when trying again (Run with what is due then,
// not before NextTry) is all there is to do, else the process must stop. What
// waits for its next try is left with a *Waiting.
func (r *Runner) Run(ctx context.Context, as []Announcement, now int64) (done []ledger.Announced, err error) {
	items := r.take(as, now)
	for k, p := range r.policies {
		if err := r.run(ctx, k, p, items, now); err != nil && fault.ClassOf(err) != fault.Retry {
			break // the items carry it
		}
	}
	r.next = 0
	var errs []error
	for i := range items {
		it := &items[i]
		if it.later {
			continue
		}
		if it.err == nil && it.passed == len(r.policies) {
			done = append(done, it.Fact(now))
			delete(r.pending, it.key)
			continue
		}
		errs = append(errs, r.leave(it))
	}
	if len(errs) == 0 {
		return done, nil
	}
	return done, Failures(errs)
}

// take makes items of announcements and forgets what is not due any more.
func (r *Runner) take(as []Announcement, now int64) []item {
	items := make([]item, len(as))
	tried := 0
	r.more = false
	due := make(map[string]pending, len(as))
	for i, a := range as {
		it := item{Announcement: a, key: ledger.PartitionKey(a.Table, a.Partition)}
		p := r.pending[it.key]
		if p.number != a.Number {
			p = pending{number: a.Number}
		}
		if p.files != a.Files || p.rows != a.Rows || p.size != a.Bytes {
			p.passed = 0 // it has grown: tell all of them
		}
		p.files, p.rows, p.size = a.Files, a.Rows, a.Bytes
		due[it.key] = p
		it.passed = p.passed
		if a.Partition != "" && len(a.Values) == 0 {
			_, _, err := layout.ParsePath(a.Partition)
			it.err = fault.New(fault.Halt, "the table log names a partition hivesink cannot have made; run fsck", "announce %q: %w", a.Partition, err)
		} else if p.waits(now) {
			it.err = p.waiting()
		} else if pause := r.paused[r.nextPolicy(&it)]; pause.waits(now) {
			it.err = pause.waiting() // nor is it one of those that were too many
		} else if tried++; r.AtOnce > 0 && tried > r.AtOnce {
			it.later, r.more = true, true
		}
		items[i] = it
	}
	r.pending = due
	return items
}

// nextPolicy names the policy that an item has come to; "" after the last.
func (r *Runner) nextPolicy(it *item) string {
	for _, p := range r.policies[it.passed:] {
		if wants(p, &it.Announcement) {
			return p.Name()
		}
	}
	return ""
}

// waits says whether the pause is not over. A pause that is longer than any
// can be (the clock was set back) is over.
func (p *pause) waits(now int64) bool {
	return p.until > now && p.until-now <= MaxPause.Microseconds()
}

func (p *pause) waiting() error {
	return &Waiting{Attempts: p.attempts, Until: p.until, Err: p.err}
}

// failed notes one more failure.
func (p *pause) failed(now int64, err error) {
	p.attempts++
	p.until = now + Backoff(p.attempts).Microseconds()
	p.err = err
}

// wants says whether policy p is told of a.
func wants(p Policy, a *Announcement) bool { return !a.Register || p.Name() == PolicyMetastore }

// run has policy p, the k-th, announce the items that have come to it. The
// error is the policy's.
func (r *Runner) run(ctx context.Context, k int, p Policy, items []item, now int64) error {
	var batch []Announcement
	var members []*item
	for i := range items {
		it := &items[i]
		if it.err != nil || it.later || it.passed != k {
			continue
		}
		if !wants(p, &it.Announcement) {
			it.passed++
			continue
		}
		batch = append(batch, it.Announcement)
		members = append(members, it)
	}
	if len(batch) == 0 {
		return nil
	}
	pause := r.paused[p.Name()]
	if pause.waits(now) {
		for _, it := range members {
			it.err = pause.waiting()
		}
		return nil
	}
	if err := ctx.Err(); err != nil {
		for _, it := range members {
			it.err = fault.Wrap(fault.Retry, "", fmt.Errorf("announce %s: %w", it.place(), err))
		}
		return nil
	}
	err := p.Announce(ctx, batch)
	var some interface{ FailedAt(int) error }
	if errors.As(err, &some) {
		delete(r.paused, p.Name())
		r.someFailed(some.FailedAt, p, members, now)
		return err
	}
	if err == nil {
		delete(r.paused, p.Name())
		for _, it := range members {
			it.passed++
		}
		return nil
	}
	err = fmt.Errorf("policy %s: announce %d partitions: %w", p.Name(), len(batch), err)
	pause.failed(now, err)
	r.paused[p.Name()] = pause
	for _, it := range members {
		it.err = &Waiting{Attempts: pause.attempts, Until: pause.until, Err: err}
	}
	return err
}

// someFailed notes which members of a batch failed.
func (r *Runner) someFailed(failedAt func(int) error, p Policy, members []*item, now int64) {
	for i, it := range members {
		err := failedAt(i)
		if err == nil {
			it.passed++
			continue
		}
		err = fmt.Errorf("policy %s: announce %s: %w", p.Name(), it.place(), err)
		left := r.pending[it.key]
		left.failed(now, err)
		r.pending[it.key] = left
		it.err = left.waiting()
	}
}

// leave notes what an item has passed and when it is tried again.
func (r *Runner) leave(it *item) error {
	left := r.pending[it.key]
	left.passed = it.passed
	r.pending[it.key] = left
	if it.err == nil {
		return errNotTried
	}
	var w *Waiting
	if errors.As(it.err, &w) && (r.next == 0 || w.Until < r.next) {
		r.next = w.Until
	}
	return it.err
}

// place names the partition for people.
func (it *item) place() string {
	name := strconv.Quote(it.Partition)
	if it.Partition == "" {
		name = "the table"
	}
	if it.Table != ledger.MainTable {
		name += " of the table _" + it.Table
	}
	return name
}
