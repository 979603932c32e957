package textval

import (
	"fmt"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/hivesink/hivesink/format"
	"github.com/hivesink/hivesink/hivetype"
	"github.com/hivesink/hivesink/record"
)

// Options say how values are written.
type Options struct {
	// Timestamps is rfc3339 (the default), or the unit of numbers since 1970:
	// s, ms, us or ns.
	Timestamps string
	// Zone is that of times without an offset; nil is UTC.
	Zone *time.Location
	// NullOnBadTime names the date and timestamp columns whose value is null
	// when it cannot be read.
	NullOnBadTime map[string]bool
}

// state of a slot. The bad ones keep what was written in the slot's text.
type state uint8

const (
	missing state = iota
	null
	good
	replaced // the value of a map's key that comes again
	badType
	badRange
	badSyntax // in a slot: JSON text in a field that is not JSON, at offset i
)

// slot is one decoded value. Of arrays and maps, i is the first slot below
// (-1: none), which are linked by next, a map's value right behind its key; of
// structs, the first of as many slots as there are fields.
type slot struct {
	text   []byte
	i, hi  int64 // hi is the high word of a decimal
	next   int32
	state  state
	rank   uint8
	quoted bool // text was a string
}

// Rows gathers records in columns. It serves one goroutine.
type Rows struct {
	root    *column
	builder *array.RecordBuilder
	rows    int
	cap     int // rows there is room for
	prior   int // rows of the last batch
	size    int64
	unknown int64

	// Of the record at hand.
	rec     []byte
	slots   []slot // the first are the columns'
	scratch []byte // unescaped and decoded text
	ignored int64  // unknown keys
	doubt   bool   // some slot may be bad
	reason  string // of a syntax error
	table   []int32
}

// NewRows makes the columns of a table ready for text.
func NewRows(s *record.Schema, o Options) (*Rows, error) {
	if _, ok := epochs[o.Timestamps]; !ok {
		return nil, fmt.Errorf("timestamps %q: want rfc3339, s, ms, us or ns", o.Timestamps)
	}
	if o.Zone == nil {
		o.Zone = time.UTC
	}
	for name := range o.NullOnBadTime {
		if !isTime(s.Columns, name) {
			return nil, fmt.Errorf("null on bad time: the table has no date or timestamp column %q", name)
		}
	}
	r := &Rows{builder: array.NewRecordBuilder(batchMemory, s.Arrow)}
	r.root = &column{kind: hivetype.Struct, names: newNames(s.Columns)}
	for i, f := range s.Columns {
		c, err := newColumn(f.Name, f, r.builder.Field(i), &o)
		if err != nil {
			r.builder.Release()
			return nil, err
		}
		r.root.fields = append(r.root.fields, c)
		r.root.strict = r.root.strict || c.strict
	}
	r.slots = make([]slot, len(s.Columns), 2*len(s.Columns)+16)
	return r, nil
}

func isTime(columns []hivetype.Field, name string) bool {
	for _, f := range columns {
		if f.Name == name {
			return f.Type.Kind == hivetype.Timestamp || f.Type.Kind == hivetype.Date
		}
	}
	return false
}

// Len is the number of rows since the last NewBatch.
func (r *Rows) Len() int { return r.rows }

// Size is about the bytes those rows take in memory.
func (r *Rows) Size() int64 { return r.size }

// UnknownKeys is the number of keys no column matched in those rows.
func (r *Rows) UnknownKeys() int64 { return r.unknown }

// Release frees the builders. Rows must not be used after it.
func (r *Rows) Release() { r.builder.Release() }

// NewBatch hands over the rows so far, nil when there are none.
func (r *Rows) NewBatch() arrow.RecordBatch {
	r.unknown = 0
	if r.rows == 0 {
		return nil
	}
	r.root.remember()
	r.prior = r.rows
	r.rows, r.cap, r.size = 0, 0, 0
	return r.builder.NewRecordBatch()
}

// Begin starts a record. No column has a value.
func (r *Rows) Begin() {
	r.slots = r.slots[:len(r.root.fields)]
	for i := range r.slots {
		s := &r.slots[i]
		s.state, s.rank = missing, rankNone
	}
	r.scratch = r.scratch[:0]
	r.ignored, r.doubt = 0, false
}

// Ignore counts n fields of the record that no column matches.
func (r *Rows) Ignore(n int) { r.ignored += int64(n) }

// Commit appends the record, or says what is wrong with it. T1.
func (r *Rows) Commit() error {
	if r.doubt || r.root.strict {
		for i, c := range r.root.fields {
			if (r.doubt || c.strict) && !r.sound(c, int32(i)) {
				return r.report(c, int32(i))
			}
		}
	}
	if r.rows == r.cap {
		r.grow()
	}
	for i, c := range r.root.fields {
		r.put(c, int32(i))
	}
	r.rows++
	r.unknown += r.ignored
	return nil
}

// grow makes room for the rows of the last batch at first, then for twice as
// many as there are.
func (r *Rows) grow() {
	n := max(64, r.rows)
	if r.rows == 0 {
		n = max(n, r.prior)
	}
	for i, c := range r.root.fields {
		c.room(n, r.builder.Field(i))
	}
	r.cap = r.rows + n
}

// sound tells whether a value and all below it are good.
func (r *Rows) sound(c *column, at int32) bool {
	s := &r.slots[at]
	switch s.state {
	case missing, null:
		return !c.notNull
	case good:
	default:
		return false
	}
	bad := false
	r.below(c, at, func(f *column, i int32) bool {
		bad = !r.sound(f, i)
		return !bad
	})
	return !bad
}

// below visits the slots right below a good one until visit returns false.
func (r *Rows) below(c *column, at int32, visit func(*column, int32) bool) {
	s := &r.slots[at]
	switch c.kind {
	case hivetype.Struct:
		for i, f := range c.fields {
			if !visit(f, int32(s.i)+int32(i)) {
				return
			}
		}
	case hivetype.Array:
		for i := int32(s.i); i >= 0; i = r.slots[i].next {
			if !visit(c.fields[0], i) {
				return
			}
		}
	case hivetype.Map:
		for i := int32(s.i); i >= 0; i = r.slots[i].next {
			if r.slots[i].state == replaced {
				continue
			}
			if !visit(c.fields[0], i) || !visit(c.fields[1], i+1) {
				return
			}
		}
	}
}

// report is the error of a value that is not sound.
func (r *Rows) report(c *column, at int32) *format.Error {
	s := &r.slots[at]
	if s.state == good {
		var err *format.Error
		r.below(c, at, func(f *column, i int32) bool {
			if !r.sound(f, i) {
				err = r.report(f, i)
			}
			return err == nil
		})
		return err
	}
	e := &format.Error{Column: c.path}
	switch s.state {
	case badType:
		e.Class = record.ClassType
		e.Reason = Quote(s.text) + " is not of type " + c.typ.String()
		if !s.quoted && len(s.text) > 0 && (s.text[0] == '{' || s.text[0] == '[') {
			e.Reason += " (objects and arrays are for struct, map and array columns)"
		}
	case badRange:
		e.Class = record.ClassRange
		e.Reason = Quote(s.text) + " is out of the range of type " + c.typ.String()
	case badSyntax:
		e.Class = record.ClassSyntax
		e.Reason = fmt.Sprintf("not JSON at offset %d of the field: %s", s.i, Quote(s.text))
	default:
		e.Class = record.ClassNull
		e.Reason = "null or missing, but the column is not null"
	}
	return e
}
