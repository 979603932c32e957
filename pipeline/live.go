package pipeline

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/hivesink/hivesink/config"
	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/source"
	"github.com/hivesink/hivesink/writer"
)

// RunLive reads a live source until ctx ends or, when it is bounded, every
// split has come to its end. Otherwise it is as Run.
func (p *Pipeline) RunLive(ctx context.Context, src source.Live) error {
	done := context.WithoutCancel(ctx) // finishing must outlive the request to stop
	known, err := p.Sources(done)
	if err != nil {
		return err
	}
	alive, stop := p.whileAlive(ctx)
	defer stop()
	splits, err := src.Splits(alive, known)
	if err != nil {
		if ctx.Err() != nil {
			return p.Stop(done)
		}
		return cmp.Or(p.Err(), err)
	}
	err = p.call(done, func(_ context.Context, c *chain) error {
		c.onPos = src.Durable
		return nil
	})
	if err != nil {
		return err
	}
	l := &live{p: p, src: src}
	finished, err := l.run(alive, splits)
	switch {
	case finished:
		return p.Finish(done, p.cfg.Source == nil || p.cfg.Source.AtEnd == config.AtEndComplete)
	case err == nil || ctx.Err() != nil && errors.Is(err, context.Canceled):
		return p.Stop(done)
	}
	return p.keep(done, err)
}

// live is a run of a live source: readers, each with a lane, and who has which
// split.
type live struct {
	p       *Pipeline
	src     source.Live
	bounded bool

	mu      sync.Mutex
	readers []*liveReader
	g       *errgroup.Group
	moving  bool          // one split at a time
	left    int           // splits that have not ended
	alone   chan struct{} // closed when the split that moves is the only one left
	over    context.CancelFunc
}

// liveReader is a reader with its lane.
type liveReader struct {
	source.LiveReader
	lane   *writer.Lane
	splits []string // that it has and that have not ended
}

// run starts the readers and waits for them; finished says that every split of
// a bounded source has ended.
func (l *live) run(ctx context.Context, splits []source.Split) (finished bool, err error) {
	for _, s := range splits { // a split not yet opened holds the watermark
		if _, err := l.p.Own(ctx, s.ID); err != nil {
			return false, err
		}
	}
	l.bounded, l.left = l.src.Bounded(), len(splits)
	if l.bounded && l.left == 0 {
		return true, nil
	}
	if err := l.open(); err != nil {
		return false, err
	}
	defer func() {
		for _, r := range l.readers {
			r.Close()
		}
	}()
	if err := l.give(ctx, splits); err != nil {
		return false, err
	}
	rctx, over := context.WithCancel(ctx)
	defer over()
	l.over = over
	g, gctx := errgroup.WithContext(rctx)
	l.g = g
	for _, r := range l.readers {
		g.Go(func() error { return l.read(gctx, r) }) // joined by g.Wait below
	}
	g.Go(func() error { return l.grow(gctx) })
	err = g.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.bounded && l.left == 0 && errors.Is(err, context.Canceled) {
		return true, nil
	}
	return false, err
}

// open makes the readers.
func (l *live) open() error {
	watch := source.Watch{
		CaughtUp: func(id string) { l.p.c.intake.polled(id, l.p.c.now()) },
		Hold:     l.p.c.intake.hold,
		AtHead:   func(id string) { l.p.c.intake.atHead(id, l.p.c.now()) },
	}
	n := 1
	if l.p.cfg.Source != nil {
		n = max(1, l.p.cfg.Source.Readers)
	}
	for range n {
		lane, err := l.p.NewLane()
		if err != nil {
			return err
		}
		r, err := l.src.Reader(watch)
		if err != nil {
			return err
		}
		l.readers = append(l.readers, &liveReader{LiveReader: r, lane: lane})
	}
	return nil
}

