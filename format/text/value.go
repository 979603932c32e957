package textval

import (
	"math"
	"unicode/utf8"

	"github.com/hivesink/hivesink/hivetype"
)

// origin is what a text comes from.
type origin uint8

const (
	fromJSON  origin = iota // a JSON string
	fromField               // a field of a text format
)

// spoil notes a bad value, or null where the column takes it so.
func (r *Rows) spoil(c *column, s *slot, st state, text []byte, quoted bool) {
	if c.nullBad {
		s.state = null
		r.doubt = r.doubt || c.strict
		return
	}
	s.state, s.text, s.quoted = st, text, quoted
	r.doubt = true
}

// setText reads a scalar written as text, which is valid UTF-8 unless the
// column takes no such text.
func (r *Rows) setText(c *column, s *slot, text []byte, from origin) {
	st := badType
	switch c.kind {
	case hivetype.String:
		s.text, s.state = text, good
		return
	case hivetype.Varchar, hivetype.Char:
		cut := text
		if c.kind == hivetype.Char {
			for len(cut) > 0 && cut[len(cut)-1] == ' ' {
				cut = cut[:len(cut)-1]
			}
		}
		st = good
		if len(cut) > c.typ.Length && utf8.RuneCount(cut) > c.typ.Length {
			st = badRange
		} else {
			s.text = cut
		}
	case hivetype.Timestamp:
		if c.epoch >= 0 {
			r.setNumberText(c, s, text)
			return
		}
		s.i, st = parseTimestamp(text, c.zone)
	case hivetype.Date:
		if len(text) == 10 {
			var d civil
			if d, st = parseDate(text); st == good {
				s.i = d.days()
			}
		}
	case hivetype.Boolean:
		if equalFold(text, "true") {
			s.i, st = 1, good
		} else if equalFold(text, "false") {
			s.i, st = 0, good
		}
	case hivetype.Binary:
		n := len(r.scratch)
		if dst, ok := appendBase64(r.scratch, text); ok {
			r.scratch = dst
			s.text, st = dst[n:len(dst):len(dst)], good
		}
	case hivetype.Array, hivetype.Map, hivetype.Struct:
	case hivetype.Double, hivetype.Float:
		if from == fromField {
			if f, ok := special(text); ok {
				s.i, s.state = int64(math.Float64bits(f)), good
				return
			}
		}
		r.setNumberText(c, s, text)
		return
	default:
		r.setNumberText(c, s, text)
		return
	}
	if st != good {
		r.spoil(c, s, st, text, true)
		return
	}
	s.state = good
}

func (r *Rows) setNumberText(c *column, s *slot, text []byte) {
	n, ok := parseNumber(text)
	if !ok {
		r.spoil(c, s, badType, text, true)
		return
	}
	r.setNumber(c, s, n, text)
}

// setNumber stores a number. text is how it is written.
func (r *Rows) setNumber(c *column, s *slot, n number, text []byte) {
	st := badType
	var f float64
	switch c.kind {
	case hivetype.TinyInt, hivetype.SmallInt, hivetype.Int, hivetype.BigInt:
		s.i, st = n.integer(text, c.width)
	case hivetype.Double:
		f, st = n.double(text)
		s.i = int64(math.Float64bits(f))
	case hivetype.Float:
		f, st = n.float(text)
		s.i = int64(math.Float64bits(f))
	case hivetype.Decimal:
		var lo uint64
		s.hi, lo, st = n.decimal(text, c.typ.Precision, c.typ.Scale)
		s.i = int64(lo)
	case hivetype.Timestamp:
		if c.epoch >= 0 {
			s.i, st = n.epoch(text, c.epoch)
		}
	case hivetype.String, hivetype.Varchar, hivetype.Char:
		r.setText(c, s, text, fromJSON)
		return
	}
	if st != good {
		r.spoil(c, s, st, text, false)
		return
	}
	s.state = good
}

// SetNull makes a column null.
func (r *Rows) SetNull(column int) { r.slots[column].state = null }

// SetText reads the value of a column from a field of a text format. Nested
// columns take JSON. The text must stay as it is until Commit.
func (r *Rows) SetText(column int, text []byte) {
	c, s := r.root.fields[column], &r.slots[column]
	switch c.kind {
	case hivetype.Array, hivetype.Map, hivetype.Struct:
		r.setJSON(c, int32(column), text)
		return
	case hivetype.String, hivetype.Varchar, hivetype.Char:
		if !utf8.Valid(text) {
			text = r.repair(text) // T5
		}
	}
	r.setText(c, s, text, fromField)
}

// repair is text as valid UTF-8.
func (r *Rows) repair(text []byte) []byte {
	n := len(r.scratch)
	r.scratch = appendValid(r.scratch, text)
	return r.scratch[n:len(r.scratch):len(r.scratch)]
}
