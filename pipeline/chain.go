package pipeline

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/hivesink/hivesink/commit"
	"github.com/hivesink/hivesink/compactor"
	"github.com/hivesink/hivesink/coordinator"
	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/layout"
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
	ailing    ailing

	started       int64 // wall clock, microseconds
	newPartitions int   // limits.new_partitions_per_checkpoint
	timeless      bool  // noteTimeless has said so
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
	c.intake.cutting(c.now())
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
	c.noteTimeless(cp.Parts)
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

// noteTimeless says, once, that there is a partition whose values cannot be read
// as a time although that is what announces it. It would wait in silence, for
// ever where the input has no end.
func (c *chain) noteTimeless(parts []ledger.Part) {
	if c.timeless || c.writer.LateDelay < 0 {
		return // said, or process-time
	}
	for i := range parts {
		p := &parts[i]
		if p.Closes != 0 || p.Table == ledger.DeadTable || strings.Contains(p.Partition, "="+layout.DefaultPartition) {
			continue
		}
		c.timeless = true
		c.emit(Event{Kind: "partition-without-time", Partition: p.Partition,
			Err: fmt.Errorf("the values of partition %q cannot be read as a time: it is announced at the end of the input only; mend commit.time_extractor", p.Partition)})
		return
	}
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
	c.tellAiling()
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
	now := c.now()
	same := planned{st.Checkpoint, c.stats.Announced.Load(), flush, o.Policy, c.lastPlan.next, c.lastPlan.at}
	if c.lastPlan == same && (same.next == 0 || same.at <= now && now < same.next) {
		return same.next, c.start()
	}
	units, next := coordinator.Plan(st, o, coordinator.Input{
		Now: now, Flush: flush, Draw: c.random, Epoch: c.log.Epoch(),
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
	same.next, same.at = next, now
	c.lastPlan = same
	return next, c.start()
}

// planned is what the last plan was made of. Asked again, before next, the
// coordinator would find nothing: parts come with checkpoints, and a
// partition's time passes at checkpoints, or is judged anew when it was
// announced. When the clock was set back, next is of no use: the coordinator is
// asked what it makes of that (C5).
type planned struct {
	checkpoint uint64
	announced  int64
	flush      bool
	policy     string
	next       int64
	at         int64 // when it was made
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
