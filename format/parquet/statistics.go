package parquetfile

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go/format"
)

const (
	// indexText is how much of a text the column index keeps.
	indexText = 64
	// statisticsText is the longest text that is kept as statistics of a
	// column chunk. They are exact or absent: readers answer min() from them.
	statisticsText = 256
)

// bounds are the smallest and the largest of some values, PLAIN-encoded (F8).
type bounds struct {
	ok       bool
	min, max []byte
}

func (b *bounds) text(v []byte) {
	switch {
	case !b.ok:
		b.min, b.max, b.ok = v, v, true
	case bytes.Compare(v, b.min) < 0:
		b.min = v
	case bytes.Compare(v, b.max) > 0:
		b.max = v
	}
}

// value includes a value that is no NaN and no zero of a float.
func (b *bounds) value(l *leaf, v []byte) {
	switch {
	case !b.ok:
		b.min, b.max, b.ok = v, v, true
	case l.compare(v, b.min) < 0:
		b.min = v
	case l.compare(v, b.max) > 0:
		b.max = v
	}
}

// include makes b the bounds of the values of both.
func (b *bounds) include(l *leaf, o bounds) {
	switch {
	case !o.ok:
	case !b.ok:
		*b = o
	default:
		if l.compare(o.min, b.min) < 0 {
			b.min = o.min
		}
		if l.compare(o.max, b.max) > 0 {
			b.max = o.max
		}
	}
}

// bounds finds the bounds of n values from value k on. They may refer to the
// leaf's memory.
func (l *leaf) bounds(k, n int) (b bounds) {
	if n == 0 || l.order == orderNone {
		return b
	}
	if l.order == orderUnsigned {
		switch l.phys {
		case physInt32:
			lo, hi := extremes(unsigned[uint32](l.i32[k : k+n]))
			return bounds{true, binary.LittleEndian.AppendUint32(nil, lo), binary.LittleEndian.AppendUint32(nil, hi)}
		case physInt64:
			lo, hi := extremes(unsigned[uint64](l.i64[k : k+n]))
			return bounds{true, binary.LittleEndian.AppendUint64(nil, lo), binary.LittleEndian.AppendUint64(nil, hi)}
		}
	}
	switch l.phys {
	case physBool:
		lo, hi := extremes(l.i32[k : k+n])
		return bounds{true, []byte{byte(lo)}, []byte{byte(hi)}}
	case physInt32:
		lo, hi := extremes(l.i32[k : k+n])
		return bounds{true, appendFixed(nil, []int32{lo}), appendFixed(nil, []int32{hi})}
	case physInt64:
		lo, hi := extremes(l.i64[k : k+n])
		return bounds{true, appendFixed(nil, []int64{lo}), appendFixed(nil, []int64{hi})}
	case physFloat:
		lo, hi, ok := floatExtremes(l.f32[k : k+n])
		if ok {
			b = bounds{true, appendFixed(nil, []float32{lo}), appendFixed(nil, []float32{hi})}
		}
		return b
	case physDouble:
		lo, hi, ok := floatExtremes(l.f64[k : k+n])
		if ok {
			b = bounds{true, appendFixed(nil, []float64{lo}), appendFixed(nil, []float64{hi})}
		}
		return b
	case physFixed:
		for i := k; i < k+n; i++ {
			b.value(l, l.bytes[i*l.width:(i+1)*l.width])
		}
		return b
	}
	from := uint32(0)
	if k > 0 {
		from = l.ends[k-1]
	}
	for _, end := range l.ends[k : k+n] {
		b.text(l.bytes[from:end])
		from = end
	}
	return b
}

func extremes[T int32 | int64 | uint32 | uint64](v []T) (lo, hi T) {
	lo, hi = v[0], v[0]
	for _, x := range v[1:] {
		lo, hi = min(lo, x), max(hi, x)
	}
	return lo, hi
}

// floatExtremes leaves NaN out and makes zeros say that both zeros are inside:
// a minimum of zero is -0, a maximum +0.
func floatExtremes[T float32 | float64](v []T) (lo, hi T, ok bool) {
	lo, hi = T(math.Inf(1)), T(math.Inf(-1))
	for _, x := range v {
		if x < lo {
			lo = x
		}
		if x > hi {
			hi = x
		}
		ok = ok || x == x
	}
	if lo == 0 {
		lo = T(math.Copysign(0, -1))
	}
	if hi == 0 {
		hi = 0
	}
	return lo, hi, ok
}

// compare orders two PLAIN-encoded values as the column's type does.
func (l *leaf) compare(a, b []byte) int {
	if l.order == orderUnsigned {
		switch l.phys {
		case physInt32:
			return cmp.Compare(binary.LittleEndian.Uint32(a), binary.LittleEndian.Uint32(b))
		case physInt64:
			return cmp.Compare(binary.LittleEndian.Uint64(a), binary.LittleEndian.Uint64(b))
		}
		return bytes.Compare(a, b)
	}
	switch l.phys {
	case physInt32:
		return cmp.Compare(int32(binary.LittleEndian.Uint32(a)), int32(binary.LittleEndian.Uint32(b)))
	case physInt64:
		return cmp.Compare(int64(binary.LittleEndian.Uint64(a)), int64(binary.LittleEndian.Uint64(b)))
	case physFloat:
		return cmp.Compare(math.Float32frombits(binary.LittleEndian.Uint32(a)), math.Float32frombits(binary.LittleEndian.Uint32(b)))
	case physDouble:
		return cmp.Compare(math.Float64frombits(binary.LittleEndian.Uint64(a)), math.Float64frombits(binary.LittleEndian.Uint64(b)))
	case physFixed: // two's complement, big endian
		if c := cmp.Compare(int8(a[0]), int8(b[0])); c != 0 {
			return c
		}
	}
	return bytes.Compare(a, b)
}

