package kafka

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/ledger"
)

// A run ends before the first message of a time that was in the future when it
// started, also when that message was there before the time came; the run after
// it begins with that message (K9).
func TestUntilATimeInTheFuture(t *testing.T) {
	t.Run("messages before the time", func(t *testing.T) { untilLater(t, false) })
	t.Run("all fetched before the end is known", func(t *testing.T) { untilLater(t, true) })
}

const firstSplit = "kafka:t/0"

func untilLater(t *testing.T, wait bool) {
	b := newBench(t)
	until := time.Now().Add(1500 * time.Millisecond)
	for i := range 20 {
		r := &kgo.Record{Partition: 0, Timestamp: until.Add(time.Duration(i-12) * time.Minute), Value: fmt.Appendf(nil, `{"id":%d}`, i)}
		if err := b.client.ProduceSync(context.Background(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	k := &taken{}
	b.cfg.Until = until.Format(time.RFC3339Nano)
	b.readToEnd(k, wait)
	if len(k.rows) != 12 || k.NextRow != 12 {
		t.Errorf("the run until %s took %d rows and stands at row %d, want 12", until, len(k.rows), k.NextRow)
	}
	b.cfg.Until = "end"
	b.readToEnd(k, false)
	if len(k.rows) != 20 {
		t.Errorf("with the run after it %d rows are read, want 20: %v", len(k.rows), k.rows)
	}
}

// A bounded run ends also where compaction has removed every message before its
// end: the leader has nothing to give, and says so.
func TestUntilBehindWhatIsRemoved(t *testing.T) {
	b := newBench(t)
	b.produce(0, 10, 0)
	open := 2 // answers in which a transaction is open: there may be more
	b.cluster.ControlKey(int16(kmsg.Fetch), func(req kmsg.Request) (kmsg.Response, error, bool) {
		b.cluster.KeepControl()
		resp := req.ResponseKind().(*kmsg.FetchResponse)
		for _, t := range req.(*kmsg.FetchRequest).Topics {
			topic := kmsg.NewFetchResponseTopic()
			topic.Topic, topic.TopicID = t.Topic, t.TopicID
			for _, p := range t.Partitions {
				q := kmsg.NewFetchResponseTopicPartition()
				q.Partition, q.HighWatermark, q.LastStableOffset = p.Partition, 10, 10
				if open--; open >= 0 {
					q.LastStableOffset = 4
				}
				topic.Partitions = append(topic.Partitions, q)
			}
			resp.Topics = append(resp.Topics, topic)
		}
		return resp, nil, true
	})
	k := &taken{}
	b.cfg.Until = "end"
	b.readToEnd(k, false)
	if len(k.rows) != 0 || k.NextRow != 10 {
		t.Errorf("%d rows, and the run stands at row %d, want 0 and 10", len(k.rows), k.NextRow)
	}
	if open >= 0 {
		t.Error("the run ended although a transaction was open")
	}
	// The leader epoch of what was removed may be another one than that of the
	// message before it.
	if p, err := parsePosition(firstSplit, k.Position); err != nil || p.Epoch != -1 {
		t.Errorf("the position is %v, %v; its leader epoch cannot be known", p, err)
	}
}

// A log that is cut back before the end that a bounded run looked up may never
// come there again: the run halts instead of waiting for ever.
func TestUntilBehindWhatIsLost(t *testing.T) {
	b := newBench(t)
	b.produce(0, 10, 0)
	b.cfg.Until = "end"
	s := b.source()
	s.patience = 50 * time.Millisecond
	splits, err := s.Splits(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	b.cluster.ControlKey(int16(kmsg.Fetch), func(req kmsg.Request) (kmsg.Response, error, bool) {
		b.cluster.KeepControl()
		resp := req.ResponseKind().(*kmsg.FetchResponse)
		for _, t := range req.(*kmsg.FetchRequest).Topics {
			topic := kmsg.NewFetchResponseTopic()
			topic.Topic, topic.TopicID = t.Topic, t.TopicID
			for _, p := range t.Partitions {
				q := kmsg.NewFetchResponseTopicPartition()
				q.Partition, q.HighWatermark, q.LastStableOffset = p.Partition, 7, 7
				topic.Partitions = append(topic.Partitions, q)
			}
			resp.Topics = append(resp.Topics, topic)
		}
		return resp, nil, true
	})
	r := b.reader(s)
	if err := r.Add(splits[0], ledger.Source{Position: position{Offset: 7, Epoch: -1}.String(), NextRow: 7}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		if _, err := r.Read(ctx); err != nil {
			if fault.ClassOf(err) != fault.Halt || !strings.Contains(err.Error(), "ended before offset 10") || !strings.Contains(err.Error(), "before offset 7 now") {
				t.Error(err)
			}
			return
		}
	}
}

// A broker whose tiered storage is slow answers as one whose messages compaction
// has removed. They are there, and must be waited for (K7).
func TestUntilWithSlowTieredStorage(t *testing.T) {
	b := newBench(t)
	b.produce(0, 10, 0)
	b.localStart(8) // offsets 0 to 7 are only in tiered storage
	slow := 3
	b.cluster.ControlKey(int16(kmsg.Fetch), func(req kmsg.Request) (kmsg.Response, error, bool) {
		b.cluster.KeepControl()
		if slow--; slow < 0 {
			return nil, nil, false
		}
		resp := req.ResponseKind().(*kmsg.FetchResponse)
		for _, t := range req.(*kmsg.FetchRequest).Topics {
			topic := kmsg.NewFetchResponseTopic()
			topic.Topic, topic.TopicID = t.Topic, t.TopicID
			for _, p := range t.Partitions {
				q := kmsg.NewFetchResponseTopicPartition()
				q.Partition, q.HighWatermark, q.LastStableOffset = p.Partition, 10, 10
				topic.Partitions = append(topic.Partitions, q)
			}
			resp.Topics = append(resp.Topics, topic)
		}
		return resp, nil, true
	})
	k := &taken{}
	b.cfg.Until = "end"
	b.readToEnd(k, false)
	if slow >= 0 {
		t.Error("tiered storage was never slow")
	}
	if len(k.rows) != 10 || k.NextRow != 10 {
		t.Errorf("%d rows, and the run stands at row %d, want 10 and 10", len(k.rows), k.NextRow)
	}
	if n := b.caught[firstSplit]; n > 0 {
		t.Errorf("it was caught up %d times before its end", n)
	}
}

// localStart is the first offset of all partitions that is on the disks of the
// brokers.
func (b *bench) localStart(first int64) {
	b.cluster.ControlKey(int16(kmsg.ListOffsets), func(req kmsg.Request) (kmsg.Response, error, bool) {
		b.cluster.KeepControl()
		resp := req.ResponseKind().(*kmsg.ListOffsetsResponse)
		for _, t := range req.(*kmsg.ListOffsetsRequest).Topics {
			topic := kmsg.NewListOffsetsResponseTopic()
			topic.Topic = t.Topic
			for _, p := range t.Partitions {
				if p.Timestamp != localStart {
					return nil, nil, false
				}
				q := kmsg.NewListOffsetsResponseTopicPartition()
				q.Partition, q.Offset = p.Partition, first
				topic.Partitions = append(topic.Partitions, q)
			}
			resp.Topics = append(resp.Topics, topic)
		}
		return resp, nil, true
	})
}

// A leader that refuses an offset that it has is asked again: going on where
// source.kafka.offset_out_of_range says would double rows, or lose some.
func TestRefusedOffsetThatIsThere(t *testing.T) {
	for _, out := range []string{"halt", "earliest", "latest"} {
		b := newBench(t)
		b.cfg.OffsetOutOfRange, b.cfg.Until = out, "end"
		b.produce(0, 10, 0)
		k := &taken{}
		b.readToEnd(k, false)
		b.produce(10, 10, 0)
		refused := 0
		b.cluster.ControlKey(int16(kmsg.Fetch), func(req kmsg.Request) (kmsg.Response, error, bool) {
			b.cluster.KeepControl()
			if refused == 1 {
				return nil, nil, false
			}
			refused++
			resp := req.ResponseKind().(*kmsg.FetchResponse)
			for _, t := range req.(*kmsg.FetchRequest).Topics {
				topic := kmsg.NewFetchResponseTopic()
				topic.Topic, topic.TopicID = t.Topic, t.TopicID
				for _, p := range t.Partitions {
					q := kmsg.NewFetchResponseTopicPartition()
					q.Partition, q.ErrorCode = p.Partition, kerr.OffsetOutOfRange.Code
					topic.Partitions = append(topic.Partitions, q)
				}
				resp.Topics = append(resp.Topics, topic)
			}
			return resp, nil, true
		})
		b.readToEnd(k, false)
		if len(k.rows) != 20 || k.NextRow != 20 || refused != 1 {
			t.Errorf("%s: %d rows, and the run stands at row %d, want 20 and 20; refused %d times", out, len(k.rows), k.NextRow, refused)
		}
	}
}

// readToEnd is a bounded run of the first partition. wait lets it take nothing
// until its end is known.
func (b *bench) readToEnd(k *taken, wait bool) {
	b.t.Helper()
	var known map[string]ledger.Source
	if k.Position != "" {
		known = map[string]ledger.Source{firstSplit: k.Source}
	}
	s := b.source()
	splits, err := s.Splits(context.Background(), known)
	if err != nil {
		b.t.Fatal(err)
	}
	r := b.reader(s)
	k.Ended = false
	if err := r.Add(splits[0], k.Source); err != nil {
		b.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() { s.Grown(ctx) }) //nolint:errcheck // it ends with ctx
	for wait && s.splits[firstSplit].end.Load() == noEnd {
		if ctx.Err() != nil {
			b.t.Fatal("the end is never known")
		}
		time.Sleep(5 * time.Millisecond)
	}
	for !k.Ended {
		ev, err := r.Read(ctx)
		if err != nil {
			b.t.Fatal(err)
		}
		k.take(b.t, ev.Batch)
	}
}
