package pipeline

import (
	"cmp"
	"context"
	"errors"
	"io"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/hivesink/hivesink/config"
	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/source"
	"github.com/hivesink/hivesink/writer"
)

// Run reads a source to its end, or until ctx ends, and then finishes or
// stops. The end of ctx (SIGTERM) is a clean stop: Run returns nil when
// everything that was read is published.
func (p *Pipeline) Run(ctx context.Context, src source.Source) error {
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
	for _, s := range splits { // a split not yet opened holds the watermark
		if _, err := p.Own(done, s.ID); err != nil {
			return err
		}
	}
	if err := p.read(alive, src, splits); err != nil {
		if ctx.Err() == nil || !errors.Is(err, context.Canceled) {
			return p.keep(done, err)
		}
		return p.Stop(done)
	}
	return p.Finish(done, p.cfg.Source == nil || p.cfg.Source.AtEnd == config.AtEndComplete)
}

// keep publishes what was read before the input failed, so that nothing of it
// is lost and the next run goes on from there. A failure of the sink itself
// keeps nothing.
func (p *Pipeline) keep(ctx context.Context, cause error) error {
	if err := p.Err(); err != nil {
		return err
	}
	if err := p.Stop(ctx); err != nil && !errors.Is(cause, err) {
		return errors.Join(cause, err)
	}
	return cause
}

// read runs the readers. They take splits from a queue; each has a lane of its
// own, so that a source partition is in one lane at a time.
func (p *Pipeline) read(ctx context.Context, src source.Source, splits []source.Split) error {
	readers := 1
	if p.cfg.Source != nil {
		readers = p.cfg.Source.Readers
	}
	g, gctx := errgroup.WithContext(ctx)
	var mu sync.Mutex
	next := 0
	take := func() (source.Split, bool) {
		mu.Lock()
		defer mu.Unlock()
		if next == len(splits) {
			return source.Split{}, false
		}
		next++
		return splits[next-1], true
	}
	for range min(readers, len(splits)) {
		lane, err := p.NewLane()
		if err != nil {
			return err
		}
		g.Go(func() error { // joined by g.Wait below
			for {
				s, ok := take()
				if !ok {
					return nil
				}
				if err := p.readSplit(gctx, src, s, lane); err != nil {
					return err
				}
			}
		})
	}
	return g.Wait()
}

func (p *Pipeline) readSplit(ctx context.Context, src source.Source, s source.Split, lane *writer.Lane) error {
	from, err := p.Own(ctx, s.ID)
	if err != nil {
		return err
	}
	r, err := src.Open(ctx, s, from)
	if err != nil {
		return err
	}
	defer r.Close()
	lane.Adopt(s.ID, from)
	for {
		b, err := r.Read(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if b.Count > 0 {
			p.first.Do(func() { p.c.emit(Event{Kind: "first-record", Source: s.ID}) })
		}
		out, err := lane.Write(ctx, s.ID, b)
		if b.Record != nil {
			b.Record.Release()
		}
		p.Stats.RowsSkipped.Add(int64(len(b.Skipped)))
		p.count(out, b.Count-b.Gaps, b.Bytes, b.UnknownKeys)
		if err != nil {
			return p.c.judge(err)
		}
		if err := p.pass(ctx, out); err != nil {
			return err
		}
	}
}

func (p *Pipeline) count(out writer.Outcome, rows, bytes, unknown int64) {
	p.Stats.RowsRead.Add(rows)
	p.Stats.BytesRead.Add(bytes)
	p.Stats.RowsAccepted.Add(out.Accepted)
	p.Stats.RowsBad.Add(out.Bad)
	p.Stats.RowsDead.Add(out.Dead)
	p.Stats.RowsDropped.Add(out.Dropped)
	p.Stats.RowsLate.Add(out.Late)
	p.Stats.UnknownKeys.Add(unknown)
}

// Totals are the facts a run ends with.
type Totals struct {
	RowsVisible  int64 // in the table now
	VisibleFiles int64
	Partitions   int64 // announced, of the table itself
}

// Totals sums up the table.
func (p *Pipeline) Totals(ctx context.Context) (Totals, error) {
	st, err := p.State(ctx)
	if err != nil {
		return Totals{}, err
	}
	return TotalsOf(st), nil
}

// TotalsOf sums up the table a state describes.
func TotalsOf(st *ledger.State) Totals {
	var t Totals
	for _, q := range st.Partitions {
		if q.Table != ledger.MainTable {
			continue
		}
		t.RowsVisible += q.Rows
		t.VisibleFiles += q.Files
		if q.Announced > 0 {
			t.Partitions++
		}
	}
	return t
}
