package pipeline

import (
	"context"
	"fmt"

	"github.com/hivesink/hivesink/commit"
	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/ledger"
)

// announcer is the chain's side of announcing. The policies run beside the
// chain, one batch at a time, so that a service that is slow or down stops
// announcing and nothing else (P6): meanwhile the runner is the batch's, and
// the chain neither looks for what is due nor asks the runner anything.
type announcer struct {
	runner *commit.Runner
	done   chan announced // holds the result of the last batch until it is noted
	busy   bool           // a batch is under way, or its result not noted
	// What the last batch has left.
	more    bool  // announcements that were too many for it
	retryAt int64 // when what has failed is tried again; 0: nothing has
	failed  error // why, when it has
	// waiting are the announcements that it has left, by PartitionKey, with
	// their numbers. Until retryAt there is no use in another batch of them.
	waiting map[string]int64
	batches int // begun so far
	// afresh: the next batch tries at once what waits after failures.
	afresh bool
	// lookAt is before when nobody looks for what is due while units are built;
	// lookedAt is when somebody did.
	lookAt, lookedAt int64
}

// announced is what became of a batch.
type announced struct {
	due     []commit.Announcement
	facts   []ledger.Announced
	err     error
	more    bool
	retryAt int64
}

func newAnnouncer(r *commit.Runner) announcer {
	return announcer{runner: r, done: make(chan announced, 1)}
}

// announceShare: while units are being published, looking for what is due takes
// at most one part in so many of the time. It costs as much as there is in
// flight, and each published file may make something due.
const announceShare = 10

// mayAnnounce says whether it is time to look for what is due. When the clock
// was set back, it is.
func (c *chain) mayAnnounce(now int64) bool {
	return now >= c.ann.lookAt || now < c.ann.lookedAt || c.building == 0 && len(c.built) == 0
}

// moreDue says whether there is something to announce at once.
func (c *chain) moreDue() bool {
	return !c.ann.busy && c.ann.more && c.mayAnnounce(c.now())
}

// announce notes what was announced, and has the policies announce the
// partitions whose trigger has passed (P3). It returns when to call again at the
// latest.
func (c *chain) announce(ctx context.Context, flush bool) (next int64, err error) {
	if err := c.noteAnnounced(); err != nil || c.ann.busy {
		return 0, err
	}
	now := c.now()
	if !c.mayAnnounce(now) {
		return c.ann.lookAt, nil
	}
	// A delay counts while the pipeline runs and keeps up: what is behind in the
	// source may well be of the partition.
	c.core.Start(max(c.started, c.intake.caughtUpSince(now)))
	due, next := c.core.Due(c.log.State(), now, flush)
	c.ann.lookedAt = c.now()
	took := min(c.ann.lookedAt-now, commit.MaxPause.Microseconds()/announceShare) // also when the clock was set meanwhile
	c.ann.lookAt = c.ann.lookedAt + announceShare*took
	if len(due) == 0 && !c.ann.more {
		return next, nil
	}
	if c.ann.allWait(due, now) {
		return earliest(next, c.ann.retryAt), nil
	}
	if c.ann.afresh {
		c.ann.afresh = false
		c.ann.runner.Afresh()
	}
	c.ann.busy = true
	c.ann.batches++
	c.pool.aside(ctx, func(ctx context.Context) {
		a := announced{due: due}
		a.facts, a.err = c.ann.runner.Run(ctx, due, now)
		a.more, a.retryAt = c.ann.runner.More(), c.ann.runner.NextTry()
		c.ann.done <- a
	})
	if err := c.noteAnnounced(); err != nil { // an inline pool is done at once
		return 0, err
	}
	return earliest(next, c.ann.retryAt), nil
}

// allWait says that a batch of what is due would do nothing but find out again
// that all of it waits for its next try.
func (a *announcer) allWait(due []commit.Announcement, now int64) bool {
	if a.afresh || a.more || now >= a.retryAt || a.retryAt-now > commit.MaxPause.Microseconds() {
		return false // the last: no pause is that long, the clock was set back
	}
	for i := range due {
		n, ok := a.waiting[ledger.PartitionKey(due[i].Table, due[i].Partition)]
		if !ok || n != due[i].Number {
			return false
		}
	}
	return true
}

// leave notes what a batch that failed has left.
func (a *announcer) leave(b *announced) {
	a.waiting = make(map[string]int64, len(b.due))
	for i := range b.due {
		a.waiting[ledger.PartitionKey(b.due[i].Table, b.due[i].Partition)] = b.due[i].Number
	}
	for i := range b.facts {
		delete(a.waiting, ledger.PartitionKey(b.facts[i].Table, b.facts[i].Partition))
	}
}

// noteAnnounced makes facts of what a batch has announced, if it is done.
func (c *chain) noteAnnounced() error {
	if !c.ann.busy {
		return nil
	}
	var a announced
	select {
	case a = <-c.ann.done:
	default:
		return nil
	}
	told := c.ann.retryAt
	c.ann.busy, c.ann.more, c.ann.retryAt, c.ann.failed, c.ann.waiting = false, a.more, 0, nil, nil
	if len(a.facts) > 0 {
		if err := c.append(&ledger.Record{Announced: a.facts}); err != nil {
			return fmt.Errorf("note %d announced partitions: %w", len(a.facts), err)
		}
		for i := range a.facts {
			f := &a.facts[i]
			c.stats.Announced.Add(1)
			c.emit(Event{Kind: "announced", Partition: f.Partition, Table: f.Table, Rows: f.Rows, Number: f.Number})
		}
	}
	if a.err == nil {
		return nil
	}
	if fault.ClassOf(a.err) != fault.Retry {
		return a.err
	}
	c.ann.retryAt, c.ann.failed = a.retryAt, a.err
	c.ann.leave(&a)
	if a.retryAt != told { // something was tried again, or has failed first
		c.emit(Event{Kind: "announce-retry", Err: a.err})
	}
	return nil
}
