package textval

import (
	"fmt"

	"github.com/hivesink/hivesink/format"
	"github.com/hivesink/hivesink/hivetype"
	"github.com/hivesink/hivesink/record"
)

// maxDepth is how deep objects and arrays may be in each other, the record
// itself included.
const maxDepth = 64

// AppendJSON appends a record that is one JSON object.
func (r *Rows) AppendJSON(rec []byte) error {
	r.Begin()
	r.rec = rec
	p := space(rec, 0)
	if p == len(rec) || rec[p] != '{' {
		p = r.fail(p, "a JSON object")
	} else if p = r.object(r.root, 0, p, 1); p >= 0 {
		if p = space(rec, p); p < len(rec) {
			p = r.fail(p, "the end of the record")
		}
	}
	if p < 0 {
		return r.syntax(^p)
	}
	return r.Commit()
}

// setJSON reads a nested value from a field of a text format.
func (r *Rows) setJSON(c *column, at int32, text []byte) {
	outer := r.rec
	r.rec = text
	p := r.value(c, at, space(text, 0), 1)
	if p >= 0 {
		if p = space(text, p); p < len(text) {
			p = ^p
		}
	}
	if p < 0 {
		s := &r.slots[at]
		s.state, s.text, s.i = badSyntax, text, int64(^p)
		r.doubt = true
	}
	r.rec = outer
}

// fail notes what should have been at p. It is ^p, which says failure.
func (r *Rows) fail(p int, want string) int {
	r.reason = want
	return ^p
}

// syntax is the error of a record that is no JSON object.
func (r *Rows) syntax(p int) *format.Error {
	e := &format.Error{Class: record.ClassSyntax}
	if p >= len(r.rec) {
		e.Reason = fmt.Sprintf("not a JSON object: it ends at offset %d where %s should be", len(r.rec), r.reason)
	} else {
		e.Reason = fmt.Sprintf("not a JSON object: at offset %d: want %s, not %s", p, r.reason, Quote(r.rec[p:]))
	}
	return e
}

// space is where the white space at p ends.
func space(b []byte, p int) int {
	for p < len(b) && b[p] <= ' ' && (b[p] == ' ' || b[p] == '\t' || b[p] == '\n' || b[p] == '\r') {
		p++
	}
	return p
}

// object reads an object into the slots of a struct's fields, from base on.
func (r *Rows) object(c *column, base int32, p, depth int) int {
	rec, n := r.rec, c.names
	if depth > maxDepth {
		return r.fail(p, "at most 64 levels")
	}
	p = space(rec, p+1)
	if p < len(rec) && rec[p] == '}' {
		return p + 1
	}
	var at, field int32
	var rank uint8
	for {
		if p >= len(rec) || rec[p] != '"' {
			return r.fail(p, "a key in quotes")
		}
		p++
		next := n.spell[at].next
		s := &n.spell[next]
		if end := p + len(s.key); next != 0 && end < len(rec) && rec[end] == '"' && string(rec[p:end]) == s.key {
			at, field, rank, p = next, s.field, s.rank, end+1
		} else {
			key, plain, end := r.str(p)
			if end < 0 {
				return end
			}
			was := at
			at, field, rank = n.find(key, plain)
			n.spell[was].next = at
			p = end
		}
		if p < len(rec) && rec[p] == ':' {
			p++
		} else if p = space(rec, p); p < len(rec) && rec[p] == ':' {
			p++
		} else {
			return r.fail(p, "a colon")
		}
		if p < len(rec) && rec[p] <= ' ' {
			p = space(rec, p)
		}
		if field < 0 {
			r.ignored++
			p = r.skip(p, depth)
		} else if was := &r.slots[base+field]; was.rank > rank { // T3
			p = r.skip(p, depth)
		} else {
			was.rank = rank
			p = r.value(c.fields[field], base+field, p, depth)
		}
		if p < 0 {
			return p
		}
		if p < len(rec) && rec[p] <= ' ' {
			p = space(rec, p)
		}
		if p < len(rec) && rec[p] == ',' {
			p++
			if p < len(rec) && rec[p] <= ' ' {
				p = space(rec, p)
			}
			continue
		}
		if p < len(rec) && rec[p] == '}' {
			return p + 1
		}
		return r.fail(p, "a comma or a closing brace")
	}
}

