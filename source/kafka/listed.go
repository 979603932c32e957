package kafka

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// partitions are partitions by their topics.
type partitions map[string][]int32

func partitionsOf(topics kadm.TopicDetails) partitions {
	want := make(partitions, len(topics))
	for name, t := range topics {
		want[name] = slices.Sorted(maps.Keys(t.Partitions))
	}
	return want
}

func (ps partitions) count() (n int) {
	for _, list := range ps {
		n += len(list)
	}
	return n
}

// String names the first ones, and says how many there are.
func (ps partitions) String() string {
	var names []string
	for _, topic := range slices.Sorted(maps.Keys(ps)) {
		for _, n := range ps[topic] {
			names = append(names, fmt.Sprintf("topic %s partition %d", topic, n))
		}
	}
	return someOf(names)
}

// someOf is a list that is short enough for a line of the log.
func someOf(names []string) string {
	const most = 5
	text, more := "", 0
	for i, name := range names {
		switch {
		case i >= most:
			more++
		case i > 0:
			text += ", " + name
		default:
			text = name
		}
	}
	if more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// listing are offsets of partitions.
type listing map[string]map[int32]int64

func (l listing) put(topic string, n int32, offset int64) {
	if l[topic] == nil {
		l[topic] = make(map[int32]int64)
	}
	l[topic][n] = offset
}

func (l listing) of(topic string, n int32) (int64, bool) {
	offset, ok := l[topic][n]
	return offset, ok
}

// at is what l, which has all that was asked for, says of a partition.
func at(l listing, sp *split) int64 { return l[sp.topic][sp.partition] }

// offsets are what the leaders of partitions say of them. Of those in silent
// nothing is known: it must not be taken for offset 0.
type offsets struct {
	first, last, from, to listing
	silent                partitions
	why                   error // of one of them
}

func (o *offsets) has(sp *split) bool {
	_, ok := o.last.of(sp.topic, sp.partition)
	return ok
}

// failed notes why something is not known: what waiting does not mend counts most.
func (o *offsets) failed(err error) {
	if o.why == nil {
		o.why = err
	} else if was, _ := refusal(o.why); was == "" {
		if is, _ := refusal(err); is != "" {
			o.why = err
		}
	}
}

// err says what is not known; nil: all is.
func (o *offsets) err() error {
	if len(o.silent) == 0 {
		return nil
	}
	return fmt.Errorf("the cluster did not tell the offsets of %s: %w", o.silent, o.why)
}

// askOffsets asks once where partitions begin and end. It asks only for these:
// what other partitions of their topics say does not matter.
func (s *Source) askOffsets(ctx context.Context, want partitions) *offsets {
	o := &offsets{silent: make(partitions)}
	ask := func(when int64, isolation int8) listing {
		l := s.ask(ctx, want, when, isolation, o)
		want = want.known(l, o)
		return l
	}
	// The end is asked for last, so that it is not before the others.
	o.first = ask(firstOffset, 0)
	if !s.start.Time.IsZero() {
		o.from = ask(s.start.Time.UnixMilli(), 0)
	}
	if !s.until.Time.IsZero() {
		o.to = ask(s.until.Time.UnixMilli(), 0)
	}
	o.last = ask(lastOffset, 1)
	return o
}

// known are those of which l tells; the others are silent.
func (ps partitions) known(l listing, o *offsets) partitions {
	left := make(partitions, len(ps))
	for topic, list := range ps {
		for _, n := range list {
			if _, ok := l.of(topic, n); ok {
				left[topic] = append(left[topic], n)
			} else {
				o.silent[topic] = append(o.silent[topic], n)
			}
		}
	}
	return left
}

// What to ask for instead of a time.
const (
	lastOffset  = -1
	firstOffset = -2
	localStart  = -4 // the first offset that a leader has on its own disks
)

var errNotTold = errors.New("the answer does not say")

// ask asks the leaders one question, for a bounded time: one that does not answer
// must not keep what the others say. A time that no message has is the end.
func (s *Source) ask(ctx context.Context, want partitions, when int64, isolation int8, o *offsets) listing {
	l := make(listing)
	if len(want) == 0 {
		return l
	}
	behind := make(partitions)
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID, req.IsolationLevel = -1, isolation
	for topic, list := range want {
		t := kmsg.NewListOffsetsRequestTopic()
		t.Topic = topic
		for _, n := range list {
			p := kmsg.NewListOffsetsRequestTopicPartition()
			p.Partition, p.Timestamp = n, when
			t.Partitions = append(t.Partitions, p)
		}
		req.Topics = append(req.Topics, t)
	}
	s.shards(ctx, req, want, o.failed, func(resp kmsg.Response) {
		for _, t := range resp.(*kmsg.ListOffsetsResponse).Topics {
			for _, p := range t.Partitions {
				switch err := kerr.ErrorForCode(p.ErrorCode); {
				case err != nil:
					o.failed(err)
				case p.Offset >= 0:
					l.put(t.Topic, p.Partition, p.Offset)
				case when >= 0:
					behind[t.Topic] = append(behind[t.Topic], p.Partition)
				default:
					o.failed(errNotTold)
				}
			}
		}
	})
	for topic, parts := range s.ask(ctx, behind, lastOffset, 0, o) {
		for n, offset := range parts {
			l.put(topic, n, offset)
		}
	}
	if l.count() < want.count() { // also when an answer leaves one out
		o.failed(errNotTold)
	}
	return l
}

func (l listing) count() (n int) {
	for _, parts := range l {
		n += len(parts)
	}
	return n
}

// shards sends each leader its part of a request about partitions.
func (s *Source) shards(ctx context.Context, req kmsg.Request, of partitions, failed func(error), take func(kmsg.Response)) {
	// The client looks for leaders in what it has just been told.
	if _, err := anyone(ctx, s.admin, slices.Sorted(maps.Keys(of))...); err != nil {
		failed(err)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	for _, shard := range s.client.RequestSharded(ctx, req) {
		if shard.Err != nil {
			failed(shard.Err)
			continue
		}
		take(shard.Resp)
	}
}

// anyone asks for topics. Any broker will do: while one does not answer, the next
// is asked.
func anyone(ctx context.Context, admin *kadm.Client, topics ...string) (kadm.Metadata, error) {
	for wait := requestTimeout / 5; ; wait *= 2 {
		once, cancel := context.WithTimeout(ctx, wait)
		md, err := admin.Metadata(once, topics...)
		over := once.Err() != nil
		cancel()
		if err == nil || !over || ctx.Err() != nil || wait > requestTimeout {
			return md, err
		}
	}
}

// offsets asks where partitions begin and end, until it is known of all; or for
// a while only, when the run may begin without those of which it is not (K12).
func (s *Source) offsets(ctx context.Context, topics kadm.TopicDetails, m *muster) (*offsets, error) {
	want := partitionsOf(topics)
	var was error
	for {
		o := s.askOffsets(ctx, want)
		err := o.err()
		if err == nil || m.enough(topics, o) {
			return o, nil
		}
		if ctx.Err() != nil && was != nil {
			return nil, was // it says more than that the time is over
		}
		was = err
		if option, _ := refusal(err); option != "" || ctx.Err() != nil {
			return nil, err
		}
		m.waits(o.silent.String(), o.why)
		if serr := sleep(ctx, 200*time.Millisecond); serr != nil {
			return nil, errors.Join(err, serr)
		}
	}
}
