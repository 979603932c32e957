package kafka

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

// lookUpSoon asks for the leaders to be looked up.
func (r *reader) lookUpSoon() {
	select {
	case r.stale <- struct{}{}:
	default:
	}
}

// lookUp finds the leaders of the partitions whenever they are not known any
// more, and once in a while. It ends with the reader, and is joined by Close.
func (r *reader) lookUp() {
	backoff, said := minBackoff, time.Time{}
	for {
		select {
		case <-r.stale:
		case <-time.After(5 * time.Minute):
		case <-r.ctx.Done():
			return
		}
		whole, err := r.leaders()
		if r.ctx.Err() != nil {
			return
		}
		if err == nil && whole {
			backoff = minBackoff
			if sleep(r.ctx, minBackoff) != nil { // at most ten times a second
				return
			}
			continue
		}
		if err != nil && (backoff < maxBackoff || time.Since(said) > time.Minute) {
			said = time.Now()
			r.s.log.Warn("looking up the leaders of partitions failed; trying again", "in", backoff, "error", err)
		}
		r.lookUpSoon()
		if sleep(r.ctx, backoff) != nil {
			return
		}
		backoff = min(maxBackoff, 2*backoff)
	}
}

// leaders asks who leads which partition; whole says that all have a leader.
func (r *reader) leaders() (whole bool, err error) {
	r.mu.Lock()
	topics := make(map[string]bool)
	for _, p := range r.parts {
		topics[p.topic] = true
	}
	r.mu.Unlock()
	if len(topics) == 0 {
		return true, nil
	}
	names := slices.Sorted(maps.Keys(topics))
	md, err := anyone(r.ctx, r.admin, names...)
	if err != nil {
		return false, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	whole = true
	var late []*partition
	epochs := make(map[string]int32)
	for _, p := range r.parts {
		t := md.Topics[p.topic]
		q, ok := t.Partitions[p.partition]
		if another(t.ID, p.asID) && t.Err == nil && ok {
			if r.err == nil {
				r.err = recreated(p.topic, topicID(p.asID), topicID(t.ID))
			}
			continue
		}
		if p.asID == (kadm.TopicID{}) {
			p.asID = t.ID // the cluster was upgraded to 2.8 or later
		}
		if !ok || t.Err != nil || q.Leader < 0 || q.Err != nil && !errors.Is(q.Err, kerr.ReplicaNotAvailable) {
			whole = false
			if !p.ended {
				p.leader = -1 // that it had does not serve it any more
				p.mute(cmp.Or(t.Err, q.Err, error(kerr.LeaderNotAvailable)))
				r.w.Hold(p.id)
			}
			continue
		}
		p.leader, p.lepoch = q.Leader, q.LeaderEpoch
		if p.unsettled {
			late, whole = append(late, p), false // until it is settled it may move again
			epochs[p.id] = q.LeaderEpoch
		}
		if !r.brokers[q.Leader] {
			r.brokers[q.Leader] = true
			r.wg.Go(func() { r.fetch(q.Leader) }) // joined by Close
		}
	}
	if len(late) > 0 && !r.settling {
		r.settling = true
		r.wg.Go(func() { r.settle(late, epochs) }) // joined by Close
	}
	r.signal()
	return whole, nil
}

func sortParts(list []*partition) {
	slices.SortFunc(list, func(a, b *partition) int { return strings.Compare(a.id, b.id) })
}