// give hands new splits to the readers that have fewest.
func (l *live) give(ctx context.Context, splits []source.Split) error {
	for _, s := range splits {
		l.p.c.intake.follow(s.ID)
		from, err := l.p.Own(ctx, s.ID)
		if err != nil {
			return err
		}
		l.mu.Lock()
		err = l.begin(l.least(), s, from)
		l.mu.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

// begin adds a split to a reader. The caller has the lock: until the reader has
// the split, balance must not take it away, and its end must not be noted.
func (l *live) begin(r *liveReader, s source.Split, from ledger.Source) error {
	r.splits = append(r.splits, s.ID)
	r.lane.Adopt(s.ID, from)
	return r.Add(s, from)
}

// least is the reader with the fewest splits. The caller has the lock.
func (l *live) least() *liveReader {
	return slices.MinFunc(l.readers, func(a, b *liveReader) int { return len(a.splits) - len(b.splits) })
}

// grow hands out splits that come later.
func (l *live) grow(ctx context.Context) error {
	for {
		splits, err := l.src.Grown(ctx)
		if err != nil {
			return err
		}
		l.mu.Lock()
		l.left += len(splits)
		l.mu.Unlock()
		if err := l.give(ctx, splits); err != nil {
			return err
		}
		l.balance()
	}
}

// read is a reader's loop.
func (l *live) read(ctx context.Context, r *liveReader) error {
	for {
		ev, err := r.Read(ctx)
		if err != nil {
			return err
		}
		if ev.Removed {
			l.move(ctx, r, ev.Split)
			continue
		}
		if err := l.write(ctx, r, ev); err != nil {
			return err
		}
	}
}

func (l *live) write(ctx context.Context, r *liveReader, ev source.Event) error {
	p, b := l.p, ev.Batch
	if b.Count > b.Gaps {
		p.first.Do(func() { p.c.emit(Event{Kind: "first-record", Source: ev.Split}) })
	}
	out, err := r.lane.Write(ctx, ev.Split, b)
	if b.Record != nil {
		b.Record.Release()
	}
	p.Stats.RowsSkipped.Add(int64(len(b.Skipped)))
	p.count(out, b.Count-b.Gaps, b.Bytes, b.UnknownKeys)
	if err != nil {
		return p.c.judge(err)
	}
	if b.End {
		l.ended(r, ev.Split)
	}
	return p.pass(ctx, out)
}

// ended notes the end of a split. The last one ends the run.
func (l *live) ended(r *liveReader, id string) {
	l.p.c.intake.unfollow(id)
	l.mu.Lock()
	if i := slices.Index(r.splits, id); i >= 0 { // a split ends once
		r.splits = slices.Delete(r.splits, i, i+1)
		l.left--
	}
	over := l.left == 0
	l.lonely()
	l.mu.Unlock()
	if over && l.bounded {
		l.over()
		return
	}
	l.balance()
}

// lonely lets a move hurry when there is nothing else to read. The caller has
// the lock.
func (l *live) lonely() {
	if l.moving && l.left == 1 && l.alone != nil {
		close(l.alone)
		l.alone = nil
	}
}

// balance moves a split from the reader that has most to the one that has
// fewest, when they differ by more than one.
func (l *live) balance() {
	l.mu.Lock()
	defer l.mu.Unlock()
	most := slices.MaxFunc(l.readers, func(a, b *liveReader) int { return len(a.splits) - len(b.splits) })
	if l.moving || len(most.splits) < len(l.least().splits)+2 {
		return
	}
	l.moving = true
	most.Remove(most.splits[len(most.splits)-1])
}

// move hands a split that a reader has let go to another one, after the next
// complete checkpoint: until then what was written of it is in no cut. All the
// while it holds the watermark.
func (l *live) move(ctx context.Context, from *liveReader, id string) {
	turn := l.p.c.turns.next()
	alone := make(chan struct{})
	l.mu.Lock()
	if !slices.Contains(from.splits, id) {
		// It had come to its end when it was chosen, and the end was noted before
		// the reader let it go. Elsewhere it would end once more, and in place of
		// a split that has not.
		l.moving = false
		l.mu.Unlock()
		l.balance()
		return
	}
	l.alone = alone
	l.lonely()
	l.mu.Unlock()
	l.g.Go(func() error { // joined by g.Wait in run
		wctx, stop := context.WithCancel(ctx)
		defer stop()
		arrived := make(chan error, 1)
		l.g.Go(func() error {
			arrived <- l.p.c.turns.await(wctx, turn)
			return nil
		})
		var err error
		select {
		case err = <-arrived:
		case <-alone: // nobody else would have use of the time until the next one
			err = l.p.Checkpoint(ctx)
		}
		if err != nil {
			return err
		}
		return l.moveNow(ctx, from, id)
	})
}

func (l *live) moveNow(ctx context.Context, from *liveReader, id string) error {
	from.lane.Disown(id)
	state, err := l.p.Own(ctx, id)
	if err != nil {
		return err
	}
	l.mu.Lock()
	from.splits = slices.DeleteFunc(from.splits, func(s string) bool { return s == id })
	l.moving = false
	err = l.begin(l.least(), source.Split{ID: id}, state)
	l.mu.Unlock()
	if err != nil {
		return err
	}
	l.p.c.emit(Event{Kind: "moved", Source: id})
	l.balance()
	return nil
}
