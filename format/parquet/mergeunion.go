package parquetfile

import (
	"math"
	"math/bits"

	"github.com/parquet-go/parquet-go/encoding"
	"github.com/parquet-go/parquet-go/format"
)

// union is how the dictionaries of the members become one, which is the
// writer's.
type union struct {
	dicts  []encoding.Values // of each member, decoded
	known  []int             // its entries; -1: it has none
	read   []bool            // decoded
	remaps [][]int32         // its numbers in the union
	same   []bool            // which are the numbers it has already
}

// unify makes one dictionary of a column's dictionaries. False when they have
// none, or when it would not pay: then the column is written plain (F9).
func (m *merger) unify(i int) (bool, error) {
	l := &m.s.leaves[i]
	if l.phys == physBool {
		return false, nil
	}
	m.union.begin(len(m.members))
	var entries, values, all int64
	for k := range m.members {
		mb, src := &m.members[k], &m.inputs[m.members[k].input][i]
		all += mb.rows
		if src.column == nil {
			continue
		}
		n := mb.meta(src).NumValues
		all += n - mb.rows
		var p rawPage
		if _, err := nextPage(mb.chunk(src), &p); err != nil || p.kind != format.DictionaryPage {
			continue // an error is met again, and told, by who reads the pages
		}
		if !m.exact[mb.input][i] {
			return false, nil
		}
		m.known[k] = p.values
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
			id, ok := d.number(m.dictValue(k, l, e))
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
		u.dicts, u.known, u.read = append(u.dicts, encoding.Values{}), append(u.known, -1), append(u.read, false)
		u.remaps, u.same = append(u.remaps, nil), append(u.same, false)
	}
	for k := range u.known {
		u.known[k], u.read[k], u.same[k] = -1, false, false
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
			b := m.dictValue(k, l, v)
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

// readDictionary decodes the dictionary of a member.
func (m *merger) readDictionary(k, i int) error {
	if m.read[k] {
		return nil
	}
	var p rawPage
	if _, err := nextPage(m.members[k].chunk(&m.inputs[m.members[k].input][i]), &p); err != nil {
		return err
	}
	r := m.open(k, i)
	r.pages.dict, m.dicts[k] = m.dicts[k], r.pages.dict
	err := m.decode(r, &p)
	r.pages.dict, m.dicts[k] = m.dicts[k], r.pages.dict
	m.read[k] = err == nil
	return err
}

// dictValue is an entry of a member's dictionary, PLAIN-encoded.
func (m *merger) dictValue(k int, l *leafType, e int) []byte {
	data, ends := m.dicts[k].Data()
	switch l.phys {
	case physBytes:
		return data[ends[e]:ends[e+1]]
	case physInt32, physFloat:
		return data[4*e : 4*e+4]
	case physInt64, physDouble:
		return data[8*e : 8*e+8]
	}
	return data[e*l.width : (e+1)*l.width]
}
