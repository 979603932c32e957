package pipeline

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/hivesink/hivesink/commit"
	"github.com/hivesink/hivesink/compactor"
	"github.com/hivesink/hivesink/coordinator"
	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/storage"
	"github.com/hivesink/hivesink/writer"
)

// chain is the part of the pipeline that owns the ledger. Its methods are
// called by one goroutine at a time.
type chain struct {
	log     *ledger.Ledger
	fs      storage.FS
	writer  *writer.Options
	compact *compactor.Options
	uploads *ledger.Uploads // notes of uploads of parts; nil where there are none
	plan    coordinator.Options
	core    *commit.Core
	ann     announcer
	intake  *intake
	pool    pool
	now     func() int64
	random  func() uint64
	stage   int64 // limits.staging, bytes
	flushes int   // encoders at a checkpoint
	events  func(Event)

	mu    sync.Mutex // guards lanes: writers are opened beside the chain
	lanes []*writer.Lane

	staging   *staging
	queue     []string       // units that wait for the pool
	building  int            // units the pool has
	built     []result       // what the pool has made, not yet published
	submitted map[string]int // unit id → attempts so far
	lastPlan  planned
	atOnce    int      // units published in one turn
	deleted   []string // units whose inputs are gone, not yet noted
	stats     *Stats
	staged    atomic.Int64 // bytes of parts in flight
	spooled   func() int64 // bytes in the spool; nil where there is none
	eased     token
	onPos     func(map[string]string)
	turns     turns

	newPartitions int // limits.new_partitions_per_checkpoint
}

// checkpoint makes everything the lanes took so far durable (P1). ended says
// that the input is over; complete that this ends every trigger.
func (c *chain) checkpoint(ctx context.Context, ended, complete bool) error {
	c.turns.begin()
	err := c.cutAndAppend(ctx, ended, complete)
	if err == nil {
		c.turns.complete()
	}
	return err
}

func (c *chain) cutAndAppend(ctx context.Context, ended, complete bool) error {
	cuts, err := c.cut()
	if err != nil {
		return err
	}
	parts, err := writer.Flush(ctx, cuts, c.flushes)
	if err != nil {
		return storage.Classify(fmt.Errorf("write part files: %w", err))
	}
	sources, err := writer.Merge(cuts)
	if err != nil {
		return err
	}
	st := c.log.State()
	cp := &ledger.Checkpoint{Number: st.Checkpoint + 1, Sources: sources, Parts: parts, InputEnded: ended, Complete: complete}
	cp.Watermark = max(st.Watermark, c.intake.observe(sources, c.writer.OutOfOrderness, c.now()))
	if len(sources) == 0 && len(parts) == 0 && cp.Watermark == st.Watermark && ended == st.InputEnded && complete == st.Complete {
		return nil
	}
	if err := c.capPartitions(parts); err != nil {
		return err
	}
	for i := range parts {
		parts[i].Checkpoint = cp.Number
		if c.plan.Policy == "off" {
			u := coordinator.PublishUnit(&parts[i], c.random(), c.log.Epoch())
			u.Mode, _ = compactor.Choose([]*ledger.Part{&parts[i]}, c.compact.Codec)
			cp.Units = append(cp.Units, u)
		}
	}
	if err := c.append(&ledger.Record{Checkpoint: cp}); err != nil {
		return fmt.Errorf("append checkpoint %d: %w", cp.Number, err)
	}
	for i := range cp.Parts {
		c.staging.add(&cp.Parts[i])
	}
	c.restage()
	writer.Named(cuts)
	c.eased.put()
	c.intake.complete(sources, cp.Parts)
	c.stats.Checkpoints.Add(1)
	c.stats.PartFiles.Add(int64(len(parts)))
	c.emit(Event{Kind: "checkpoint", Checkpoint: cp.Number, Files: len(parts), Watermark: cp.Watermark})
	var ready []string
	for i := range cp.Units {
		if st.Ready(&cp.Units[i]) != nil {
			ready = append(ready, cp.Units[i].ID)
		} else {
			c.queue = append(c.queue, cp.Units[i].ID)
		}
	}
	if err := c.publishReady(ready); err != nil { // P7
		return err
	}
	if c.onPos != nil && len(sources) > 0 {
		pos := make(map[string]string, len(sources))
		for name, s := range sources {
			pos[name] = s.Position
		}
		c.onPos(pos)
	}
	return nil
}

