//go:build integration

package kafkatest

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// minutes are n records a partition, each a minute after the one before it, with
// ids 100 times the partition and the offset.
func minutes(first time.Time, n int, partitions int32) (out []*kgo.Record) {
	for p := range partitions {
		for i := range n {
			out = append(out, &kgo.Record{Partition: p, Timestamp: first.Add(time.Duration(i) * time.Minute), Value: fmt.Appendf(nil, `{"id":%d}`, int(p)*100+i)})
		}
	}
	return out
}

// Where the first run starts and ends, by time, by offset, by offsets of single
// partitions, and by the end at the start.
func TestStartAndUntil(t *testing.T) {
	first := time.Now().Add(-time.Hour).Truncate(time.Second).UTC()
	at := func(n int) string { return first.Add(time.Duration(n) * time.Minute).Format(time.RFC3339) }
	for name, c := range map[string]struct {
		start, until string
		want         []int64
	}{
		"times":          {at(3), at(7), []int64{3, 4, 5, 6, 103, 104, 105, 106}},
		"a time between": {first.Add(3*time.Minute + time.Millisecond).Format(time.RFC3339Nano), at(5), []int64{4, 104}},
		"after all":      {at(20), "end", nil},
		"around all":     {at(-20), at(20), []int64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 100, 101, 102, 103, 104, 105, 106, 107, 108, 109}},
		"offsets":        {"2", "5", []int64{2, 3, 4, 102, 103, 104}},
		"of partitions":  {"0=1,1=8", "0=3,1=9", []int64{1, 2, 108}},
		"latest":         {"latest", "end", nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 2, nil)
			w.produce(minutes(first, 10, 2)...)
			w.options = []string{`start: "` + c.start + `"`, `until: "` + c.until + `"`}
			if s := w.run(); s.RowsRead != int64(len(c.want)) {
				t.Errorf("%d rows read, want %d", s.RowsRead, len(c.want))
			}
			if got := w.ids(); !slices.Equal(got, c.want) {
				t.Errorf("ids %v, want %v", got, c.want)
			}
		})
	}
}

// The start is that of the first run (K6): the one after it goes on where that
// ended, and neither back nor over what lies between.
func TestStartIsOfTheFirstRun(t *testing.T) {
	w := newWorld(t, 1, nil)
	w.produce(numbered(0, 10, 1)...)
	for _, options := range [][]string{{`start: "3"`, `until: "5"`}, {"start: earliest", `until: "6"`}, {"start: latest", "until: end"}} {
		w.options = options
		w.run()
	}
	w.wantIDs(3, 9)
	w.fsck()
}

// Offsets that are not there are refused before anything is written.
func TestStartOffsetsAreThere(t *testing.T) {
	w := newWorld(t, 2, nil)
	w.produce(numbered(0, 10, 2)...)
	for start, want := range map[string]string{"6": "has offsets 0 to 5, not 6", "0=1": "has no offset for topic " + w.topic + " partition 1"} {
		w.options = []string{`start: "` + start + `"`, "until: end"}
		p := w.start()
		if code := p.wait(); code != 2 || !strings.Contains(p.Log(), "source.kafka.start: ") || !strings.Contains(p.Log(), want) {
			t.Errorf("start %s: exit code %d:\n%s", start, code, p.Log())
		}
	}
}

// `until: end` is the end when the run starts: what comes while it reads is of
// the next run.
func TestEndIsThatOfTheStart(t *testing.T) {
	var w *world
	var p *process
	n := 200_000
	for ; ; n *= 3 { // a busy machine may look too late
		w = newWorld(t, 1, nil)
		w.options = []string{"until: end"}
		for i := 0; i < n; i += 10_000 {
			w.produce(numbered(i, 10_000, 1)...)
		}
		p = w.start()
		p.await("msg=checkpoint") // it reads
		if err := p.Send(syscall.SIGSTOP); err == nil && !p.Ended() {
			break
		}
		if n > 5_000_000 {
			t.Fatal("it has ended before the messages came")
		}
	}
	w.produce(numbered(n, 10, 1)...)
	p.signal(syscall.SIGCONT)
	if s := p.summary(); s.RowsRead != int64(n) {
		t.Errorf("%+v", s)
	}
	w.fsck()
}

// A time in the future is waited for, save in partitions that have a message of
// that time already. Such messages are of the next run (K9).
func TestUntilATimeInTheFuture(t *testing.T) {
	w := newWorld(t, 2, nil)
	until := time.Now().Add(3 * time.Second).Truncate(time.Second).UTC()
	w.options = []string{"until: " + until.Format(time.RFC3339)}
	w.produce(minutes(until.Add(-5*time.Minute), 8, 1)...)
	w.produce(&kgo.Record{Partition: 1, Timestamp: until.Add(-time.Minute), Value: []byte(`{"id":100}`)})
	if s := w.run(); s.RowsRead != 6 || time.Now().Before(until) {
		t.Errorf("%s before the time: %+v", time.Until(until), s)
	}
	if got := w.ids(); !slices.Equal(got, []int64{0, 1, 2, 3, 4, 100}) {
		t.Errorf("ids %v", got)
	}
	w.options = []string{"until: end"}
	if s := w.run(); s.RowsRead != 3 {
		t.Errorf("the run after it: %+v", s)
	}
	w.fsck()
}
