//go:build integration

package whole

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/hivesink/hivesink/test/services"
)

const partitions = 8

// producer writes rows to a topic in transactions, of which every fifth is
// aborted: ids go up from 0 in committed ones; aborted rows have negative ids,
// and none of those may ever be seen.
type producer struct {
	topic     string
	rows      int
	batch     int // rows of a transaction
	committed atomic.Int64
	aborted   atomic.Int64
}

func makeTopic(t *testing.T, topic string) {
	t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(services.KafkaThree.Brokers()...))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if _, err := kadm.NewClient(c).CreateTopic(ctx, partitions, 3, nil, topic); err != nil {
		t.Fatalf("is the service up? go run ./test/services/cmd up kafka-3: %v", err)
	}
}

// run produces at so many rows a second; 0: as fast as that goes.
func (p *producer) run(ctx context.Context, rate int) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(services.KafkaThree.Brokers()...), kgo.TransactionalID("whole-"+p.topic),
		kgo.DefaultProduceTopic(p.topic), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(kgo.Lz4Compression()))
	if err != nil {
		return err
	}
	defer client.Close()
	start := time.Now()
	next := 0
	for n := 0; next < p.rows; n++ {
		abort := n%5 == 4
		if err := client.BeginTransaction(); err != nil {
			return err
		}
		size := min(p.batch, p.rows-next)
		var lost atomic.Pointer[error]
		for i := range size {
			id := next + i
			if abort {
				id = -1 - id
			}
			client.Produce(ctx, row(id, i), func(_ *kgo.Record, err error) {
				if err != nil {
					lost.Store(&err)
				}
			})
		}
		if err := client.Flush(ctx); err != nil {
			return err
		}
		if err := lost.Load(); err != nil {
			return *err
		}
		if err := client.EndTransaction(ctx, kgo.TransactionEndTry(!abort)); err != nil {
			return err
		}
		if abort {
			p.aborted.Add(int64(size))
		} else {
			next += size
			p.committed.Add(int64(size))
		}
		if rate > 0 {
			ahead := time.Duration(next)*time.Second/time.Duration(rate) - time.Since(start)
			select {
			case <-time.After(ahead):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	return nil
}

// row is a row of one of ten days.
func row(id, i int) *kgo.Record {
	day := (id%10 + 10) % 10
	return &kgo.Record{Partition: int32(i % partitions), Value: fmt.Appendf(nil,
		`{"id":%d,"ts":"2026-03-%02dT%02d:%02d:%02d.123Z","user_name":"user-%05d","country":"C%03d","amount":%d.25,"ok":%t}`,
		id, day+1, i%24, i%60, i%60, i%100000, i%200, i%1000, i%2 == 0)}
}