// capPartitions refuses a checkpoint with more new partitions than allowed: a
// hostile or wrong partition column must not flood the table.
func (c *chain) capPartitions(parts []ledger.Part) error {
	st := c.log.State()
	fresh := make(map[string]bool)
	last := ""
	for i := range parts {
		key := ledger.PartitionKey(parts[i].Table, parts[i].Partition)
		if st.Partitions[key] == nil && !fresh[key] {
			fresh[key] = true
			last = parts[i].Partition
		}
	}
	if len(fresh) <= c.newPartitions {
		return nil
	}
	return fault.New(fault.Halt, "check table.partitioned_by, or raise limits.new_partitions_per_checkpoint; nothing of this checkpoint was kept, its records will be read again",
		"%d new partitions in one checkpoint, at most %d are allowed; one of them is %q", len(fresh), c.newPartitions, last)
}

func (c *chain) cut() ([]*writer.Cut, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var cuts []*writer.Cut
	for _, l := range c.lanes {
		cut, err := l.Cut()
		if err != nil {
			return nil, storage.Classify(err)
		}
		cuts = append(cuts, cut)
	}
	return cuts, nil
}

// append appends a record, with the deletions that wait to be noted.
func (c *chain) append(r *ledger.Record) error {
	r.InputsDeleted = append(r.InputsDeleted, c.deleted...)
	if err := c.log.Append(r); err != nil {
		return err
	}
	c.deleted = nil
	return nil
}

// restage lets those at the gate know how much is staged.
func (c *chain) restage() {
	if was := c.staged.Swap(c.staging.bytes); c.staging.bytes < was {
		c.eased.put()
	}
}

// atOnce is what one call of advance publishes and announces at most, so that a
// checkpoint need not wait until thousands of partitions are done (P4).
const atOnce = 128

// advance plans, publishes and announces what can be now, up to a number of
// each. It returns when to call again at the latest (wall clock, microseconds;
// 0: when something happens).
func (c *chain) advance(ctx context.Context, flush bool) (next int64, err error) {
	n1, err := c.planUnits(flush)
	if err != nil {
		return 0, err
	}
	if err := c.collect(ctx); err != nil {
		return 0, err
	}
	if err := c.start(); err != nil { // the pool has room again
		return 0, err
	}
	n2, err := c.announce(ctx, flush)
	if err != nil {
		return 0, err
	}
	if c.more() {
		n2 = c.now()
	}
	return earliest(n1, n2), nil
}

// more says whether advance has left something that it can do at once.
func (c *chain) more() bool {
	return len(c.built) > 0 || c.moreDue()
}

func earliest(a, b int64) int64 {
	if a == 0 || (b != 0 && b < a) {
		return b
	}
	return a
}

// planUnits asks the coordinator, stores the plan (P2) and starts it.
func (c *chain) planUnits(flush bool) (next int64, err error) {
	st := c.log.State()
	o := c.plan
	if c.staged.Load() > c.stage/2 {
		o.Policy = "off" // the backlog is past its limit: publish unmerged
	}
	same := planned{st.Checkpoint, c.stats.Announced.Load(), flush, o.Policy, c.lastPlan.next}
	if c.lastPlan == same && (same.next == 0 || c.now() < same.next) {
		return same.next, c.start()
	}
	units, next := coordinator.Plan(st, o, coordinator.Input{
		Now: c.now(), Flush: flush, Draw: c.random, Epoch: c.log.Epoch(),
		Closed: func(p *ledger.Partition) bool { return c.core.Closed(st, p) },
	})
	if len(units) > 0 {
		for i := range units {
			inputs := make([]*ledger.Part, len(units[i].Inputs))
			for k, id := range units[i].Inputs {
				inputs[k] = st.Parts[id]
			}
			mode, why := compactor.Choose(inputs, c.compact.Codec)
			units[i].Mode = mode
			units[i].Reason += "; " + mode + ": " + why
		}
		if err := c.append(&ledger.Record{Plan: units}); err != nil {
			return 0, fmt.Errorf("append plan of %d units: %w", len(units), err)
		}
		for i := range units {
			c.queue = append(c.queue, units[i].ID)
		}
	}
	same.next = next
	c.lastPlan = same
	return next, c.start()
}

