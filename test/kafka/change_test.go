//go:build integration

package kafkatest

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/hivesink/hivesink/test/services"
)

// recreate deletes the topic and makes another one of its name.
func (w *world) recreate() {
	w.t.Helper()
	if _, err := w.admin.DeleteTopic(w.ctx(), w.topic); err != nil {
		w.t.Fatal(err)
	}
	eventually(w.t, "the topic to be gone and made again", func() error {
		_, err := w.admin.CreateTopic(w.ctx(), 1, -1, nil, w.topic)
		return err
	})
}

func (w *world) topicID() string {
	w.t.Helper()
	var id kadm.TopicID
	eventually(w.t, "the topic's id", func() error {
		l, err := w.admin.ListTopics(w.ctx(), w.topic)
		if id = l[w.topic].ID; err == nil && id == (kadm.TopicID{}) {
			err = l[w.topic].Err
			if err == nil {
				err = fmt.Errorf("it has none")
			}
		}
		return err
	})
	return strings.NewReplacer("+", "-", "/", "_", "=", "").Replace(id.String())
}

// A topic of the same name is another topic: its offsets mean other messages.
func TestTopicMadeAgain(t *testing.T) {
	for name, running := range map[string]bool{"stopped": false, "running": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1, nil)
			w.produce(numbered(0, 10, 1)...)
			was := w.topicID()
			p := w.start()
			eventually(t, "the rows", func() error { return w.committed(10) })
			if !running {
				p.stop()
			}
			w.recreate()
			is := w.topicID()
			if is == was {
				t.Fatal("the topic was not made again")
			}
			for range 20 { // more than before, so that offset 10 is there
				w.reconnect()
				w.produce(numbered(100, 1, 1)...)
			}
			if !running {
				p = w.start()
			}
			if code := p.wait(); code != 1 || !strings.Contains(p.Log(), was) || !strings.Contains(p.Log(), is) || !strings.Contains(p.Log(), "deleted and made again") {
				t.Errorf("exit code %d, want both ids, %s and %s:\n%s", code, was, is, p.Log())
			}
			w.wantIDs(0, 9)
		})
	}
}

// deleteBefore removes the messages before an offset.
func (w *world) deleteBefore(offset int64) {
	w.t.Helper()
	var o kadm.Offsets = make(kadm.Offsets)
	o.AddOffset(w.topic, 0, offset, -1)
	if res, err := w.admin.DeleteRecords(w.ctx(), o); err != nil || res.Error() != nil {
		w.t.Fatal(err, res.Error())
	}
}

// What retention has removed before it was read halts, with both offsets, and
// goes on only when somebody says so.
func TestOffsetOutOfRange(t *testing.T) {
	w := newWorld(t, 1, nil)
	w.options = []string{"until: end"}
	w.produce(numbered(0, 10, 1)...)
	w.run()
	w.produce(numbered(10, 20, 1)...)
	w.deleteBefore(15)
	p := w.start()
	if code := p.wait(); code != 1 || !strings.Contains(p.Log(), "the next offset to read is 10, the first there is 15") ||
		!strings.Contains(p.Log(), "source.kafka.offset_out_of_range") {
		t.Fatalf("exit code %d:\n%s", code, p.Log())
	}
	w.options = []string{"until: end", "offset_out_of_range: earliest"}
	if s := w.run(); s.RowsRead != 15 || s.RowsVisible != 25 {
		t.Errorf("%+v", s)
	}
	if s := w.run(); s.RowsRead != 0 {
		t.Errorf("the run after: %+v", s)
	}
	w.wantCommitted(30)
	w.fsck()
}

// removedUnread is a run that was stopped while messages came and were removed
// again. The last fetch before it was stopped may have brought them all the same.
func removedUnread(t *testing.T, option string) (*world, *process) {
	t.Helper()
	w := newWorld(t, 1, nil)
	w.options = []string{"offset_out_of_range: " + option}
	w.produce(numbered(0, 10, 1)...)
	p := w.start()
	eventually(t, "the first rows", func() error { return w.committed(10) })
	p.signal(syscall.SIGSTOP)
	w.produce(numbered(10, 1, 1)...) // which it may have asked for
	w.produce(numbered(11, 19, 1)...)
	w.deleteBefore(15)
	p.signal(syscall.SIGCONT)
	return w, p
}

// said waits until the log has a text, or the partition is read up to an offset,
// and says whether the log has it.
func (p *process) said(w *world, text string, end int64) bool {
	p.t.Helper()
	there := func() bool { return strings.Contains(p.Log(), text) }
	eventually(p.t, "the log to say "+text+", or all to be read", func() error {
		if there() {
			return nil
		}
		return w.committed(end)
	})
	return there()
}

