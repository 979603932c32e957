package kafka

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

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
	start     int64        // where it begins when it has no position
	earliest  bool         // it begins at the first message there is
	decided   int32        // partitions of its topic that start where source.kafka.start says
	moved     int64        // where it goes on instead of its position, by source.kafka.offset_out_of_range; -1
	end       atomic.Int64 // it ends before this offset; noEnd
}

const noEnd = -1

// name is a partition for people.
func (s *split) name() string { return fmt.Sprintf("topic %s partition %d", s.topic, s.partition) }

func newPing() kmsg.Request { return kmsg.NewPtrMetadataRequest() }

// offsets are what a cluster says of partitions.
type offsets struct {
	first, last, from, to kadm.ListedOffsets
}

// place makes splits of partitions, which begin and end where o says (K6).
func (s *Source) place(topics kadm.TopicDetails, o *offsets, known map[string]ledger.Source) ([]source.Split, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := make(map[string]int32) // topics that were read before, with Decided
	for id, was := range known {
		if topic, _, ok := parseSplitID(id); ok {
			p, _ := parsePosition(id, was.Position) // bounds says what is wrong with it
			seen[topic] = max(seen[topic], p.Decided)
		}
	}
	var out []source.Split
	for _, name := range slices.Sorted(maps.Keys(topics)) {
		t := topics[name]
		_, reading := s.topics[name]
		decided, before := seen[name]
		switch {
		case reading:
			decided = s.decided[name]
		case !before && known != nil:
			for n := range t.Partitions {
				decided = max(decided, n+1)
			}
		}
		s.decided[name] = decided
		for _, n := range slices.Sorted(maps.Keys(t.Partitions)) {
			id := splitID(name, n)
			if s.splits[id] != nil {
				continue
			}
			sp := &split{id: id, topic: name, partition: n, topicID: t.ID, decided: decided, moved: -1}
			if err := s.bounds(sp, o, known[id], reading || known == nil || n >= decided); err != nil {
				return nil, err
			}
			s.splits[id] = sp
			out = append(out, source.Split{ID: id, Name: sp.name()})
		}
		s.topics[name] = t.ID
	}
	return out, nil
}

// bounds sets where a split starts and ends. added says that the partition was
// added to a topic that is read: it starts at its first message, wherever the
// others started (KA-05).
func (s *Source) bounds(sp *split, o *offsets, was ledger.Source, added bool) error {
	first, last := at(o.first, sp), at(o.last, sp)
	switch {
	case s.start.Offsets != nil && !added:
		n, ok := s.start.OffsetOf(sp.topic, sp.partition)
		if !ok {
			return fault.New(fault.Config, "name every partition, or one offset for all", "source.kafka.start: has no offset for %s", sp.name())
		}
		if n < first || n > last {
			return fault.New(fault.Config, "", "source.kafka.start: %s has offsets %d to %d, not %d", sp.name(), first, last, n)
		}
		sp.start = n
	case s.start.Earliest || added:
		sp.start, sp.earliest = first, true
	case s.start.Latest:
		sp.start = last
	default:
		sp.start = min(at(o.from, sp), last)
	}
	next := sp.start
	if was.Position != "" {
		p, err := parsePosition(sp.id, was.Position)
		if err != nil {
			return err
		}
		if next = p.Offset; next < first || next > last && next > at(o.to, sp) {
			if sp.moved, err = s.outOfRange(sp, next, first, last); err != nil {
				return err
			}
			next = sp.moved
		}
	}
	sp.end.Store(noEnd)
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

// at is what l, which has all that was asked for, says of a partition.
func at(l kadm.ListedOffsets, sp *split) int64 {
	o, _ := l.Lookup(sp.topic, sp.partition)
	return o.Offset
}

// partitions are partitions by their topics.
type partitions map[string][]int32

func partitionsOf(topics kadm.TopicDetails) partitions {
	want := make(partitions, len(topics))
	for name, t := range topics {
		want[name] = slices.Sorted(maps.Keys(t.Partitions))
	}
	return want
}

// missing is an error when l does not have one of the partitions. An answer
// without a partition, or without its offset, says nothing of it: it must not
// be taken for offset 0.
func (want partitions) missing(l kadm.ListedOffsets) error {
	for _, name := range slices.Sorted(maps.Keys(want)) {
		for _, n := range want[name] {
			if o, ok := l.Lookup(name, n); !ok || o.Offset < 0 {
				return fmt.Errorf("the cluster did not tell the offsets of topic %s partition %d", name, n)
			}
		}
	}
	return nil
}

// offsets asks where partitions begin and end, until it is known of all.
func (s *Source) offsets(ctx context.Context, want partitions) (*offsets, error) {
	for {
		o, err := s.askOffsets(ctx, want)
		if err == nil {
			return o, nil
		}
		if option, _ := refusal(err); option != "" || ctx.Err() != nil {
			return nil, err
		}
		if serr := sleep(ctx, 200*time.Millisecond); serr != nil {
			return nil, errors.Join(err, serr)
		}
	}
}

// askOffsets asks once.
func (s *Source) askOffsets(ctx context.Context, want partitions) (*offsets, error) {
	o := &offsets{}
	if len(want) == 0 { // the client would ask for all topics
		return o, nil
	}
	names := slices.Sorted(maps.Keys(want))
	ask := func(to *kadm.ListedOffsets, from func(context.Context, ...string) (kadm.ListedOffsets, error)) error {
		l, err := from(ctx, names...)
		if err == nil {
			err = l.Error()
		}
		if err == nil {
			err = want.missing(l)
		}
		*to = l
		return err
	}
	after := func(t time.Time) func(context.Context, ...string) (kadm.ListedOffsets, error) {
		return func(ctx context.Context, names ...string) (kadm.ListedOffsets, error) {
			return s.admin.ListOffsetsAfterMilli(ctx, t.UnixMilli(), names...)
		}
	}
	// The end is asked for last, so that it is not before the others.
	err := ask(&o.first, s.admin.ListStartOffsets)
	if err == nil && !s.start.Time.IsZero() {
		err = ask(&o.from, after(s.start.Time))
	}
	if err == nil && !s.until.Time.IsZero() {
		err = ask(&o.to, after(s.until.Time))
	}
	if err == nil {
		err = ask(&o.last, s.admin.ListCommittedOffsets)
	}
	return o, err
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
