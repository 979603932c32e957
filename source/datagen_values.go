package source

import (
	"hash/fnv"
	"math"
	"math/bits"
	"strconv"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/hivesink/hivesink/hivetype"
)

const (
	day            = int64(24 * time.Hour / time.Microsecond)
	defaultDays    = 10
	endlessStep    = int64(time.Millisecond / time.Microsecond)
	lateBy         = 2 * day
	maxElements    = 3       // of an array or map: what two bits of a hash say
	textsInMemory  = 100_000 // distinct texts that are made once
	defaultTexts   = 1000
	defaultNumbers = 1_000_000
	defaultSeconds = 365 * 24 * 3600
	zipfEntries    = 4096
)

// firstTime is the time of row 0: 2026-01-01T00:00:00Z.
var firstTime = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// golden steps a counter so that mix sees all bits change.
const golden = 0x9e3779b97f4a7c15

// mix is a bijection of 64 bits in which every bit of the input changes every
// bit of the output with a chance of one half.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// isNull decides by low bits, which draws of values do not depend on: 31 of
// 1024.
func isNull(h uint64) bool { return h&1023 < 31 }

// column makes up the values of one column.
type column struct {
	seed     uint64
	nullable bool
	b        array.Builder
	add      func(h uint64, row int64) // appends the value of a row whose hash is h
}

// fill appends n rows: first, first+8, first+16 …
func (c *column) fill(first, n int64) {
	for i := range n {
		row := first + i*datagenSplits
		h := mix(c.seed + uint64(row)*golden)
		if c.nullable && isNull(h) {
			c.b.AppendNull()
			continue
		}
		c.add(h, row)
	}
}

// columns makes a column for each of the schema's, and says about how many
// bytes a row takes.
func (s *datagen) columns(rb *array.RecordBuilder) (cols []column, rowBytes int64) {
	schema := s.o.Schema
	key := make([]bool, len(schema.Columns)) // identity partition columns
	for i := range key {
		key[i] = true
	}
	for _, i := range schema.DataIndex {
		key[i] = false
	}
	timed := s.timeColumn()
	for i, f := range schema.Columns {
		seed := mix(mix(uint64(s.d.Seed)+golden) ^ hashName(f.Name))
		c := column{seed: seed, b: rb.Field(i), nullable: !f.NotNull && !key[i] && i != timed && f.Type.Kind != hivetype.BigInt}
		if i == timed {
			c.add = s.times(f, c.b, mix(seed))
		} else {
			c.add = adder(f.Name, f.Type, c.b, s.d.Columns[f.Name])
		}
		cols = append(cols, c)
		rowBytes += valueBytes(f.Type)
	}
	return cols, max(1, rowBytes)
}

func hashName(name string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(name))
	return h.Sum64()
}

// timeColumn is the index of the time column; -1 when there is none.
func (s *datagen) timeColumn() int {
	for i, f := range s.o.Schema.Columns {
		isTime := f.Type.Kind == hivetype.Timestamp || f.Type.Kind == hivetype.Date && f.Name == s.d.TimeColumn
		if isTime && (s.d.TimeColumn == "" || f.Name == s.d.TimeColumn) {
			return i
		}
	}
	return -1
}

// times appends the time of a row, which grows with its number.
func (s *datagen) times(f hivetype.Field, b array.Builder, lateSeed uint64) func(uint64, int64) {
	o := s.d.Columns[f.Name]
	span, step := o.Values*day, float64(endlessStep)
	if s.d.Rows > 0 {
		if span == 0 {
			span = defaultDays * day
		}
		step = float64(span) / float64(s.d.Rows)
	}
	base := firstTime.UnixMicro()
	late := uint64(s.d.Late * (1 << 32))
	draw := drawer(max(1, span/day), o.Skew)
	at := func(h uint64, row int64) int64 {
		t := int64(float64(row) * step)
		switch {
		case span > 0 && o.Skew > 0:
			t = draw(h)*day + t%day
		case span > 0 && t >= span:
			t %= span
		}
		if late > 0 && mix(h^lateSeed)>>32 < late {
			t -= lateBy
		}
		return base + t
	}
	if f.Type.Kind == hivetype.Date {
		d := b.(*array.Date32Builder)
		return func(h uint64, row int64) { d.Append(arrow.Date32(floorDay(at(h, row)))) }
	}
	ts := b.(*array.TimestampBuilder)
	return func(h uint64, row int64) { ts.Append(arrow.Timestamp(at(h, row))) }
}

