package kafka

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/record"
	"github.com/hivesink/hivesink/source"
)

// reader reads some of the partitions. One goroutine for each broker fetches
// (fetch.go), one looks for leaders (leaders.go); the caller's decodes.
//
//	brokers ─► fetch ─► queue (bounded in bytes) ─► Read: messages ─► columns
type reader struct {
	s      *Source
	w      source.Watch
	client *kgo.Client
	admin  *kadm.Client
	cancel context.CancelFunc
	wg     sync.WaitGroup
	ctx    context.Context // of the goroutines; ends with Close

	fetchBytes int32 // of one fetch
	budget     int64 // of all fetched bytes

	mu       sync.Mutex
	parts    map[string]*partition
	brokers  map[int32]bool // that have a goroutine
	queue    []*fetched
	events   []source.Event // removed splits
	buffered int64          // bytes of the queue and of what is being decoded
	inflight int64          // bytes that fetches may bring
	waiting  []int32        // brokers that wait for room to fetch, in turn
	err      error          // final
	changed  chan struct{}  // closed and made anew when something above changes
	stale    chan struct{}  // holds a token when leaders are to be looked up
	settling bool           // it is being found out where partitions start

	// Of Read.
	dec  *decoder
	cur  *fetched
	done *fetched // decoded, and taken when Read is called again
	msgs records
	txns transactions
	rest []byte  // of cur
	mid  bool    // msgs has more
	msg  message // the next one, when has
	has  bool

	poison []poison
}

// partition is one that this reader has.
type partition struct {
	*split
	asID      kadm.TopicID // by which its topic is asked for; zero: by its name
	next      int64        // to fetch
	epoch     int32        // leader epoch of the message before next
	leader    int32        // -1: not known
	lepoch    int32        // its epoch
	pending   int          // fetched and not yet taken
	wait      time.Time
	ended     bool  // its end is in the queue
	fresh     bool  // it begins at the first message there is, and has not had it yet
	stuck     bool  // it is being found out where to go on
	unsettled bool  // it is not known yet where it starts (late.go)
	idle      bool  // the last answer had nothing of it
	proving   bool  // it is being found out whether void may be set
	void      int64 // there is nothing before it, from next on; the past where next is behind it
	removed   atomic.Bool
	shift     int64
	strikes   int // damaged fetches in a row
	open      openTransaction
	refusals  int       // errors in a row
	short     time.Time // since when its log ends before the run's end of it

	// Of Read.
	offset int64 // of the next message
	row    int64 // number of the next row
	over   bool  // its end was taken: what was fetched behind it is dropped
	last   int32 // leader epoch of the message before offset
}

// fetched is what one fetch brought of one partition.
type fetched struct {
	p       *partition
	from    int64
	next    int64
	epoch   int32
	batches []byte
	aborted []kmsg.FetchResponseTopicPartitionAbortedTransaction
	end     bool // the partition ends with it
	jump    bool // next is not behind from, but where an operator wants to go on
	size    int64
}

// Reader implements source.Live.
func (s *Source) Reader(w source.Watch) (source.LiveReader, error) {
	opts, err := clientOptions(s.c)
	if err != nil {
		return nil, err
	}
	client, err := kgo.NewClient(append(opts, kgo.BrokerMaxReadBytes(256<<20))...)
	if err != nil {
		return nil, fault.Wrap(fault.Config, "", fmt.Errorf("source.kafka: %w", err))
	}
	dec, err := s.values()
	if err != nil {
		client.Close()
		return nil, err
	}
	r := &reader{s: s, w: w, client: client, admin: kadm.NewClient(client), dec: dec,
		parts: make(map[string]*partition), brokers: make(map[int32]bool), changed: make(chan struct{}), stale: make(chan struct{}, 1)}
	r.msgs.limit = s.o.MaxRecord
	r.budget = max(512<<10, s.o.Memory/int64(max(1, s.o.Readers)))
	r.fetchBytes = int32(min(maxFetchBytes, r.budget/4))
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.wg.Go(r.lookUp) // joined by Close
	return r, nil
}

const (
	maxFetchBytes = 16 << 20
	// maxPartitionBytes is of one partition in a fetch.
	maxPartitionBytes = 4 << 20
)

