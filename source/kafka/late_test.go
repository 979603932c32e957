package kafka

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
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

// orphan takes the leader of a partition of topic t away, until adopt gives it a
// new one; before is done when it has it, and nobody has heard of it yet.
func (b *bench) orphan(n int32) (adopt func(before func())) {
	b.t.Helper()
	req := kmsg.NewPtrMetadataRequest()
	real, err := req.RequestWith(b.t.Context(), b.client)
	if err != nil {
		b.t.Fatal(err)
	}
	var over atomic.Bool
	b.cluster.ControlKey(int16(kmsg.Metadata), func(req kmsg.Request) (kmsg.Response, error, bool) {
		b.cluster.KeepControl()
		if over.Load() {
			return nil, nil, false
		}
		resp := req.ResponseKind().(*kmsg.MetadataResponse)
		resp.Brokers, resp.ClusterID, resp.ControllerID = real.Brokers, real.ClusterID, real.ControllerID
		for _, t := range real.Topics {
			t.Partitions = append([]kmsg.MetadataResponseTopicPartition(nil), t.Partitions...)
			for i := range t.Partitions {
				if p := &t.Partitions[i]; *t.Topic == "t" && p.Partition == n {
					p.Leader, p.ErrorCode = -1, kerr.LeaderNotAvailable.Code
				}
			}
			resp.Topics = append(resp.Topics, t)
		}
		return resp, nil, true
	})
	return func(before func()) {
		b.t.Helper()
		if err := b.cluster.MoveTopicPartition("t", n, 0); err != nil {
			b.t.Fatal(err)
		}
		if before != nil {
			before() // the client of the test knows the broker, and writes to it as before
		}
		over.Store(true)
	}
}

// begun is what a ledger has of a partition that was read up to an offset, of a
// topic of which so many partitions began by source.kafka.start.
func begun(offset int64, decided int32) ledger.Source {
	return ledger.Source{Position: position{Offset: offset, Epoch: -1, Decided: decided}.String(), NextRow: offset}
}

// logged is the log of a source.
type logged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// reading reads splits beside the test, and has the row numbers of each.
type reading struct {
	mu   sync.Mutex
	rows map[string][]int64
}

func (r *reading) of(id string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return fmt.Sprint(r.rows[id])
}