// floorDay is the day since 1970 of a time in microseconds.
func floorDay(t int64) int64 {
	d := t / day
	if t%day < 0 {
		d--
	}
	return d
}

// drawer draws one of n values by a hash: 0 to n-1, all alike or by Zipf's law
// with exponent skew, 0 the most frequent. The law's inverse is a table of 4096
// entries with straight lines between them.
func drawer(n int64, skew float64) func(h uint64) int64 {
	if skew == 0 || n == 1 {
		return func(h uint64) int64 {
			hi, _ := bits.Mul64(h, uint64(n))
			return int64(hi)
		}
	}
	table := make([]float64, zipfEntries+1)
	end := float64(n) + 1
	for i := range table {
		u := float64(i) / zipfEntries
		if math.Abs(skew-1) < 1e-9 {
			table[i] = math.Pow(end, u)
		} else {
			table[i] = math.Pow(1+u*(math.Pow(end, 1-skew)-1), 1/(1-skew))
		}
	}
	return func(h uint64) int64 {
		i := h >> 52
		within := float64(h<<12>>12) * 0x1p-52
		x := table[i] + within*(table[i+1]-table[i])
		return min(max(int64(x), 1), n) - 1
	}
}

// capped is how many different values a type has, at most most.
func capped(values, byType, most int64) int64 {
	if values == 0 {
		values = byType
	}
	return max(1, min(values, most))
}

// adder appends values of a type.
func adder(name string, t *hivetype.Type, b array.Builder, o DatagenColumn) func(h uint64, row int64) {
	draw := func(byType, most int64) func(uint64) int64 {
		return drawer(capped(o.Values, byType, most), o.Skew)
	}
	switch b := b.(type) {
	case *array.BooleanBuilder:
		d := draw(2, 2)
		return func(h uint64, _ int64) { b.Append(d(h) == 1) }
	case *array.Int8Builder:
		d := draw(100, 1<<7)
		return func(h uint64, _ int64) { b.Append(int8(d(h))) }
	case *array.Int16Builder:
		d := draw(10_000, 1<<15)
		return func(h uint64, _ int64) { b.Append(int16(d(h))) }
	case *array.Int32Builder:
		d := draw(defaultNumbers, 1<<31)
		return func(h uint64, _ int64) { b.Append(int32(d(h))) }
	case *array.Int64Builder:
		if o.Values == 0 && o.Skew == 0 {
			return func(_ uint64, row int64) { b.Append(row) }
		}
		d := draw(defaultNumbers, math.MaxInt64)
		return func(h uint64, _ int64) { b.Append(d(h)) }
	case *array.Float32Builder:
		d := draw(defaultNumbers, 1<<23)
		return func(h uint64, _ int64) { b.Append(float32(d(h)) / 2) }
	case *array.Float64Builder:
		d := draw(1<<40, 1<<52)
		return func(h uint64, _ int64) { b.Append(float64(d(h)) / 1024) }
	case *array.Decimal128Builder:
		most := int64(math.Pow10(min(t.Precision, 18)))
		d := draw(1_000_000_000, most)
		return func(h uint64, _ int64) { b.Append(decimal128.FromI64(d(h))) }
	case *array.Date32Builder:
		d, first := draw(365, 100_000), firstTime.UnixMicro()/day
		return func(h uint64, _ int64) { b.Append(arrow.Date32(first + d(h))) }
	case *array.TimestampBuilder:
		d, first := draw(defaultSeconds, 1<<32), firstTime.UnixMicro()
		return func(h uint64, _ int64) { b.Append(arrow.Timestamp(first + d(h)*int64(time.Second/time.Microsecond))) }
	case *array.StringBuilder:
		return texts(name, t.Length, b.BinaryBuilder, o)
	case *array.BinaryBuilder:
		return texts(name, 0, b, o)
	}
	return nested(name, t, b, o)
}

