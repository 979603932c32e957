//go:build integration

package kafkatest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
)

// An unclean election makes a replica the leader that lacks messages which were
// acknowledged, and read: the log is shorter than the position, and later longer
// again, with other messages. The run halts, whether it was running or is
// started then, and names where the logs part and where it stands.
func TestUncleanElection(t *testing.T) {
	h := home(t)
	w := emptyWorld(t, kafkaThree)
	_, leader, behind := w.coordinator()
	w.createAt(map[string]string{"unclean.leader.election.enable": "true", "min.insync.replicas": "1"}, []int32{leader, behind})
	w.inSync()
	w.produce(numbered(0, 10, 1)...)
	p := w.start()
	eventually(t, "the first rows", func() error { return w.committed(10) })

	// Only the leader has the next messages.
	if err := h.Kill(w.cluster.Daemon(int(behind))); err != nil {
		t.Fatal(err)
	}
	w.replicas(leader)
	w.produce(numbered(10, 20, 1)...)
	eventually(t, "the rows of the leader", func() error { return w.committed(30) })

	if err := h.Kill(w.cluster.Daemon(int(leader))); err != nil {
		t.Fatal(err)
	}
	if err := h.Again(w.cluster.Daemon(int(behind))); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := h.Again(w.cluster.Daemon(int(leader))); err != nil {
			t.Error(err)
		}
		w.reconnect()
		w.inSync()
	}()
	w.elect(behind)
	ends, err := w.admin.ListCommittedOffsets(w.ctx(), w.topic)
	if o, _ := ends.Lookup(w.topic, 0); err != nil || o.Offset != 10 {
		t.Fatalf("the log ends at %d, want 10: nothing was lost (%v)", o.Offset, err)
	}
	halted := func(p *process) {
		t.Helper()
		code := p.wait()
		for _, want := range []string{w.topic + " partition 0", "offset 10", "offset 30"} {
			if code != 1 || !strings.Contains(p.Log(), want) {
				t.Fatalf("exit code %d, want 1 and %q:\n%s", code, want, p.Log())
			}
		}
	}
	halted(p)
	w.wantIDs(0, 29)

	// The log grows beyond the position: offset 30 is there again.
	w.reconnect()
	w.produce(numbered(1000, 40, 1)...)
	halted(w.start())
	w.wantIDs(0, 29)
}

// replicas waits until just these are in sync.
func (w *world) replicas(want ...int32) {
	w.t.Helper()
	eventually(w.t, "replicas to fall behind", func() error {
		l, err := w.admin.ListTopics(w.ctx(), w.topic)
		if err != nil {
			return err
		}
		if got := l[w.topic].Partitions[0].ISR; !slices.Equal(got, want) {
			return fmt.Errorf("in sync are %v", got)
		}
		return nil
	})
}

// elect waits until a broker leads the partition, in sync or not.
func (w *world) elect(leader int32) {
	w.t.Helper()
	eventually(w.t, "an unclean election", func() error {
		set := kadm.TopicsSet{}
		set.Add(w.topic, 0)
		_, err := w.admin.ElectLeaders(w.ctx(), kadm.ElectLiveReplica, set)
		if err != nil {
			return err
		}
		l, err := w.admin.ListTopics(w.ctx(), w.topic)
		if err != nil {
			return err
		}
		if got := l[w.topic].Partitions[0].Leader; got != leader {
			return fmt.Errorf("broker %d leads", got)
		}
		return nil
	})
}
