package parquetfile

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/parquet-go/parquet-go/format"
)

// A page with fewer bytes, and fewer values, than these is not moved: a
// thousand tiny pages cost more, written and read, than joining them does.
const (
	movedPacked = 2 << 10
	movedSize   = 8 << 10
	movedValues = 4 << 10
)

// joinColumn writes a column of the members as one chunk.
func (m *merger) joinColumn(i int, g *format.RowGroup) (err error) {
	defer func() { // a hostile page must not kill the process (F7)
		if r := recover(); r != nil {
			err = fmt.Errorf("column %s: %w: %v", strings.Join(m.s.leaves[i].path, "."), errDamaged, r)
		}
	}()
	m.pend.reset(m.s.leaves[i])
	w := m.w
	c := w.startChunk(&m.pend, &g.Columns[i], i)
	dict, err := m.unify(i)
	if err != nil {
		return err
	}
	if !dict && m.decodedWhole(i) {
		err = m.writeWhole(&c, i)
	} else {
		err = m.writePages(&c, i, dict)
	}
	if err != nil {
		return err
	}
	if int64(c.rows) != g.NumRows {
		return m.blame(0, i, fmt.Errorf("%w: %d rows came out, %d are in the row groups", errDamaged, c.rows, g.NumRows))
	}
	w.finishChunk(&c)
	return nil
}

// reset makes a leaf empty and of another type; its memory stays.
func (l *leaf) reset(t leafType) {
	l.leafType = t
	l.defs, l.reps, l.i32, l.i64 = l.defs[:0], l.reps[:0], l.i32[:0], l.i64[:0]
	l.f32, l.f64, l.bytes, l.ends = l.f32[:0], l.f64[:0], l.bytes[:0], l.ends[:0]
}

// writeWhole decodes all members and encodes the column as a fresh one is, with
// a dictionary where that pays.
func (m *merger) writeWhole(c *chunk, i int) error {
	for k := range m.members {
		if err := m.decodeMember(&m.pend, k, i); err != nil {
			return m.blame(k, i, err)
		}
	}
	l := &m.pend
	dict := m.w.dict.build(l)
	if dict {
		if err := m.w.writeDictionary(c); err != nil {
			return err
		}
	}
	return m.w.writeLeaf(c, l, dict)
}

// decodeMember appends all rows of a member's column to a leaf.
func (m *merger) decodeMember(l *leaf, k, i int) error {
	mb, src := &m.members[k], &m.inputs[m.members[k].input][i]
	before := len(l.defs)
	if src.column == nil && src.like >= 0 {
		m.like.reset(m.s.leaves[src.like])
		if err := m.decodeMember(&m.like, k, src.like); err != nil {
			return err
		}
		l.follow(&m.like, 0, src.likeDef, src.likeRep)
		return nil
	}
	if src.column == nil {
		l.absentRows(int(mb.rows))
		return nil
	}
	c := m.open(k, i)
	var p rawPage
	for rest := mb.chunk(src); len(rest) > 0; {
		var err error
		if rest, err = nextPage(rest, &p); err != nil {
			return err
		}
		if err := m.decode(c, &p); err != nil {
			return err
		}
		if err := c.take(l, c.levels); err != nil {
			return err
		}
	}
	if rows := rowsOf(l, before); int64(rows) != mb.rows {
		return fmt.Errorf("%w: %d rows of %d", errDamaged, rows, mb.rows)
	}
	return nil
}

// rowsOf counts the rows of a leaf from a level on.
func rowsOf(l *leaf, from int) int {
	if l.maxRep == 0 {
		return len(l.defs) - from
	}
	return bytes.Count(l.reps[from:], []byte{0})
}

func (mb *member) chunk(src *source) []byte { return mb.chunks[src.column.Index()] }

func (mb *member) meta(src *source) *columnChunk {
	return &mb.f.groups()[0].columns[src.column.Index()]
}

// open makes the reader of pages ready for a member's column.
func (m *merger) open(k, i int) *columnReader {
	mb, src := &m.members[k], &m.inputs[m.members[k].input][i]
	meta := mb.meta(src)
	m.reader = columnReader{source: *src, f: mb.f, pages: m.reader.pages}
	p := &m.reader.pages
	p.column, p.codec, p.left, p.known, p.hides = src.column, meta.codec, meta.values, -1, mb.f.hidesPacking()
	return &m.reader
}