func (b *bench) reading(s *Source, splits []source.Split, known map[string]ledger.Source) *reading {
	b.t.Helper()
	lr := b.reader(s)
	out := &reading{rows: make(map[string][]int64)}
	state := make(map[string]*taken)
	for _, sp := range splits {
		state[sp.ID] = &taken{Source: known[sp.ID]}
		if err := lr.Add(sp, known[sp.ID]); err != nil {
			b.t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	b.t.Cleanup(func() { cancel(); wg.Wait() })
	wg.Go(func() {
		for {
			ev, err := lr.Read(ctx)
			if err != nil {
				if ctx.Err() == nil {
					b.t.Errorf("Read: %v", err)
				}
				return
			}
			k := state[ev.Split]
			k.take(b.t, ev.Batch)
			out.mu.Lock()
			out.rows[ev.Split] = k.rows
			out.mu.Unlock()
		}
	})
	return out
}

// A run that goes on does not wait for a partition without a leader: the others
// are read, and it is when it has one again, from its position, or from where it
// would have begun at the start of the run (K12). Meanwhile it is not caught up.
func TestRunWithoutALeader(t *testing.T) {
	offset := func(n int) string { return fmt.Sprint("[", n) }
	for _, c := range []struct {
		name, start string
		known       bool
		decided     int32
		from        int // the first message that is read; 10 to 14 are written after the start
	}{
		{"position", "latest", true, 2, 4},
		{"latest", "latest", false, 2, 10},
		{"latest, but added", "latest", false, 1, 0},
		{"earliest", "earliest", false, 2, 0},
		{"offset", "7", false, 2, 7},
		{"time", time.Now().Add(-time.Hour).Format(time.RFC3339), false, 2, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			b.cfg.Start = c.start
			b.produce(0, 10, 0)
			b.produce(0, 10, 1)
			known := map[string]ledger.Source{firstSplit: begun(7, c.decided)}
			other := splitID("t", 1)
			if c.known {
				known[other] = begun(4, c.decided)
			}
			adopt := b.orphan(1)
			var said logged
			s := b.source()
			s.log, s.grace, s.patience = slog.New(slog.NewTextHandler(&said, nil)), 0, 100*time.Millisecond
			splits, err := s.Splits(t.Context(), known)
			if err != nil || len(splits) != 2 {
				t.Fatalf("%v, %v", splits, err)
			}
			if log := said.String(); !strings.Contains(log, "begins without") || !strings.Contains(log, "topic t partition 1") || s.Waiting() != 1 {
				t.Errorf("%d wait; logged: %s", s.Waiting(), log)
			}
			r := b.reading(s, splits, known)
			b.until("the other partition is read and caught up", func() bool {
				return r.of(firstSplit) == "[7 8 9]" && b.counts()[firstSplit] > 1
			})
			if got, n := r.of(other), b.counts()[other]; got != "[]" || n > 0 {
				t.Errorf("without a leader, rows %s were read, and it was caught up %d times", got, n)
			}
			adopt(func() { b.produce(10, 5, 1) })
			b.until("the partition is read", func() bool { return strings.HasSuffix(r.of(other), " 14]") })
			if got := r.of(other); !strings.HasPrefix(got, offset(c.from)+" ") {
				t.Errorf("rows %s, want them from %d", got, c.from)
			}
			b.until("the log says so", func() bool { return strings.Contains(said.String(), "are read again") && s.Waiting() == 0 })
			if up := strings.Contains(said.String(), "is taken up"); up == c.known {
				t.Errorf("logged: %s", &said)
			}
		})
	}
}

// A bounded run, and a first one, wait for all partitions, say for which, and end
// with an error that names them; so does one that starts at the latest messages
// of a partition which somebody else may be writing to.
func TestStartThatNeedsAll(t *testing.T) {
	orphaned := func(b *bench) { b.orphan(1) }
	silent := func(b *bench) {
		b.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.ListOffsets}, Topic: "t", Partitions: []int32{1}, Err: kerr.UnknownServerError, Count: -1})
	}
	for _, c := range []struct {
		name, start, until string
		known              map[string]ledger.Source
		away               func(*bench)
		want               string // nothing: it begins
	}{
		{"bounded", "earliest", "end", map[string]ledger.Source{firstSplit: begun(1, 2), splitID("t", 1): begun(1, 2)}, orphaned, "needs to know where each ends"},
		{"first", "earliest", "", nil, orphaned, "a first run needs to know where each begins"},
		{"leader does not answer", "latest", "", map[string]ledger.Source{firstSplit: begun(1, 2)}, silent, "are not enough to begin with"},
		{"leader does not answer, position", "latest", "", map[string]ledger.Source{firstSplit: begun(1, 2), splitID("t", 1): begun(1, 2)}, silent, ""},
		{"leader does not answer, earliest", "earliest", "", map[string]ledger.Source{firstSplit: begun(1, 2)}, silent, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			b.produce(0, 3, 0)
			b.produce(0, 3, 1)
			b.cfg.Start, b.cfg.Until = c.start, c.until
			c.away(b)
			for timeout := time.Second; ; timeout *= 4 { // a busy machine may not get as far
				b.cfg.StartTimeout = config.Duration(timeout)
				var said logged
				s := b.source()
				s.log = slog.New(slog.NewTextHandler(&said, nil))
				known := c.known
				if known == nil {
					known = map[string]ledger.Source{}
				}
				splits, err := s.Splits(t.Context(), known)
				names := strings.Contains(fmt.Sprint(err), "topic t partition 1")
				switch {
				case c.want == "" && err == nil && len(splits) == 2:
					return
				case c.want != "" && err != nil && names && fault.ClassOf(err) == fault.Retry && strings.Contains(said.String(), c.want):
					return
				case c.want != "" && err == nil || timeout > patience:
					t.Fatalf("%v, %v; logged: %s", splits, err, &said)
				}
			}
		})
	}
}

