package maintenance

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hivesink/hivesink/compactor"
	"github.com/hivesink/hivesink/format/parquet"
	"github.com/hivesink/hivesink/layout"
	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/storage"
)

// Options say what is to be compacted, and how.
type Options struct {
	FS   storage.Exchanger
	Root string // of the table: absolute, without links in it
	// Log is the log of a table that has one, owned by the caller. Nil: the
	// table has none, and its root is locked.
	Log *ledger.Ledger
	// State is what the log says, for a dry run, which owns nothing.
	State *ledger.State

	FileSize    int64 // that new files are filled to
	Codec       string
	KeepCodec   bool                // columns whose inputs agree on a codec keep it
	Columns     *parquetfile.Schema // the table's; nil: not known
	Partitions  []string            // only these: k=v/…; empty: all
	AllowWindow bool                // see MT2
	DryRun      bool
	Parallelism int
	Throttle    *compactor.Throttle
	// FooterMemory bounds what the open footers of a target's inputs take; 0: no
	// bound.
	FooterMemory int64
	OpenFiles    int // of a worker; 0: OpenFiles
	CreatedBy    string
	Random       func() uint64 // safe for concurrent use
	Now          func() time.Time
	// Each is told of every partition when it is done, one at a time.
	Each  func(Partition)
	Stats *Stats
}

// compaction is one run.
type compaction struct {
	Options
	stage      stage
	state      *ledger.State // nil: no log
	owner      ledger.Epoch
	logMu      sync.Mutex // of Log and state
	tryOnce    sync.Once
	noExchange bool // found out when the first unit is about to begin

	mu     sync.Mutex // of report and halt
	report *Report
	halt   error
}

// Run compacts a table at rest. What stands against single partitions is in the
// report; the error is one that concerns all of them.
func Run(ctx context.Context, o Options) (rep *Report, err error) {
	c := &compaction{Options: o, report: &Report{Table: o.Root, DryRun: o.DryRun, Modes: make(map[string]int), Partitions: []Partition{}}}
	c.defaults()
	want, err := parseSelections(o.Partitions)
	if err != nil {
		return nil, err
	}
	if err := managed(o.FS, o.Root); err != nil {
		return nil, err
	}
	if !o.DryRun {
		unlock, err := c.begin()
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, unlock()) }()
	}
	s := &scanner{ctx: ctx, fs: o.FS, root: o.Root, want: want}
	if err := s.walk("", 0, ""); err != nil {
		return nil, err
	}
	if err := s.missing(); err != nil {
		return nil, err
	}
	c.Stats.Partitions.Store(int64(len(s.found)))
	for _, p := range s.odd {
		c.done(p)
	}
	c.all(ctx, s.found)
	c.report.Stopped = ctx.Err() != nil
	return c.report, c.halt
}

func (c *compaction) defaults() {
	if c.Stats == nil {
		c.Stats = new(Stats)
	}
	if c.Each == nil {
		c.Each = func(Partition) {}
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	c.state = c.State
	if c.Log != nil {
		c.state = c.Log.State()
	}
	if c.state != nil {
		c.owner = c.state.Owner
	}
}

// begin owns a table without a log, and settles what others have left.
func (c *compaction) begin() (end func() error, err error) {
	c.stage = stage{fs: c.FS, root: c.Root, dir: path.Join(c.Root, layout.CompactDir), foreign: true}
	release := func() error { return nil }
	if c.Log != nil {
		c.stage.dir, c.stage.foreign = c.Log.Staging(), false
	} else {
		lock, err := c.FS.LockDir(c.Root)
		if err != nil {
			return nil, storage.Classify(fmt.Errorf("own table %s: %w", c.Root, err))
		}
		release = lock.Close
	}
	end = func() error { return errors.Join(c.stage.close(), release()) }
	if c.report.Settled, err = Settle(c.FS, c.Root, c.Log); err != nil {
		return nil, errors.Join(err, end())
	}
	return end, nil
}

// all goes through the directories: those that have none in them by as many
// workers as are wanted, then the others, the deepest first.
func (c *compaction) all(ctx context.Context, found []directory) {
	var plain, mixed []directory
	for _, d := range found {
		if d.mixed {
			mixed = append(mixed, d)
		} else {
			plain = append(plain, d)
		}
	}
	queue := make(chan directory)
	var wg sync.WaitGroup
	for range max(1, min(c.Parallelism, len(plain))) {
		wg.Go(func() {
			for d := range queue {
				c.one(ctx, d)
			}
		})
	}
	for _, d := range plain {
		queue <- d
	}
	close(queue)
	wg.Wait()
	slices.SortStableFunc(mixed, func(a, b directory) int { return b.depth - a.depth })
	for _, d := range mixed {
		c.one(ctx, d)
	}
}

// one plans a directory and does what was planned.
func (c *compaction) one(ctx context.Context, d directory) {
	started := c.Now()
	if ctx.Err() != nil || c.halted() {
		c.done(Partition{Path: d.rel, Outcome: NotDone})
		return
	}
	h := newHandles(ctx, &c.Options)
	defer h.close()
	p, err := c.plan(ctx, h, d)
	if err == nil && d.marks && !c.DryRun {
		err = c.strayMarker(d)
	}
	if err == nil && len(p.targets) > 0 && d.summary != "" {
		err = leaveAlone("%s names its files and row groups; if no reader goes by it, remove it", d.summary)
	}
	if err == nil && len(p.targets) > 0 && !c.DryRun {
		err = c.tryExchange()
	}
	if err == nil && len(p.targets) > 0 && c.needsWindow(p) && !c.AllowWindow {
		err = leaveAlone("%s; --allow-window does it file by file, and readers see rows twice for a moment", windowReason(p))
	}
	if err == nil && len(p.targets) > 0 && !c.DryRun {
		err = c.replace(ctx, h, p)
	}
	if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		c.done(Partition{Path: d.rel, Outcome: NotDone})
		return
	}
	if fatal(err) {
		c.stop(err)
	}
	if p.reason == "no Parquet files" && err == nil {
		c.Stats.Done.Add(1)
		return
	}
	c.done(p.result(c, err, c.Now().Sub(started)))
}

