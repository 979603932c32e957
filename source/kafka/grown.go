package kafka

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/source"
)

// Grown implements source.Live.
func (s *Source) Grown(ctx context.Context) ([]source.Split, error) {
	if s.later != 0 {
		if err := s.endAt(ctx); err != nil {
			return nil, err
		}
	}
	for {
		if err := sleep(ctx, s.c.Discover.Std()); err != nil {
			return nil, err
		}
		if grown, err := s.look(ctx); err != nil || len(grown) > 0 {
			return grown, err
		}
	}
}

// endAt waits for the time of source.kafka.until, when that was in the future
// at the start, and sets the ends. Meanwhile it looks for what ends the run
// before: of a topic that was deleted no end is ever known.
func (s *Source) endAt(ctx context.Context) error {
	looked, said := time.Now(), time.Time{}
	for {
		left, again := time.Until(s.until.Time), time.Until(looked.Add(s.c.Discover.Std()))
		wait := time.Second // the end has come, and was not told
		if left > 0 {
			wait = left
		} else if err := s.setEnds(ctx); err == nil || ctx.Err() != nil {
			return ctx.Err()
		} else if time.Since(said) > time.Minute {
			said = time.Now()
			s.log.Warn("the run waits to hear where partitions ended at the time of source.kafka.until; trying again", "error", err)
		}
		if err := sleep(ctx, min(wait, max(0, again))); err != nil {
			return err
		}
		if time.Since(looked) < s.c.Discover.Std() {
			continue
		}
		if _, err := s.look(ctx); err != nil {
			return err
		}
		looked = time.Now()
	}
}

// setEnds asks where the partitions end at the time of source.kafka.until. Of
// those that answer it is known then, also when others do not.
func (s *Source) setEnds(ctx context.Context) error {
	want := make(partitions)
	s.mu.Lock()
	for _, sp := range s.splits {
		if sp.end.Load() == noEnd {
			want[sp.topic] = append(want[sp.topic], sp.partition)
		}
	}
	s.mu.Unlock()
	o := s.askOffsets(ctx, want)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sp := range s.splits {
		if o.has(sp) {
			sp.end.Store(min(at(o.to, sp), at(o.last, sp)))
		}
	}
	return o.err()
}

// look looks once for new partitions. A run that reads goes on when no answer
// comes: what a start takes for a wrong option may be a broker that restarts.
// Only what the cluster does answer ends it.
func (s *Source) look(ctx context.Context) ([]source.Split, error) {
	md, err := anyone(ctx, s.admin, s.c.Topics...)
	if err != nil {
		return nil, s.unanswered(ctx, err)
	}
	fresh, err := s.compare(md)
	if err != nil || len(fresh) == 0 || s.Bounded() {
		return nil, err
	}
	o := s.askOffsets(ctx, partitionsOf(fresh))
	if err := o.err(); err != nil {
		if err := s.unanswered(ctx, err); err != nil {
			return nil, err
		}
		fresh = told(fresh, o)
	}
	return s.place(fresh, o, nil)
}

// told are the partitions of which o tells; the others are looked for again.
func told(topics kadm.TopicDetails, o *offsets) kadm.TopicDetails {
	out := make(kadm.TopicDetails)
	for name, t := range topics {
		all := t.Partitions
		t.Partitions = make(kadm.PartitionDetails)
		for n, p := range all {
			if _, ok := o.last.of(name, n); ok {
				t.Partitions[n] = p
			}
		}
		if len(t.Partitions) > 0 {
			out[name] = t
		}
	}
	return out
}

func (s *Source) unanswered(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	s.log.Warn("looking for new partitions failed; trying again", "in", s.c.Discover.Std(), "error", err)
	return nil
}

// compare finds the topics with partitions that are not read yet, and halts
// when one that is read is not there any more.
func (s *Source) compare(md kadm.Metadata) (fresh kadm.TopicDetails, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, was := range s.topics {
		t, ok := md.Topics[name]
		if !ok || errors.Is(t.Err, kerr.UnknownTopicOrPartition) {
			if s.lost[name]++; s.lost[name] >= lostLooks {
				return nil, fault.New(fault.Halt, "take it out of source.kafka.topics if that was meant", "topic %s (id %s) was deleted while it was read", name, topicID(was))
			}
			continue
		}
		s.lost[name] = 0
		if t.Err == nil && another(t.ID, was) {
			return nil, recreated(name, topicID(was), topicID(t.ID))
		}
		if t.Err == nil && was == (kadm.TopicID{}) {
			s.topics[name] = t.ID
		}
	}
	fresh = make(kadm.TopicDetails)
	for name, t := range md.Topics {
		if t.Err != nil || s.pattern != nil && (strings.HasPrefix(name, "__") || !s.pattern.MatchString(name)) {
			continue
		}
		all := t.Partitions
		t.Partitions = make(kadm.PartitionDetails)
		for n, p := range all {
			if s.splits[splitID(name, n)] == nil {
				t.Partitions[n] = p
				fresh[name] = t
			}
		}
	}
	return fresh, nil
}

// lostLooks is how often in a row a topic must not be there to count as
// deleted: brokers that start know nothing at first.
const lostLooks = 3
