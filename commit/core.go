package commit

import (
	"maps"
	"math"
	"slices"

	"github.com/hivesink/hivesink/layout"
	"github.com/hivesink/hivesink/ledger"
)

// Announcement is one partition to announce.
type Announcement = ledger.Announcement

// Core decides when partitions are announced. It is pure: all it keeps is the
// cuts it has fixed, which a new process fixes anew. It serves one goroutine.
type Core struct {
	o       Options
	started int64
	cuts    map[string]cut
	// open are partitions that were announced once (at an end of input) but
	// whose own time was seen not to have passed: what comes is not late.
	open map[string]struct{}

	seen   version // the state that flight speaks of
	flight map[string]flight
	busy   []string // partitions that had work when seen was looked at
}

// cut is the checkpoint up to which a partition is to be announced next.
type cut struct {
	at uint64
	// closing: the partition's time passed at this cut, so that holds up to it
	// end. Not set for what came late.
	closing bool
}

// flight is what of a partition a checkpoint has named and nobody can see yet.
type flight struct {
	oldest uint64 // lowest checkpoint among its unpublished parts
	held   uint64 // lowest checkpoint among those in no unit; none: noCheckpoint
}

const noCheckpoint = math.MaxUint64

// version tells one state from another; the ledger applies records in place.
type version struct {
	state                                    *ledger.State
	seq, checkpoint                          uint64
	parts, units, partitions                 int
	publishedFiles, publishedRows, watermark int64
	ended                                    bool
}

// New makes a core that has not started: process-time delays count from the
// first publication.
func New(o Options) *Core {
	return &Core{o: o, cuts: make(map[string]cut), open: make(map[string]struct{})}
}

// Start notes since when the pipeline has run and kept up with its source (wall
// clock, microseconds): process-time delays count from there at the earliest.
func (c *Core) Start(now int64) { c.started = now }

// Closed says whether the partition's own time has passed, so that what is held
// of it must be held no longer: with partition-time, when the watermark of the
// last checkpoint has reached the end of its period plus delay; with any
// trigger, when the input has ended for good. Rows that came after that are
// late: they are held like any others, and Closed speaks of them as not closed.
func (c *Core) Closed(st *ledger.State, p *ledger.Partition) bool {
	if ended(st) {
		return true
	}
	if !c.passed(st, p) {
		return false
	}
	c.look(st)
	key := ledger.PartitionKey(p.Table, p.Path)
	cut, fixed := c.cuts[key]
	f, flying := c.flight[key]
	return fixed && cut.closing && flying && f.held <= cut.at
}

// Due lists the partitions to announce now, sorted by table and path, and when
// to ask again at the latest (wall clock, microseconds; 0: when the state has
// changed). With flush the process is ending: it waits for no delay, next is 0.
func (c *Core) Due(st *ledger.State, now int64, flush bool) (due []Announcement, next int64) {
	c.look(st)
	for _, key := range st.Unannounced() {
		p := st.Partitions[key]
		at, waits := c.processTime(p, key, now)
		if waits && now >= at {
			c.cuts[key] = cut{at: st.Checkpoint}
		} else if waits && !flush && (next == 0 || at < next) {
			next = at
		}
		switch {
		case c.complete(p, key):
			due = append(due, announcement(p, c.cuts[key].at))
		case c.o.registers() && !p.Registered && p.Files > 0:
			a := announcement(p, 0)
			a.Register, a.Number = true, 0
			due = append(due, a)
		}
	}
	return due, next
}

// ended says that the end of the input has ended every trigger.
func ended(st *ledger.State) bool { return st.InputEnded && st.Complete }

// byEventTime says whether event time decides about p. A table without
// partition columns has no period.
func (c *Core) byEventTime(p *ledger.Partition) bool {
	return c.o.Trigger == PartitionTime && p.Path != ""
}

// passed says whether p's trigger has passed at the last complete checkpoint;
// process-time triggers do not pass at a checkpoint.
func (c *Core) passed(st *ledger.State, p *ledger.Partition) bool {
	return ended(st) || c.byEventTime(p) && c.o.reached(c.o.closes(p), st.Watermark)
}