// Add implements source.LiveReader.
func (r *reader) Add(sp source.Split, from ledger.Source) error {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	known := r.s.splits[sp.ID]
	if known == nil {
		return fmt.Errorf("%s is no partition that was listed", sp.ID)
	}
	p := &partition{split: known, asID: known.topicID, leader: -1, epoch: -1, row: from.NextRow}
	first := false
	if from.Position == "" {
		p.next, first, p.fresh, p.unsettled = known.start, true, known.earliest, known.late
	} else {
		at, err := parsePosition(sp.ID, from.Position)
		if err != nil {
			return err
		}
		// At the start that was looked at for all topics there were (identify);
		// this one may have come since, and be another one by the same name.
		if err := at.isOf(known.topic, known.topicID, r.s.cluster); err != nil {
			return err
		}
		p.next, p.epoch, p.shift = at.Offset, at.Epoch, at.Shift
		if known.moved >= 0 {
			p.next, p.epoch, first = known.moved, -1, true
			known.moved = -1
		}
	}
	r.begin(p, first)
	return nil
}

// begin puts a partition among those that are fetched. first says that its
// start is a decision, which the next checkpoint is to keep.
func (r *reader) begin(p *partition, first bool) {
	p.offset, p.last = p.next, p.epoch
	if low := p.row - p.shift; p.offset < low { // it went back: row numbers do not
		p.shift = p.row - p.offset
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if p.removed.Load() {
		return // while it was found out where it starts
	}
	r.parts[p.id] = p
	if (first || r.atEnd(p)) && !p.unsettled {
		p.pending++
		if p.ended = r.atEnd(p); p.ended {
			p.heard()
		}
		r.queue = append(r.queue, &fetched{p: p, from: p.next, next: p.next, epoch: p.epoch, end: p.ended})
	}
	r.signal()
	r.lookUpSoon()
}

// atEnd says whether a partition has come to its end.
func (r *reader) atEnd(p *partition) bool {
	end := p.end.Load()
	return end != noEnd && p.next >= end
}

// ended stops fetching a partition whose end may have become known while more
// was fetched.
func (r *reader) ended(p *partition) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p.ended = true
	p.heard()
}

// Remove implements source.LiveReader.
func (r *reader) Remove(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.parts[id]
	if p == nil {
		return
	}
	p.removed.Store(true)
	delete(r.parts, id)
	r.events = append(r.events, source.Event{Split: id, Removed: true})
	r.signal()
}

// signal wakes all who wait for a change. The caller has the lock.
func (r *reader) signal() {
	close(r.changed)
	r.changed = make(chan struct{})
}

func (r *reader) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.err = err
		r.signal()
	}
}

// Read implements source.LiveReader.
func (r *reader) Read(ctx context.Context) (source.Event, error) {
	r.taken()
	for {
		if r.cur == nil {
			ev, err := r.pop(ctx)
			if err != nil || ev.Removed {
				return ev, err
			}
		}
		if r.cur.p.removed.Load() || r.cur.p.over {
			r.finish()
			r.taken()
			continue
		}
		b, err := r.batch(ctx)
		if err != nil {
			return source.Event{}, err
		}
		return source.Event{Split: r.cur0(b).p.id, Batch: b}, nil
	}
}

// cur0 is what a batch was made of.
func (r *reader) cur0(*record.Batch) *fetched {
	if r.cur != nil {
		return r.cur
	}
	return r.done
}

// pop waits for something fetched.
func (r *reader) pop(ctx context.Context) (source.Event, error) {
	for {
		if err := ctx.Err(); err != nil {
			return source.Event{}, err
		}
		r.mu.Lock()
		changed := r.changed
		switch {
		case len(r.events) > 0:
			ev := r.events[0]
			r.events = r.events[1:]
			r.mu.Unlock()
			return ev, nil
		case len(r.queue) > 0:
			r.cur = r.queue[0]
			r.queue[0] = nil
			r.queue = r.queue[1:]
			r.mu.Unlock()
			r.open()
			return source.Event{}, nil
		case r.err != nil:
			defer r.mu.Unlock()
			return source.Event{}, r.err
		}
		r.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

// finish says that cur is decoded.
func (r *reader) finish() { r.cur, r.done = nil, r.cur }

// taken gives back the memory of what was decoded before.
func (r *reader) taken() {
	if r.done == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.buffered -= r.done.size
	r.done.p.pending--
	r.done = nil
	r.signal()
}

// Close implements source.LiveReader.
func (r *reader) Close() error {
	r.cancel()
	r.client.Close()
	r.wg.Wait()
	r.msgs.codec.close()
	r.dec.close()
	return nil
}
