package kafka

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/hivesink/hivesink/config"
	"github.com/hivesink/hivesink/internal/fault"
)

// The way to a cluster, at the start of a run.

var errStartTimeout = errors.New("source.kafka.start_timeout is over")

// connect makes the client and finds a broker that answers. Every address that
// does not is in the error.
func (s *Source) connect(ctx context.Context) error {
	opts, err := clientOptions(s.c)
	if err != nil {
		return err
	}
	if err := probe(ctx, s.c, opts); err != nil {
		return err
	}
	if s.client, err = kgo.NewClient(opts...); err != nil {
		return fault.Wrap(fault.Config, "", fmt.Errorf("source.kafka: %w", err))
	}
	s.admin = kadm.NewClient(s.client)
	return nil
}

// probe asks all addresses until one answers: one that hangs must not take the
// time of the others. What cannot be mended by waiting ends it at once.
func probe(ctx context.Context, c *config.Kafka, opts []kgo.Opt) error {
	client, err := kgo.NewClient(append(slices.Clone(opts), kgo.RequestRetries(0))...)
	if err != nil {
		return fault.Wrap(fault.Config, "", fmt.Errorf("source.kafka: %w", err))
	}
	defer client.Close()
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		errs, final := ping(ctx, client, c)
		if errs == nil || final != nil {
			return final
		}
		if sleep(ctx, wait) != nil {
			if context.Cause(ctx) != errStartTimeout {
				return ctx.Err()
			}
			return errors.Join(errs...)
		}
	}
}

// ping asks all addresses once. No errors: one has answered; final is what waiting
// does not mend.
func ping(ctx context.Context, client *kgo.Client, c *config.Kafka) (errs []error, final error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	seeds := client.SeedBrokers()
	type result struct {
		i   int
		err error
	}
	results := make(chan result, len(seeds))
	for i, b := range seeds {
		go func() { // ends with ctx; joined below, unless one has answered
			_, err := b.Request(ctx, newPing())
			results <- result{i, err}
		}()
	}
	errs = make([]error, len(seeds))
	for range seeds {
		r := <-results
		if r.err == nil {
			return nil, nil
		}
		errs[r.i] = startError(c.Brokers[r.i], r.err)
		if option, _ := refusal(r.err); option != "" {
			final = errs[r.i]
		}
	}
	return errs, final
}

// metadata asks for the topics to read, until all their partitions have leaders;
// or for a while only, when the run may begin with some (K12).
func (s *Source) metadata(ctx context.Context, m *muster) (kadm.Metadata, error) {
	began := time.Now()
	leaderless := ""
	for {
		md, err := anyone(ctx, s.admin, s.c.Topics...)
		if err == nil {
			maps.DeleteFunc(md.Topics, func(name string, _ kadm.TopicDetail) bool {
				return s.pattern != nil && (strings.HasPrefix(name, "__") || !s.pattern.MatchString(name))
			})
			if leaderless, err = s.complete(md); err == nil && leaderless == "" {
				if leaderless = gaps(md.Topics).String(); leaderless == "" || m.mayBegin() {
					return md, nil
				}
			}
			if err == nil {
				m.waits(leaderless, kerr.LeaderNotAvailable)
			}
		}
		if isOurs(err) && time.Since(began) > settleTime || sleep(ctx, 200*time.Millisecond) != nil {
			if leaderless != "" {
				err = fault.New(fault.Retry, leaderHint, "source.kafka.topics: %s has no leader", leaderless)
			}
			return md, s.startFailed(ctx, err)
		}
	}
}

const leaderHint = "are the brokers down that have its replicas?"

// settleTime is how long a topic may be unknown to the broker that is asked: it
// may be as new as the broker.
const settleTime = 2 * time.Second

func isOurs(err error) bool {
	var f *fault.Error
	return errors.As(err, &f)
}

// startFailed is the error of a start that got as far as a broker.
func (s *Source) startFailed(ctx context.Context, err error) error {
	if isOurs(err) {
		return err
	}
	if option, hint := refusal(err); option != "" {
		return fault.Wrap(fault.Config, hint, fmt.Errorf("%s: %w", option, err))
	}
	if errors.Is(err, kerr.LeaderNotAvailable) {
		return fault.Wrap(fault.Retry, leaderHint, fmt.Errorf("source.kafka.topics: %w", err))
	}
	if context.Cause(ctx) == errStartTimeout {
		return fault.Wrap(fault.Retry, "a broker answers, but those it names do not all: are its advertised addresses reachable from here?",
			fmt.Errorf("source.kafka.brokers: %w", err))
	}
	return err
}

// complete checks that every topic is there; leaderless is one of which nothing is
// known but that it waits for leaders to be elected.
func (s *Source) complete(md kadm.Metadata) (leaderless string, err error) {
	for _, name := range slices.Sorted(maps.Keys(md.Topics)) {
		t := md.Topics[name]
		switch {
		case errors.Is(t.Err, kerr.UnknownTopicOrPartition):
			return "", fault.New(fault.Config, "create it, or mend the name", "source.kafka.topics: the cluster has no topic %q", name)
		case errors.Is(t.Err, kerr.TopicAuthorizationFailed):
			return "", fault.New(fault.Config, "grant the user READ and DESCRIBE on it", "source.kafka.topics: topic %q: %w", name, t.Err)
		case errors.Is(t.Err, kerr.InvalidTopicException):
			return "", fault.New(fault.Config, "", "source.kafka.topics: %q: %w", name, t.Err)
		case t.Err != nil:
			leaderless = fmt.Sprintf("topic %s (%v)", name, t.Err)
		}
	}
	if s.pattern != nil && len(md.Topics) == 0 {
		s.log.Warn("no topic matches source.kafka.topic_pattern yet", "pattern", s.c.TopicPattern)
	}
	return leaderless, nil
}
