package kafka

import (
	"context"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// A partition is late when it has no position and nobody could be asked where it
// starts when the run began (K12). A reader has it from then on, so that it holds
// the watermark; it is fetched when its leader has told. With `latest` it starts
// where it ended when the run began: it had no leader then, and hence no messages
// until the next one, of which every later leader knows where it began.

// settle finds out where late partitions of a reader start. leaders says when.
func (r *reader) settle(list []*partition, epochs map[string]int32) {
	want := make(partitions)
	for _, p := range list {
		want[p.topic] = append(want[p.topic], p.partition)
	}
	o := r.s.askOffsets(r.ctx, want)
	ended := make(listing)
	if r.s.start.Latest {
		ended = r.s.askEnds(r.ctx, slices.DeleteFunc(slices.Clone(list), func(p *partition) bool { return p.added }), epochs, o)
	}
	for _, p := range list {
		switch known, err := r.s.settled(p.split, o, ended); {
		case err != nil:
			r.fail(err)
		case known:
			p.heard()
			r.arrive(p)
		default:
			p.mute(o.why)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.settling = false
}

// settled sets where a late partition starts, if that is known.
func (s *Source) settled(sp *split, o *offsets, ended listing) (known bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !sp.late {
		return true, nil // another reader had it in between
	}
	end, told := ended.of(sp.topic, sp.partition)
	if !o.has(sp) || s.start.Latest && !sp.added && !told {
		return false, nil
	}
	if _, err := s.begins(sp, o, -1); err != nil {
		return false, err
	}
	if told { // what came since, or is in a transaction that was open, is to be read
		sp.start = min(sp.start, end)
	}
	s.log.Warn("a partition is taken up that did not answer when the run began", "partition", sp.name(), "first", at(o.first, sp), "end", at(o.last, sp), "starts_at", sp.start)
	return true, nil
}

// arrive begins with a late partition whose start is known now. Nobody else
// looks at it until begin has put it among those that are fetched.
func (r *reader) arrive(p *partition) {
	r.s.mu.Lock()
	start, earliest := p.start, p.earliest
	r.s.mu.Unlock()
	r.mu.Lock()
	p.next, p.fresh, p.unsettled = start, earliest, false
	r.mu.Unlock()
	r.begin(p, true)
}

// askEnds asks where partitions ended when they had no leader: where the first
// leader after that began.
func (s *Source) askEnds(ctx context.Context, list []*partition, now map[string]int32, o *offsets) listing {
	l := make(listing)
	req := kmsg.NewPtrOffsetForLeaderEpochRequest()
	req.ReplicaID = -1
	at, of := make(map[string]int), make(partitions)
	for _, p := range list {
		if p.leaderless < 0 || now[p.id] <= p.leaderless {
			continue // the broker that was asked for leaders is behind
		}
		i, ok := at[p.topic]
		if !ok {
			i = len(req.Topics)
			at[p.topic] = i
			t := kmsg.NewOffsetForLeaderEpochRequestTopic()
			t.Topic = p.topic
			req.Topics = append(req.Topics, t)
		}
		of[p.topic] = append(of[p.topic], p.partition)
		q := kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
		q.Partition, q.LeaderEpoch = p.partition, p.leaderless
		req.Topics[i].Partitions = append(req.Topics[i].Partitions, q)
	}
	if len(req.Topics) == 0 {
		return l
	}
	s.shards(ctx, req, of, o.failed, func(resp kmsg.Response) {
		for _, t := range resp.(*kmsg.OffsetForLeaderEpochResponse).Topics {
			for _, q := range t.Partitions {
				switch err := kerr.ErrorForCode(q.ErrorCode); {
				case err != nil:
					o.failed(err)
				case q.EndOffset >= 0:
					l.put(t.Topic, q.Partition, q.EndOffset)
				default:
					o.failed(errNotTold)
				}
			}
		}
	})
	return l
}
