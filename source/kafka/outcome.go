package kafka

import (
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/hivesink/hivesink/internal/fault"
)

// What becomes of a partition whose part of a fetch has no messages.

// empty takes an answer without messages. At the end of the log the partition
// is caught up; at the last stable offset before it, it is not: an open
// transaction has messages there, which are read when it has ended (K8).
func (r *reader) empty(p *partition, q *kmsg.FetchResponseTopicPartition, bare bool) {
	p.idle = true
	from := p.next
	// Before the end there may be nothing at all, when compaction has removed
	// the last messages. That is believed when it is proved.
	if bare && q.LastStableOffset == q.HighWatermark && q.PreferredReadReplica < 0 && p.next < q.HighWatermark && p.void < q.HighWatermark && !p.proving {
		p.proving = true
		leader, next, to := p.leader, p.next, q.HighWatermark
		r.wg.Go(func() { r.prove(p, leader, next, to) }) // joined by Close
	}
	if end := p.end.Load(); end != noEnd && p.next < end && end <= p.void {
		// The leader epoch of what was there is not known: that of the message
		// before it may have ended long before, which would look as if the log had
		// been cut back.
		p.next, p.epoch = end, -1
	}
	if r.atEnd(p) {
		p.ended = true
		p.pending++
		r.queue = append(r.queue, &fetched{p: p, from: from, next: p.next, epoch: p.epoch, end: true})
		return
	}
	if err := r.shortened(p, q); err != nil {
		if r.err == nil {
			r.err = err // empty has been called with the lock
			r.signal()
		}
		return
	}
	r.blocked(p, q)
	r.head(p, q)
	switch {
	case q.HighWatermark < 0 || p.next != q.HighWatermark && p.void != q.HighWatermark:
		r.w.Hold(p.id)
	case p.pending == 0:
		r.w.CaughtUp(p.id)
	}
}

// shortened is about a log that ends before the end it had when that became the
// end of a bounded run: an unclean election has taken messages that were not read
// yet, and no others need come, ever. A new leader may know no better for a moment.
func (r *reader) shortened(p *partition, q *kmsg.FetchResponseTopicPartition) error {
	end := p.end.Load()
	if end == noEnd || r.s.until.Offsets != nil || q.HighWatermark < 0 || q.LastStableOffset != q.HighWatermark || q.HighWatermark >= end || p.next < q.HighWatermark {
		p.short = time.Time{}
		return nil
	}
	if p.short.IsZero() {
		p.short = time.Now()
	}
	if time.Since(p.short) < r.s.patience {
		return nil
	}
	return fault.New(fault.Halt, "check the cluster (unclean leader election?); start the run again to end where the log ends now",
		"%s ended before offset %d when the run looked for its end, and ends before offset %d now: it lost messages that were not read", p.name(), end, q.HighWatermark)
}

// prove finds out whether an empty answer says that nothing is there, from next
// to before to. A broker that fetches from tiered storage gives such an answer,
// too, when that takes too long. What is on its own disks it does read; and the
// first offset there only grows, so that one that is not behind next now was not
// when the leader answered.
func (r *reader) prove(p *partition, leader int32, next, to int64) {
	first, err := r.firstLocal(p, leader)
	r.mu.Lock()
	defer r.mu.Unlock()
	p.proving = false
	switch {
	case err != nil && r.ctx.Err() == nil:
		p.wait = time.Now().Add(time.Second)
		r.s.log.Warn("asking a leader what it has on its own disks failed; trying again", "partition", p.name(), "error", err)
		r.lookUpSoon()
	case err == nil && next >= first:
		p.void = to
	}
	r.signal()
}

func (r *reader) firstLocal(p *partition, leader int32) (int64, error) {
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID = -1
	t, q := kmsg.NewListOffsetsRequestTopic(), kmsg.NewListOffsetsRequestTopicPartition()
	t.Topic, q.Partition, q.Timestamp = p.topic, p.partition, localStart
	t.Partitions = append(t.Partitions, q)
	req.Topics = append(req.Topics, t)
	resp, err := req.RequestWith(r.ctx, r.client.Broker(int(leader)))
	if err != nil {
		return 0, err
	}
	if resp.Version < 8 { // it is older than tiered storage
		return 0, nil
	}
	for _, t := range resp.Topics {
		for _, q := range t.Partitions {
			switch err := kerr.ErrorForCode(q.ErrorCode); {
			case t.Topic != p.topic || q.Partition != p.partition:
			case errors.Is(err, kerr.UnsupportedVersion): // it has no tiered storage
				return 0, nil
			case err != nil:
				return 0, err
			case q.Offset >= 0:
				return q.Offset, nil
			}
		}
	}
	return 0, errors.New("it does not say")
}

