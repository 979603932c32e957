package parquetfile

import (
	"encoding/binary"
	"fmt"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// plainPage is the page to be of a column whose dictionaries are given up: the
// entries of a dictionary page are PLAIN-encoded already, so they are gathered
// into a data page without ever becoming values.
type plainPage struct {
	dict   *rawDictionary // the member's
	usable bool
	body   []byte
	nulls  int64
	bounds bounds
	exact  bounds
	vague  bool
}

// openDictionary gets ready for a member's dictionary page. Its entries are
// decoded only if the column cannot do with them PLAIN-encoded: eight flags are
// one byte, which no entry of theirs is.
func (m *merger) openDictionary(r *columnReader, p *rawPage, facts *chunkFacts, k int) error {
	m.plain.dict, m.plain.usable = &m.dicts[k], facts.flat && facts.exact && r.phys != physBool
	if !m.plain.usable {
		return m.decode(r, p)
	}
	m.plain.dict.page, m.plain.dict.count = *p, p.values
	r.pages.known = -1
	return nil
}

// writePlain takes a page that refers to a dictionary that is given up. False:
// it has to be decoded.
func (m *merger) writePlain(c *chunk, r *columnReader, p *rawPage, facts *chunkFacts, dict bool) (done bool, err error) {
	d := &m.plain
	if dict || !p.dictionary() || !d.usable {
		return false, nil
	}
	known := pageFacts{rows: p.rows, nulls: -1}
	if facts.l.maxDef == 0 {
		known.nulls = 0
	}
	if facts.trusted {
		facts.said(p, &known)
	}
	if known.nulls < 0 || !known.bounds.ok && known.nulls < int64(p.values) && facts.l.order != orderNone || p.values > 4*pageRows {
		// Its values have to be seen. So does what they refer to.
		d.usable = false
		return false, m.decode(r, &d.dict.page)
	}
	r.pages.known = d.dict.count
	if err := m.decode(r, p); err != nil {
		return false, err
	}
	// Arrow's C++ does not count the nulls of a struct above a dictionary.
	if known.nulls = int64(p.values - len(r.values.indexes)); known.nulls == int64(p.values) {
		known.bounds, known.exact = bounds{}, bounds{}
	}
	if facts.movable && m.wholeDictionary(r, p) {
		if err := m.flush(c); err != nil {
			return false, err
		}
		if moved, err := m.moveDictionary(c, r, &known); moved || err != nil {
			return true, err
		}
	}
	if err := d.dict.unpack(&r.pages, &r.source); err != nil {
		return false, err
	}
	size := len(d.dict.body) / max(d.dict.count, 1) * len(r.values.indexes)
	if err := m.prepare(c, pendingPlain, r.levels, size); err != nil {
		return false, err
	}
	if len(m.pend.defs) == 0 {
		d.body, d.nulls, d.bounds, d.exact, d.vague = d.body[:0], 0, bounds{}, bounds{}, false
	}
	there, err := r.takeLevels(&m.pend, r.levels)
	if err != nil {
		return false, err
	}
	if err := m.gatherPlain(r, r.values.indexes[:there]); err != nil {
		return false, err
	}
	d.nulls += known.nulls
	d.bounds.include(c.l, known.bounds)
	d.exact.include(c.l, known.exact)
	d.vague = d.vague || there > 0 && !known.exact.ok
	return true, nil
}

// gatherPlain appends entries of the dictionary.
func (m *merger) gatherPlain(r *columnReader, ids []int32) error {
	d, dict := &m.plain, m.plain.dict
	at := len(d.body)
	switch r.phys {
	case physBytes:
		total := at
		for _, id := range ids {
			total += int(dict.starts[id+1] - dict.starts[id])
		}
		if total-at > mostDecoded {
			return fmt.Errorf("a page's values take %d bytes; the most is %d", total-at, mostDecoded)
		}
		d.body = growTo(d.body, total)
		for _, id := range ids {
			at += copy(d.body[at:], dict.body[dict.starts[id]:dict.starts[id+1]])
		}
	case physInt32, physFloat:
		d.body = growTo(d.body, at+4*len(ids))
		out := d.body[at:]
		for i, id := range ids {
			*(*[4]byte)(out[4*i:]) = [4]byte(dict.body[4*int(id):])
		}
	case physInt64, physDouble:
		d.body = growTo(d.body, at+8*len(ids))
		out := d.body[at:]
		for i, id := range ids {
			*(*[8]byte)(out[8*i:]) = [8]byte(dict.body[8*int(id):])
		}
	case physFixed:
		if len(ids)*r.width > mostDecoded {
			return fmt.Errorf("a page's values take %d bytes; the most is %d", len(ids)*r.width, mostDecoded)
		}
		for _, id := range ids {
			d.body = append(d.body, dict.body[int(id)*r.width:(int(id)+1)*r.width]...)
		}
	default:
		return fmt.Errorf("entries of a dictionary of physical type %d are not whole bytes", r.phys)
	}
	return nil
}

// plainLeast is the least that n values take, PLAIN-encoded.
func (l *leafType) plainLeast(n int) int {
	switch l.phys {
	case physBool:
		return (n + 7) / 8
	case physInt64, physDouble:
		return 8 * n
	case physFixed:
		return l.width * n
	}
	return 4 * n // physBytes: the lengths
}

// flushPlain writes the page.
func (m *merger) flushPlain(c *chunk) error {
	d, w, l := &m.plain, m.w, &m.pend
	levels := len(l.defs)
	if values := levels - int(d.nulls); len(d.body) < l.plainLeast(values) {
		return fmt.Errorf("%d values were gathered into %d bytes", values, len(d.body)) // no page is written without its values
	}
	body := w.body[:0]
	var err error
	if l.maxDef > 0 {
		if body, err = w.appendLevels(body, l.defs, l.maxDef); err != nil {
			return err
		}
	}
	body = append(body, d.body...)
	w.body = body
	header := dataHeader(levels, d.nulls)
	at := w.out.n
	if err := w.emit(c.meta, &header, body); err != nil {
		return err
	}
	m.placePlain(c, at, levels, pageFacts{rows: levels, nulls: d.nulls, bounds: d.bounds, exact: d.exact}, d.vague)
	l.reset(l.leafType)
	return nil
}

func dataHeader(levels int, nulls int64) format.PageHeader {
	return format.PageHeader{Type: format.DataPage, DataPageHeader: thrift.New(format.DataPageHeader{
		NumValues: int32(levels), Encoding: format.Plain, DefinitionLevelEncoding: format.RLE, RepetitionLevelEncoding: format.RLE,
		Statistics: format.Statistics{NullCount: nulls}, // the library writes it anyhow
	})}
}

// placePlain notes a page that has been written from on.
func (m *merger) placePlain(c *chunk, from int64, levels int, known pageFacts, vague bool) {
	c.placed(format.DataPage, format.Plain, from, m.w.out.n, levels, known.rows, known.nulls)
	c.recordKnown(&known, levels-int(known.nulls))
	c.vague = c.vague || vague
}

// recordKnown records a page by what was said of it: the page index may be
// told wider bounds than the chunk's statistics.
func (c *chunk) recordKnown(known *pageFacts, values int) {
	kept := c.bounds
	c.record(known.bounds, values, known.nulls)
	c.bounds = kept
	if known.exact.ok {
		c.bounds.include(c.l, known.exact)
		c.keepBounds()
	} else if values > 0 {
		c.vague = true
	}
}

// wholeDictionary: the page has every entry of the dictionary once, in order:
// its values, PLAIN-encoded, are the dictionary page.
func (m *merger) wholeDictionary(r *columnReader, p *rawPage) bool {
	ids := r.values.indexes
	if len(ids) != m.plain.dict.count || !large(&m.plain.dict.page) {
		return false
	}
	for i, id := range ids {
		if int(id) != i {
			return false
		}
	}
	return r.defs == nil || len(ids) == p.values
}

// moveDictionary writes the dictionary page at hand as a data page, as it is
// compressed. The levels go before it: a block of Snappy may begin with a
// literal of them, for all that follows refers back by distance; with the other
// codecs there must be none.
func (m *merger) moveDictionary(c *chunk, r *columnReader, known *pageFacts) (bool, error) {
	d, w := &m.plain, m.w
	p := &d.dict.page
	levels := r.levels
	head := w.body[:0]
	if c.l.maxDef > 0 {
		var err error
		m.look.reset(c.l.leafType)
		if _, err = r.takeLevels(&m.look, levels); err != nil {
			return false, err
		}
		if head, err = w.appendLevels(head, m.look.defs, c.l.maxDef); err != nil {
			return false, err
		}
	}
	w.body = head
	packed := w.packed[:0]
	switch {
	case len(head) == 0:
		packed = append(packed, p.body...)
	case w.kind == format.Uncompressed:
		packed = append(append(packed, head...), p.body...)
	case w.kind == format.Snappy && len(head) <= 60:
		n, k := binary.Uvarint(p.body)
		if k <= 0 || n != uint64(p.size) {
			return false, errDamaged
		}
		packed = binary.AppendUvarint(packed, n+uint64(len(head)))
		packed = append(packed, byte(len(head)-1)<<2) // a literal
		packed = append(append(packed, head...), p.body[k:]...)
	default:
		r.at, r.value = 0, 0 // the levels are taken again
		return false, nil
	}
	w.packed = packed
	if err := p.check(); err != nil {
		return false, err
	}
	header := dataHeader(levels, known.nulls)
	at := w.out.n
	if err := w.emitPacked(c.meta, &header, len(head)+p.size, packed); err != nil {
		return false, err
	}
	m.placePlain(c, at, levels, *known, false)
	return true, nil
}
