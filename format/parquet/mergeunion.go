package parquetfile

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"

	"github.com/parquet-go/parquet-go/format"
)

// union is how the dictionaries of the members become one, which is the
// writer's.
type union struct {
	dicts  []rawDictionary // of each member
	known  []int           // its entries; -1: it has none
	remaps [][]int32       // its numbers in the union
	same   []bool          // which are the numbers it has already
}

// rawDictionary is a dictionary page: its entries, PLAIN-encoded.
type rawDictionary struct {
	page   rawPage
	count  int
	body   []byte // unpacked
	ready  bool
	starts []uint32 // of physBytes: where each begins, with its length
	buf    []byte   // memory of body
}

// unpack unpacks the entries, once.
func (d *rawDictionary) unpack(pages *pageReader, src *source) error {
	if d.ready {
		return nil
	}
	if err := d.page.check(); err != nil {
		return err
	}
	// What is unpacked lives until the next page, in memory of the reader's.
	pages.plain, d.buf = d.buf, pages.plain
	b, err := pages.unpack(d.page.body, d.page.size)
	pages.plain, d.buf = d.buf, pages.plain
	if err != nil {
		return err
	}
	d.body, d.ready = b, true
	switch src.phys {
	case physBytes:
		return d.findStarts()
	case physInt32, physFloat:
		return enough(b, 4, d.count)
	case physInt64, physDouble:
		return enough(b, 8, d.count)
	}
	return enough(b, src.width, d.count)
}

func enough(b []byte, width, n int) error {
	if len(b) < width*n {
		return fmt.Errorf("%w: a dictionary of %d bytes for %d values", errDamaged, len(b), n)
	}
	return nil
}

func (d *rawDictionary) findStarts() error {
	if err := enough(d.body, 4, d.count); err != nil {
		return err
	}
	d.starts = growTo(d.starts[:0], d.count+1)
	at := 0
	for i := range d.count {
		d.starts[i] = uint32(at)
		if at+4 > len(d.body) {
			return enough(nil, 4, d.count)
		}
		if at += 4 + int(binary.LittleEndian.Uint32(d.body[at:])); at > len(d.body) {
			return enough(nil, 4, d.count)
		}
	}
	d.starts[d.count] = uint32(at)
	return nil
}

// entry is an entry PLAIN-encoded, without its length.
func (d *rawDictionary) entry(l *leafType, e int) []byte {
	switch l.phys {
	case physBytes:
		return d.body[d.starts[e]+4 : d.starts[e+1]]
	case physInt32, physFloat:
		return d.body[4*e : 4*e+4]
	case physInt64, physDouble:
		return d.body[8*e : 8*e+8]
	}
	return d.body[e*l.width : (e+1)*l.width]
}

// unify makes one dictionary of a column's dictionaries. False when they have
// none, or when it would not pay: then the column is written plain (F9).
func (m *merger) unify(i int) (bool, error) {
	l := &m.s.leaves[i]
	m.union.begin(len(m.members))
	if l.phys == physBool {
		return false, nil
	}
	var entries, values, all int64
	for k := range m.members {
		mb, src := &m.members[k], &m.inputs[m.members[k].input][i]
		all += mb.rows
		if src.column == nil {
			continue
		}
		n := mb.meta(src).values
		all += n - mb.rows
		var p rawPage
		if _, err := nextPage(mb.chunk(src), &p); err != nil || p.kind != format.DictionaryPage {
			continue // an error is met again, and told, by who reads the pages
		}
		if !m.exact[mb.input][i] {
			return false, nil
		}
		m.known[k], m.dicts[k].page, m.dicts[k].count = p.values, p, p.values
		entries, values = entries+int64(p.values), values+n
	}
	if entries == 0 || 2*values < all {
		return false, nil
	}
	if pays, err := m.unionPays(i, entries, values); !pays || err != nil {
		return false, err
	}
	d := &m.w.dict
	d.reset()
	for k := range m.members {
		if m.known[k] < 0 {
			continue
		}
		if err := m.readDictionary(k, i); err != nil {
			return false, m.blame(k, i, err)
		}
		remap := growTo(m.remaps[k][:0], m.known[k])
		same := true
		for e := range remap {
			id, ok := d.number(m.dicts[k].entry(l, e))
			if !ok {
				return false, nil
			}
			remap[e] = id
			same = same && int(id) == e
		}
		m.remaps[k], m.same[k] = remap, same
	}
	return 2*int64(d.len()) <= values, nil
}

func (u *union) begin(n int) {
	for len(u.dicts) < n {
		u.dicts, u.known = append(u.dicts, rawDictionary{}), append(u.known, -1)
		u.remaps, u.same = append(u.remaps, nil), append(u.same, false)
	}
	for k := range u.known {
		u.known[k], u.dicts[k].ready, u.same[k] = -1, false, false
	}
}

// sampled is how many dictionaries, and how many entries of each, are looked
// at to guess how large their union is: to hash all of them, and to find out
// then that it does not pay, would cost more than the merge.
const (
	sampledDicts   = 4
	sampledEntries = 2048
)

// unionPays guesses how many entries the union has. Were each dictionary drawn
// from the same D values, k of e entries had D (1 - (1 - e/D)^k) different
// ones: what a sample has gives D, and D gives the rest.
func (m *merger) unionPays(i int, entries, values int64) (bool, error) {
	l := &m.s.leaves[i]
	var with []int
	for k := range m.members {
		if m.known[k] > 0 {
			with = append(with, k)
		}
	}
	d := &m.w.dict
	d.reset()
	n, e, width := 0, 0, 0
	for s := range min(sampledDicts, len(with)) {
		k := with[s*len(with)/min(sampledDicts, len(with))]
		if err := m.readDictionary(k, i); err != nil {
			return false, m.blame(k, i, err)
		}
		for v := range min(m.known[k], sampledEntries) {
			b := m.dicts[k].entry(l, v)
			if _, ok := d.number(b); !ok {
				return false, nil
			}
			e++
			width += len(b)
		}
		n++
	}
	if e == 0 {
		return false, nil
	}
	different := float64(entries)
	if len(with) > 1 {
		each := float64(e) / float64(n)
		D := domain(float64(d.len()), each, float64(n)) // infinite when nothing repeats
		full := float64(entries) / float64(len(with))
		if !math.IsInf(D, 1) {
			different = min(different, max(D*(1-math.Pow(max(0, 1-full/D), float64(len(with)))), full))
		}
	}
	one := float64(width) / float64(e)
	if l.phys == physBytes {
		one += 4
	}
	plain := one * float64(values)
	packed := one*different + float64(values)*float64(bits.Len(uint(different)))/8
	return 2*different <= float64(values) && one*different <= dictionaryBytes && packed < plain, nil
}

// domain is the D of which k draws of e give u different values.
func domain(u, e, k float64) float64 {
	if u >= k*e {
		return math.Inf(1)
	}
	lo, hi := max(e, 1), 1e15
	for range 100 {
		mid := math.Sqrt(lo * hi)
		if mid*(1-math.Pow(1-e/mid, k)) < u {
			lo = mid
		} else {
			hi = mid
		}
	}
	return hi
}

// readDictionary unpacks the dictionary of a member.
func (m *merger) readDictionary(k, i int) error {
	r := m.open(k, i)
	return m.dicts[k].unpack(&r.pages, &r.source)
}