// A run that falls behind retention while it runs goes on where the option says:
// at the first message there is, or behind the last, with what comes then. What
// was left out is said.
func TestOutOfRangeWhileRunning(t *testing.T) {
	for option, want := range map[string]struct {
		from int64
		log  string
	}{
		"earliest": {15, "first=15 end=30 going_on_at=15"},
		"latest":   {30, "first=15 end=30 going_on_at=30"},
	} {
		t.Run(option, func(t *testing.T) {
			var w *world
			var p *process
			for try := 1; ; try++ { // until the run has not fetched what is removed
				w, p = removedUnread(t, option)
				if p.said(w, want.log, 30) {
					break
				}
				if p.stop(); try == 10 {
					t.Fatal("each time the run had fetched everything before it was removed")
				}
			}
			w.produce(numbered(30, 5, 1)...)
			eventually(t, "the rows that came then", func() error { return w.committed(35) })
			p.stop()
			var ids []int64
			for i := range int64(35) {
				if i < 10 || i >= want.from {
					ids = append(ids, i)
				}
			}
			got := slices.DeleteFunc(w.ids(), func(id int64) bool { return id == 10 })
			if !slices.Equal(got, ids) {
				t.Errorf("ids %v, want %v", got, ids)
			}
			w.fsck()
		})
	}
}

// A pattern finds topics that are made later.
func TestTopicPattern(t *testing.T) {
	w := newWorld(t, 1, nil)
	w.options = []string{"topic_pattern: \"" + w.topic + ".*\"", "discover: 500ms", "group: " + w.topic}
	w.produce(numbered(0, 10, 1)...)
	p := w.start()
	eventually(t, "the rows", func() error { return w.committed(10) })
	second := w.topic + "-b"
	w.createTopic(second, 1, nil)
	w.createTopic("other-"+second, 1, nil)
	for _, topic := range []string{second, "other-" + second} {
		records := numbered(10, 10, 1)
		for _, r := range records {
			r.Topic = topic
		}
		w.produce(records...)
	}
	eventually(t, "the rows of the second topic", func() error {
		got, err := w.admin.FetchOffsets(w.ctx(), w.topic)
		if err != nil {
			return err
		}
		if o, ok := got.Lookup(second, 0); !ok || o.At != 10 {
			return fmt.Errorf("the group has offset %d", o.At)
		}
		return nil
	})
	p.stop()
	w.wantIDs(0, 19)
	w.fsck()
}

// Members of the group that are not the run are named, and take nothing from it.
func TestForeignMember(t *testing.T) {
	w := newWorld(t, 1, nil)
	w.produce(numbered(0, 10, 1)...)
	other := w.newClient(kgo.ConsumerGroup(w.topic), kgo.ConsumeTopics(w.topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.ClientID("intruder"), kgo.DisableAutoCommit())
	if n := other.PollFetches(w.ctx()).NumRecords(); n == 0 {
		t.Fatal("the other member reads nothing")
	}
	w.options = []string{"until: end"}
	p := w.start()
	if s := p.summary(); s.RowsRead != 10 {
		t.Errorf("%+v", s)
	}
	if !strings.Contains(p.Log(), "others are members of source.kafka.group") || !strings.Contains(p.Log(), "intruder") {
		t.Errorf("the log does not name the other member:\n%s", p.Log())
	}
}

// A broker that is killed, and one that hangs, is waited for; the log says so.
func TestBrokerOutage(t *testing.T) {
	h, err := services.DefaultHome()
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, 1, nil)
	w.produce(numbered(0, 10, 1)...)
	p := w.start()
	eventually(t, "the rows", func() error { return w.committed(10) })
	broker := w.cluster.Daemon(1)
	if err := h.Kill(broker); err != nil {
		t.Fatal(err)
	}
	p.await("trying again")
	if err := h.Again(broker); err != nil {
		t.Fatal(err)
	}
	w.produce(numbered(10, 10, 1)...)
	eventually(t, "the rows after the kill", func() error { return w.committed(20) })
	if err := h.Pause(broker); err != nil {
		t.Fatal(err)
	}
	time.Sleep(12 * time.Second) // longer than a request may take
	if err := h.Resume(broker); err != nil {
		t.Fatal(err)
	}
	w.produce(numbered(20, 10, 1)...)
	eventually(t, "the rows after the pause", func() error { return w.committed(30) })
	p.stop()
	w.wantIDs(0, 29)
	w.fsck()
}
