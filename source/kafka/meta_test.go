package kafka

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/hivesink/hivesink/config"
	"github.com/hivesink/hivesink/format"
	"github.com/hivesink/hivesink/hivetype"
	"github.com/hivesink/hivesink/record"
)

func metaOf(t *testing.T, column, typ string, c *config.Metadata, nullOnBadTime bool) *metaColumns {
	t.Helper()
	typed, err := hivetype.Parse(typ)
	if err != nil {
		t.Fatal(err)
	}
	m := newMetaColumns(c, []hivetype.Field{{Name: column, Type: typed}}, map[string]bool{column: nullOnBadTime})
	t.Cleanup(m.release)
	return m
}

// A producer may have set the time in another unit: what does not fit the column
// must not become another time.
func TestTimeOutOfRange(t *testing.T) {
	nanos := int64(1_700_000_000_000_000_000)
	m := metaOf(t, "kts", "timestamp", &config.Metadata{Timestamp: "kts"}, false)
	err := m.check(&message{time: nanos})
	if e, ok := err.(*format.Error); !ok || e.Class != record.ClassRange || e.Column != "kts" {
		t.Errorf("a time in nanoseconds: %v", err)
	}
	if err := m.check(&message{time: maxMillis}); err != nil {
		t.Error(err)
	}
	m = metaOf(t, "kts", "timestamp", &config.Metadata{Timestamp: "kts"}, true) // what a partition is made of
	for _, at := range []int64{nanos, -1, maxMillis} {
		msg := &message{time: at}
		if err := m.check(msg); err != nil {
			t.Fatal(err)
		}
		m.append(msg)
	}
	got := m.take()[0].(*array.Timestamp)
	defer got.Release()
	if !got.IsNull(0) || !got.IsNull(1) || got.Value(2) != maxMillis*1000 {
		t.Errorf("times: %v", got)
	}
}

// However many headers a message has, the last of each name is kept, in time.
func TestManyHeaders(t *testing.T) {
	for _, n := range []int{3, manyHeaders + 1, 200_000} {
		m := metaOf(t, "h", "map<string,string>", &config.Metadata{Headers: "h"}, false)
		msg := &message{count: n}
		for i := range n {
			name := fmt.Sprint("n", i)
			if i == n-1 {
				name = "n0" // once more
			}
			value := fmt.Sprint(i)
			msg.headers = binary.AppendVarint(msg.headers, int64(len(name)))
			msg.headers = append(msg.headers, name...)
			msg.headers = binary.AppendVarint(msg.headers, int64(len(value)))
			msg.headers = append(msg.headers, value...)
		}
		began := time.Now()
		if err := m.check(msg); err != nil {
			t.Fatal(err)
		}
		m.append(msg)
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("%d headers take %v", n, took)
		}
		got := m.take()[0].(*array.Map)
		names, values := got.Keys().(*array.String), got.Items().(*array.String)
		if names.Len() != n-1 || names.Value(0) != "n1" || names.Value(n-2) != "n0" || values.Value(n-2) != fmt.Sprint(n-1) {
			t.Errorf("%d headers: %d names, the first %s, the last %s=%s", n, names.Len(), names.Value(0), names.Value(n-2), values.Value(n-2))
		}
		got.Release()
	}
}

// A cluster that is upgraded to 2.8 begins to tell ids of topics, some brokers
// before others: that is no other topic (K5).
func TestIDsThatAreNotTold(t *testing.T) {
	b := newBench(t)
	none, some, other := kadm.TopicID{}, kadm.TopicID{1}, kadm.TopicID{2}
	for _, c := range []struct {
		was, is kadm.TopicID
		halts   bool
	}{{none, some, false}, {some, none, false}, {none, none, false}, {some, some, false}, {some, other, true}} {
		if err := (position{Topic: topicID(c.was)}).isOf("t", c.is, ""); (err != nil) != c.halts {
			t.Errorf("resumed, %v after %v: %v", c.is, c.was, err)
		}
		s := b.source()
		s.topics["t"] = c.was
		if _, err := s.compare(kadm.Metadata{Topics: kadm.TopicDetails{"t": {Topic: "t", ID: c.is}}}); (err != nil) != c.halts {
			t.Errorf("running, %v after %v: %v", c.is, c.was, err)
		}
		if c.was == none && s.topics["t"] != c.is {
			t.Errorf("the id %v is not remembered", c.is)
		}
	}
}
