package record

import (
	"fmt"
	"math"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/hivesink/hivesink/hivetype"
	"github.com/hivesink/hivesink/layout"
)

const microsPerDay = 24 * 60 * 60 * 1_000_000

// timeColumn is a temporal transform of a timestamp column. Instants in
// [from, to) are known to have the number last: a day or an hour of rows in
// order costs two comparisons a row.
type timeColumn struct {
	values
	transform layout.Transform
	unit      int64 // microseconds of local time with one value
	zone      layout.Zone
	known     map[int64]int32 // by local time / unit
	from, to  int64
	last      int32
}

// newTimeColumn makes the column of a temporal transform. Of a date it is a
// matter of the day number; a date has no zone and no time of day.
func newTimeColumn(v values, typ *hivetype.Type, t layout.Transform, zone *time.Location,
	keyed func(fillFunc, textFunc) (column, error)) (column, error) {
	unit := t.Unit()
	switch typ.Kind {
	case hivetype.Timestamp:
		return &timeColumn{values: v, transform: t, unit: unit, zone: layout.NewZone(zone)}, nil
	case hivetype.Date:
		if unit < microsPerDay {
			return nil, fmt.Errorf("%s: a date has no time of day", t)
		}
		return keyed(dateKeys, func(dst []byte, days int64) []byte { return t.AppendTime(dst, days*microsPerDay) })
	}
	return nil, fmt.Errorf("%s needs a timestamp or date, not %s", t, typ)
}

func (c *timeColumn) reset() {
	c.values.reset()
	c.known = make(map[int64]int32)
	c.from, c.to = 0, 0
}

func (c *timeColumn) assign(arr arrow.Array, out []int32) {
	a := arr.(*array.Timestamp)
	times := a.TimestampValues()[:len(out)]
	if a.NullN() > 0 {
		null := c.null()
		for i, t := range times {
			if a.IsNull(i) {
				out[i] = null
			} else {
				out[i] = c.number(int64(t))
			}
		}
		return
	}
	from, to, last := c.from, c.to, c.last
	for i, v := range times {
		t := int64(v)
		if t < from || t >= to {
			last = c.number(t)
			from, to = c.from, c.to
		}
		out[i] = last
	}
}

// number is the number of an instant; it sets from, to and last.
func (c *timeColumn) number(t int64) int32 {
	if t >= c.from && t < c.to {
		return c.last
	}
	from, to, offset := c.zone.Span(t)
	local := t + offset
	key := local / c.unit
	if local%c.unit < 0 {
		key-- // rounded down before 1970 too
	}
	id, ok := c.known[key]
	if !ok {
		c.buf = c.transform.AppendTime(c.buf[:0], local)
		id = c.id(c.buf)
		c.known[key] = id
	}
	c.from, c.to, c.last = max(from, key*c.unit-offset), min(to, (key+1)*c.unit-offset), id
	return id
}

func (c *timeColumn) refused(arr arrow.Array, i int) (class, reason string) {
	local := c.zone.Local(int64(arr.(*array.Timestamp).Value(i)))
	return c.refusedText(string(c.transform.AppendTime(nil, local)))
}

func dateKeys(arr arrow.Array, keys []int64) {
	for i, v := range arr.(*array.Date32).Date32Values() {
		keys[i] = int64(v)
	}
}

func timestampKeys(arr arrow.Array, keys []int64) {
	for i, v := range arr.(*array.Timestamp).TimestampValues() {
		keys[i] = int64(v)
	}
}

func boolKeys(arr arrow.Array, keys []int64) {
	a := arr.(*array.Boolean)
	for i := range keys {
		keys[i] = 0
		if a.Value(i) {
			keys[i] = 1
		}
	}
}

// integerKeys fills keys from a column of integers; nil for other kinds.
func integerKeys(k hivetype.Kind) fillFunc {
	switch k {
	case hivetype.TinyInt:
		return func(arr arrow.Array, keys []int64) { widen(arr.(*array.Int8).Int8Values(), keys) }
	case hivetype.SmallInt:
		return func(arr arrow.Array, keys []int64) { widen(arr.(*array.Int16).Int16Values(), keys) }
	case hivetype.Int:
		return func(arr arrow.Array, keys []int64) { widen(arr.(*array.Int32).Int32Values(), keys) }
	case hivetype.BigInt:
		return func(arr arrow.Array, keys []int64) { copy(keys, arr.(*array.Int64).Int64Values()) }
	}
	return nil
}

func widen[T int8 | int16 | int32](in []T, out []int64) {
	for i, v := range in {
		out[i] = int64(v)
	}
}

// truncateFill rounds integers down to a multiple of width; nil for other
// kinds. Below the smallest multiple the smallest integer stands for it, so
// that nothing wraps around.
func truncateFill(k hivetype.Kind, width int64) fillFunc {
	fill := integerKeys(k)
	if fill == nil {
		return nil
	}
	return func(arr arrow.Array, keys []int64) {
		fill(arr, keys)
		for i, v := range keys {
			rest := v % width
			if rest < 0 {
				rest += width
			}
			if v < math.MinInt64+rest {
				keys[i] = math.MinInt64
			} else {
				keys[i] = v - rest
			}
		}
	}
}