// value reads the value of a column into its slot. depth is that of the object
// or array it is in.
func (r *Rows) value(c *column, at int32, p, depth int) int {
	rec := r.rec
	if p >= len(rec) {
		return r.fail(p, "a value")
	}
	s := &r.slots[at]
	switch b := rec[p]; {
	case b == '"':
		text, _, end := r.str(p + 1)
		if end >= 0 {
			r.setText(c, s, text, fromJSON)
		}
		return end
	case b == '-' || b-'0' <= 9:
		n, end := scanNumber(rec, p)
		if end < 0 {
			return r.fail(^end, "a digit of a number")
		}
		r.setNumber(c, s, n, rec[p:end])
		return end
	case b == '{' && c.kind == hivetype.Struct:
		base := r.extend(len(c.fields))
		s = &r.slots[at]
		s.state, s.i = good, int64(base)
		return r.object(c, base, p, depth+1)
	case b == '{' && c.kind == hivetype.Map:
		return r.mapping(c, at, p, depth+1)
	case b == '[' && c.kind == hivetype.Array:
		return r.list(c, at, p, depth+1)
	}
	end := r.skip(p, depth)
	if end < 0 {
		return end
	}
	switch raw := rec[p:end]; {
	case raw[0] == 'n':
		s.state = null
	case (raw[0] == 't' || raw[0] == 'f') && c.takesBool():
		r.setText(c, s, raw, fromJSON)
	default:
		r.spoil(c, s, badType, raw, false)
	}
	return end
}

func (c *column) takesBool() bool {
	switch c.kind {
	case hivetype.Boolean, hivetype.String, hivetype.Varchar, hivetype.Char:
		return true
	}
	return false
}

// extend adds n slots without a value and returns the first.
func (r *Rows) extend(n int) int32 {
	base := len(r.slots)
	for range n {
		r.slots = append(r.slots, slot{next: -1})
	}
	return int32(base)
}

// list reads an array.
func (r *Rows) list(c *column, at int32, p, depth int) int {
	rec := r.rec
	if depth > maxDepth {
		return r.fail(p, "at most 64 levels")
	}
	r.slots[at].state, r.slots[at].i = good, -1
	p = space(rec, p+1)
	if p < len(rec) && rec[p] == ']' {
		return p + 1
	}
	last := int32(-1)
	for {
		i := r.extend(1)
		if last < 0 {
			r.slots[at].i = int64(i)
		} else {
			r.slots[last].next = i
		}
		last = i
		if p = r.value(c.fields[0], i, p, depth); p < 0 {
			return p
		}
		p = space(rec, p)
		if p < len(rec) && rec[p] == ']' {
			return p + 1
		}
		if p >= len(rec) || rec[p] != ',' {
			return r.fail(p, "a comma or a closing bracket")
		}
		p = space(rec, p+1)
	}
}

// mapping reads an object as a map.
func (r *Rows) mapping(c *column, at int32, p, depth int) int {
	rec := r.rec
	if depth > maxDepth {
		return r.fail(p, "at most 64 levels")
	}
	r.slots[at].state, r.slots[at].i = good, -1
	p = space(rec, p+1)
	if p < len(rec) && rec[p] == '}' {
		return p + 1
	}
	last, count := int32(-1), 0
	for {
		if p >= len(rec) || rec[p] != '"' {
			return r.fail(p, "a key in quotes")
		}
		i := r.extend(2)
		if last < 0 {
			r.slots[at].i = int64(i)
		} else {
			r.slots[last].next = i
		}
		last = i
		key, _, end := r.str(p + 1)
		if end < 0 {
			return end
		}
		r.setText(c.fields[0], &r.slots[i], key, fromJSON)
		if p = space(rec, end); p >= len(rec) || rec[p] != ':' {
			return r.fail(p, "a colon")
		}
		if p = r.value(c.fields[1], i+1, space(rec, p+1), depth); p < 0 {
			return p
		}
		count++
		p = space(rec, p)
		if p < len(rec) && rec[p] == '}' {
			r.dedupe(c.fields[0], int32(r.slots[at].i), count)
			return p + 1
		}
		if p >= len(rec) || rec[p] != ',' {
			return r.fail(p, "a comma or a closing brace")
		}
		p = space(rec, p+1)
	}
}
