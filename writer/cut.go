package writer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/hivesink/hivesink/ledger"
)

// Cut is what a lane holds at a checkpoint: its source partitions' positions
// and the rows up to them that no earlier cut has.
type Cut struct {
	o       *Options
	Sources map[string]ledger.Source // those that moved
	parts   []ledger.Part
	buckets []*bucket
	hidden  hidden // when it was made
}

// Cut takes everything out of the lane between two batches (W2). It is cheap:
// the rows are encoded by Flush, while the lane goes on.
func (l *Lane) Cut() (*Cut, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken != nil {
		return nil, l.broken
	}
	c := &Cut{o: l.o, parts: l.closed, hidden: l.hidden, Sources: make(map[string]ledger.Source)}
	l.hidden = hidden{}
	for _, b := range l.live {
		if b.rows > 0 {
			c.buckets = append(c.buckets, b)
		} else {
			l.o.releaseColumns(b)
		}
	}
	for name, s := range l.sources {
		if !s.moved {
			continue
		}
		c.Sources[name] = s.Source
		s.moved = false
		if s.Ended {
			delete(l.sources, name)
		}
	}
	clear(l.main)
	clear(l.late)
	l.main, l.late, l.dead, l.live, l.closed, l.fresh = l.main[:0], l.late[:0], nil, nil, nil, 0
	if l.part != nil && l.part.Len() > maxPartitionNumbers {
		l.part.Reset()
	}
	return c, nil
}

// maxPartitionNumbers bounds the partitioner's memory: no bucket is open after
// a cut, so its numbers may be forgotten then.
const maxPartitionNumbers = 4096

// Flush closes the parts of several cuts, with a number of encoders at once,
// and syncs the staging directory: all parts returned are durable (W3), in a
// stable order.
func Flush(ctx context.Context, cuts []*Cut, parallelism int) ([]ledger.Part, error) {
	if len(cuts) == 0 {
		return nil, nil
	}
	o := cuts[0].o
	var parts []ledger.Part
	var todo []*bucket
	for _, c := range cuts {
		parts = append(parts, c.parts...)
		todo = append(todo, c.buckets...)
	}
	if err := o.nameFinal(todo); err != nil {
		return nil, err
	}
	alone, bundles := o.share(todo, parallelism)
	closed := make([]*ledger.Part, len(alone))
	bundled := make([][]ledger.Part, len(bundles))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(max(1, parallelism))
	for i, some := range bundles {
		g.Go(func() (err error) {
			bundled[i], err = o.closeBundle(gctx, some)
			return err
		})
	}
	for i, b := range alone {
		g.Go(func() error {
			if err := gctx.Err(); err != nil {
				return err
			}
			p, err := o.closePart(b)
			closed[i] = p
			o.releaseColumns(b)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	for _, p := range closed {
		if p != nil {
			parts = append(parts, *p)
		}
	}
	for _, some := range bundled {
		parts = append(parts, some...)
	}
	if len(parts) > 0 {
		if err := o.FS.SyncDir(o.Staging); err != nil {
			return nil, fmt.Errorf("sync the staging directory: %w", err)
		}
	}
	slices.SortFunc(parts, func(a, b ledger.Part) int {
		if a.Table != b.Table {
			return cmpString(a.Table, b.Table)
		}
		if a.Partition != b.Partition {
			return cmpString(a.Partition, b.Partition)
		}
		return cmpString(a.ID, b.ID)
	})
	return parts, nil
}

// Merge joins the moved source partitions of several cuts. One source
// partition belongs to one lane at a time.
func Merge(cuts []*Cut) (map[string]ledger.Source, error) {
	out := make(map[string]ledger.Source)
	for _, c := range cuts {
		for _, name := range slices.Sorted(maps.Keys(c.Sources)) {
			if _, twice := out[name]; twice {
				return nil, errors.New("source partition " + name + " moved in two writers at once")
			}
			out[name] = c.Sources[name]
		}
	}
	return out, nil
}

func cmpString(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
