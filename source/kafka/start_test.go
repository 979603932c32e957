package kafka

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/hivesink/hivesink/config"
	"github.com/hivesink/hivesink/ledger"
)

// A start that waits for a leader in vain says which partition has none.
func TestStartWithoutALeader(t *testing.T) {
	b := newBench(t)
	b.cluster.ControlKey(int16(kmsg.Metadata), func(req kmsg.Request) (kmsg.Response, error, bool) {
		b.cluster.KeepControl()
		if len(req.(*kmsg.MetadataRequest).Topics) == 0 {
			return nil, nil, false
		}
		name, resp := "t", req.ResponseKind().(*kmsg.MetadataResponse)
		topic := kmsg.NewMetadataResponseTopic()
		topic.Topic = &name
		for n := range int32(2) {
			p := kmsg.NewMetadataResponseTopicPartition()
			p.Partition = n
			if n == 1 {
				p.Leader, p.ErrorCode = -1, kerr.LeaderNotAvailable.Code
			}
			topic.Partitions = append(topic.Partitions, p)
		}
		resp.Topics = append(resp.Topics, topic)
		return resp, nil, true
	})
	var err error
	for timeout := 500 * time.Millisecond; timeout < patience; timeout *= 4 { // a busy machine may not get as far
		b.cfg.StartTimeout = config.Duration(timeout)
		if _, err = b.source().Splits(t.Context(), nil); err == nil || strings.Contains(err.Error(), "has no leader") {
			break
		}
	}
	if err == nil || !strings.Contains(err.Error(), "topic t partition 1 has no leader") || strings.Contains(err.Error(), "advertised") {
		t.Errorf("%v", err)
	}
}

// A group that can never be committed to is tried ever more rarely.
func TestCommitThatNeverWorks(t *testing.T) {
	b := newBench(t)
	s := b.source()
	if _, err := s.Splits(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	s.group.close()
	refused := make(chan struct{}, 100)
	b.cluster.ControlKey(int16(kmsg.OffsetCommit), func(req kmsg.Request) (kmsg.Response, error, bool) {
		b.cluster.KeepControl()
		resp := req.ResponseKind().(*kmsg.OffsetCommitResponse)
		for _, t := range req.(*kmsg.OffsetCommitRequest).Topics {
			topic := kmsg.NewOffsetCommitResponseTopic()
			topic.Topic, topic.TopicID = t.Topic, t.TopicID
			for _, p := range t.Partitions {
				q := kmsg.NewOffsetCommitResponseTopicPartition()
				q.Partition, q.ErrorCode = p.Partition, kerr.GroupAuthorizationFailed.Code
				topic.Partitions = append(topic.Partitions, q)
			}
			resp.Topics = append(resp.Topics, topic)
		}
		refused <- struct{}{}
		return resp, nil, true
	})
	s.group = newGroup(s)
	s.group.offer(map[string]string{firstSplit: position{Offset: 1}.String()})
	began := time.Now()
	for range 3 { // after 1 and 2 s
		select {
		case <-refused:
		case <-time.After(patience):
			t.Fatal("it is not tried again")
		}
	}
	if took := time.Since(began); took < 2500*time.Millisecond {
		t.Errorf("three commits within %v", took)
	}
}

// The group's offsets are those of the ledger from the start on, and come again
// and again also when nothing moves: brokers forget them after a week.
func TestIdleOffsetsAreCommittedAgain(t *testing.T) {
	b := newBench(t)
	commits := make(chan string, 100)
	b.cluster.ControlKey(int16(kmsg.OffsetCommit), func(req kmsg.Request) (kmsg.Response, error, bool) {
		b.cluster.KeepControl()
		text := ""
		for _, t := range req.(*kmsg.OffsetCommitRequest).Topics {
			for _, p := range t.Partitions {
				text += fmt.Sprint(" ", p.Partition, "=", p.Offset)
			}
		}
		commits <- text
		return nil, nil, false
	})
	b.produce(0, 5, 0)
	s := b.source()
	known := map[string]ledger.Source{firstSplit: {Position: position{Offset: 3, Epoch: -1}.String(), NextRow: 3}}
	if _, err := s.Splits(t.Context(), known); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if i > 0 {
			s.group.refresh()
			s.group.again()
		}
		select {
		case got := <-commits:
			if got != " 0=3" {
				t.Errorf("%d: committed%s", i, got)
			}
		case <-time.After(patience):
			t.Fatalf("%d: nothing is committed", i)
		}
	}
}

// A topic that was read before and is gone is not passed over in silence.
func TestStartWithoutATopic(t *testing.T) {
	b := newBench(t)
	b.cfg.Topics, b.cfg.TopicPattern = nil, "t|u|v"
	s := b.source()
	var said bytes.Buffer
	s.log = slog.New(slog.NewTextHandler(&said, nil))
	known := map[string]ledger.Source{}
	for _, id := range []string{splitID("u", 0), splitID("u", 1), splitID("w", 0)} {
		known[id] = ledger.Source{Position: position{Offset: 1}.String()}
	}
	if splits, err := s.Splits(t.Context(), known); err != nil || len(splits) != 2 {
		t.Fatalf("%v, %v", splits, err)
	}
	if log := said.String(); strings.Count(log, "is not there any more") != 1 || !strings.Contains(log, "topic=u") {
		t.Errorf("logged: %s", log)
	}
}
