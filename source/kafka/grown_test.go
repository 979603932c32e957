package kafka

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/hivesink/hivesink/config"
	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/source"
)

// grow waits for partitions that have come.
func (b *bench) grow(s *Source) (splits []string, err error) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	list, err := s.Grown(ctx)
	for _, sp := range list {
		splits = append(splits, sp.ID)
	}
	return splits, err
}

// A topic that comes while a run goes on is read from its position only when it
// is the one that was read before (K5).
func TestTopicThatComesBack(t *testing.T) {
	b := newBench(t)
	b.cfg.Topics, b.cfg.TopicPattern, b.cfg.Discover = nil, "t|u", config.Duration(20*time.Millisecond)
	s := b.source()
	splits, err := s.Splits(context.Background(), nil)
	if err != nil || len(splits) != 2 {
		t.Fatalf("%v, %v", splits, err)
	}
	if err := b.cluster.CreateTopic("u", 1, nil); err != nil {
		t.Fatal(err)
	}
	ids, err := b.grow(s)
	if err != nil || fmt.Sprint(ids) != "[kafka:u/0]" {
		t.Fatalf("%v, %v", ids, err)
	}
	here := position{Offset: 0, Epoch: -1, Topic: topicID(b.cluster.TopicInfo("u").TopicID), Cluster: s.cluster}
	gone, elsewhere := here, here
	gone.Topic, elsewhere.Cluster = "AAAA", "elsewhere"
	for want, p := range map[string]position{"topic u was deleted and made again": gone, "written from cluster elsewhere": elsewhere, "": here} {
		err := b.reader(s).Add(source.Split{ID: "kafka:u/0"}, ledger.Source{Position: p.String()})
		switch {
		case want == "" && err != nil:
			t.Errorf("the same topic: %v", err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want) || fault.ClassOf(err) != fault.Halt):
			t.Errorf("%q: %v", want, err)
		}
	}
}

// A run that waits for its end notices that a topic is deleted, before the time
// and when that has come.
func TestUntilWithADeletedTopic(t *testing.T) {
	for _, until := range []time.Duration{time.Hour, 300 * time.Millisecond} {
		b := newBench(t)
		var s *Source
		for more := time.Duration(1); s == nil || s.later == 0; more *= 4 { // a busy machine may take longer for the start
			b.cfg.Discover = config.Duration(more * 400 * time.Millisecond)
			b.cfg.Until = time.Now().Add(more * until).Format(time.RFC3339Nano)
			s = b.source()
			if _, err := s.Splits(context.Background(), nil); err != nil || more > 1000 {
				t.Fatalf("until %s: %v, waits for %d", until, err, s.later)
			}
		}
		if err := b.cluster.DeleteTopic("t"); err != nil {
			t.Fatal(err)
		}
		if _, err := b.grow(s); err == nil || !strings.Contains(err.Error(), "was deleted while it was read") {
			t.Errorf("until %s: %v", until, err)
		}
	}
}

// An answer without a partition says nothing of it: in particular not that it
// has no messages. It is asked again.
func TestAnswerWithoutAPartition(t *testing.T) {
	for _, out := range []string{config.OutOfRangeHalt, config.OutOfRangeEarliest} {
		b := newBench(t)
		b.produce(0, 5, 0)
		b.cfg.OffsetOutOfRange = out
		dropped := 0
		b.cluster.ControlKey(int16(kmsg.ListOffsets), func(req kmsg.Request) (kmsg.Response, error, bool) {
			q := req.(*kmsg.ListOffsetsRequest)
			if q.Topics[0].Partitions[0].Timestamp != -1 { // the end
				return nil, nil, false
			}
			dropped++
			resp := q.ResponseKind().(*kmsg.ListOffsetsResponse)
			for _, rt := range q.Topics {
				at := kmsg.NewListOffsetsResponseTopic()
				at.Topic = rt.Topic
				p := kmsg.NewListOffsetsResponseTopicPartition()
				p.Partition = 1
				p.Offset = 0
				at.Partitions = append(at.Partitions, p)
				resp.Topics = append(resp.Topics, at)
			}
			return resp, nil, true
		})
		s := b.source()
		splits, err := s.Splits(context.Background(), map[string]ledger.Source{firstSplit: {Position: `{"o":3,"e":0}`, NextRow: 3}})
		if err != nil || len(splits) != 2 || dropped != 1 {
			t.Errorf("%s: %v, %v; %d answers without the partition", out, splits, err, dropped)
			continue
		}
		if moved := s.splits[firstSplit].moved; moved >= 0 {
			t.Errorf("%s: it goes on at %d", out, moved)
		}
	}
}

// What ends a start does not end a run: looking for new partitions goes on
// until it works.
func TestGrownGoesOn(t *testing.T) {
	for _, e := range []*kerr.Error{kerr.TopicAuthorizationFailed, kerr.SaslAuthenticationFailed, kerr.NotLeaderForPartition} {
		b := newBench(t)
		b.cfg.Topics, b.cfg.TopicPattern, b.cfg.Discover = nil, "t|u", config.Duration(20*time.Millisecond)
		s := b.source()
		if _, err := s.Splits(context.Background(), nil); err != nil {
			t.Fatal(err)
		}
		h := b.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.ListOffsets}, Topic: "u", Err: e, Count: 2})
		if err := b.cluster.CreateTopic("u", 1, nil); err != nil {
			t.Fatal(err)
		}
		ids, err := b.grow(s)
		if err != nil || fmt.Sprint(ids) != "[kafka:u/0]" {
			t.Errorf("%v: %v, %v", e, ids, err)
		}
		if h.Hits() < 2 {
			t.Errorf("%v: only %d questions failed", e, h.Hits())
		}
	}
}

// A checkpoint may have the first positions of some partitions only. Those without
// one start again where source.kafka.start says, as if they had not begun; only
// what was added since starts at its first message (K6).
func TestFirstCheckpointHasSome(t *testing.T) {
	b := newBench(t)
	b.cfg.Start, b.cfg.Until = "latest", ""
	b.produce(0, 10, 0)
	b.produce(100, 10, 1)
	s := b.source()
	splits, err := s.Splits(context.Background(), map[string]ledger.Source{})
	if err != nil {
		t.Fatal(err)
	}
	r := b.reader(s)
	k := &taken{}
	if err := r.Add(splits[0], k.Source); err != nil {
		t.Fatal(err)
	}
	ev, err := r.Read(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	k.take(t, ev.Batch) // partition 0 stands at its end, and partition 1 nowhere

	adm := kadm.NewClient(b.client)
	if _, err := adm.CreatePartitions(context.Background(), 1, "t"); err != nil {
		t.Fatal(err)
	}
	s = b.source()
	if _, err := s.Splits(context.Background(), map[string]ledger.Source{firstSplit: k.Source}); err != nil {
		t.Fatal(err)
	}
	if sp := s.splits["kafka:t/1"]; sp == nil || sp.start != 10 || sp.earliest {
		t.Errorf("the one that is in no checkpoint: %+v, want it to start at 10", sp)
	}
	if sp := s.splits["kafka:t/2"]; sp == nil || !sp.earliest {
		t.Errorf("the one that was added: %+v, want it to start at its first message", sp)
	}
}
