package main

import (
	"context"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// cluster is a Kafka in this process, with messages of the test's.
type cluster struct {
	*kfake.Cluster
	t      *testing.T
	client *kgo.Client
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(2, "a"), kfake.SeedTopics(1, "b"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	client, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return &cluster{c, t, client}
}

// produce sends the records from to to-1 to a topic.
func (c *cluster) produce(topic string, from, to int) {
	c.t.Helper()
	for i := from; i < to; i++ {
		r := &kgo.Record{Topic: topic, Value: []byte(line(i)), Key: []byte{byte(i)}}
		if err := c.client.ProduceSync(context.Background(), r).FirstErr(); err != nil {
			c.t.Fatal(err)
		}
	}
}

// of are the flags of a run that reads topics to their ends.
func (c *cluster) of(topics string) []string {
	return []string{"--set", "source.stdin=", "--set", "source.kafka={brokers: [" + strings.Join(c.ListenAddrs(), ", ") + "], topics: [" + topics + "], until: end}"}
}

// TestTopicsChange: a table that goes from standard input to a topic, to files, to
// another topic and to both topics reads each on where it stood; another cluster
// behind the same topic is refused.
func TestTopicsChange(t *testing.T) {
	tb, c := held(t, 100), newCluster(t)
	c.produce("a", 100, 200)
	tb.run(c.of("a")...)
	tb.wantIDs(200)
	tb.rest("in/x.ndjson", 200, 300)
	tb.run(filesOf(tb.dir + "/in/*.ndjson")...)
	tb.wantIDs(300)
	c.produce("b", 300, 400)
	c.produce("a", 400, 430) // while nobody reads it
	tb.run(c.of("b")...)
	if n := len(tb.ids()); n != 400 {
		t.Fatalf("%d ids are visible", n)
	}
	c.produce("b", 430, 450)
	tb.run(append(c.of("a, b"), "--set", "source.readers=3")...)
	tb.wantIDs(450)
	if s := tb.run(filesOf(tb.dir + "/in/*.ndjson")...); s.RowsRead != 0 {
		t.Errorf("files again: %+v", s)
	}
	tb.checkFinished()
	other := newCluster(t)
	other.produce("a", 0, 10)
	oneError(t, execute(t, append([]string{"run", "-c", tb.config}, other.of("a")...)...), "the table was written from", "another pipeline")
	tb.wantIDs(450)
	tb.checkFinished()
}
