package textval

import (
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/hivesink/hivesink/hivetype"
)

// Column is a column, or something below one, as a format sees it whose values
// have types of their own. Such a format fills slots: those of the columns are
// numbered from 0 on, those below come from Struct, Element and Entry.
type Column struct{ c *column }

// At is column i of the table.
func (r *Rows) At(i int) Column { return Column{r.root.fields[i]} }

// Type is the column's type.
func (c Column) Type() *hivetype.Type { return c.c.typ }

// Below is field i of a struct, the element of an array (0), or the key (0) or
// value (1) of a map.
func (c Column) Below(i int) Column { return Column{c.c.fields[i]} }

// Epoch is how many digits of a second's fraction numbers in a timestamp column
// have; below zero: numbers are no timestamps.
func (c Column) Epoch() int { return c.c.epoch }

// Null makes a slot null.
func (r *Rows) Null(at int32) { r.slots[at].state = null }

// Int stores an integer, a boolean (0 or 1), days or microseconds.
func (r *Rows) Int(c Column, at int32, v int64) {
	s := &r.slots[at]
	s.i, s.state = v, good
	if w := c.c.width; w != 0 && w < 64 && (v < -1<<(w-1) || v >= 1<<(w-1)) {
		r.spoil(c.c, s, badRange, strconv.AppendInt(nil, v, 10), false)
	}
}

// Double stores a floating point number in a float or double column.
func (r *Rows) Double(c Column, at int32, v float64) {
	s := &r.slots[at]
	s.i, s.state = int64(math.Float64bits(v)), good
	if c.c.kind == hivetype.Float && !math.IsInf(v, 0) && math.Abs(v) > math.MaxFloat32 {
		r.spoil(c.c, s, badRange, strconv.AppendFloat(nil, v, 'g', -1, 64), false)
	}
}

// Decimal stores a number that has the column's scale and fits its precision.
func (r *Rows) Decimal(at int32, hi int64, lo uint64) {
	s := &r.slots[at]
	s.hi, s.i, s.state = hi, int64(lo), good
}

// Binary stores bytes in a binary column. They must stay until Commit.
func (r *Rows) Binary(at int32, b []byte) {
	s := &r.slots[at]
	s.text, s.state = b, good
}

// Text reads a column that is no array, map or struct from text, as from a JSON
// string. It must stay until Commit.
func (r *Rows) Text(c Column, at int32, b []byte) {
	if !utf8.Valid(b) {
		b = r.repair(b)
	}
	r.setText(c.c, &r.slots[at], b, fromJSON)
}

// Bad makes the record bad: its value is out of range, or of another type. text
// is what it is, for people.
func (r *Rows) Bad(c Column, at int32, outOfRange bool, text []byte) {
	st := badType
	if outOfRange {
		st = badRange
	}
	r.spoil(c.c, &r.slots[at], st, text, false)
}

// Struct begins a struct and returns the slot of its first field; the others
// follow it.
func (r *Rows) Struct(c Column, at int32) int32 {
	base := r.extend(len(c.c.fields))
	r.slots[at].state, r.slots[at].i = good, int64(base)
	return base
}

// List begins an array or map.
func (r *Rows) List(at int32) { r.slots[at].state, r.slots[at].i = good, -1 }

// Element returns the slot of the next element of an array; last is that of the
// one before, below zero for none.
func (r *Rows) Element(at, last int32) int32 { return r.chain(at, last, 1) }

// Entry returns the slot of the next key of a map, whose value's is the next;
// last is that of the key before.
func (r *Rows) Entry(at, last int32) int32 { return r.chain(at, last, 2) }

func (r *Rows) chain(at, last int32, n int) int32 {
	i := r.extend(n)
	if last < 0 {
		r.slots[at].i = int64(i)
	} else {
		r.slots[last].next = i
	}
	return i
}

// Unique ends a map: of keys that come again, the last counts.
func (r *Rows) Unique(c Column, at int32, entries int) {
	r.dedupe(c.c.fields[0], int32(r.slots[at].i), entries)
}