// planned is what the last plan was made of. Asked again, before next, the
// coordinator would find nothing: parts come with checkpoints, and a
// partition's time passes at checkpoints, or is judged anew when it was
// announced.
type planned struct {
	checkpoint uint64
	announced  int64
	flush      bool
	policy     string
	next       int64
}

// start hands units to the pool: as many as keep it busy while the chain
// publishes, few enough that their inputs take no memory.
func (c *chain) start() error {
	for len(c.queue) > 0 && c.building+len(c.built) < 2*c.atOnce {
		u := c.log.State().Units[c.queue[0]]
		c.queue = c.queue[1:]
		if err := c.submit(u); err != nil {
			return err
		}
	}
	return nil
}

func (c *chain) submit(u *ledger.Unit) error {
	job := compactor.Job{Unit: *u, Attempt: c.submitted[u.ID]}
	st := c.log.State()
	for _, id := range u.Inputs {
		part := st.Parts[id]
		if part == nil {
			return fault.New(fault.Halt, "", "unit %s names part %s, which the log does not know", u.ID, id)
		}
		where, err := c.log.Locate(part.Epoch, part.Name)
		if err != nil {
			return fmt.Errorf("unit %s of partition %q: locate part %s (%d rows): %w", u.ID, u.Partition, id, part.Rows, err)
		}
		job.Inputs = append(job.Inputs, compactor.Input{Part: *part, Path: where})
	}
	c.submitted[u.ID]++
	c.building++
	c.pool.submit(job)
	return nil
}

// maxAttempts is how often a unit is built when the storage says "try again".
const maxAttempts = 3

// collect publishes targets that are built, notes them, and deletes their
// inputs (P2).
func (c *chain) collect(ctx context.Context) error {
	fresh := c.pool.take()
	c.building -= len(fresh)
	c.built = append(c.built, fresh...)
	results := c.built[:min(len(c.built), c.atOnce)]
	c.built = c.built[len(results):]
	if len(results) == 0 {
		return nil
	}
	var targets []*compactor.Built
	for _, r := range results {
		if r.err != nil {
			if fault.ClassOf(r.err) == fault.Retry && c.submitted[r.job.Unit.ID] < maxAttempts && ctx.Err() == nil {
				c.emit(Event{Kind: "unit-retry", Unit: r.job.Unit.ID, Err: r.err})
				if err := c.submit(&r.job.Unit); err != nil {
					return err
				}
				continue
			}
			return r.err
		}
		targets = append(targets, r.built)
	}
	if err := c.noteUploads(targets); err != nil {
		return err
	}
	again, err := c.compact.Publish(targets...)
	if err != nil {
		return err
	}
	var facts []ledger.Published
	for _, b := range targets {
		if slices.Contains(again, b) {
			if err := c.buildAgain(b); err != nil {
				return err
			}
			continue
		}
		facts = append(facts, c.publishedFact(b))
	}
	return c.notePublished(facts)
}

func (c *chain) publishedFact(b *compactor.Built) ledger.Published {
	u := &b.Unit
	file := u.Target
	if u.Partition != "" {
		file = u.Partition + "/" + u.Target
	}
	return ledger.Published{Unit: u.ID, Table: u.Table, Path: file, Mode: b.Mode, Rows: u.Rows, Bytes: b.Bytes,
		Leaves: b.Footer.Leaves, Sources: b.Footer.Sources, Time: c.now()}
}

func (c *chain) notePublished(facts []ledger.Published) error {
	if len(facts) == 0 {
		return nil
	}
	moved := make([]*ledger.Part, len(facts))
	for i := range facts {
		u := c.log.State().Units[facts[i].Unit]
		moved[i] = c.log.State().Parts[u.Inputs[0]]
	}
	if err := c.append(&ledger.Record{Published: facts}); err != nil {
		return fmt.Errorf("note %d published files: %w", len(facts), err)
	}
	for i := range facts {
		if u := c.log.State().Units[facts[i].Unit]; u != nil {
			c.staging.published(c.log.State(), u)
			continue
		}
		c.staging.gone(moved[i].File()) // mode publish: the input itself
		if err := c.dropCopied(moved[i]); err != nil {
			return err
		}
	}
	c.restage()
	for i := range facts {
		f := &facts[i]
		c.stats.PublishedFiles.Add(1)
		c.stats.PublishedRows.Add(f.Rows)
		c.emit(Event{Kind: "published", Unit: f.Unit, Path: f.Path, Rows: f.Rows, Bytes: f.Bytes, Mode: f.Mode})
		delete(c.submitted, f.Unit)
		if u := c.log.State().Units[f.Unit]; u != nil {
			if err := c.deleteInputs(u); err != nil {
				return err
			}
		}
	}
	return nil
}