// decode decodes a page: a data page into c, a dictionary for the next ones.
func (m *merger) decode(c *columnReader, p *rawPage) error {
	c.defs, c.reps, c.at, c.levels, c.value, c.values = nil, nil, 0, 0, 0, pageValues{}
	if err := p.check(); err != nil {
		return err
	}
	switch p.kind {
	case format.DictionaryPage:
		return c.pages.dictionary(&format.DictionaryPageHeader{NumValues: int32(p.values)}, p.size, p.body)
	case format.DataPage:
		// Levels that are not RLE are refused there: both have one header field here.
		h := format.DataPageHeader{NumValues: int32(p.values), Encoding: p.encoding, DefinitionLevelEncoding: p.levels, RepetitionLevelEncoding: p.levels}
		return c.pages.dataV1(c, &h, p.size, p.body)
	case format.DataPageV2:
		h := format.DataPageHeaderV2{NumValues: int32(p.values), Encoding: p.encoding,
			RepetitionLevelsByteLength: int32(p.reps), DefinitionLevelsByteLength: int32(p.defs)}
		h.IsCompressed.V, h.IsCompressed.Valid = !p.plain, true
		return c.pages.dataV2(c, &h, p.size, p.body)
	}
	return nil
}

// decodedWhole: no page of the column can be moved, so it is decoded and
// encoded as a whole. Values that repeat are, too: a fresh file would have a
// dictionary of them.
func (m *merger) decodedWhole(i int) bool {
	size, rows := 0, int64(0)
	for k := range m.members {
		rows += m.members[k].rows
		if src := &m.inputs[m.members[k].input][i]; src.column != nil {
			size += int(m.members[k].meta(src).uncompressed)
		}
	}
	if size > RowGroupBytes || rows > 4*RowGroupRows {
		return false // page by page, then
	}
	first := -1
	for k := range m.members {
		src := &m.inputs[m.members[k].input][i]
		if src.column == nil || !m.exact[m.members[k].input][i] || m.members[k].meta(src).codec != m.w.kind {
			continue
		}
		var p rawPage
		dict := false
		for rest := m.members[k].chunk(src); len(rest) > 0; {
			var err error
			if rest, err = nextPage(rest, &p); err != nil {
				return false // writePages meets it again
			}
			if p.kind == format.DictionaryPage {
				dict = true
			}
			if p.data() && !p.dictionary() && large(&p) {
				if first < 0 {
					first = k
				}
			}
			if p.data() && p.dictionary() && dict && large(&p) {
				return false // given up: page by page, without hashing again
			}
		}
	}
	return first < 0 || m.repeats(first, i)
}

func large(p *rawPage) bool {
	return p.size >= movedSize && len(p.body) >= movedPacked || p.values >= movedValues
}

// repeats says whether a fresh file would have a dictionary of these values, as
// far as the first ones of one page tell.
func (m *merger) repeats(k, i int) bool {
	l := &m.s.leaves[i]
	if !l.numeric() && (l.phys != physBytes || !l.text) {
		return false
	}
	src := &m.inputs[m.members[k].input][i]
	c := m.open(k, i)
	var p rawPage
	for rest := m.members[k].chunk(src); len(rest) > 0; {
		var err error
		if rest, err = nextPage(rest, &p); err != nil {
			return false
		}
		if !p.data() || p.dictionary() {
			continue
		}
		if m.decode(c, &p) != nil {
			return false
		}
		d := &m.w.dict
		d.reset()
		n := min(c.values.n, dictionaryProbe)
		for v := range n {
			if _, ok := d.number(c.plainValue(v)); !ok {
				return false
			}
		}
		return n > 0 && l.dictionaryPays(d.len(), n)
	}
	return false
}

// plainValue is value v of a page, PLAIN-encoded but for the length of a text.
func (c *columnReader) plainValue(v int) []byte {
	if c.phys == physBytes {
		data, ends := c.values.plain.ByteArray()
		return data[ends[v]:ends[v+1]]
	}
	data, _ := c.values.plain.Data()
	width := 8
	if c.phys == physInt32 || c.phys == physFloat {
		width = 4
	}
	return data[v*width : (v+1)*width]
}

// writePages writes a column page by page: moves what can be moved, and
// encodes the rest. dict: the dictionary of all members is written first and
// the pages refer to it.
func (m *merger) writePages(c *chunk, i int, dict bool) error {
	if dict {
		if err := m.w.writeDictionary(c); err != nil {
			return err
		}
	}
	for k := range m.members {
		if err := m.writeMember(c, k, i, dict); err != nil {
			return m.blame(k, i, err)
		}
	}
	return m.flush(c)
}

