package parquetfile

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/hivesink/hivesink/hivetype"
)

// Columns are rows as leaf columns: the values that are there, and for each
// row the definition level (and for repeated leaves the repetition level).
// They own their memory and are reused after Reset.
type Columns struct {
	s      *Schema
	leaves []leaf
	rows   int
	room   int     // rows that Append has made room for
	all    []int32 // 0, 1, 2, …
	there  []int32 // scratch: the rows of a column that are not null
}

type leaf struct {
	leafType
	defs  []uint8
	reps  []uint8 // only when maxRep > 0
	i32   []int32 // also booleans
	i64   []int64
	f32   []float32
	f64   []float64
	bytes []byte   // of physBytes and physFixed
	ends  []uint32 // of physBytes
}

// NewColumns makes an empty buffer.
func (s *Schema) NewColumns() *Columns {
	c := &Columns{s: s, leaves: make([]leaf, len(s.leaves))}
	for i, t := range s.leaves {
		c.leaves[i].leafType = t
	}
	return c
}

// Rows is the number of rows buffered.
func (c *Columns) Rows() int { return c.rows }

// Bytes is the memory the rows take. It decides when a row group is full.
func (c *Columns) Bytes() int64 {
	n := 0
	for i := range c.leaves {
		l := &c.leaves[i]
		n += len(l.defs) + len(l.reps) + 4*len(l.i32) + 8*len(l.i64) + 4*len(l.f32) + 8*len(l.f64) + len(l.bytes) + 4*len(l.ends)
	}
	return int64(n)
}

// Memory is the memory held, room for more rows included: what a pool of idle
// buffers costs.
func (c *Columns) Memory() int64 {
	n := 4 * (cap(c.all) + cap(c.there))
	for i := range c.leaves {
		l := &c.leaves[i]
		n += cap(l.defs) + cap(l.reps) + 4*cap(l.i32) + 8*cap(l.i64) + 4*cap(l.f32) + 8*cap(l.f64) + cap(l.bytes) + 4*cap(l.ends)
	}
	return int64(n)
}

// Reset forgets the rows and keeps the memory.
func (c *Columns) Reset() {
	for i := range c.leaves {
		l := &c.leaves[i]
		l.defs, l.reps, l.i32, l.i64 = l.defs[:0], l.reps[:0], l.i32[:0], l.i64[:0]
		l.f32, l.f64, l.bytes, l.ends = l.f32[:0], l.f64[:0], l.bytes[:0], l.ends[:0]
	}
	c.rows = 0
}

// Append adds the chosen rows (nil: all) of a batch that is laid out as the
// table's record schema.
func (c *Columns) Append(rec arrow.RecordBatch, rows []int32) {
	if rows == nil {
		for n := len(c.all); n < int(rec.NumRows()); n++ {
			c.all = append(c.all, int32(n))
		}
		rows = c.all[:rec.NumRows()]
	}
	if need := c.rows + len(rows); need > c.room {
		c.reserve(need)
	}
	for i := range c.s.cols {
		col := &c.s.cols[i]
		arr := rec.Column(c.s.record.DataIndex[i])
		if len(col.children) == 0 {
			c.appendFlat(col, arr, rows)
			continue
		}
		for _, r := range rows {
			c.shred(col, arr, int(r), 0)
		}
	}
	c.rows += len(rows)
}

// roomRows is the room of a row group: it is full at the end of the batch in
// which it gets its last row.
const roomRows = RowGroupRows + RowGroupRows/16

// reserve makes room for rows of the columns without nesting: for twice as
// many, so that growing costs little, but not for more than a row group. A
// table's buckets fill alike, so that what they have room for and do not use
// adds up.
func (c *Columns) reserve(need int) {
	c.room = max(need, min(2*need, roomRows))
	for i := range c.s.cols {
		if len(c.s.cols[i].children) > 0 {
			continue
		}
		l := &c.leaves[c.s.cols[i].leaf]
		l.defs = reserve(l.defs, c.room)
		switch l.phys {
		case physBool, physInt32:
			l.i32 = reserve(l.i32, c.room)
		case physInt64:
			l.i64 = reserve(l.i64, c.room)
		case physFloat:
			l.f32 = reserve(l.f32, c.room)
		case physDouble:
			l.f64 = reserve(l.f64, c.room)
		case physFixed:
			l.bytes = reserve(l.bytes, c.room*l.width)
		case physBytes:
			l.ends = reserve(l.ends, c.room)
			if c.rows > 0 { // as long as those so far
				l.bytes = reserve(l.bytes, len(l.bytes)/c.rows*c.room+c.room/2)
			}
		}
	}
}