func windowReason(p *plan) string {
	if p.rel == "" {
		return "the table is not partitioned, and its root cannot be exchanged in one step"
	}
	return "the file system cannot exchange directories in one step"
}

// strayMarker removes the marker of a unit that has ended; Settle has looked
// after all that have not.
func (c *compaction) strayMarker(d directory) error {
	err := c.FS.Remove(marker(path.Join(c.Root, d.rel)))
	if errors.Is(err, storage.ErrNotExist) {
		return nil
	}
	return err
}

// result describes a plan and what became of it.
func (p *plan) result(c *compaction, err error, took time.Duration) Partition {
	out := Partition{Path: p.rel, Outcome: Compacted, FilesBefore: int64(len(p.data)), Kept: int64(len(p.kept)), Reason: p.reason,
		Window: len(p.targets) > 0 && c.needsWindow(p) && (err == nil || !c.AllowWindow)}
	for _, d := range p.data {
		out.BytesBefore += d.Size
		out.Rows += d.rows
	}
	out.FilesAfter, out.BytesAfter = out.FilesBefore, out.BytesBefore
	for _, t := range p.targets {
		out.Targets = append(out.Targets, t.Target)
	}
	var left alone
	switch {
	case errors.As(err, &left):
		out.Outcome, out.Reason, out.Kept = LeftAlone, left.reason, out.FilesBefore
	case err != nil:
		out.Outcome, out.Reason, out.Kept = Failed, strings.ReplaceAll(err.Error(), "\n", "; "), out.FilesBefore
	case len(p.targets) == 0:
		out.Outcome = AsItWas
	default:
		out.FilesAfter = int64(len(p.kept) + len(p.targets))
		out.Seconds = took.Seconds()
		for _, t := range p.targets {
			if !c.DryRun {
				out.BytesAfter += t.BytesOut - t.BytesIn
			}
		}
	}
	return out
}

func (c *compaction) done(p Partition) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.report.add(p)
	c.Stats.Done.Add(1)
	c.Each(p)
}

// stop ends the run after an error that concerns all of it.
func (c *compaction) stop(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.halt == nil {
		c.halt = err
	}
}

func (c *compaction) halted() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.halt != nil
}

// stage is the directory in which units are built.
type stage struct {
	fs      storage.Exchanger
	root    string
	dir     string
	foreign bool // CompactDir, there only meanwhile

	mu   sync.Mutex
	made bool
}

// ready makes CompactDir when it is first needed.
func (s *stage) ready() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.foreign || s.made {
		return nil
	}
	if err := s.fs.Mkdir(s.dir); err != nil {
		return err
	}
	s.made = true
	return s.fs.SyncDir(s.root)
}

// close removes CompactDir unless a unit is left in it.
func (s *stage) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.made {
		return nil
	}
	err := s.fs.Remove(s.dir)
	if errors.Is(err, storage.ErrExist) || errors.Is(err, storage.ErrNotExist) {
		return nil
	}
	return err
}

// tryExchange finds out, once, whether directories can be exchanged here.
func (c *compaction) tryExchange() (err error) {
	c.tryOnce.Do(func() { err = c.stage.try(c.Random, &c.noExchange) })
	return err
}

func (s *stage) try(random func() uint64, unsupported *bool) error {
	if err := s.ready(); err != nil {
		return err
	}
	a, b := path.Join(s.dir, "try-"+layout.ID(random())), path.Join(s.dir, "try-"+layout.ID(random()))
	for _, dir := range []string{a, b} {
		if err := s.fs.Mkdir(dir); err != nil {
			return fmt.Errorf("try whether directories can be exchanged: %w", err)
		}
	}
	err := s.fs.Exchange(a, b)
	if *unsupported = errors.Is(err, errors.ErrUnsupported); *unsupported {
		err = nil
	}
	for _, dir := range []string{a, b} {
		if rerr := s.fs.Remove(dir); err == nil {
			err = rerr
		}
	}
	return err
}
