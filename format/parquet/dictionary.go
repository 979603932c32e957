package parquetfile

import (
	"bytes"
	"hash/maphash"
)

// dictionary numbers the different values of a column in the order they first
// appear. It is reused from chunk to chunk.
type dictionary struct {
	seed  maphash.Seed
	slots []uint64 // hash in the upper half, number + 1 in the lower; 0: free
	bytes []byte
	ends  []uint32
	ids   []int32 // of each value
	seen  []bool  // scratch: numbers in the page at hand

	// Of numbers, which need neither slots nor bytes to be found.
	table  []int32 // number + 1; 0: free
	values []uint64
}

// When a dictionary pays (F9): while it is small, and while values repeat.
// Everything else is encoded plain: its values would be looked up for nothing.
const (
	dictionaryBytes = 512 << 10
	dictionaryProbe = 1024 // values before the first judgement
)

// buildTexts gives up, and returns false, as soon as more than half of the
// values so far are different ones.
func (d *dictionary) buildTexts(l *leaf) bool {
	n := len(l.ends)
	if n == 0 {
		return false
	}
	d.reset()
	d.ids = growTo(d.ids[:0], n)
	judge := min(dictionaryProbe, n)
	from := uint32(0)
	for k, end := range l.ends {
		id, ok := d.number(l.bytes[from:end])
		if !ok {
			return false
		}
		d.ids[k] = id
		from = end
		if k+1 == judge {
			if 2*len(d.ends) > judge {
				return false
			}
			judge = min(2*judge, n)
		}
	}
	return 2*len(d.ends) <= n
}

func (d *dictionary) reset() {
	if d.slots == nil {
		d.seed = maphash.MakeSeed()
		d.slots = make([]uint64, 4096)
	} else {
		clear(d.slots)
	}
	d.bytes, d.ends = d.bytes[:0], d.ends[:0]
}

func (d *dictionary) len() int { return len(d.ends) }

func (d *dictionary) at(id int) []byte {
	from := uint32(0)
	if id > 0 {
		from = d.ends[id-1]
	}
	return d.bytes[from:d.ends[id]]
}

// number finds or adds a value; false when the dictionary is full.
func (d *dictionary) number(v []byte) (int32, bool) {
	h := maphash.Bytes(d.seed, v)
	mask := uint64(len(d.slots) - 1)
	for i := h & mask; ; i = (i + 1) & mask {
		s := d.slots[i]
		if s == 0 {
			if len(d.bytes)+len(v) > dictionaryBytes {
				return 0, false
			}
			d.bytes = append(d.bytes, v...)
			d.ends = append(d.ends, uint32(len(d.bytes)))
			d.slots[i] = h&^0xffffffff | uint64(len(d.ends))
			if 2*len(d.ends) > len(d.slots) {
				d.rehash()
			}
			return int32(len(d.ends) - 1), true
		}
		if s>>32 == h>>32 {
			if id := int(s&0xffffffff) - 1; bytes.Equal(d.at(id), v) {
				return int32(id), true
			}
		}
	}
}

func (d *dictionary) rehash() {
	d.slots = make([]uint64, 2*len(d.slots))
	mask := uint64(len(d.slots) - 1)
	for id := range d.ends {
		h := maphash.Bytes(d.seed, d.at(id))
		i := h & mask
		for d.slots[i] != 0 {
			i = (i + 1) & mask
		}
		d.slots[i] = h&^0xffffffff | uint64(id+1)
	}
}

// bounds are the smallest and the largest of some values, by their numbers.
func (d *dictionary) bounds(l *leaf, ids []int32) (b bounds) {
	if l.order == orderNone {
		return b
	}
	d.seen = growTo(d.seen[:0], len(d.ends))
	clear(d.seen)
	for _, id := range ids {
		d.seen[id] = true
	}
	for id, in := range d.seen {
		if in && !l.isNaN(d.at(id)) {
			b.value(l, d.at(id))
		}
	}
	return b.ofFloats(l)
}