func (m *merger) writeMember(c *chunk, k, i int, dict bool) error {
	mb, src := &m.members[k], &m.inputs[m.members[k].input][i]
	if src.column == nil && src.like < 0 {
		for left := mb.rows; left > 0; left -= pageRows { // as many as its footer says (F7)
			n := int(min(left, pageRows))
			if err := m.prepare(c, pendingValues, n, 0); err != nil {
				return err
			}
			m.pend.absentRows(n)
		}
		return nil
	}
	if src.column == nil {
		if err := m.prepare(c, pendingValues, int(mb.rows), 0); err != nil {
			return err
		}
		return m.decodeMember(&m.pend, k, i)
	}
	before := c.rows + rowsOf(&m.pend, 0)
	r := m.open(k, i)
	if dict {
		r.pages.known = m.known[k]
	}
	facts := m.factsOf(k, i)
	var p rawPage
	dictionaries := 0
	for rest := mb.chunk(src); len(rest) > 0; {
		var err error
		if rest, err = nextPage(rest, &p); err != nil {
			return err
		}
		if p.kind == format.DictionaryPage {
			if dictionaries++; dictionaries > 1 {
				return fmt.Errorf("%w: it has two dictionaries", errDamaged)
			}
		}
		if p.kind == format.DictionaryPage && !dict {
			err = m.openDictionary(r, &p, facts, k)
		} else if p.data() {
			err = m.writePage(c, r, &p, facts, k, i, dict)
		}
		if err != nil {
			return err
		}
	}
	if got := c.rows + rowsOf(&m.pend, 0) - before; int64(got) != mb.rows {
		return fmt.Errorf("%w: %d rows of %d", errDamaged, got, mb.rows)
	}
	return nil
}

// writePage moves a data page, or appends what it has to the pending rows.
func (m *merger) writePage(c *chunk, r *columnReader, p *rawPage, facts *chunkFacts, k, i int, dict bool) error {
	facts.next(p)
	refers := p.dictionary()
	movable := facts.movable && p.values > 0 && large(p) && !(facts.hides && p.plain) && (facts.flat || facts.countRows(r, p))
	if movable && refers {
		movable = dict && m.same[k]
	}
	if movable {
		known, err := facts.of(m, r, p, k)
		if err != nil {
			return err
		}
		if err := m.flush(c); err != nil {
			return err
		}
		return m.move(c, p, &known)
	}
	if done, err := m.writePlain(c, r, p, facts, dict); done || err != nil {
		return err
	}
	kind := pendingValues
	if refers && dict {
		kind = pendingNumbers
	}
	if err := m.decode(r, p); err != nil {
		return err
	}
	if kind == pendingNumbers && m.pending == pendingValues && m.goesOn(r) {
		// A row has values of one kind: these are looked up, too.
		kind, r.pages.left = pendingValues, r.pages.left+int64(r.levels)
		if err := m.decode(r, &m.dicts[k].page); err != nil {
			return err
		}
		if err := m.decode(r, p); err != nil {
			return err
		}
	}
	if err := m.prepareFor(c, r, kind); err != nil {
		return err
	}
	if kind == pendingValues {
		return r.take(&m.pend, r.levels)
	}
	there, err := r.takeLevels(&m.pend, r.levels)
	if err != nil {
		return err
	}
	m.ids = gather(m.ids, m.remaps[k], r.values.indexes[:there])
	return nil
}

// size is about how many bytes the values of the page have, decoded.
func (c *columnReader) size() int {
	v := &c.values
	data, _ := v.plain.Data()
	if v.indexes == nil {
		return len(data)
	}
	return len(data) / max(v.known, 1) * len(v.indexes)
}

// keepBounds makes the chunk's bounds independent of memory that is used again.
func (c *chunk) keepBounds() {
	if b := &c.bounds; b.ok {
		b.min, b.max = bytes.Clone(b.min), bytes.Clone(b.max)
	}
}

// move writes a page as it is.
func (m *merger) move(c *chunk, p *rawPage, known *pageFacts) error {
	if err := p.check(); err != nil {
		return err
	}
	w := m.w
	at := w.out.n
	for _, b := range [][]byte{p.head, p.body} {
		if _, err := w.out.Write(b); err != nil {
			return err
		}
	}
	c.meta.TotalUncompressedSize += int64(len(p.head) + p.size)
	c.meta.TotalCompressedSize += int64(len(p.head) + len(p.body))
	encoding := p.encoding
	//lint:ignore SA1019 old writers name dictionary pages so
	if encoding == format.PlainDictionary {
		encoding = format.RLEDictionary
	}
	c.placed(p.kind, encoding, at, w.out.n, p.values, known.rows, known.nulls)
	c.recordKnown(known, p.values-int(known.nulls))
	return nil
}
