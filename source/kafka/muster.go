package kafka

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/hivesink/hivesink/ledger"
)

// muster is the start of a run, which wants to hear of every partition. One that
// goes on with what was begun does not let those that do not answer keep it from
// the others (K12). A bounded run has to know all ends, and a first one all
// beginnings: were the cluster or the way to it set up wrongly, now is the time
// to say so.
type muster struct {
	s     *Source
	known map[string]ledger.Source
	seen  map[string]int32 // topics that were read before, with position.Decided
	began time.Time
	said  bool
}

func (s *Source) muster(known map[string]ledger.Source) *muster {
	return &muster{s: s, known: known, seen: decidedBefore(known), began: time.Now()}
}

// mayBegin says whether the run may begin with some.
func (m *muster) mayBegin() bool {
	return !m.s.Bounded() && len(m.seen) > 0 && time.Since(m.began) >= m.s.grace
}

// enough says whether the run may begin without the partitions of which o does
// not tell: it does of others, and where each of these begins is certain.
func (m *muster) enough(topics kadm.TopicDetails, o *offsets) bool {
	if option, _ := refusal(o.why); option != "" || !m.mayBegin() || o.last.count() == 0 {
		return false
	}
	for topic, list := range o.silent {
		for _, n := range list {
			if !m.certain(topics[topic], n) {
				return false
			}
		}
	}
	return true
}

// certain says whether a partition that does not answer now will begin where it
// would have begun now. With `latest` that is so of one that had no leader and
// hence no messages meanwhile: its next leader knows where that began.
func (m *muster) certain(t kadm.TopicDetail, n int32) bool {
	if m.known[splitID(t.Topic, n)].Position != "" || !m.s.start.Latest || n >= m.s.decide(t, m.seen) {
		return true
	}
	return leaderless(t.Partitions[n]) >= 0
}

// leaderless is the leader epoch of a partition that has no leader, else -1.
func leaderless(p kadm.PartitionDetail) int32 {
	if p.Leader >= 0 || p.Err != nil && !errors.Is(p.Err, kerr.LeaderNotAvailable) {
		return -1 // one without the listener that we use has a leader for others
	}
	return p.LeaderEpoch
}

// waits says what a start waits for, and how that ends; once.
func (m *muster) waits(what string, why error) {
	if m.said || time.Since(m.began) < m.s.grace {
		return
	}
	m.said = true
	whose := "a first run needs to know where each begins"
	switch {
	case m.s.Bounded():
		whose = "a run with source.kafka.until needs to know where each ends"
	case len(m.seen) > 0:
		whose = "the others are not enough to begin with"
	}
	left := m.s.c.StartTimeout.Std() - time.Since(m.began)
	m.s.log.Warn("partitions do not answer, and "+whose+": the run waits for them, and ends with an error when source.kafka.start_timeout is over",
		"partitions", what, "left", left.Round(time.Second), "error", why)
}

// decidedBefore are the topics that were read before, each with how many of its
// partitions start where source.kafka.start says (position.Decided).
func decidedBefore(known map[string]ledger.Source) map[string]int32 {
	seen := make(map[string]int32)
	for id, was := range known { // a maximum: order does not matter
		if topic, _, ok := parseSplitID(id); ok && was.Position != "" {
			p, _ := parsePosition(id, was.Position) // whoever begins with it says what is wrong with it
			seen[topic] = max(seen[topic], p.Decided)
		}
	}
	return seen
}

// decide is how many partitions of a topic start where source.kafka.start says;
// those behind them were added later, and start at their first message (K6).
func (s *Source) decide(t kadm.TopicDetail, seen map[string]int32) int32 {
	if decided, before := seen[t.Topic]; before {
		return decided
	}
	decided := int32(0)
	for n := range t.Partitions {
		decided = max(decided, n+1)
	}
	return decided
}

// absent says which partitions a run begins without.
func (s *Source) absent(o *offsets) {
	if len(o.silent) == 0 {
		return
	}
	s.log.Warn("the run begins without partitions that do not answer: they are taken up when they do, each where it would have begun now, and hold the watermark until then",
		"count", o.silent.count(), "partitions", o.silent.String(), "error", o.why)
}

// gaps are the partitions of topics that have no leader.
func gaps(topics kadm.TopicDetails) partitions {
	out := make(partitions)
	for _, name := range slices.Sorted(maps.Keys(topics)) {
		for _, p := range topics[name].Partitions.Sorted() {
			if p.Leader < 0 {
				out[name] = append(out[name], p.Partition)
			}
		}
	}
	return out
}
