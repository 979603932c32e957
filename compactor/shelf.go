package compactor

import (
	"context"

	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/storage"
)

// OpenInputs is how many inputs of a unit are open at the same time, unless
// Options.OpenInputs says that it is fewer. A partition with little traffic may
// hold thousands of small parts until max_delay, more than a process may have
// descriptors; and what the log has planned is tried again after each start.
const OpenInputs = 64

// shelf has the inputs of a unit that are open, the longest first. They are read
// one after the other, by one goroutine.
type shelf struct {
	o    *Options
	ctx  context.Context // of the unit
	slow bool
	open []*shelved
}

// shelved is an input that is opened when it is read.
type shelved struct {
	s    *shelf
	in   *Input
	r    storage.Reader // nil: not open
	size int64
}

func (o *Options) newShelf(ctx context.Context, u *ledger.Unit) *shelf {
	return &shelf{o: o, ctx: ctx, slow: u.Mode != ledger.ModePublish}
}

// add opens an input.
func (s *shelf) add(in *Input) (*shelved, error) {
	x := &shelved{s: s, in: in}
	if err := x.reach(); err != nil {
		return nil, err
	}
	x.size = x.r.Size()
	return x, nil
}

// reach opens the input, unless it is open.
func (x *shelved) reach() error {
	if x.r != nil {
		return nil
	}
	s := x.s
	if n := s.o.OpenInputs; len(s.open) == OpenInputs || n > 0 && len(s.open) >= n {
		s.open[0].put()
		s.open = append(s.open[:0], s.open[1:]...)
	}
	r, err := s.o.open(x.in)
	if err != nil {
		return err
	}
	if s.slow {
		r = s.o.Throttle.Slow(s.ctx, r)
	}
	x.r = r
	s.open = append(s.open, x)
	return nil
}

func (x *shelved) put() {
	_ = x.r.Close() // it was read, no error can matter
	x.r = nil
}

func (x *shelved) Size() int64 { return x.size }

func (x *shelved) Close() error { return nil } // the shelf does

func (x *shelved) ReadAt(p []byte, off int64) (int, error) {
	if err := x.reach(); err != nil {
		return 0, err
	}
	return x.r.ReadAt(p, off)
}

func (s *shelf) close() {
	for _, x := range s.open {
		x.put()
	}
	s.open = nil
}
