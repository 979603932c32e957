package writer

import "sync/atomic"

// hidden counts the bytes of part files that no checkpoint names yet, and that
// nothing can publish therefore.
type hidden struct {
	open   int64 // in part files that are open
	closed int64
}

func (h *hidden) add(open, closed int64) {
	h.open += open
	h.closed += closed
}

// hiddenTotal is what all lanes of a process have, and cuts on their way into a
// checkpoint.
type hiddenTotal struct{ open, closed atomic.Int64 }

func (t *hiddenTotal) add(open, closed int64) {
	t.open.Add(open)
	t.closed.Add(closed)
}

// Hidden is how many bytes are in part files, open and closed, that no
// checkpoint names yet.
func (o *Options) Hidden() (open, closed int64) { return o.hidden.open.Load(), o.hidden.closed.Load() }

// hide counts bytes of this lane.
func (l *Lane) hide(open, closed int64) {
	l.hidden.add(open, closed)
	l.o.hidden.add(open, closed)
}

// Named says that a checkpoint names the parts of cuts.
func Named(cuts []*Cut) {
	for _, c := range cuts {
		c.o.hidden.add(-c.hidden.open, -c.hidden.closed)
		c.hidden = hidden{}
	}
}

// written is the bytes of the bucket's open part file.
func (b *bucket) written() int64 {
	if b.part == nil {
		return 0
	}
	return b.part.enc.Size()
}
