package pipeline

import (
	"maps"
	"math"
	"slices"
	"sync"

	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/watermark"
)

// intake is what readers need to know to begin: the state of each source
// partition at the last complete checkpoint, and its place in the watermark.
// Readers ask here, not the chain: after a crash that has hundreds of files to
// publish before it would answer, and reading waits for none of them (P4).
type intake struct {
	mu    sync.Mutex
	known map[string]*ledger.Source // what they point to never changes
	track *watermark.Tracker
	// idle are those that were said to have nothing to read, since when. A
	// checkpoint that takes what was written before then does not end it.
	idle map[string]int64
	// idling are those that were idle when the checkpoint under way was cut; nil:
	// nobody has looked.
	idling watermark.Idling
	// partitions are those that a checkpoint has named, by ledger.PartitionKey.
	partitions map[string]struct{}
	// heads are the source partitions of which it is told whether reading keeps up
	// with them.
	heads map[string]*head
}

// head is how long reading has kept up with a source partition.
type head struct {
	since int64
	seen  int64 // when it was last said; 0: never
}

// headGrace is how long reading may be behind without lagging: a fetch that
// failed, or a change of readers, is no backlog.
const headGrace = 60_000_000

func newIntake(st *ledger.State, o watermark.Options) *intake {
	t := watermark.New(o)
	t.Restore(st.Watermark)
	i := &intake{known: maps.Clone(st.Sources), track: t, idle: make(map[string]int64), partitions: make(map[string]struct{}, len(st.Partitions)), heads: make(map[string]*head)}
	for key := range st.Partitions { // each by itself: the order does not matter
		i.partitions[key] = struct{}{}
	}
	return i
}

// named says whether a checkpoint has named a partition.
func (i *intake) named(table, partition string) bool {
	key := ledger.PartitionKey(table, partition)
	i.mu.Lock()
	defer i.mu.Unlock()
	_, ok := i.partitions[key]
	return ok
}

// own lets a source partition take part in the watermark, in the state the last
// complete checkpoint left it in, and returns that state.
func (i *intake) own(name string) ledger.Source {
	i.mu.Lock()
	defer i.mu.Unlock()
	s := ledger.Source{Watermark: ledger.NoWatermark}
	if known := i.known[name]; known != nil {
		s = *known
	}
	i.track.Own(name, s.Watermark) // also one that had ended: it has grown
	delete(i.idle, name)
	return s
}

// all is the state of every source partition.
func (i *intake) all() map[string]ledger.Source {
	i.mu.Lock()
	defer i.mu.Unlock()
	out := make(map[string]ledger.Source, len(i.known))
	for name, s := range i.known { // each by itself: the order does not matter
		out[name] = *s
	}
	return out
}

// complete notes what a complete checkpoint has moved, and the partitions it names.
func (i *intake) complete(moved map[string]ledger.Source, parts []ledger.Part) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for k := range parts {
		i.partitions[ledger.PartitionKey(parts[k].Table, parts[k].Partition)] = struct{}{}
	}
	for name, s := range moved { // each by itself: the order does not matter
		i.known[name] = &s
	}
}

// observe takes moved source partitions into the pipeline's watermark and
// returns it.
func (i *intake) observe(moved map[string]ledger.Source, outOfOrderness, now int64) int64 {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(moved)) {
		s := moved[name]
		if s.Watermark != ledger.NoWatermark {
			i.track.Observe(name, min(s.Watermark, math.MaxInt64-outOfOrderness)+outOfOrderness, now)
		}
		if since, ok := i.idle[name]; ok {
			i.track.CaughtUp(name, since)
		}
		if s.Ended {
			i.track.Ended(name)
		}
	}
	return i.track.CurrentOf(now, i.idling)
}

// cutting says that the rows of a checkpoint are about to be cut.
func (i *intake) cutting(now int64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.idling = i.track.Idling(now)
}

// follow says that it will be told whether reading keeps up with a source
// partition; until it is, it does not.
func (i *intake) follow(name string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.heads[name] == nil {
		i.heads[name] = new(head)
	}
}

// unfollow says that a source partition has ended.
func (i *intake) unfollow(name string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.heads, name)
}

// atHead says that reading keeps up with a source partition just now.
func (i *intake) atHead(name string, now int64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	h := i.heads[name]
	if h == nil {
		return
	}
	if h.seen == 0 || now-h.seen > headGrace {
		h.since = now
	}
	h.seen = now
}

// caughtUpSince is since when reading has kept up with every source partition
// that is followed: now, when it does not; 0 when none is.
func (i *intake) caughtUpSince(now int64) (since int64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, h := range i.heads { // a maximum: order does not matter
		if h.seen == 0 || now-h.seen > headGrace {
			return now
		}
		since = max(since, h.since)
	}
	return since
}

// polled says that a source partition that is asked again and again has nothing
// to read just now.
func (i *intake) polled(name string, now int64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.track.Polled(name, now)
}

// hold says that a source partition is not known to be caught up.
func (i *intake) hold(name string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.track.Hold(name)
}

// caughtUp says that a source partition has nothing to read at present, until it
// is written to.
func (i *intake) caughtUp(name string, now int64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.track.CaughtUp(name, now)
	if _, ok := i.idle[name]; !ok {
		i.idle[name] = now
	}
}

// written says that there are records again of a source partition that may have
// been said to be caught up.
func (i *intake) written(name string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if _, ok := i.idle[name]; ok {
		delete(i.idle, name)
		i.track.Hold(name)
	}
}
