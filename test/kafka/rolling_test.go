//go:build integration

package kafkatest

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Brokers are killed one after the other, and the sink with each: it starts while
// partitions have no leader, or another one, and is killed again when they are
// back. Some partitions have replicas elsewhere, some do not. The table has every
// message once.
func TestRollingOutages(t *testing.T) {
	const each, rounds = 20, 4
	w := emptyWorld(t, kafkaThree)
	keep, second, third := w.coordinator()
	safe := w.topic
	w.createAt(map[string]string{"min.insync.replicas": "1"}, []int32{keep, second}, []int32{second, third}, []int32{third, keep})
	w.inSync()
	w.topic += "-b"
	w.createAt(map[string]string{"min.insync.replicas": "1"}, []int32{second}, []int32{third})
	topics := []string{safe, safe, safe, w.topic, w.topic}
	w.options = []string{"start_timeout: 9s", "group: " + safe, fmt.Sprintf("topics: [%s, %s]", safe, w.topic)}
	w.source = []string{"  readers: 2"}
	var sent, next atomic.Int64
	over := make(chan struct{})
	var wg sync.WaitGroup
	for i, topic := range topics {
		c, n := w.newClient(), int32(i%3)
		wg.Go(func() {
			for {
				records := make([]*kgo.Record, each)
				for i := range records {
					id := next.Add(1) - 1
					records[i] = &kgo.Record{Topic: topic, Partition: n, Value: fmt.Appendf(nil, `{"id":%d,"name":"n%d"}`, id, id)}
				}
				if err := c.ProduceSync(t.Context(), records...).FirstErr(); err != nil { // it waits for a leader
					t.Errorf("%s partition %d: %v", topic, n, err)
					return
				}
				sent.Add(each)
				select {
				case <-over:
					return
				case <-time.After(50 * time.Millisecond): // not to make more than engines can count
				}
			}
		})
	}
	committed := func() (n int64, err error) {
		got, err := w.admin.FetchOffsets(w.ctx(), safe)
		got.Each(func(o kadm.OffsetResponse) { n += max(0, o.At) })
		return n, err
	}
	read := func(n int64) {
		t.Helper()
		eventually(t, "rows", func() error {
			got, err := committed()
			if err == nil && got < n {
				err = fmt.Errorf("%d of %d", got, n)
			}
			return err
		})
	}
	h := home(t)
	p := w.start()
	read(1000)
	for i := range rounds {
		down := []int32{second, third}[i%2]
		if err := h.Kill(w.cluster.Daemon(int(down))); err != nil {
			t.Fatal(err)
		}
		p.Kill(t)
		p = w.start()
		var got int64
		eventually(t, "the group's offsets", func() (err error) { got, err = committed(); return err })
		read(got + 2000) // while the broker is down
		if err := h.Again(w.cluster.Daemon(int(down))); err != nil {
			t.Fatal(err)
		}
		w.inSync()
		if i%2 == 1 {
			p.Kill(t)
			p = w.start()
		}
	}
	close(over)
	wg.Wait()
	w.reconnect()
	read(sent.Load())
	p.stop()
	w.wantIDs(0, sent.Load()-1)
	w.fsck()
}