// look takes a state in: what is in flight, and which cuts it fixes.
func (c *Core) look(st *ledger.State) {
	v := version{state: st, seq: st.Seq, checkpoint: st.Checkpoint, parts: len(st.Parts), units: len(st.Units),
		partitions: len(st.Partitions), publishedFiles: st.PublishedFiles, publishedRows: st.PublishedRows,
		watermark: st.Watermark, ended: ended(st)}
	if v == c.seen {
		return
	}
	// Of a partition without work nothing can change but that its time passes,
	// which needs no note: it was noted as open when the process began, or as
	// its announcement was seen. Only where an end of input is taken back do
	// partitions that had passed become open again, any of them.
	all := c.seen.state != st || c.seen.ended && !v.ended
	c.seen = v
	c.flight = inFlight(st)
	before := c.busy
	c.busy = slices.AppendSeq(st.Unannounced(), maps.Keys(c.flight))
	if all {
		for key, p := range st.Partitions { // each by itself: the order does not matter
			c.fix(st, p, key)
		}
		return
	}
	for _, keys := range [][]string{before, c.busy} {
		for _, key := range keys {
			c.fix(st, st.Partitions[key], key)
		}
	}
}

// inFlight finds what checkpoints have named and nobody can see yet. An input
// of a published unit is visible in the unit's target.
func inFlight(st *ledger.State) map[string]flight {
	planned := make(map[string]bool, len(st.Parts)) // value: published
	for _, u := range st.Units {
		for _, id := range u.Inputs {
			planned[id] = u.Published
		}
	}
	out := make(map[string]flight)
	for id, part := range st.Parts {
		published, inUnit := planned[id]
		if published {
			continue
		}
		key := ledger.PartitionKey(part.Table, part.Partition)
		f, known := out[key]
		if !known {
			f = flight{oldest: noCheckpoint, held: noCheckpoint}
		}
		f.oldest = min(f.oldest, part.Checkpoint)
		if !inUnit {
			f.held = min(f.held, part.Checkpoint)
		}
		out[key] = f
	}
	return out
}

// fix drops the partition's cut when it was announced, and fixes one when its
// trigger has passed and there is something to announce (A2, A3).
func (c *Core) fix(st *ledger.State, p *ledger.Partition, key string) {
	known, fixed := c.cuts[key]
	if fixed && p.AnnouncedCut >= known.at {
		delete(c.cuts, key)
		fixed = false
	}
	if !c.passed(st, p) {
		if p.AnnouncedCut != 0 && c.byEventTime(p) {
			c.open[key] = struct{}{}
		}
		return
	}
	if _, flying := c.flight[key]; !flying && !p.Unannounced() {
		return
	}
	_, wasOpen := c.open[key]
	delete(c.open, key)
	switch {
	case ended(st):
		// No more input: one announcement for all that is there.
		c.cuts[key] = cut{at: st.Checkpoint, closing: true}
	case !fixed:
		onTime := p.AnnouncedCut == 0 || wasOpen
		c.cuts[key] = cut{at: st.Checkpoint, closing: onTime && p.Table != ledger.LateTable}
	}
}

// processTime is when the process-time trigger of a partition with
// unannounced files passes; waits is false when no such trigger is waited for.
//
// When the clock was set back, what was published in the future must not wait
// until then: at most twice the delay.
func (c *Core) processTime(p *ledger.Partition, key string, now int64) (at int64, waits bool) {
	if _, fixed := c.cuts[key]; fixed || c.byEventTime(p) {
		return 0, false
	}
	delay := c.o.Delay.Microseconds()
	if c.o.Trigger == PartitionTime {
		delay = 0 // an allowance for late rows, which have no meaning without a period
	}
	if delay == 0 {
		return math.MinInt64, true // whatever the clock says
	}
	since := max(p.FirstPublished, c.started)
	if since > plus(now, delay) {
		return math.MinInt64, true
	}
	return plus(since, plus(delay, 1)), true // strictly after
}

// complete says whether p has a cut and every file up to it is published (A1).
func (c *Core) complete(p *ledger.Partition, key string) bool {
	cut, fixed := c.cuts[key]
	if !fixed {
		return false
	}
	f, flying := c.flight[key]
	return !flying || f.oldest > cut.at
}

func announcement(p *ledger.Partition, cut uint64) Announcement {
	// A path that cannot be taken apart has no values; Runner refuses it.
	_, values, _ := layout.ParsePath(p.Path)
	return Announcement{Table: p.Table, Partition: p.Path, Values: values, Number: p.Announced + 1, Cut: cut,
		Files: p.Files, Rows: p.Rows, Bytes: p.Bytes}
}
