package parquetfile

import "github.com/parquet-go/parquet-go/format"

// pageFacts is what has to be known of a page that is moved.
type pageFacts struct {
	rows   int
	nulls  int64
	bounds bounds // true of its values, for the page index
	exact  bounds // values themselves, for the chunk's statistics; of the page or of its chunk
}

// chunkFacts knows what an input says of a column chunk and its pages.
type chunkFacts struct {
	l       *leaf
	movable bool // its pages may be moved at all
	hides   bool // those that say they are not compressed may be
	exact   bool // its types and levels are the column's
	flat    bool // a level is a row
	trusted bool // it says how values compare
	page    int  // the number of the page at hand
	rows    int64
	total   int64         // levels of the chunk
	raw     rawStatistics // of the chunk

	// Of the page index.
	firstRows []int64
	nullPages []bool
	nulls     []int64
	min, max  [][]byte
}

// factsOf reads what a member says of a column.
func (m *merger) factsOf(k, i int) *chunkFacts {
	mb, src := &m.members[k], &m.inputs[m.members[k].input][i]
	column := src.column.Index()
	f := &m.facts
	*f = chunkFacts{l: &m.pend, flat: m.pend.maxRep == 0, trusted: mb.orders, page: -1, rows: mb.rows,
		firstRows: f.firstRows[:0], nullPages: f.nullPages[:0], nulls: f.nulls[:0], min: f.min[:0], max: f.max[:0]}
	f.exact = m.exact[mb.input][i]
	f.movable = f.exact && mb.meta(src).codec == m.w.kind && !(mb.meta(src).deltaBytes && mb.f.runsOnByWriter())
	f.hides = mb.f.hidesPacking() && mb.meta(src).codec != format.Uncompressed
	if !f.exact {
		return f
	}
	f.total = mb.meta(src).values
	f.raw = mb.meta(src).said()
	f.readOffsetIndex(mb.index.offsetIndex(0, column))
	f.movable = f.movable && (f.flat || f.wholeRows(mb.chunk(src)))
	if len(f.firstRows) > 0 {
		f.readColumnIndex(mb.index.columnIndex(0, column))
	}
	return f
}

func (f *chunkFacts) readOffsetIndex(b []byte) {
	w := walker{b: b}
	for id, typ := range w.fields {
		if id != 1 || typ != thriftList {
			w.skip(typ)
			continue
		}
		_, n := w.list()
		for i := 0; i < n && !w.bad; i++ {
			f.firstRows = append(f.firstRows, w.pageLocation().FirstRowIndex)
		}
	}
	if w.bad {
		f.firstRows = f.firstRows[:0]
	}
}

// readColumnIndex takes nothing from an index that is not whole.
func (f *chunkFacts) readColumnIndex(b []byte) {
	w := walker{b: b}
	for id, typ := range w.fields {
		if typ != thriftList || id > 5 || id == 4 {
			w.skip(typ)
			continue
		}
		_, n := w.list()
		for i := 0; i < n && !w.bad; i++ {
			switch id {
			case 1:
				if w.at >= len(w.b) {
					w.fail()
					break
				}
				f.nullPages = append(f.nullPages, w.b[w.at] == thriftTrue)
				w.at++
			case 2:
				f.min = append(f.min, w.bytes())
			case 3:
				f.max = append(f.max, w.bytes())
			case 5:
				f.nulls = append(f.nulls, w.int())
			}
		}
	}
	n := len(f.firstRows)
	if w.bad || len(f.nullPages) != n || len(f.min) != n || len(f.max) != n || len(f.nulls) != 0 && len(f.nulls) != n {
		f.nullPages, f.min, f.max, f.nulls = f.nullPages[:0], f.min[:0], f.max[:0], f.nulls[:0]
	}
}

// next goes to the next data page, and finds out how many rows it has.
func (f *chunkFacts) next(p *rawPage) {
	f.page++
	n := len(f.firstRows)
	switch {
	case f.flat:
		p.rows = p.values
	case p.kind == format.DataPageV2:
	case f.page < n:
		end := f.rows
		if f.page+1 < n {
			end = f.firstRows[f.page+1]
		}
		p.rows = int(max(0, end-f.firstRows[f.page]))
	}
}

// of finds out what has to be known of the page at hand: from the page index,
// from its header, from the chunk's statistics if it is alone, else from its
// values.
func (f *chunkFacts) of(m *merger, r *columnReader, p *rawPage, k int) (pageFacts, error) {
	out := pageFacts{rows: p.rows, nulls: -1}
	if f.l.maxDef == 0 {
		out.nulls = 0
	}
	if f.trusted {
		f.said(p, &out)
	}
	if out.nulls == int64(p.values) {
		out.bounds, out.exact = bounds{}, bounds{} // Polars says those of the chunk of each page
		return out, nil
	}
	if out.nulls >= 0 && (out.bounds.ok || f.l.order == orderNone) {
		return out, nil
	}
	if p.dictionary() { // it is unified, not decoded, so far
		if err := m.decode(r, &m.dicts[k].page); err != nil {
			return out, err
		}
	}
	err := f.seen(m, r, p, &out)
	return out, err
}

// said takes what the input says.
func (f *chunkFacts) said(p *rawPage, out *pageFacts) {
	alone := p.values == int(f.total)
	chunk := f.raw.bounds(f.l)
	if f.page < len(f.nullPages) {
		if f.page < len(f.nulls) {
			out.nulls = f.nulls[f.page]
		}
		if f.nullPages[f.page] {
			// Arrow's Rust says so of a page of lists that has as many nulls as rows.
			if out.nulls < 0 && f.flat {
				out.nulls = int64(p.values)
			}
			if out.nulls != int64(p.values) {
				out.nulls = -1
			}
			return
		}
		s := rawStatistics{min: f.min[f.page], max: f.max[f.page]}
		out.bounds = s.bounds(f.l)
		if !f.raw.vague {
			out.exact = chunk
		}
	}
	// No nulls, and nothing else, is what some writers say of any page.
	if said := p.stats.nulls > 0 || p.stats.nulls == 0 && (p.stats.min != nil || p.kind == format.DataPageV2); said && out.nulls < 0 {
		out.nulls = p.stats.nulls
	}
	if alone && f.raw.nulls >= 0 && out.nulls < 0 {
		out.nulls = f.raw.nulls
	}
	if b := p.stats.bounds(f.l); b.ok {
		out.bounds = b
		if !p.stats.vague {
			out.exact = b
		}
	} else if alone && chunk.ok && !out.bounds.ok {
		out.bounds = chunk
		if !f.raw.vague {
			out.exact = chunk
		}
	}
	if out.nulls > int64(p.values) {
		out.nulls = -1
	}
}

// seen decodes the page to find out.
func (f *chunkFacts) seen(m *merger, r *columnReader, p *rawPage, out *pageFacts) error {
	if err := m.decode(r, p); err != nil {
		return err
	}
	m.look.reset(f.l.leafType)
	if err := r.take(&m.look, r.levels); err != nil {
		return err
	}
	values := 0
	for _, d := range m.look.defs {
		if d == f.l.maxDef {
			values++
		}
	}
	out.nulls = int64(p.values - values)
	out.bounds = m.look.bounds(0, values)
	out.bounds.min, out.bounds.max = append([]byte(nil), out.bounds.min...), append([]byte(nil), out.bounds.max...)
	out.exact = out.bounds
	return nil
}
