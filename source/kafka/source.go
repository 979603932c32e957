package kafka

import (
	"context"
	"encoding/base64"
	"fmt"
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/hivesink/hivesink/config"
	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/source"
)

// Options are what a Kafka source needs.
type Options struct {
	source.Options
	Config  *config.Kafka
	Memory  int64 // of fetched messages, all readers together
	Readers int
	Log     *slog.Logger // nil: nothing is logged
}

// Source reads the topics of a cluster.
type Source struct {
	o       Options
	c       *config.Kafka
	pattern *regexp.Regexp
	start   config.KafkaPlace
	until   config.KafkaPlace
	later   int64 // until in milliseconds, when that is to come after the start; 0
	log     *slog.Logger
	// patience is how long a transaction may be open, or a partition not be read,
	// before that is logged; grace how long a start that goes on waits for all.
	patience, grace time.Duration
	values          func() (*decoder, error)

	client  *kgo.Client
	admin   *kadm.Client
	cluster string

	mu      sync.Mutex
	topics  map[string]kadm.TopicID // being read
	splits  map[string]*split
	decided map[string]int32 // of each topic: split.decided
	lost    map[string]int   // how often in a row a topic was not there
	total   int64
	read    atomic.Int64
	group   *group
	crier   *crier
	waiting atomic.Int64 // partitions that the log says cannot be read

	registry *registry // nil: there is none
}

var _ source.Live = (*Source)(nil)

// New makes a source; it connects with Splits.
func New(o Options) (*Source, error) {
	o.Options = o.Options.WithDefaults()
	s := &Source{o: o, c: o.Config, log: o.Log, patience: time.Minute, grace: o.Config.StartTimeout.Std() / 3, topics: make(map[string]kadm.TopicID), splits: make(map[string]*split), decided: make(map[string]int32), lost: make(map[string]int)}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	var err error
	if s.c.TopicPattern != "" {
		if s.pattern, err = regexp.Compile("^(?:" + s.c.TopicPattern + ")$"); err != nil {
			return nil, fault.Wrap(fault.Config, "", fmt.Errorf("source.kafka.topic_pattern: %w", err))
		}
	}
	if s.start, err = config.ParseKafkaPlace(s.c.Start); err != nil {
		return nil, fault.Wrap(fault.Config, "", fmt.Errorf("source.kafka.start: %w", err))
	}
	if s.c.Until != "" {
		if s.until, err = config.ParseKafkaPlace(s.c.Until); err != nil {
			return nil, fault.Wrap(fault.Config, "", fmt.Errorf("source.kafka.until: %w", err))
		}
		if s.until.Time.After(time.Now()) {
			s.later = s.until.Time.UnixMilli()
		}
	}
	// What the options alone make wrong, and secrets that are not there, are said
	// before the table is opened.
	if _, err := clientOptions(s.c); err != nil {
		return nil, err
	}
	if s.c.SchemaRegistry != nil {
		if s.registry, err = newRegistry(s.c.SchemaRegistry, s.log); err != nil {
			return nil, err
		}
	}
	s.values, err = s.decoders()
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Bounded implements source.Live.
func (s *Source) Bounded() bool { return s.c.Until != "" }

// Splits implements source.Live.
func (s *Source) Splits(ctx context.Context, known map[string]ledger.Source) ([]source.Split, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.c.StartTimeout.Std(), errStartTimeout)
	defer cancel()
	if err := s.connect(ctx); err != nil {
		return nil, err
	}
	if s.registry != nil && s.o.Format == config.FormatAvro {
		if err := s.registry.check(ctx); err != nil {
			return nil, err
		}
	}
	m := s.muster(known)
	md, err := s.metadata(ctx, m)
	if err != nil {
		return nil, err
	}
	s.cluster = md.Cluster
	if err := s.identify(md, known); err != nil {
		return nil, err
	}
	o, err := s.offsets(ctx, md.Topics, m)
	if err != nil {
		return nil, s.startFailed(ctx, err)
	}
	list, err := s.place(md.Topics, o, known)
	if err != nil {
		return nil, err
	}
	s.absent(o)
	s.crier = newCrier(s)
	if s.c.Group != "" {
		s.group = newGroup(s)
		s.group.offer(positionsOf(list, known))
		s.group.report(ctx)
	}
	return list, nil
}

// identify halts when the cluster or a topic is not the one that was read
// before (K5).
func (s *Source) identify(md kadm.Metadata, known map[string]ledger.Source) error {
	gone := ""
	for _, id := range slices.Sorted(maps.Keys(known)) {
		topic, _, ok := parseSplitID(id)
		if !ok || known[id].Position == "" {
			continue
		}
		t, read := md.Topics[topic]
		if !read {
			if s.pattern != nil && s.pattern.MatchString(topic) && topic != gone {
				gone = topic // what was not read of it yet, nobody will
				s.log.Warn("a topic that matches source.kafka.topic_pattern and was read before is not there any more", "topic", topic)
			}
			continue
		}
		p, err := parsePosition(id, known[id].Position)
		if err != nil {
			return err
		}
		if err := p.isOf(topic, t.ID, md.Cluster); err != nil {
			return err
		}
	}
	return nil
}

// isOf says whether it is a position in a topic of a cluster (K5). What brokers
// do not tell is not compared.
func (p position) isOf(topic string, id kadm.TopicID, cluster string) error {
	if p.Cluster != "" && cluster != "" && p.Cluster != cluster {
		return fault.New(fault.Halt, "connect to the old cluster, or use another pipeline and table",
			"source.kafka.brokers: the cluster has id %s, the table was written from cluster %s", cluster, p.Cluster)
	}
	if p.Topic != "" && id != (kadm.TopicID{}) && p.Topic != topicID(id) {
		return recreated(topic, p.Topic, topicID(id))
	}
	return nil
}

// another says whether two ids are those of two topics. Brokers before 2.8 tell
// none, and while a cluster is upgraded some do and some do not.
func another(a, b kadm.TopicID) bool {
	return a != b && a != (kadm.TopicID{}) && b != (kadm.TopicID{})
}

func recreated(topic, was, is string) error {
	return fault.New(fault.Halt, "its offsets mean other messages now: read it with another pipeline into another table, or put the old topic back",
		"topic %s was deleted and made again: the table was written from the topic with id %s, the cluster has %s", topic, was, is)
}

func topicID(id kadm.TopicID) string {
	if id == (kadm.TopicID{}) {
		return "" // the brokers are older than 2.8
	}
	return base64.RawURLEncoding.EncodeToString(id[:]) // as Kafka's own tools print it
}

// positionsOf are the positions that a ledger has of splits.
func positionsOf(list []source.Split, known map[string]ledger.Source) map[string]string {
	out := make(map[string]string, len(list))
	for _, sp := range list {
		if text := known[sp.ID].Position; text != "" {
			out[sp.ID] = text
		}
	}
	return out
}

// Progress implements source.Live.
func (s *Source) Progress() float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.total <= 0 {
		return 0
	}
	return min(1, float64(s.read.Load())/float64(s.total))
}

// Durable implements source.Live.
func (s *Source) Durable(positions map[string]string) {
	if s.group != nil {
		s.group.offer(positions)
	}
}

// Close implements source.Live.
func (s *Source) Close() error {
	if s.crier != nil {
		s.crier.close()
	}
	if s.group != nil {
		s.group.close()
	}
	if s.client != nil {
		s.client.Close()
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