func reserve[T any](s []T, n int) []T {
	if n <= cap(s) {
		return s
	}
	out := make([]T, len(s), n)
	copy(out, s)
	return out
}

// appendFlat is the hot path: one column without nesting, in tight loops.
func (c *Columns) appendFlat(col *column, arr arrow.Array, rows []int32) {
	l := &c.leaves[col.leaf]
	if arr.NullN() == 0 {
		n := len(l.defs)
		l.defs = growTo(l.defs, n+len(rows))
		for i := n; i < len(l.defs); i++ {
			l.defs[i] = 1
		}
	} else {
		rows = c.presence(l, arr, rows)
	}
	switch a := arr.(type) {
	case *array.Int64:
		l.i64 = gather(l.i64, a.Int64Values(), rows)
	case *array.Timestamp:
		if l.phys == physFixed {
			for _, r := range rows {
				l.timestamp(int64(a.Value(int(r))))
			}
		} else {
			l.i64 = gather(l.i64, timestamps(a), rows)
		}
	case *array.Int32:
		l.i32 = gather(l.i32, a.Int32Values(), rows)
	case *array.Date32:
		l.i32 = gather(l.i32, dates(a), rows)
	case *array.Float64:
		l.f64 = gather(l.f64, a.Float64Values(), rows)
	case *array.Float32:
		l.f32 = gather(l.f32, a.Float32Values(), rows)
	case *array.String:
		l.gatherBytes(a.ValueOffsets(), a.ValueBytes(), rows)
	case *array.Binary:
		l.gatherBytes(a.ValueOffsets(), a.ValueBytes(), rows)
	case *array.Boolean:
		for _, r := range rows {
			l.i32 = append(l.i32, boolInt(a.Value(int(r))))
		}
	default:
		for _, r := range rows {
			l.value(col.typ, arr, int(r))
		}
	}
}

// presence appends a definition level for each row and returns the rows that
// are not null, until the next call.
func (c *Columns) presence(l *leaf, arr arrow.Array, rows []int32) []int32 {
	n := len(l.defs)
	l.defs = growTo(l.defs, n+len(rows))
	defs := l.defs[n:]
	c.there = growTo(c.there[:0], len(rows))
	k := 0
	for i, r := range rows {
		defs[i] = 0
		if arr.IsValid(int(r)) {
			defs[i] = 1
			c.there[k] = r
			k++
		}
	}
	return c.there[:k]
}

func gather[T any](dst, src []T, rows []int32) []T {
	n := len(dst)
	dst = growTo(dst, n+len(rows))
	out := dst[n:]
	for i, r := range rows {
		out[i] = src[r]
	}
	return dst
}

// gatherBytes copies variable-length values, neighbours at once; data starts at
// the first offset.
func (l *leaf) gatherBytes(offsets []int32, data []byte, rows []int32) {
	if len(rows) == 0 {
		return
	}
	n := len(l.ends)
	l.ends = growTo(l.ends, n+len(rows))
	ends := l.ends[n:]
	base := offsets[0]
	for i := 0; i < len(rows); {
		first, next := rows[i], rows[i]
		shift := uint32(len(l.bytes)) - uint32(offsets[first]) // modulo 2^32
		for i < len(rows) && rows[i] == next {
			next++
			ends[i] = uint32(offsets[next]) + shift
			i++
		}
		l.bytes = append(l.bytes, data[offsets[first]-base:offsets[next]-base]...)
	}
}

func growTo[T any](s []T, n int) []T {
	if n <= cap(s) {
		return s[:n]
	}
	out := make([]T, n, max(n, cap(s)*2))
	copy(out, s)
	return out
}

