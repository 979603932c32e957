package kafka

import (
	"context"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/hivesink/hivesink/internal/fault"
)

// maxWait is how long a broker waits for something to fetch. An empty answer
// says that a partition is caught up, so it is also how often that is known.
const maxWait = 500 * time.Millisecond

// shortWait is the same while a partition of the broker, with more to fetch, has
// enough waiting to be taken: it is to be asked for as soon as that is not so,
// and one request at a time goes to a broker.
const shortWait = 10 * time.Millisecond

// Back-off of a broker that fails.
const (
	minBackoff = 100 * time.Millisecond
	maxBackoff = 5 * time.Second
)

// fetch fetches from one broker, one request after the other, until the reader
// is closed. It is joined by Close.
func (r *reader) fetch(broker int32) {
	var (
		backoff time.Duration
		said    time.Time // that it fails; a broker that is gone for good is told of by crier
		rotate  int
	)
	for {
		asked, req := r.ask(broker, rotate)
		if asked == nil {
			return
		}
		rotate++
		resp, err := req.RequestWith(r.ctx, r.client.Broker(int(broker)))
		if r.ctx.Err() != nil {
			return
		}
		if err != nil {
			r.taking(req.MaxBytes, func() {})
			backoff = min(maxBackoff, max(minBackoff, 2*backoff))
			if backoff < maxBackoff || time.Since(said) > time.Minute {
				said = time.Now()
				r.s.log.Warn("fetching from a broker failed; trying again", "broker", broker, "in", backoff, "error", err)
			}
			r.hold(asked, err)
			r.lookUpSoon()
			if sleep(r.ctx, backoff) != nil {
				return
			}
			continue
		}
		if backoff > 0 {
			r.s.log.Warn("fetching from a broker works again", "broker", broker)
			backoff = 0
		}
		if err := r.answer(asked, resp, req.MaxBytes); err != nil {
			r.fail(err)
			return
		}
	}
}

// ask chooses what to fetch from a broker, and waits until there is something
// and room for it (K4). nil: the reader is closed.
func (r *reader) ask(broker int32, rotate int) (map[key]*partition, *kmsg.FetchRequest) {
	for {
		r.mu.Lock()
		changed := r.changed
		list, full, wake := r.due(broker)
		if room := r.need(list); r.reserve(broker, room) {
			defer r.mu.Unlock()
			return r.request(list, rotate, room, full)
		}
		r.mu.Unlock()
		select {
		case <-changed:
		case <-wake:
		case <-r.ctx.Done():
			return nil, nil
		}
	}
}

// need is the room for a fetch; 0: there is nothing to fetch. Of partitions that
// had nothing to read little is expected: their leaders, of which there may be
// more than there is room for whole fetches, can all be asked at a time.
func (r *reader) need(list []*partition) int32 {
	switch {
	case len(list) == 0:
		return 0
	case slices.ContainsFunc(list, func(p *partition) bool { return !p.idle }):
		return r.fetchBytes
	}
	return r.fetchBytes / idleShare
}

// idleShare is how much less room than others a fetch of idle partitions gets.
const idleShare = 8

// reserve takes room for a fetch from a broker, or remembers that the broker
// waits for it. Who came first is served first: brokers that answer and ask
// again at once would else keep the room for ever. The caller has the lock.
func (r *reader) reserve(broker int32, room int32) bool {
	i := slices.Index(r.waiting, broker)
	if room == 0 {
		if i >= 0 { // what it waited for is not to be fetched any more
			r.waiting = slices.Delete(r.waiting, i, i+1)
			r.signal()
		}
		return false
	}
	fits := r.buffered+r.inflight+int64(room) <= r.budget || r.buffered+r.inflight == 0
	switch {
	case fits && i == 0:
		r.waiting = slices.Delete(r.waiting, 0, 1)
		r.signal() // there may be room for the next one too
	case fits && len(r.waiting) == 0:
	case i < 0:
		r.waiting = append(r.waiting, broker)
		return false
	default:
		return false
	}
	r.inflight += int64(room)
	return true
}

// maxPending is how many fetches of one partition may wait to be taken: one
// that is decoded and one behind it.
const maxPending = 2

// due are the partitions of a broker to fetch now; full says that there are
// others, of which enough was fetched for now. The caller has the lock.
func (r *reader) due(broker int32) (list []*partition, full bool, wake <-chan time.Time) {
	now := time.Now()
	var soonest time.Duration
	for _, p := range r.parts {
		if p.leader != broker || p.ended || p.stuck || p.unsettled || p.proving {
			continue
		}
		if p.pending >= maxPending {
			full = true
			continue
		}
		if d := p.wait.Sub(now); d > 0 {
			if soonest == 0 || d < soonest {
				soonest = d
			}
			continue
		}
		list = append(list, p)
	}
	if soonest > 0 {
		wake = time.After(soonest)
	}
	return list, full, wake
}

type key struct {
	topic     [16]byte
	name      string
	partition int32
}

