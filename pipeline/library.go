package pipeline

import (
	"context"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/hivesink/hivesink/record"
	"github.com/hivesink/hivesink/writer"
)

// Schema is the schema of the records this pipeline takes.
func (p *Pipeline) Schema() *record.Schema { return p.schema }

// WriteBatch takes rows of a source partition that has no bad records.
func (p *Pipeline) WriteBatch(ctx context.Context, lane *writer.Lane, name string, rec arrow.RecordBatch, position string) error {
	src, _ := lane.Source(name)
	b := &record.Batch{FirstRow: src.NextRow, Count: rec.NumRows(), Position: position}
	if rec.NumRows() > 0 {
		b.Record = rec
	}
	p.c.intake.written(name) // before: no checkpoint may find it idle with these rows
	out, err := lane.Write(ctx, name, b)
	if err == nil || out.Accepted > 0 {
		p.count(out, b.Count, 0, 0)
	}
	if err == nil && out.NewPartitions > p.c.newPartitions {
		// The batch is taken: whatever becomes of this is the pipeline's affair, and
		// the next call tells.
		_ = p.Checkpoint(ctx)
	}
	return p.c.judge(err)
}

// CaughtUp says that a source partition has nothing to read at present, until the
// next WriteBatch.
func (p *Pipeline) CaughtUp(name string) error {
	if err := p.alive(context.Background()); err != nil {
		return err
	}
	p.c.intake.caughtUp(name, p.c.now())
	return nil
}

// CloseLane takes a writer out of the checkpoints. What it holds must have
// been cut.
func (p *Pipeline) CloseLane(l *writer.Lane) error {
	return p.call(context.Background(), func(_ context.Context, c *chain) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.lanes = slices.DeleteFunc(c.lanes, func(x *writer.Lane) bool { return x == l })
		return nil
	})
}
