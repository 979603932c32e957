package kafka

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/hivesink/hivesink/format"
	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/record"
)

// batch decodes messages of cur until a batch is full or cur is at its end.
func (r *reader) batch(ctx context.Context) (*record.Batch, error) {
	p := r.cur.p
	for {
		offset, last := p.offset, p.last
		b, err := r.gather(ctx)
		if err != errPoison {
			r.survived(p)
			return b, err
		}
		if err := r.again(b, offset, last); err != nil {
			return nil, err
		}
	}
}

// gather makes a batch. With errPoison it has what is to be undone (K10).
func (r *reader) gather(ctx context.Context) (*record.Batch, error) {
	f, p := r.cur, r.cur.p
	b, began := &record.Batch{FirstRow: p.row}, p.offset
	t := tally{b: b, from: p.row}
	for !r.full(&t) {
		m, err := r.message()
		if err != nil {
			return nil, r.damage(p, err)
		}
		if m == nil {
			r.end(f)
			b.End = f.end
			break
		}
		if err := r.dec.ready(ctx, m); err != nil {
			if t.messages == 0 {
				return nil, err
			}
			break // the message is the first of the next batch
		}
		cut, err := r.take(p, m, &t)
		if err != nil {
			return b, err
		}
		if cut {
			break
		}
		r.has = false
		p.offset = m.offset + 1
		p.last = r.msgs.h.epoch
	}
	p.row = p.offset + p.shift
	b.Count = p.row - b.FirstRow
	b.Gaps = b.Count - t.messages
	b.Bytes = t.bytes
	b.UnknownKeys = r.dec.unknown()
	if b.Record = r.dec.newBatch(); b.Record != nil {
		b.Rows = t.rows
	}
	b.Position = position{Offset: p.offset, Epoch: p.last, Topic: topicID(p.topicID), Cluster: r.s.cluster, Shift: p.shift, Decided: p.decided}.String()
	r.s.read.Add(p.offset - began) // rows are numbered from 0, also where the first offset is another
	return b, nil
}

// tally counts what goes into a batch.
type tally struct {
	b        *record.Batch
	from     int64 // first row number
	accepted int64
	messages int64
	bytes    int64
	rows     []int64 // numbers of the rows, once they are not consecutive
}

// number notes the row number of an accepted message.
func (t *tally) number(row int64, room int) {
	switch {
	case t.rows != nil:
		t.rows = append(t.rows, row)
	case row != t.from+t.accepted:
		t.rows = make([]int64, t.accepted, room)
		for i := range t.rows {
			t.rows[i] = t.from + int64(i)
		}
		t.rows = append(t.rows, row)
	}
	t.accepted++
}

// sizeEvery is how many messages go by between two questions for the size of
// the columns.
const sizeEvery = 64

func (r *reader) full(t *tally) bool {
	o := &r.s.o
	return t.messages >= int64(o.BatchRows) || t.bytes >= o.BatchBytes ||
		t.messages%sizeEvery == sizeEvery-1 && r.dec.size() >= o.BatchBytes
}

// take puts a message into the batch: as a row, as a bad record, or passed
// over. cut ends the batch before it.
func (r *reader) take(p *partition, m *message, t *tally) (cut bool, err error) {
	row := m.offset + p.shift
	if t.messages > 0 && r.poisoned(p, m) != nil {
		return true, nil // it is the first of the next batch
	}
	if m.noValue { // a tombstone (KA-03)
		t.b.Skipped = append(t.b.Skipped, row)
	} else if err := r.decode(m); err == nil {
		t.number(row, r.s.o.BatchRows)
	} else if err == errPoison {
		return false, err
	} else {
		e, ok := err.(*format.Error)
		if !ok && !errors.As(err, &e) {
			return false, fault.Wrap(fault.Halt, "", fmt.Errorf("decode %s: %w", place(p, m), err))
		}
		budget := r.s.o.BadBudget
		if budget != nil && budget.Load() <= 0 && t.messages > 0 {
			return true, nil // it is the first of the next batch
		}
		if budget != nil {
			budget.Add(-1)
		}
		t.b.Bad = append(t.b.Bad, record.BadRecord{Row: row, Place: place(p, m), Class: e.Class, Reason: e.Error(),
			Raw: bytes.Clone(m.value[:min(len(m.value), int(r.s.o.MaxRecord))])})
	}
	t.messages++
	t.bytes += m.size
	return false, nil
}

func (r *reader) decode(m *message) error {
	if m.long {
		return &format.Error{Class: record.ClassTooLong, Reason: fmt.Sprintf("the message is longer than source.max_record, %d bytes", r.s.o.MaxRecord)}
	}
	if o := r.poisoned(r.cur.p, m); o != nil {
		return o.bad()
	}
	return r.guarded(m)
}

func place(p *partition, m *message) string {
	return fmt.Sprintf("topic %s partition %d offset %d", p.topic, p.partition, m.offset)
}

// open begins with cur.
func (r *reader) open() {
	r.rest, r.mid, r.has = r.cur.batches, false, false
	r.txns = newTransactions(r.cur.aborted)
	r.dec.partition(r.cur.p.topic, r.cur.p.partition)
}

// message is the next one to be read of cur, nil at its end. It stays until
// has is false.
func (r *reader) message() (*message, error) {
	p := r.cur.p
	end := p.end.Load()
	for !r.has {
		if !r.mid {
			if more, err := r.nextBatch(p); err != nil || !more {
				return nil, err
			}
		}
		more, err := r.msgs.next(&r.msg)
		if err != nil {
			return nil, err
		}
		if !more {
			r.mid = false
			continue
		}
		// A fetch begins with the batch that has its offset, which may begin
		// before it.
		r.has = r.msg.offset >= p.offset
	}
	if later := r.s.later; end == noEnd && later != 0 && r.msg.time >= later {
		end = r.msg.offset // (K9)
		p.end.Store(end)
	}
	if end != noEnd && r.msg.offset >= end {
		return nil, nil
	}
	return &r.msg, nil
}

// nextBatch goes to the next batch with messages to read. Those of control
// markers and aborted transactions are passed over (KA-04).
func (r *reader) nextBatch(p *partition) (bool, error) {
	var h head
	for {
		size, err := parseHead(r.rest, &h)
		if err != nil || size == 0 {
			return false, err
		}
		r.rest = r.rest[size:]
		if !r.txns.visible(&h) || h.last() < p.offset || h.count == 0 { // compaction keeps the head of what was a producer's last
			continue
		}
		r.mid = true
		return true, r.msgs.begin(h)
	}
}

// end goes to the end of what was fetched: markers, aborted messages and what
// compaction has removed lie between the last message and it (KA-02).
func (r *reader) end(f *fetched) {
	p := f.p
	to := f.next
	if f.jump && to < p.offset { // the log ends before: row numbers go on all the same
		p.shift += p.offset - to
		p.offset, p.last = to, -1
	}
	if end := p.end.Load(); end != noEnd && f.next >= end {
		if !f.jump {
			to = end
		}
		f.end, p.over = true, true
		r.ended(p)
	}
	if to > p.offset {
		p.offset, p.last = to, f.epoch
	}
	r.has = false
	r.finish()
}

// damage is the error of a batch whose messages cannot be read although its
// checksum is right.
func (r *reader) damage(p *partition, err error) error {
	return fault.Wrap(fault.Halt, "what wrote it? another client may say more; to go on behind it, use another pipeline with source.kafka.start",
		fmt.Errorf("read topic %s partition %d after offset %d: %w", p.topic, p.partition, p.offset-1, err))
}