// blocked logs that a partition has waited long for a transaction to end. One
// whose producer died and never came back is ended by transaction.timeout.ms;
// one that hangs by a fault of the cluster never ends by itself.
func (r *reader) blocked(p *partition, q *kmsg.FetchResponseTopicPartition) {
	if q.LastStableOffset < 0 || q.LastStableOffset >= q.HighWatermark || p.next < q.LastStableOffset {
		p.open = openTransaction{}
		return
	}
	now := time.Now()
	if p.open.offset != q.LastStableOffset || p.open.since.IsZero() {
		p.open = openTransaction{offset: q.LastStableOffset, since: now, say: now.Add(r.s.patience)}
	}
	if now.Before(p.open.say) {
		return
	}
	p.open.say = now.Add(10 * r.s.patience)
	r.s.log.Warn("a transaction has been open for long: what is behind its first message waits, and the partition holds the watermark; when it outlives its producer's transaction.timeout.ms, end it with kafka-transactions.sh abort",
		"partition", p.name(), "first_offset", q.LastStableOffset, "waiting_offsets", q.HighWatermark-q.LastStableOffset, "for", now.Sub(p.open.since).Round(time.Second))
}

// openTransaction is what a partition waits for.
type openTransaction struct {
	offset int64     // its first message
	since  time.Time // seen first; zero: there is none
	say    time.Time // when to log it
}

// refused takes the error of one partition.
func (r *reader) refused(p *partition, q *kmsg.FetchResponseTopicPartition, e error) error {
	r.w.Hold(p.id)
	pause := min(maxBackoff, minBackoff<<min(p.refusals, 10)) // an election is over soon, a broken disk is not
	p.wait = time.Now().Add(pause)
	p.refusals++
	switch {
	case errors.Is(e, kerr.OffsetOutOfRange):
		p.stuck = true
		r.wg.Go(func() { r.findPlace(p) }) // joined by Close
		return nil
	case isFatal(e):
		return r.fatal(p.name(), e)
	case isStale(e):
		p.leader = -1
	default:
		p.wait = time.Now().Add(max(pause, time.Second))
	}
	p.mute(e)
	if p.refusals == 1 { // the crier tells of one that stays so
		r.s.log.Warn("fetching a partition failed; trying again", "partition", p.name(), "offset", p.next, "error", e)
	}
	r.lookUpSoon()
	return nil
}

// findPlace decides where a partition goes on whose next offset the cluster
// does not have.
func (r *reader) findPlace(p *partition) {
	for {
		o := r.s.askOffsets(r.ctx, partitions{p.topic: {p.partition}})
		err := o.err()
		if err == nil {
			first, last := at(o.first, p.split), at(o.last, p.split)
			if p.next >= first && p.next <= last {
				r.contradicted(p, first, last)
				return
			}
			to := first
			// Retention may take the first message between two looks: of one that
			// is to begin at the first there is, nothing is missing.
			if !p.fresh || p.next > first {
				if to, err = r.s.outOfRange(p.split, p.next, first, last); err != nil {
					r.fail(err)
					return
				}
			}
			r.mu.Lock()
			defer r.mu.Unlock()
			r.queue = append(r.queue, &fetched{p: p, from: p.next, next: to, epoch: -1, jump: true})
			p.next, p.epoch, p.stuck, p.void = to, -1, false, 0
			p.pending++
			r.signal()
			return
		}
		p.mute(err)
		r.s.log.Warn("asking for the offsets of a partition failed; trying again", "partition", p.name(), "error", err)
		if sleep(r.ctx, time.Second) != nil {
			return
		}
	}
}

// contradicted is about an offset that a leader refuses, and says that it has.
// Nothing is missing, so that going on elsewhere would double rows or lose some:
// it is asked again, a few times.
func (r *reader) contradicted(p *partition, first, last int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p.strikes++; p.strikes >= maxStrikes {
		if r.err == nil {
			r.err = fault.New(fault.Halt, "check the broker's log for this partition; to go on elsewhere, use another pipeline with source.kafka.start",
				"%s: the leader refuses to read at offset %d (leader epoch %d), and says that it has offsets %d to %d", p.name(), p.next, p.epoch, first, last-1)
		}
	} else {
		r.s.log.Warn("a leader refuses an offset that it says it has; trying again", "partition", p.name(), "offset", p.next, "first", first, "end", last)
	}
	p.stuck, p.wait = false, time.Now().Add(time.Second)
	r.lookUpSoon()
	r.signal()
}

func (r *reader) fatal(what string, e error) error {
	hint := "check the brokers"
	if errors.Is(e, kerr.TopicAuthorizationFailed) {
		hint = "grant the user of source.kafka.sasl READ on the topic"
	}
	return fault.Wrap(fault.Halt, hint, fmt.Errorf("%s: %w", what, e))
}

// damaged counts fetches whose bytes are not as they were written.
func (r *reader) damaged(p *partition, err error) error {
	r.w.Hold(p.id)
	if p.strikes++; p.strikes >= maxStrikes {
		return fault.Wrap(fault.Halt, "check the broker's disk; to go on behind it, use another pipeline with source.kafka.start",
			fmt.Errorf("%s at offset %d is damaged: %w", p.name(), p.next, err))
	}
	p.wait = time.Now().Add(time.Second)
	r.s.log.Warn("a fetch is damaged; trying again", "partition", p.name(), "offset", p.next, "error", err)
	return nil
}

// maxStrikes is how often damage is fetched before it is believed.
const maxStrikes = 3
