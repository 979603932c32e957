package writer

import (
	"math"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/record"
)

const microsPerDay = 24 * 60 * 60 * 1_000_000

// eventTimes reads the event-time column as microseconds, noTime where null.
func eventTimes(col arrow.Array, out []int64) []int64 {
	n := col.Len()
	out = grow(out, n)
	switch c := col.(type) {
	case *array.Timestamp:
		for i, v := range c.TimestampValues() {
			out[i] = int64(v)
		}
	case *array.Date32:
		for i, v := range c.Date32Values() {
			out[i] = int64(v) * microsPerDay
		}
	default:
		for i := range out {
			out[i] = noTime
		}
	}
	if col.NullN() > 0 {
		for i := range out {
			if col.IsNull(i) {
				out[i] = noTime
			}
		}
	}
	return out
}

// judge advances the source partition's watermark row by row and finds the
// late rows: those whose partition was past its trigger under the watermark of
// the rows before them. It depends on nothing but the source partition's own
// records and its checkpointed watermark, so a replay decides alike. Dropped
// rows are taken out of scratch.assign. The result is nil when no row is late.
func (l *Lane) judge(in *batch, src *source, out *Outcome) []bool {
	if in.times == nil {
		return nil
	}
	s := &l.scratch
	watch := l.part != nil && l.o.LateDelay >= 0
	limit := int64(0)
	if l.o.MaxFuture > 0 {
		limit = in.now + l.o.MaxFuture
	}
	var late []bool
	for i, t := range in.times {
		p := s.assign[i]
		if watch && p >= 0 && src.maxTime != ledger.NoWatermark && l.pastTrigger(p, src) {
			if late == nil {
				s.isLate = grow(s.isLate, len(in.times))
				clear(s.isLate)
				late = s.isLate
			}
			late[i] = true
			out.Late++
			if l.o.Late == LateDrop {
				s.assign[i] = -1
				src.Dropped.Row(in.numbers[i])
				out.Dropped++
			}
		}
		if t != noTime && p >= 0 && t > src.maxTime && (limit == 0 || t <= limit) {
			src.maxTime = t
		}
	}
	if src.maxTime != ledger.NoWatermark {
		src.Watermark = earlier(src.maxTime, l.o.OutOfOrderness)
	}
	return late
}

func (l *Lane) pastTrigger(p int32, src *source) bool {
	closes := l.part.Partition(p).Closes
	return closes != 0 && earlier(src.maxTime, l.o.OutOfOrderness) >= later(closes, l.o.LateDelay)
}

// earlier and later move a time by d (≥ 0), not past the ends of time: a record
// may have any time, and one from before all others must not wrap round to the
// latest.
func earlier(t, d int64) int64 {
	if t < ledger.NoWatermark+1+d {
		return ledger.NoWatermark + 1
	}
	return t - d
}

func later(t, d int64) int64 {
	if t > math.MaxInt64-d {
		return math.MaxInt64
	}
	return t + d
}

func sortBad(bad []record.BadRecord) {
	slices.SortStableFunc(bad, func(a, b record.BadRecord) int {
		switch {
		case a.Row < b.Row:
			return -1
		case a.Row > b.Row:
			return 1
		}
		return 0
	})
}