// deleteInputs deletes the inputs of a published unit; the next record notes
// it. A bundle goes with the last of its parts.
func (c *chain) deleteInputs(u *ledger.Unit) error {
	for _, id := range u.Inputs {
		part := c.log.State().Parts[id]
		if part == nil || !c.staging.spent(part) {
			continue
		}
		where, err := c.log.Locate(part.Epoch, part.Name)
		if errors.Is(err, storage.ErrNotExist) {
			c.staging.gone(part.File())
			continue // deleted before a crash
		}
		if err == nil {
			err = c.log.Trash(where)
		}
		if err != nil && !errors.Is(err, storage.ErrNotExist) {
			return storage.Classify(fmt.Errorf("delete input %s of unit %s: %w", id, u.ID, err))
		}
		c.staging.gone(part.File())
	}
	c.deleted = append(c.deleted, u.ID)
	c.restage()
	return nil
}

// recover redoes what the log has planned and not noted as done.
func (c *chain) recover() error {
	st := c.log.State()
	var facts []ledger.Published
	var ready []string
	for _, id := range slices.Sorted(maps.Keys(st.Units)) {
		u := st.Units[id]
		if u.Published {
			if err := c.deleteInputs(u); err != nil {
				return err
			}
			continue
		}
		if st.Ready(u) != nil {
			ready = append(ready, id)
			continue
		}
		if err := c.compact.AbortUploads(u); err != nil {
			return err
		}
		built, err := c.compact.Done(u, u.Inputs)
		if err != nil {
			return err
		}
		if built != nil {
			facts = append(facts, c.publishedFact(built))
		}
	}
	if err := c.notePublished(facts); err != nil {
		return err
	}
	if err := c.redoReady(ready); err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(st.Units)) {
		if !st.Units[id].Published {
			c.queue = append(c.queue, id)
		}
	}
	return c.start()
}

// How often announcing is tried at the end of the input, which nothing else
// follows, and at a stop, after which the next run announces.
const (
	endTries  = 6
	stopTries = 3
)

// settle brings everything that is in flight to its end: every part is
// published. A policy that goes on failing does not keep the process for ever:
// what is not announced then is announced by the next run.
func (c *chain) settle(ctx context.Context, maxTries int) error {
	c.ann.afresh = true
	for tries := 0; ; {
		next, err := c.advance(ctx, true)
		if err != nil {
			return err
		}
		st := c.log.State()
		inFlight := 0
		for _, u := range st.Units {
			if !u.Published {
				inFlight++
			}
		}
		if c.more() {
			continue
		}
		if inFlight > 0 || c.ann.busy {
			if err := c.pool.wait(ctx); err != nil {
				return err
			}
			continue
		}
		if wait := c.ann.retryAt; wait != 0 && next == wait {
			if tries++; tries == maxTries {
				return fault.Wrap(fault.Retry, "all rows are published; run again when the policy's service is up",
					fmt.Errorf("partitions could not be announced in %d tries: %w", maxTries, c.ann.failed))
			}
			if err := c.pool.sleep(ctx, wait-c.now()); err != nil {
				return err
			}
			continue
		}
		break
	}
	if len(c.deleted) > 0 {
		return c.append(&ledger.Record{})
	}
	return nil
}

// judge finds out whether an error is what a fenced owner sees: its staging
// directory has been renamed away, and every path through it is gone.
func (c *chain) judge(err error) error {
	if err == nil || fault.ClassOf(err) == fault.Fenced {
		return err
	}
	if cerr := c.log.Confirm(); fault.ClassOf(cerr) == fault.Fenced {
		return fault.Wrap(fault.Fenced, "another process has taken the table over",
			fmt.Errorf("epoch %d does not own the table any more: %w", c.log.Epoch(), err))
	}
	return err
}

func (c *chain) emit(e Event) {
	if c.events != nil {
		c.events(e)
	}
}