// What a partition without a leader cannot say does not keep another one of its
// topic from being asked, nor a new one from being found.
func TestOffsetsBesideNoLeader(t *testing.T) {
	b := newBench(t)
	b.produce(0, 3, 0)
	b.cfg.Discover = config.Duration(20 * time.Millisecond)
	s := b.source()
	if _, err := s.Splits(t.Context(), map[string]ledger.Source{}); err != nil {
		t.Fatal(err)
	}
	if _, err := kadm.NewClient(b.client).CreatePartitions(t.Context(), 2, "t"); err != nil {
		t.Fatal(err)
	}
	b.orphan(3)
	if ids, err := b.grow(s); err != nil || fmt.Sprint(ids) != "[kafka:t/2]" {
		t.Errorf("new partitions beside one without a leader: %v, %v", ids, err)
	}
	o := s.askOffsets(t.Context(), partitions{"t": {0, 3}})
	if last, ok := o.last.of("t", 0); !ok || last != 3 || fmt.Sprint(o.silent) != "topic t partition 3" {
		t.Errorf("last %d, silent %v: %v", last, o.silent, o.why)
	}
}

// Where source.kafka.start says to begin does not matter to a partition that has
// a position, also when retention has removed that place.
func TestStartOffsetsThatAreGone(t *testing.T) {
	b := newBench(t)
	b.produce(0, 10, 0)
	b.cfg.Start = "0=3,1=0"
	offsets := make(kadm.Offsets)
	offsets.AddOffset("t", 0, 6, -1)
	if res, err := kadm.NewClient(b.client).DeleteRecords(t.Context(), offsets); err != nil || res.Error() != nil {
		t.Fatal(err, res.Error())
	}
	if _, err := b.source().Splits(t.Context(), map[string]ledger.Source{}); err == nil || fault.ClassOf(err) != fault.Config {
		t.Errorf("a first run: %v", err)
	}
	known := map[string]ledger.Source{firstSplit: begun(8, 2), splitID("t", 1): begun(0, 2)}
	if _, err := b.source().Splits(t.Context(), known); err != nil {
		t.Errorf("a run that goes on: %v", err)
	}
	b.cfg.Start = "1=0"
	if _, err := b.source().Splits(t.Context(), known); err != nil {
		t.Errorf("a run that goes on, without the partition in source.kafka.start: %v", err)
	}
}

// An address that does not answer does not take the time of the others.
func TestProbeBesideASilentAddress(t *testing.T) {
	b := newBench(t)
	for range 4 {
		l, err := net.Listen("tcp", "localhost:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() }) // connections wait in its backlog
		b.cfg.Brokers = append([]string{l.Addr().String()}, b.cfg.Brokers...)
	}
	opts, err := clientOptions(b.cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeoutCause(t.Context(), 3*requestTimeout, errStartTimeout)
	defer cancel()
	if err := probe(ctx, b.cfg, opts); err != nil {
		t.Error(err)
	}
}

// The name of a host is not what a broker says about authentication.
func TestHostNamedSASL(t *testing.T) {
	for _, err := range []error{
		&net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "kafka-sasl.example"}},
		fmt.Errorf("unable to dial: %w", &net.DNSError{Err: "server misbehaving", Name: "scram.example"}),
	} {
		if option, _ := refusal(err); option != "" {
			t.Errorf("%v: %s", err, option)
		}
	}
	if option, _ := refusal(errors.New("invalid SCRAM server nonce")); option != "source.kafka.sasl" {
		t.Errorf("what the client says: %q", option)
	}
}

// A topic that may not be read any more ends the run, which names it: nobody but
// an operator can give it back.
func TestReadTakenAway(t *testing.T) {
	b := newBench(t)
	b.produce(0, 3, 0)
	s := b.source()
	splits, err := s.Splits(t.Context(), map[string]ledger.Source{})
	if err != nil {
		t.Fatal(err)
	}
	h := b.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: "t", Err: kerr.TopicAuthorizationFailed, Count: -1})
	r := b.reader(s)
	for _, sp := range splits {
		if err := r.Add(sp, ledger.Source{}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		if _, err = r.Read(ctx); err != nil {
			break
		}
	}
	if h.Hits() == 0 || fault.ClassOf(err) != fault.Halt || !strings.Contains(err.Error(), "topic t partition") || !strings.Contains(err.Error(), "READ on the topic") {
		t.Errorf("%d fetches refused: %v", h.Hits(), err)
	}
}
