package textval

import (
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/hivesink/hivesink/hivetype"
)

// put appends a sound value to its builder. It cannot go wrong.
func (r *Rows) put(c *column, at int32) {
	s := &r.slots[at]
	r.size += int64(c.size)
	ok := s.state == good
	switch c.kind {
	case hivetype.String, hivetype.Varchar, hivetype.Char, hivetype.Binary:
		c.putText(s.text, ok)
		if ok {
			r.size += int64(len(s.text))
		}
	case hivetype.BigInt:
		b := c.int64s
		if b.Len() == b.Cap() {
			c.room(1, b)
		}
		if ok {
			b.UnsafeAppend(s.i)
		} else {
			b.UnsafeAppendBoolToBitmap(false)
		}
	case hivetype.Int:
		b := c.int32s
		if b.Len() == b.Cap() {
			c.room(1, b)
		}
		if ok {
			b.UnsafeAppend(int32(s.i))
		} else {
			b.UnsafeAppendBoolToBitmap(false)
		}
	case hivetype.Double:
		b := c.doubles
		if b.Len() == b.Cap() {
			c.room(1, b)
		}
		if ok {
			b.UnsafeAppend(math.Float64frombits(uint64(s.i)))
		} else {
			b.UnsafeAppendBoolToBitmap(false)
		}
	case hivetype.Timestamp:
		b := c.stamps
		if b.Len() == b.Cap() {
			c.room(1, b)
		}
		if ok {
			b.UnsafeAppend(arrow.Timestamp(s.i))
		} else {
			b.UnsafeAppendBoolToBitmap(false)
		}
	case hivetype.Array, hivetype.Map, hivetype.Struct:
		r.putNested(c, at, ok)
	default:
		c.putOther(s, ok)
	}
}

func (c *column) putText(text []byte, ok bool) {
	b := c.texts
	if b.Len() == b.Cap() {
		c.room(1, b)
	}
	if !ok {
		b.AppendNull()
		return
	}
	if free := b.DataCap() - b.DataLen(); free < len(text) {
		b.ReserveData(max(len(text), b.DataLen(), 1024))
	}
	b.UnsafeAppend(text)
}

// putOther appends the scalars that are rare.
func (c *column) putOther(s *slot, ok bool) {
	switch c.kind {
	case hivetype.Boolean:
		if ok {
			c.bools.Append(s.i != 0)
		} else {
			c.bools.AppendNull()
		}
	case hivetype.TinyInt:
		if ok {
			c.int8s.Append(int8(s.i))
		} else {
			c.int8s.AppendNull()
		}
	case hivetype.SmallInt:
		if ok {
			c.int16s.Append(int16(s.i))
		} else {
			c.int16s.AppendNull()
		}
	case hivetype.Float:
		if ok {
			c.floats.Append(float32(math.Float64frombits(uint64(s.i))))
		} else {
			c.floats.AppendNull()
		}
	case hivetype.Decimal:
		if ok {
			c.decs.Append(decimal128.New(s.hi, uint64(s.i)))
		} else {
			c.decs.AppendNull()
		}
	case hivetype.Date:
		if ok {
			c.dates.Append(arrow.Date32(s.i))
		} else {
			c.dates.AppendNull()
		}
	}
}

func (r *Rows) putNested(c *column, at int32, ok bool) {
	first := int32(r.slots[at].i)
	switch c.kind {
	case hivetype.Array:
		c.lists.Append(ok)
		if !ok {
			return
		}
		for i := first; i >= 0; i = r.slots[i].next {
			r.put(c.fields[0], i)
		}
	case hivetype.Map:
		c.maps.Append(ok)
		if !ok {
			return
		}
		for i := first; i >= 0; i = r.slots[i].next {
			if r.slots[i].state != replaced {
				r.put(c.fields[0], i)
				r.put(c.fields[1], i+1)
			}
		}
	case hivetype.Struct:
		if !ok {
			c.structs.AppendNull()
			return
		}
		c.structs.Append(true)
		for i, f := range c.fields {
			r.put(f, first+int32(i))
		}
	}
}