// texts appends "name-000123". A type of bounded length keeps the end, which
// tells them apart.
func texts(name string, length int, b *array.BinaryBuilder, o DatagenColumn) func(uint64, int64) {
	most := int64(math.MaxInt64)
	if length > 0 && length < 18 {
		most = int64(math.Pow10(length))
	}
	n := capped(o.Values, defaultTexts, most)
	draw := drawer(n, o.Skew)
	if n > textsInMemory {
		scratch := make([]byte, 0, len(name)+20)
		return func(h uint64, _ int64) {
			scratch = appendText(scratch[:0], name, draw(h), length)
			b.Append(scratch)
		}
	}
	all := make([][]byte, n)
	for i := range all {
		all[i] = appendText(nil, name, int64(i), length)
	}
	return func(h uint64, _ int64) { b.Append(all[draw(h)]) }
}

// appendText appends "name-000123", of which a bounded type keeps the last
// length code points.
func appendText(to []byte, name string, i int64, length int) []byte {
	start := len(to)
	to = append(append(to, name...), '-')
	for pad := int64(100_000); pad > 1 && i < pad; pad /= 10 {
		to = append(to, '0')
	}
	to = strconv.AppendInt(to, i, 10)
	if length == 0 {
		return to
	}
	from := len(to)
	for ; length > 0 && from > start; length-- {
		for from--; from > start && to[from]&0xc0 == 0x80; from-- { // inside a code point
		}
	}
	return append(to[:start], to[from:]...)
}

// element is the hash of part i of a value whose hash is h.
func element(h uint64, i int) uint64 { return mix(h + uint64(i+1)*golden) }

// nested appends arrays and maps of up to 3 elements, and structs. About 3 % of
// the elements and fields that may be null are.
func nested(name string, t *hivetype.Type, b array.Builder, o DatagenColumn) func(uint64, int64) {
	switch b := b.(type) {
	case *array.MapBuilder: // before ListBuilder: it has its methods too
		keys, items := b.KeyBuilder(), b.ItemBuilder()
		item := orNull(items, adder(name, t.Elem, items, elementOptions(t.Elem, DatagenColumn{})))
		key, most := keyAdder(name, t.Key, keys), maxKeys(t.Key)
		return func(h uint64, row int64) {
			b.Append(true)
			n := int(h >> 62)
			for i := range min(n, most) {
				key(i)
				item(element(h, i), row)
			}
		}
	case *array.ListBuilder:
		values := b.ValueBuilder()
		value := orNull(values, adder(name, t.Elem, values, elementOptions(t.Elem, o)))
		return func(h uint64, row int64) {
			b.Append(true)
			for i := range int(h >> 62) {
				value(element(h, i), row)
			}
		}
	case *array.StructBuilder:
		fields := make([]func(uint64, int64), len(t.Fields))
		for i, f := range t.Fields {
			fields[i] = adder(f.Name, f.Type, b.FieldBuilder(i), elementOptions(f.Type, DatagenColumn{}))
			if !f.NotNull {
				fields[i] = orNull(b.FieldBuilder(i), fields[i])
			}
		}
		return func(h uint64, row int64) {
			b.Append(true)
			for i := range fields {
				fields[i](element(h, i), row)
			}
		}
	}
	panic("source: datagen has no values for " + t.String())
}

// elementOptions keeps bigints inside other values from being row numbers.
func elementOptions(t *hivetype.Type, o DatagenColumn) DatagenColumn {
	if t.Kind == hivetype.BigInt && o.Values == 0 {
		o.Values = defaultNumbers
	}
	return o
}

func orNull(b array.Builder, add func(uint64, int64)) func(uint64, int64) {
	return func(h uint64, row int64) {
		if isNull(h) {
			b.AppendNull()
			return
		}
		add(h, row)
	}
}

// valueBytes is about how many bytes a value of a type takes in memory.
func valueBytes(t *hivetype.Type) int64 {
	switch t.Kind {
	case hivetype.Boolean, hivetype.TinyInt:
		return 1
	case hivetype.SmallInt:
		return 2
	case hivetype.Int, hivetype.Float, hivetype.Date:
		return 4
	case hivetype.BigInt, hivetype.Double, hivetype.Timestamp:
		return 8
	case hivetype.Array:
		return 4 + 2*valueBytes(t.Elem)
	case hivetype.Map:
		return 4 + 2*(valueBytes(t.Key)+valueBytes(t.Elem))
	case hivetype.Struct:
		n := int64(0)
		for _, f := range t.Fields {
			n += valueBytes(f.Type)
		}
		return n
	}
	return 16
}
