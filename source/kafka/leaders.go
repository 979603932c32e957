package kafka

import (
	"context"
	"errors"
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
	backoff := minBackoff
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
		if err != nil {
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
	var names []string
	for _, p := range r.parts {
		if !slices.Contains(names, p.topic) {
			names = append(names, p.topic)
		}
	}
	r.mu.Unlock()
	if len(names) == 0 {
		return true, nil
	}
	slices.Sort(names)
	ctx, cancel := context.WithTimeout(r.ctx, 2*requestTimeout)
	defer cancel()
	md, err := r.admin.Metadata(ctx, names...)
	if err != nil {
		return false, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	whole = true
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
			continue
		}
		p.leader, p.lepoch = q.Leader, q.LeaderEpoch
		if !r.brokers[q.Leader] {
			r.brokers[q.Leader] = true
			r.wg.Go(func() { r.fetch(q.Leader) }) // joined by Close
		}
	}
	r.signal()
	return whole, nil
}

func sortParts(list []*partition) {
	slices.SortFunc(list, func(a, b *partition) int { return strings.Compare(a.id, b.id) })
}
