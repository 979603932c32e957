package kafka

import (
	"errors"
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/hivesink/hivesink/format"
	"github.com/hivesink/hivesink/record"
)

// A panic while a message is decoded says that the decoder has a mistake, and
// leaves it in an unknown state. Were it to end the process, so would every run
// after it (K10). So the message is remembered as poison, decoder and rows so
// far are thrown away, and the batch is made again, up to the message, by a new
// decoder; the message, the first of the next batch, is then a bad record that
// was not decoded. No message is decoded more than twice.

// poison is a message at which decoding panicked.
type poison struct {
	p      *partition
	offset int64
	reason string
}

// poisoned is what is known of a message, nil: it is to be decoded.
func (r *reader) poisoned(p *partition, m *message) *poison {
	for i := range r.poison {
		if o := &r.poison[i]; o.p == p && o.offset == m.offset {
			return o
		}
	}
	return nil
}

// survived forgets the poison that lies behind a partition, and of those that
// are read elsewhere.
func (r *reader) survived(p *partition) {
	if len(r.poison) > 0 {
		r.poison = slices.DeleteFunc(r.poison, func(o poison) bool {
			return o.p == p && o.offset < p.offset || o.p.removed.Load()
		})
	}
}

var errPoison = errors.New("decoding a message panicked")

// guarded decodes a message, also a poisonous one.
func (r *reader) guarded(m *message) (err error) {
	defer func() {
		if v := recover(); v != nil {
			r.poison = append(r.poison, poison{p: r.cur.p, offset: m.offset, reason: fmt.Sprintf("decoding it panicked: %v", v)})
			r.s.log.Error("decoding a message panicked, which is a mistake of this program; it goes to the bad records",
				"place", place(r.cur.p, m), "panic", v, "stack", string(debug.Stack()))
			err = errPoison
		}
	}()
	return r.dec.append(m)
}

func (o *poison) bad() *format.Error {
	return &format.Error{Class: record.ClassUnsupported, Reason: o.reason}
}

// again goes back to where a batch began, with a new decoder.
func (r *reader) again(b *record.Batch, offset int64, last int32) error {
	dec, err := r.s.values()
	if err != nil {
		return err
	}
	r.dec.discard()
	r.dec = dec
	if budget := r.s.o.BadBudget; budget != nil {
		budget.Add(int64(len(b.Bad)))
	}
	r.cur.p.offset, r.cur.p.last = offset, last
	r.open()
	return nil
}

// discard closes a decoder in an unknown state.
func (d *decoder) discard() {
	defer func() { recover() }() //nolint:errcheck // nothing of it is used any more
	d.close()
}
