package watermark

import "math"

// NoWatermark is the watermark before any event time is known.
const NoWatermark = math.MinInt64

// Options of a Tracker, all in microseconds.
type Options struct {
	OutOfOrderness int64 // how much later than the largest event time an earlier one may still come
	IdleTimeout    int64 // how long a source partition must be caught up to count as idle; 0: never idle by itself
	MaxFuture      int64 // an event later than now plus this does not advance anything; 0: no limit
}

// Tracker follows event time. Not safe for use by several goroutines.
type Tracker struct {
	o       Options
	sources map[string]*source
	current int64
}

// source is the state of one source partition.
type source struct {
	watermark int64 // NoWatermark: nothing seen
	opened    bool  // false: only expected
	ended     bool
	caughtUp  bool  // since caughtUpAt
	idle      bool  // said so by its owner; no timeout
	since     int64 // when it caught up
	polled    bool  // it is asked again and again
	seen      int64 // when it last answered that it is caught up
	holds     uint64
}

// New makes a Tracker that owns nothing.
func New(o Options) *Tracker {
	return &Tracker{o: o, sources: make(map[string]*source), current: NoWatermark}
}

// Restore starts Current at the watermark of a checkpoint (T1).
func (t *Tracker) Restore(watermark int64) { t.current = max(t.current, watermark) }

// Expect says that a source partition will be opened: until Own it holds
// Current (T3). Without effect on one that is owned.
func (t *Tracker) Expect(name string) {
	if t.sources[name] == nil {
		t.sources[name] = &source{watermark: NoWatermark}
	}
}

// Own opens a source partition, or opens it again, with the watermark its
// checkpoint has (NoWatermark: none). It is not caught up, not ended.
func (t *Tracker) Own(name string, restored int64) {
	s := t.sources[name]
	if s == nil {
		s = &source{watermark: NoWatermark}
		t.sources[name] = s
	}
	s.watermark = max(s.watermark, restored)
	s.opened, s.ended = true, false
	s.hold()
}

// Disown forgets a source partition that another reader has taken. While it
// moves it should rather be held: keep it until the other one has it.
func (t *Tracker) Disown(name string) { delete(t.sources, name) }

// Observe notes the largest event time (microseconds) of a batch that was read
// at the time now. The source partition is not caught up any more. A name that
// is not owned is ignored.
func (t *Tracker) Observe(name string, maxEventTimeMicros, now int64) {
	s := t.sources[name]
	if s == nil || !s.opened {
		return
	}
	s.hold()
	if maxEventTimeMicros == NoWatermark {
		return
	}
	if t.o.MaxFuture > 0 && maxEventTimeMicros > now && maxEventTimeMicros-now > t.o.MaxFuture { // T5
		return
	}
	s.watermark = max(s.watermark, less(maxEventTimeMicros, t.o.OutOfOrderness))
}

// CaughtUp notes a successful empty fetch at the end of a source partition.
// The first one after a record starts the idle timeout.
func (t *Tracker) CaughtUp(name string, now int64) {
	s := t.sources[name]
	if s == nil || !s.opened || s.caughtUp {
		return
	}
	s.caughtUp, s.since = true, now
}

// fresh is how long an empty answer of a polled source partition counts:
// longer than it takes until the next one, shorter than it takes to notice that
// none will come.
const fresh = 3_000_000

// Polled is CaughtUp of a source partition that is asked again and again, and
// answers again and again that it is at its end.
func (t *Tracker) Polled(name string, now int64) {
	s := t.sources[name]
	if s == nil || !s.opened {
		return
	}
	if s.polled && (now-s.seen > fresh || now < s.seen) {
		s.caughtUp = false // nobody knows what was meanwhile, or how long it was
	}
	if !s.caughtUp {
		s.caughtUp, s.since = true, now
	}
	s.polled, s.seen = true, now
}

// Hold says that a source partition is not known to be caught up: its fetch
// failed, it is paused, it moves (T4).
func (t *Tracker) Hold(name string) {
	if s := t.sources[name]; s != nil {
		s.hold()
		s.holds++
	}
}

// Idle says that a source partition will be silent for a while: it counts as
// idle at once, until the next record.
func (t *Tracker) Idle(name string) {
	if s := t.sources[name]; s != nil && s.opened {
		s.idle = true
	}
}

func (s *source) hold() { s.caughtUp, s.idle = false, false }

// Ended says that a source partition has no more records.
func (t *Tracker) Ended(name string) {
	if s := t.sources[name]; s != nil {
		s.ended = true
	}
}

// Of is the watermark of one source partition, NoWatermark when there is none.
func (t *Tracker) Of(name string) int64 {
	if s := t.sources[name]; s != nil {
		return s.watermark
	}
	return NoWatermark
}

// Idling are the source partitions that are idle at the time now, with how often
// each was held so far.
type Idling map[string]uint64

// Idling finds them.
func (t *Tracker) Idling(now int64) Idling {
	out := make(Idling)
	for name, s := range t.sources { // each by itself: order does not matter
		if !s.ended && t.isIdle(s, now) {
			out[name] = s.holds
		}
	}
	return out
}

// Current is the watermark of all source partitions together at the wall-clock
// time now (microseconds).
func (t *Tracker) Current(now int64) int64 { return t.CurrentOf(now, nil) }

// CurrentOf is Current where only those count as idle that were idle before, when
// what was read was cut, and have not been held since: one that had rows in
// between, which are not in the cut, and is idle again, holds Current (T7). nil: all.
func (t *Tracker) CurrentOf(now int64, before Idling) int64 {
	const none = math.MaxInt64
	active, ended, idle, at := int64(none), int64(NoWatermark), false, now
	for name, s := range t.sources { // minimum, maximum and or: order does not matter
		switch {
		case s.ended:
			ended = max(ended, s.watermark)
		case t.isIdle(s, now) && before.has(name, s.holds):
			idle = true
			if s.polled {
				at = min(at, s.seen)
			}
		default:
			active = min(active, s.watermark)
		}
	}
	w := ended // T6; NoWatermark when nothing is owned
	switch {
	case active != none:
		w = active // T2, T3
	case idle:
		w = less(less(at, t.o.OutOfOrderness), t.o.IdleTimeout)
	}
	t.current = max(t.current, w) // T1
	return t.current
}

func (i Idling) has(name string, holds uint64) bool {
	was, idle := i[name]
	return i == nil || idle && was == holds
}

func (t *Tracker) isIdle(s *source, now int64) bool {
	if s.polled {
		return s.caughtUp && t.o.IdleTimeout > 0 && s.seen-s.since >= t.o.IdleTimeout && now-s.seen <= fresh
	}
	if now < s.since { // the clock was set back: the timeout begins anew
		s.since = now
	}
	return s.idle || s.caughtUp && t.o.IdleTimeout > 0 && now-s.since >= t.o.IdleTimeout
}

// less is a-b, not below the smallest time.
func less(a, b int64) int64 {
	if a < NoWatermark+1+b {
		return NoWatermark + 1
	}
	return a - b
}
