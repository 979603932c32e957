package parquetfile

import (
	"bytes"
	"encoding/binary"
	"math"

	"github.com/parquet-go/parquet-go/format"
)

// prepare makes room for so many rows: pages do not grow beyond their limits
// and have one kind of values.
func (m *merger) prepare(c *chunk, kind pendingKind, levels, size int) error {
	if m.full(kind, levels, size) {
		if err := m.flush(c); err != nil {
			return err
		}
	}
	m.pending = kind
	return nil
}

func (m *merger) full(kind pendingKind, levels, size int) bool {
	n := len(m.pend.defs)
	held := m.pend.valueBytes() + len(m.plain.body)
	return n > 0 && (kind != m.pending || n+levels > pageRows || kind != pendingNumbers && held+size > pageBytes)
}

// prepareFor makes room for the page that was decoded.
func (m *merger) prepareFor(c *chunk, r *columnReader, kind pendingKind) error {
	if !m.goesOn(r) || !m.full(kind, r.levels, r.size()) {
		return m.prepare(c, kind, r.levels, r.size())
	}
	err := m.flushRows(c, kind)
	m.pending = kind
	return err
}

func (l *leaf) valueBytes() int {
	return 4*len(l.i32) + 8*len(l.i64) + 4*len(l.f32) + 8*len(l.f64) + len(l.bytes) + 4*len(l.ends)
}

// flush writes the pending rows as pages.
func (m *merger) flush(c *chunk) error {
	if len(m.pend.defs) == 0 {
		return nil
	}
	if m.pending == pendingPlain {
		return m.flushPlain(c)
	}
	err := m.writePending(c)
	m.pend.reset(m.pend.leafType)
	m.ids = m.ids[:0]
	return err
}

// writePending writes the levels of pend, with values or numbers.
func (m *merger) writePending(c *chunk) error {
	dict := m.pending == pendingNumbers
	if dict {
		m.w.dict.ids, m.ids = m.ids, m.w.dict.ids
	}
	err := m.w.writeLeaf(c, &m.pend, dict)
	if dict {
		m.w.dict.ids, m.ids = m.ids, m.w.dict.ids
	}
	c.keepBounds()
	return err
}

// A page of another writer may end within a row of a column with repetition:
// only those with a page index, and data pages V2, are bound to whole rows. A
// page that is written here has whole rows, for the page index says which rows
// it has (F8).

// wholeRows: every page of a chunk with repetition begins with a row. Pages V2
// have to, and those of Arrow's C++ before 12 and of its Go did not.
func (f *chunkFacts) wholeRows(chunk []byte) bool {
	var p rawPage
	for len(chunk) > 0 {
		var err error
		if chunk, err = nextPage(chunk, &p); err != nil {
			return false // it is met again
		}
		switch {
		case !p.data() || p.values == 0:
		case p.kind == format.DataPageV2:
			if level, ok := p.firstRep(f.l.maxRep); !ok || level != 0 {
				return false
			}
		case len(f.firstRows) == 0:
			return false
		}
	}
	return true
}

// firstRep is the first repetition level of a page V2.
func (p *rawPage) firstRep(most uint8) (level byte, ok bool) {
	if p.reps > len(p.body) {
		return 0, false
	}
	levels := p.body[:max(p.reps, 0)]
	count, packed, k := runAt(levels)
	if k <= 0 || count == 0 || len(levels) <= k {
		return 0, false
	}
	if packed {
		return levels[k] & (1<<bitsOf(most) - 1), true
	}
	return levels[k], true
}

// countRows says whether the rows of a page are known. Those of a page V2 are
// counted: what the header says is the number of values with some writers.
func (f *chunkFacts) countRows(r *columnReader, p *rawPage) bool {
	if p.kind != format.DataPageV2 {
		return p.rows >= 0
	}
	if p.reps < 0 || p.reps > len(p.body) || p.values > mostLevels {
		return false
	}
	levels, err := decodeLevels(r.pages.repsBuf, p.body[:p.reps], int(f.l.maxRep), p.values)
	if err != nil {
		return false
	}
	r.pages.repsBuf, p.rows = levels, bytes.Count(levels, []byte{0})
	return true
}

// goesOn: the page begins within the last of the pending rows.
func (m *merger) goesOn(r *columnReader) bool {
	return len(m.pend.defs) > 0 && r.levels > 0 && r.reps != nil && r.reps[0] != 0
}

// flushRows writes the pending rows but the last, which goes on in the page at
// hand: with values of that kind.
func (m *merger) flushRows(c *chunk, kind pendingKind) error {
	l := &m.pend
	cut := len(l.defs) - 1
	for cut > 0 && l.reps[cut] != 0 {
		cut--
	}
	values := 0
	for _, d := range l.defs[:cut] {
		if d == l.maxDef {
			values++
		}
	}
	defs, reps := l.defs, l.reps
	l.defs, l.reps = defs[:cut], reps[:cut]
	if err := m.writePending(c); err != nil {
		return err
	}
	l.defs, l.reps = append(defs[:0], defs[cut:]...), append(reps[:0], reps[cut:]...)
	if m.pending == pendingNumbers {
		m.ids = append(m.ids[:0], m.ids[values:]...)
		if kind == pendingValues {
			for _, id := range m.ids {
				l.appendValue(m.w.dict.at(int(id)))
			}
			m.ids = m.ids[:0]
		}
		return nil
	}
	l.dropValues(values)
	return nil
}

// dropValues forgets the first n values.
func (l *leaf) dropValues(n int) {
	switch l.phys {
	case physBool, physInt32:
		l.i32 = append(l.i32[:0], l.i32[n:]...)
	case physInt64:
		l.i64 = append(l.i64[:0], l.i64[n:]...)
	case physFloat:
		l.f32 = append(l.f32[:0], l.f32[n:]...)
	case physDouble:
		l.f64 = append(l.f64[:0], l.f64[n:]...)
	case physFixed:
		l.bytes = append(l.bytes[:0], l.bytes[n*l.width:]...)
	case physBytes:
		from := uint32(0)
		if n > 0 {
			from = l.ends[n-1]
		}
		l.bytes = append(l.bytes[:0], l.bytes[from:]...)
		l.ends = append(l.ends[:0], l.ends[n:]...)
		for i := range l.ends {
			l.ends[i] -= from
		}
	}
}

// appendValue appends a value that is PLAIN-encoded, a text without its length.
func (l *leaf) appendValue(v []byte) {
	switch l.phys {
	case physInt32:
		l.i32 = append(l.i32, int32(binary.LittleEndian.Uint32(v)))
	case physInt64:
		l.i64 = append(l.i64, int64(binary.LittleEndian.Uint64(v)))
	case physFloat:
		l.f32 = append(l.f32, math.Float32frombits(binary.LittleEndian.Uint32(v)))
	case physDouble:
		l.f64 = append(l.f64, math.Float64frombits(binary.LittleEndian.Uint64(v)))
	case physFixed:
		l.bytes = append(l.bytes, v...)
	case physBytes:
		l.bytes = append(l.bytes, v...)
		l.ends = append(l.ends, uint32(len(l.bytes)))
	}
}
