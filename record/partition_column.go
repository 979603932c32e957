package record

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/hivesink/hivesink/hivetype"
	"github.com/hivesink/hivesink/layout"
)

// values numbers the texts a partition column has had: one number for each
// directory name (P1).
type values struct {
	name   string // of the partition column
	limits *layout.Limits
	ids    map[string]int32
	texts  []string
	buf    []byte
}

func (v *values) reset() {
	v.ids, v.texts = make(map[string]int32), nil
}

func (v *values) value(id int32) string { return v.texts[id] }

// id is the number of a text, -1 when no directory can have that name. Null
// is the empty text.
func (v *values) id(text []byte) int32 {
	if id, ok := v.ids[string(text)]; ok {
		return id
	}
	s := string(text)
	if v.componentBytes(s) > layout.MaxComponent || !utf8.ValidString(s) || !v.limits.TakesText(s) {
		return -1 // P3; not remembered: such values may be many
	}
	if shown := layout.ValueOrDefault(s); shown != s {
		id := v.id([]byte(shown))
		v.ids[s] = id
		return id
	}
	id := int32(len(v.texts))
	v.texts = append(v.texts, s)
	v.ids[s] = id
	return id
}

func (v *values) null() int32 { return v.id(nil) }

func (v *values) componentBytes(text string) int {
	return len(layout.Escape(v.name)) + 1 + len(layout.Escape(text))
}

func (v *values) refusedText(text string) (class, reason string) {
	if !utf8.ValidString(text) {
		return ClassType, fmt.Sprintf("partition column %s: %.64q is not UTF-8 text", v.name, text)
	}
	if !v.limits.TakesText(text) {
		return ClassType, fmt.Sprintf("partition column %s: %.64q has a character that the storage cannot have in a name", v.name, text)
	}
	return ClassPartition, fmt.Sprintf("partition column %s: the directory name has %d bytes after escaping, at most %d are possible",
		v.name, v.componentBytes(text), layout.MaxComponent)
}

// newColumn makes the column of a transform; name is the partition column's.
func newColumn(name string, typ *hivetype.Type, t layout.Transform, zone *time.Location, keys *[]int64, limits *layout.Limits) (column, error) {
	v := values{name: name, limits: limits}
	keyed := func(fill fillFunc, text textFunc) (column, error) {
		if fill == nil {
			return nil, fmt.Errorf("%s is not defined for %s", t.Func, typ)
		}
		return &keyColumn{values: v, fill: fill, text: text, scratch: keys}, nil
	}
	switch {
	case t.Temporal():
		return newTimeColumn(v, typ, t, zone, keyed)
	case t.Func == layout.Bucket:
		if t.N < 1 {
			return nil, fmt.Errorf("%s needs at least one bucket", t)
		}
		return keyed(bucketFill(typ.Kind, int64(t.N)), appendInt)
	case t.Func == layout.Truncate:
		if t.N < 1 {
			return nil, fmt.Errorf("%s needs a width of at least 1", t)
		}
		if isText(typ.Kind) {
			return &textColumn{values: v, points: t.N}, nil
		}
		return keyed(truncateFill(typ.Kind, int64(t.N)), appendInt)
	case t.Func != layout.Identity:
		return nil, fmt.Errorf("no transform is called %q", t.Func)
	}
	switch typ.Kind {
	case hivetype.Boolean:
		return keyed(boolKeys, appendBool)
	case hivetype.TinyInt, hivetype.SmallInt, hivetype.Int, hivetype.BigInt:
		return keyed(integerKeys(typ.Kind), appendInt)
	case hivetype.Date:
		return keyed(dateKeys, layout.AppendDate)
	case hivetype.Timestamp:
		local := layout.NewZone(zone)
		return keyed(timestampKeys, func(dst []byte, micros int64) []byte {
			return layout.AppendTimestamp(dst, local.Local(micros))
		})
	case hivetype.Decimal:
		return &decimalColumn{values: v, scale: typ.Scale}, nil
	}
	if isText(typ.Kind) {
		return &textColumn{values: v}, nil
	}
	return nil, fmt.Errorf("values of type %s have no text for a path", typ)
}

func isText(k hivetype.Kind) bool {
	return k == hivetype.String || k == hivetype.Varchar || k == hivetype.Char
}

func appendInt(dst []byte, n int64) []byte { return strconv.AppendInt(dst, n, 10) }

func appendBool(dst []byte, n int64) []byte { return strconv.AppendBool(dst, n != 0) }

// fillFunc computes the key of every row; textFunc is the text of a key. Equal
// keys have equal texts.
type (
	fillFunc func(arr arrow.Array, keys []int64)
	textFunc func(dst []byte, key int64) []byte
)