// ofFloats makes bounds of floats true ones: no NaN, and both zeros inside a
// zero.
func (b bounds) ofFloats(l *leaf) bounds {
	switch {
	case !b.ok:
	case l.phys == physFloat:
		lo, hi := math.Float32frombits(binary.LittleEndian.Uint32(b.min)), math.Float32frombits(binary.LittleEndian.Uint32(b.max))
		lo, hi, ok := floatExtremes([]float32{lo, hi})
		return bounds{ok, appendFixed(nil, []float32{lo}), appendFixed(nil, []float32{hi})}
	case l.phys == physDouble:
		lo, hi := math.Float64frombits(binary.LittleEndian.Uint64(b.min)), math.Float64frombits(binary.LittleEndian.Uint64(b.max))
		lo, hi, ok := floatExtremes([]float64{lo, hi})
		return bounds{ok, appendFixed(nil, []float64{lo}), appendFixed(nil, []float64{hi})}
	}
	return b
}

// isNaN says whether a value of a column of floats is NaN.
func (l *leaf) isNaN(v []byte) bool {
	switch l.phys {
	case physFloat:
		x := math.Float32frombits(binary.LittleEndian.Uint32(v))
		return x != x
	case physDouble:
		x := math.Float64frombits(binary.LittleEndian.Uint64(v))
		return x != x
	}
	return false
}

// record keeps what the page index and the chunk's statistics say of a page
// with so many values that are there.
func (c *chunk) record(b bounds, values int, nulls int64) {
	x := c.index
	x.NullPages = append(x.NullPages, values == 0)
	x.NullCounts = append(x.NullCounts, nulls)
	if !b.ok {
		c.blind = c.blind || values > 0
		x.MinValues, x.MaxValues = append(x.MinValues, []byte{}), append(x.MaxValues, []byte{})
		return
	}
	x.MinValues = append(x.MinValues, c.l.lowerBound(b.min))
	x.MaxValues = append(x.MaxValues, c.l.upperBound(b.max))
	c.bounds.include(c.l, b)
}

// setStatistics copies the bounds: they refer to memory that is reused.
func (c *chunk) setStatistics() {
	b := c.bounds
	if !b.ok || c.vague || c.l.phys == physBytes && (len(b.min) > statisticsText || len(b.max) > statisticsText) {
		return
	}
	c.meta.Statistics.MinValue = append(make([]byte, 0, len(b.min)), b.min...)
	c.meta.Statistics.MaxValue = append(make([]byte, 0, len(b.max)), b.max...)
}

// lowerBound is at most v, and short; its memory is its own.
func (l *leaf) lowerBound(v []byte) []byte {
	if l.phys == physBytes && len(v) > indexText {
		v = v[:l.cut(v)]
	}
	return append(make([]byte, 0, len(v)), v...)
}

// upperBound is at least v, and short where that can be.
func (l *leaf) upperBound(v []byte) []byte {
	if l.phys != physBytes || len(v) <= indexText {
		return append(make([]byte, 0, len(v)), v...)
	}
	short := append(make([]byte, 0, indexText), v[:l.cut(v)]...)
	if l.text {
		if next, ok := nextText(short); ok {
			return next
		}
	} else {
		for i := len(short) - 1; i >= 0; i-- {
			if short[i] < 0xff {
				short[i]++
				return short[:i+1]
			}
		}
	}
	return append(make([]byte, 0, len(v)), v...)
}

// cut is where a long value is cut: texts between two characters.
func (l *leaf) cut(v []byte) int {
	n := indexText
	if l.text {
		for n > indexText-utf8.UTFMax && !utf8.RuneStart(v[n]) {
			n--
		}
	}
	return n
}

// nextText is a valid text greater than every one that begins with s.
func nextText(s []byte) ([]byte, bool) {
	for len(s) > 0 {
		r, n := utf8.DecodeLastRune(s)
		s = s[:len(s)-n]
		if r == utf8.RuneError && n <= 1 {
			continue
		}
		r++
		if r == 0xd800 { // surrogates are no characters
			r = 0xe000
		}
		if r <= utf8.MaxRune {
			return utf8.AppendRune(s, r), true
		}
	}
	return nil, false
}

// boundaryOrder says whether the pages' bounds go up or down.
func boundaryOrder(l *leaf, x *format.ColumnIndex) format.BoundaryOrder {
	up, down, last := true, true, -1
	for i := range x.NullPages {
		if x.NullPages[i] {
			continue
		}
		if last >= 0 {
			lo, hi := l.compare(x.MinValues[last], x.MinValues[i]), l.compare(x.MaxValues[last], x.MaxValues[i])
			up = up && lo <= 0 && hi <= 0
			down = down && lo >= 0 && hi >= 0
		}
		last = i
	}
	switch {
	case up:
		return format.Ascending
	case down:
		return format.Descending
	}
	return format.Unordered
}
