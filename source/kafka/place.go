package kafka

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/hivesink/hivesink/config"
	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/source"
)

// split is what is known of a partition beside its position.
type split struct {
	id        string
	topic     string
	partition int32
	topicID   kadm.TopicID
	added     bool         // to a topic that is read
	decided   int32        // partitions of its topic that start where source.kafka.start says
	end       atomic.Int64 // it ends before this offset; noEnd
	silent    atomic.Pointer[silence]

	// With Source.mu.
	start      int64 // where it begins when it has no position
	earliest   bool  // it begins at the first message there is
	late       bool  // where it begins is not known yet, and it has no position (late.go)
	leaderless int32 // leader epoch, when it had no leader at the start; -1
	moved      int64 // where it goes on instead of its position, by source.kafka.offset_out_of_range; -1
}

const noEnd = -1

// name is a partition for people.
func (s *split) name() string { return fmt.Sprintf("topic %s partition %d", s.topic, s.partition) }

func newPing() kmsg.Request { return kmsg.NewPtrMetadataRequest() }

// place makes splits of partitions, which begin and end where o says (K6). Of
// those that o does not know, that is found out when they answer (late.go).
func (s *Source) place(topics kadm.TopicDetails, o *offsets, known map[string]ledger.Source) ([]source.Split, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := decidedBefore(known)
	var out []source.Split
	for _, name := range slices.Sorted(maps.Keys(topics)) {
		t := topics[name]
		_, reading := s.topics[name]
		decided := s.decided[name]
		if !reading && known != nil {
			decided = s.decide(t, seen)
		}
		s.decided[name] = decided
		for _, n := range slices.Sorted(maps.Keys(t.Partitions)) {
			id := splitID(name, n)
			if s.splits[id] != nil {
				continue
			}
			sp := &split{id: id, topic: name, partition: n, topicID: t.ID, decided: decided, leaderless: -1, moved: -1,
				added: reading || known == nil || n >= decided}
			sp.end.Store(noEnd)
			if err := s.bounds(sp, o, known[id], leaderless(t.Partitions[n])); err != nil {
				return nil, err
			}
			s.splits[id] = sp
			out = append(out, source.Split{ID: id, Name: sp.name()})
		}
		s.topics[name] = t.ID
	}
	return out, nil
}

// bounds sets where a split starts and ends. Where it would start does not matter
// when it has a position. The caller has the lock.
func (s *Source) bounds(sp *split, o *offsets, was ledger.Source, leaderless int32) error {
	next, err := int64(0), error(nil)
	if was.Position != "" {
		next, err = s.resumes(sp, o, was.Position)
	} else {
		next, err = s.begins(sp, o, leaderless)
	}
	if err != nil {
		return err
	}
	if !o.has(sp) {
		sp.mute(o.why)
		return nil
	}
	return s.ends(sp, o, next)
}

// resumes is where a split goes on that has a position. When its leader does not
// answer now, it will refuse what it does not have.
func (s *Source) resumes(sp *split, o *offsets, text string) (next int64, err error) {
	p, err := parsePosition(sp.id, text)
	if err != nil || !o.has(sp) {
		return p.Offset, err
	}
	first, last := at(o.first, sp), at(o.last, sp)
	if p.Offset < first || p.Offset > last && p.Offset > at(o.to, sp) {
		sp.moved, err = s.outOfRange(sp, p.Offset, first, last)
		return sp.moved, err
	}
	return p.Offset, nil
}

// begins sets where a split starts that has no position. One that was added to a
// topic that is read starts at its first message, wherever the others started
// (KA-05).
func (s *Source) begins(sp *split, o *offsets, leaderless int32) (int64, error) {
	named, ok := s.start.OffsetOf(sp.topic, sp.partition)
	if !ok && s.start.Offsets != nil && !sp.added {
		return 0, fault.New(fault.Config, "name every partition, or one offset for all", "source.kafka.start: has no offset for %s", sp.name())
	}
	if sp.late = !o.has(sp); sp.late {
		sp.leaderless = leaderless
		return 0, nil
	}
	first, last := at(o.first, sp), at(o.last, sp)
	switch {
	case s.start.Earliest || sp.added:
		sp.start, sp.earliest = first, true
	case s.start.Offsets != nil:
		if named < first || named > last {
			return 0, fault.New(fault.Config, "", "source.kafka.start: %s has offsets %d to %d, not %d", sp.name(), first, last, named)
		}
		sp.start = named
	case s.start.Latest:
		sp.start = last
	default:
		sp.start = min(at(o.from, sp), last)
	}
	return sp.start, nil
}

// ends sets where a split of a bounded run ends, which is at next.
func (s *Source) ends(sp *split, o *offsets, next int64) error {
	last := at(o.last, sp)
	switch {
	case !s.Bounded():
	case s.until.Offsets != nil:
		n, ok := s.until.OffsetOf(sp.topic, sp.partition)
		if !ok {
			return fault.New(fault.Config, "name every partition, or one offset for all", "source.kafka.until: has no offset for %s", sp.name())
		}
		sp.end.Store(n)
	case s.until.Latest:
		sp.end.Store(last)
	case s.later == 0:
		sp.end.Store(min(at(o.to, sp), last))
	}
	if end := sp.end.Load(); end > next {
		s.total += end - next
	}
	return nil
}

// outOfRange decides what to do about a position that the cluster does not
// have (K7). It is never decided silently.
func (s *Source) outOfRange(sp *split, next, first, last int64) (int64, error) {
	what, to := fmt.Sprintf("offsets %d to %d are gone", next, first-1), first
	if next > last {
		what = fmt.Sprintf("its last offset is %d: it lost messages that were read", last-1)
	}
	switch s.c.OffsetOutOfRange {
	case config.OutOfRangeEarliest:
	case config.OutOfRangeLatest:
		to = last
	default:
		return 0, fault.New(fault.Halt, "the messages in between cannot be read any more; to go on without them, set source.kafka.offset_out_of_range to earliest or latest for one run",
			"%s: the next offset to read is %d, the first there is %d: %s", sp.name(), next, first, what)
	}
	s.log.Warn("messages are missing; going on by source.kafka.offset_out_of_range", "partition", sp.name(), "next", next, "first", first, "end", last, "going_on_at", to)
	return to, nil
}

// isStale says whether an error of a partition means that its leader is to be
// looked up again.
func isStale(err error) bool {
	for _, e := range []error{kerr.NotLeaderForPartition, kerr.FencedLeaderEpoch, kerr.UnknownLeaderEpoch, kerr.LeaderNotAvailable,
		kerr.ReplicaNotAvailable, kerr.KafkaStorageError, kerr.UnknownTopicOrPartition, kerr.UnknownTopicID, kerr.InconsistentTopicID,
		kerr.OffsetNotAvailable, kerr.BrokerNotAvailable} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
