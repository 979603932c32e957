package parquetfile

import (
	"encoding/binary"
	"unsafe"
)

// When a dictionary of numbers pays (F9): while there are few of them, and each
// appears four times or more. Then it takes half the bytes, or less, of the
// numbers themselves, compressed or not.
const (
	dictionaryNumbers = 4 << 10
	numbersRepeat     = 4
	slotBits          = 14 // slots for four times as many
)

// build numbers the values of a leaf, if its type may have a dictionary. It
// gives up, and returns false, as soon as too many of the values so far are
// different ones.
func (d *dictionary) build(l *leaf) bool {
	switch l.phys {
	case physBytes:
		return l.text && d.buildTexts(l)
	case physInt32:
		return buildNumbers(d, unsigned[uint32](l.i32))
	case physInt64:
		return buildNumbers(d, unsigned[uint64](l.i64))
	case physFloat:
		return buildNumbers(d, unsigned[uint32](l.f32))
	case physDouble:
		return buildNumbers(d, unsigned[uint64](l.f64))
	}
	return false
}

// unsigned sees numbers as their bits.
func unsigned[U uint32 | uint64, T int32 | int64 | float32 | float64](v []T) []U {
	return unsafe.Slice((*U)(unsafe.Pointer(unsafe.SliceData(v))), len(v))
}

// buildNumbers compares bits: what has other bits, like the two zeros of a
// float, has another number.
func buildNumbers[U uint32 | uint64](d *dictionary, values []U) bool {
	n := len(values)
	if n < dictionaryProbe {
		return false // no page is worth another one for so few
	}
	d.bytes, d.ends = d.bytes[:0], d.ends[:0]
	d.table = growTo(d.table[:0], 1<<slotBits)
	clear(d.table)
	d.ids, d.values = growTo(d.ids[:0], n), d.values[:0]
	judge := dictionaryProbe
	last, id := values[0]+1, int32(0)
	for k, v := range values {
		if v != last {
			last = v
			i := uint64(v) * 0x9e3779b97f4a7c15 >> (64 - slotBits)
			for {
				if id = d.table[i] - 1; id < 0 {
					if len(d.values) == dictionaryNumbers {
						return false
					}
					id = int32(len(d.values))
					d.values = append(d.values, uint64(v))
					d.table[i] = id + 1
					break
				}
				if d.values[id] == uint64(v) {
					break
				}
				i = (i + 1) & (1<<slotBits - 1)
			}
		}
		d.ids[k] = id
		if k+1 == judge {
			if numbersRepeat*len(d.values) > judge {
				return false
			}
			judge = min(2*judge, n)
		}
	}
	if numbersRepeat*len(d.values) > n {
		return false
	}
	for _, v := range d.values {
		if unsafe.Sizeof(U(0)) == 4 {
			d.bytes = binary.LittleEndian.AppendUint32(d.bytes, uint32(v))
		} else {
			d.bytes = binary.LittleEndian.AppendUint64(d.bytes, v)
		}
		d.ends = append(d.ends, uint32(len(d.bytes)))
	}
	return true
}

// dictionaryPays says of n values, of which so many are different, whether a dictionary
// is worth it.
func (l *leafType) dictionaryPays(different, n int) bool {
	if l.phys == physBytes {
		return l.text && 2*different <= n
	}
	return l.numeric() && different <= dictionaryNumbers && numbersRepeat*different <= n
}

func (l *leafType) numeric() bool {
	return l.phys == physInt32 || l.phys == physInt64 || l.phys == physFloat || l.phys == physDouble
}