// request asks for partitions. Topics go by their id: what was deleted and made
// again is never read for what it was (K5).
func (r *reader) request(list []*partition, rotate int, room int32, full bool) (map[key]*partition, *kmsg.FetchRequest) {
	sortParts(list)
	// Whoever comes first gets the room there is: they take turns.
	rotate %= len(list)
	list = append(list[rotate:len(list):len(list)], list[:rotate]...)
	wait := maxWait
	if full {
		wait = shortWait
	}
	req := kmsg.NewPtrFetchRequest()
	req.MaxWaitMillis, req.MinBytes, req.MaxBytes, req.IsolationLevel = int32(wait.Milliseconds()), 1, room, 1
	asked := make(map[key]*partition, len(list))
	at := make(map[string]int)
	for _, p := range list {
		i, ok := at[p.topic]
		if !ok {
			t := kmsg.NewFetchRequestTopic()
			t.Topic, t.TopicID = p.topic, p.asID
			i = len(req.Topics)
			at[p.topic] = i
			req.Topics = append(req.Topics, t)
		}
		q := kmsg.NewFetchRequestTopicPartition()
		q.Partition, q.FetchOffset, q.CurrentLeaderEpoch, q.LastFetchedEpoch = p.partition, p.next, p.lepoch, p.epoch
		q.PartitionMaxBytes = min(maxPartitionBytes, room)
		req.Topics[i].Partitions = append(req.Topics[i].Partitions, q)
		asked[key{p.asID, "", p.partition}] = p
		asked[key{[16]byte{}, p.topic, p.partition}] = p
	}
	return asked, req
}

// hold says of all that were asked for that nobody knows whether they are
// caught up.
func (r *reader) hold(asked map[key]*partition, why error) {
	for _, p := range asked {
		r.w.Hold(p.id)
		p.mute(why)
	}
}

// taking gives back the room that a fetch had.
func (r *reader) taking(room int32, f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.inflight -= int64(room)
	f()
	r.signal()
}

// answer takes an answer apart.
func (r *reader) answer(asked map[key]*partition, resp *kmsg.FetchResponse, room int32) (err error) {
	if e := kerr.ErrorForCode(resp.ErrorCode); e != nil {
		r.taking(room, func() {})
		r.hold(asked, e)
		r.lookUpSoon()
		if isFatal(e) {
			return r.fatal("fetch", e)
		}
		r.s.log.Warn("fetching from a broker failed; trying again", "error", e)
		return sleepQuietly(r.ctx)
	}
	bare := isBare(resp)
	r.taking(room, func() {
		for i := range resp.Topics {
			t := &resp.Topics[i]
			for j := range t.Partitions {
				q := &t.Partitions[j]
				k := key{t.TopicID, "", q.Partition}
				if t.TopicID == ([16]byte{}) {
					k = key{[16]byte{}, t.Topic, q.Partition}
				}
				p := asked[k]
				if p == nil || p.removed.Load() {
					continue
				}
				if e := r.partition(p, q, bare); e != nil && err == nil {
					err = e
				}
			}
		}
	})
	return err
}

// head says so when nothing that can be read is behind what was fetched of a
// partition. The caller has the lock.
func (r *reader) head(p *partition, q *kmsg.FetchResponseTopicPartition) {
	last := q.LastStableOffset
	if last < 0 {
		last = q.HighWatermark
	}
	if last >= 0 && max(p.next, p.void) >= last && p.next <= q.HighWatermark {
		r.w.AtHead(p.id)
	}
}

// isBare says that no partition of an answer has messages, so that none was
// left out for want of room.
func isBare(resp *kmsg.FetchResponse) bool {
	for i := range resp.Topics {
		for j := range resp.Topics[i].Partitions {
			if len(resp.Topics[i].Partitions[j].RecordBatches) > 0 {
				return false
			}
		}
	}
	return true
}

func sleepQuietly(ctx context.Context) error {
	sleep(ctx, minBackoff) //nolint:errcheck // the caller looks at ctx
	return nil
}

// partition takes what was fetched of one partition. The caller has the lock.
func (r *reader) partition(p *partition, q *kmsg.FetchResponseTopicPartition, bare bool) error {
	p.idle = false
	if e := kerr.ErrorForCode(q.ErrorCode); e != nil {
		return r.refused(p, q, e)
	}
	p.heard()
	p.refusals = 0
	if q.DivergingEpoch.EndOffset >= 0 && q.DivergingEpoch.Epoch >= 0 {
		return fault.New(fault.Halt, "the table has messages that the topic lost: check the cluster (unclean leader election?); to go on, use another pipeline with source.kafka.start",
			"%s was cut back to offset %d (leader epoch %d), but was read to offset %d (leader epoch %d)", p.name(), q.DivergingEpoch.EndOffset, q.DivergingEpoch.Epoch, p.next, p.epoch)
	}
	whole, next, epoch, err := scan(q.RecordBatches, p.next)
	if err != nil && whole == 0 {
		return r.damaged(p, err)
	}
	p.strikes = 0
	if whole == 0 {
		r.empty(p, q, bare)
		return nil
	}
	f := &fetched{p: p, from: p.next, next: next, epoch: epoch, batches: q.RecordBatches[:whole], aborted: q.AbortedTransactions, size: int64(len(q.RecordBatches))}
	if epoch < 0 {
		f.epoch = p.epoch
	}
	p.next, p.epoch, p.fresh = f.next, f.epoch, false
	if r.atEnd(p) {
		f.end, p.ended = true, true
	}
	r.head(p, q)
	p.pending++
	r.buffered += f.size
	r.queue = append(r.queue, f)
	r.w.Hold(p.id)
	return nil
}