// keyColumn is a column whose values come from 64-bit keys.
type keyColumn struct {
	values
	fill    fillFunc
	text    textFunc
	scratch *[]int64
	known   map[int64]int32
}

func (c *keyColumn) reset() {
	c.values.reset()
	c.known = make(map[int64]int32)
}

func (c *keyColumn) assign(arr arrow.Array, out []int32) {
	if cap(*c.scratch) < len(out) {
		*c.scratch = make([]int64, len(out))
	}
	keys := (*c.scratch)[:len(out)]
	c.fill(arr, keys)
	if arr.NullN() > 0 {
		c.assignSparse(arr, keys, out)
		return
	}
	if len(out) == 0 {
		return
	}
	last, lastID := keys[0], c.lookup(keys[0])
	for i, k := range keys {
		if k != last {
			last, lastID = k, c.lookup(k)
		}
		out[i] = lastID
	}
}

func (c *keyColumn) assignSparse(arr arrow.Array, keys []int64, out []int32) {
	null := c.null()
	for i, k := range keys {
		if arr.IsNull(i) {
			out[i] = null
		} else {
			out[i] = c.lookup(k)
		}
	}
}

func (c *keyColumn) lookup(key int64) int32 {
	if id, ok := c.known[key]; ok {
		return id
	}
	c.buf = c.text(c.buf[:0], key)
	id := c.id(c.buf)
	c.known[key] = id
	return id
}

func (c *keyColumn) refused(arr arrow.Array, i int) (class, reason string) {
	keys := make([]int64, arr.Len())
	c.fill(arr, keys)
	return c.refusedText(string(c.text(nil, keys[i])))
}

// textColumn is a column of text, cut to points code points when that is not
// 0. The text of an Arrow array is not kept: its memory goes with the batch.
type textColumn struct {
	values
	points int
}

func (c *textColumn) text(arr *array.String, i int) string {
	s := arr.Value(i)
	if c.points == 0 || len(s) <= c.points {
		return s
	}
	n := 0
	for at := range s {
		if n == c.points {
			return s[:at]
		}
		n++
	}
	return s
}

func (c *textColumn) assign(arr arrow.Array, out []int32) {
	a := arr.(*array.String)
	null := c.null()
	last, lastID := "", null
	nulls := a.NullN() > 0
	for i := range out {
		if nulls && a.IsNull(i) {
			out[i] = null
			continue
		}
		s := c.text(a, i)
		if s != last {
			id, ok := c.ids[s]
			if !ok {
				c.buf = append(c.buf[:0], s...)
				id = c.id(c.buf)
			}
			last, lastID = s, id
		}
		out[i] = lastID
	}
}

func (c *textColumn) refused(arr arrow.Array, i int) (class, reason string) {
	return c.refusedText(c.text(arr.(*array.String), i))
}

// decimalColumn is a column of decimals, written as Hive normalises them.
type decimalColumn struct {
	values
	scale int
	known map[decimal128.Num]int32
}

func (c *decimalColumn) reset() {
	c.values.reset()
	c.known = make(map[decimal128.Num]int32)
}

func (c *decimalColumn) assign(arr arrow.Array, out []int32) {
	a := arr.(*array.Decimal128)
	null := c.null()
	nulls := a.NullN() > 0
	for i, n := range a.Values() {
		if nulls && a.IsNull(i) {
			out[i] = null
			continue
		}
		id, ok := c.known[n]
		if !ok {
			c.buf = appendDecimal(c.buf[:0], n, c.scale)
			id = c.id(c.buf)
			c.known[n] = id
		}
		out[i] = id
	}
}

func (c *decimalColumn) refused(arr arrow.Array, i int) (class, reason string) {
	return c.refusedText(string(appendDecimal(nil, arr.(*array.Decimal128).Value(i), c.scale)))
}

// appendDecimal writes a decimal as HiveDecimal does: no zeros at the end of
// the fraction, no point without a fraction, no exponent.
func appendDecimal(dst []byte, n decimal128.Num, scale int) []byte {
	digits := n.BigInt().String()
	if rest, negative := strings.CutPrefix(digits, "-"); negative {
		dst = append(dst, '-')
		digits = rest
	}
	if scale <= 0 {
		return append(dst, digits...)
	}
	if missing := scale + 1 - len(digits); missing > 0 {
		digits = strings.Repeat("0", missing) + digits
	}
	dst = append(dst, digits[:len(digits)-scale]...)
	if fraction := strings.TrimRight(digits[len(digits)-scale:], "0"); fraction != "" {
		dst = append(dst, '.')
		dst = append(dst, fraction...)
	}
	return dst
}