func boolInt(b bool) int32 {
	if b {
		return 1
	}
	return 0
}

// shred appends row i of a nested column: Dremel's levels.
func (c *Columns) shred(col *column, arr arrow.Array, i int, rep uint8) {
	if arr.IsNull(i) {
		c.absent(col, col.def-1, rep)
		return
	}
	switch col.typ.Kind {
	case hivetype.Array:
		a := arr.(*array.List)
		from, to := a.ValueOffsets(i)
		c.elements(col, a.ListValues(), nil, from, to, rep)
	case hivetype.Map:
		a := arr.(*array.Map)
		from, to := a.ValueOffsets(i)
		c.elements(col, a.Keys(), a.Items(), from, to, rep)
	case hivetype.Struct:
		a := arr.(*array.Struct)
		for k := range col.children {
			c.shred(&col.children[k], a.Field(k), i, rep)
		}
	default:
		l := &c.leaves[col.leaf]
		l.levels(col.def, rep)
		l.value(col.typ, arr, i)
	}
}

// elements appends the elements [from, to) of a list (items nil) or a map.
func (c *Columns) elements(col *column, values, items arrow.Array, from, to int64, rep uint8) {
	if from == to {
		c.absent(col, col.def, rep)
		return
	}
	for k := from; k < to; k++ {
		c.shred(&col.children[0], values, int(k), rep)
		if items != nil {
			c.shred(&col.children[1], items, int(k), rep)
		}
		rep = col.rep + 1
	}
}

// absent appends, to every leaf below col, that nothing is there above level
// def.
func (c *Columns) absent(col *column, def, rep uint8) {
	if len(col.children) == 0 {
		c.leaves[col.leaf].levels(def, rep)
		return
	}
	for k := range col.children {
		c.absent(&col.children[k], def, rep)
	}
}

func (l *leaf) levels(def, rep uint8) {
	l.defs = append(l.defs, def)
	if l.maxRep > 0 {
		l.reps = append(l.reps, rep)
	}
}

// value appends one value that is there.
func (l *leaf) value(t *hivetype.Type, arr arrow.Array, i int) {
	switch a := arr.(type) {
	case *array.Boolean:
		l.i32 = append(l.i32, boolInt(a.Value(i)))
	case *array.Int8:
		l.i32 = append(l.i32, int32(a.Value(i)))
	case *array.Int16:
		l.i32 = append(l.i32, int32(a.Value(i)))
	case *array.Int32:
		l.i32 = append(l.i32, a.Value(i))
	case *array.Date32:
		l.i32 = append(l.i32, int32(a.Value(i)))
	case *array.Int64:
		l.i64 = append(l.i64, a.Value(i))
	case *array.Timestamp:
		l.timestamp(int64(a.Value(i)))
	case *array.Float32:
		l.f32 = append(l.f32, a.Value(i))
	case *array.Float64:
		l.f64 = append(l.f64, a.Value(i))
	case *array.Decimal128:
		l.decimal(a.Value(i))
	case *array.String:
		l.bytes = append(l.bytes, a.Value(i)...)
		l.ends = append(l.ends, uint32(len(l.bytes)))
	case *array.Binary:
		l.bytes = append(l.bytes, a.Value(i)...)
		l.ends = append(l.ends, uint32(len(l.bytes)))
	default:
		panic("parquetfile: no values of Arrow type " + arr.DataType().String() + " for " + t.String())
	}
}

// decimal appends the unscaled value, by precision (F4).
func (l *leaf) decimal(v decimal128.Num) {
	switch l.phys {
	case physInt32:
		l.i32 = append(l.i32, int32(int64(v.LowBits())))
	case physInt64:
		l.i64 = append(l.i64, int64(v.LowBits()))
	default:
		hi, lo := uint64(v.HighBits()), v.LowBits()
		for b := l.width - 1; b >= 0; b-- { // big endian, two's complement
			if b >= 8 {
				l.bytes = append(l.bytes, byte(hi>>(8*(b-8))))
			} else {
				l.bytes = append(l.bytes, byte(lo>>(8*b)))
			}
		}
	}
}
