package writer

import (
	"context"
)

// after does what a bucket that has grown asks for.
func (l *Lane) after(b *bucket) error {
	l.o.recharge(b)
	if b.cols.Rows() >= l.o.RowGroupRows || b.cols.Bytes() >= l.o.RowGroupBytes {
		if err := l.flushFull(b); err != nil {
			return err
		}
	}
	if _, due := l.o.Rolling.Due(b.age(), l.o.Now()); due {
		return l.roll(b)
	}
	return nil
}

// flushFull writes a full row group and keeps the part file open, unless too
// many are open already (W5).
func (l *Lane) flushFull(b *bucket) error {
	was := b.written()
	if err := l.o.flushGroup(b, true); err != nil {
		return err
	}
	l.hide(b.written()-was, 0)
	if b.part.kept {
		return nil
	}
	if b.part.kept = l.o.Budget.opened(); b.part.kept {
		return nil
	}
	return l.roll(b)
}

// roll closes the bucket's part.
func (l *Lane) roll(b *bucket) error {
	if err := l.o.nameFinal([]*bucket{b}); err != nil {
		return err
	}
	was := b.written()
	p, err := l.o.closePart(b)
	if err != nil {
		return err
	}
	if p != nil {
		l.closed = append(l.closed, *p)
		l.hide(-was, p.Bytes)
	}
	l.o.releaseColumns(b)
	return nil
}

// rollAll closes the parts of several buckets.
func (l *Lane) rollAll(list []*bucket) error {
	if err := l.o.nameFinal(list); err != nil {
		return err
	}
	alone, bundles := l.o.share(list, 1)
	for _, some := range bundles {
		parts, err := l.o.closeBundle(context.Background(), some)
		if err != nil {
			return err
		}
		l.closed = append(l.closed, parts...)
		for i := range parts {
			l.hide(0, parts[i].Bytes)
		}
	}
	for _, b := range alone {
		if err := l.roll(b); err != nil {
			return err
		}
	}
	return nil
}

// makeRoom keeps the memory budget (W5) by closing this lane's largest parts.
func (l *Lane) makeRoom() error {
	for l.o.Budget.exceeded() {
		if rolled, err := l.rollLargest(); err != nil || !rolled {
			return err
		}
	}
	return nil
}

// waitForRoom keeps the memory budget (W5) when this lane's own parts are not
// enough: it waits for the parts of a cut to be written, or other lanes'.
func (l *Lane) waitForRoom(ctx context.Context) error {
	if err := l.makeRoom(); err != nil {
		return err
	}
	return l.o.Budget.wait(ctx)
}

func (l *Lane) rollLargest() (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken != nil {
		return false, l.broken
	}
	var largest *bucket
	for _, b := range l.live {
		if b.rows > 0 && (largest == nil || b.charged > largest.charged) {
			largest = b
		}
	}
	if largest == nil {
		return false, nil
	}
	// When there is nothing but small ones, one after the other would be as many
	// files; all of them are few.
	list := []*bucket{largest}
	if l.o.small(largest) {
		list = list[:0]
		for _, b := range l.live {
			if b.rows > 0 {
				list = append(list, b)
			}
		}
	}
	if err := l.rollAll(list); err != nil {
		l.broken = err
		return false, err
	}
	return true, nil
}

// Tick closes parts whose age or inactivity limit has passed; it returns when
// to call again (wall clock, microseconds; 0: after the next write).
func (l *Lane) Tick(now int64) (next int64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken != nil {
		return 0, l.broken
	}
	var expired []*bucket
	for _, b := range l.live {
		if b.rows == 0 {
			continue
		}
		if _, due := l.o.Rolling.Due(b.age(), now); due {
			expired = append(expired, b)
			continue
		}
		if n := l.o.Rolling.Next(b.age()); n != 0 && (next == 0 || n < next) {
			next = n
		}
	}
	if err := l.rollAll(expired); err != nil {
		l.broken = err
		return 0, err
	}
	return next, nil
}

func grow[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
