package parquetfile

import (
	"encoding/binary"
	"fmt"
)

// What is encoded in runs (the hybrid of run lengths and packed bits: levels,
// places in a dictionary, flags) says of each run how long it is. The library
// makes room for whatever that is, and takes flags for bytes of them.

// packedSlack is how many values more than there are a packed run may have: it
// has whole bytes, and some writers fill whole blocks.
const packedSlack = 511

// runs returns the runs that the first n values lie in. None of them is longer
// than what is left of the values (F7).
func runs(data []byte, width, n int) ([]byte, error) {
	if width > 32 {
		return nil, fmt.Errorf("%w: values of %d bits in runs", errDamaged, width)
	}
	for at, left := 0, n; at < len(data); {
		count, packed, k := runAt(data[at:])
		if k <= 0 {
			return nil, fmt.Errorf("%w: a run without a length", errDamaged)
		}
		most, size := left+7, (width+7)/8
		if packed {
			if count > uint64(most+packedSlack)/8 {
				return nil, tooLong(8*count, left)
			}
			most, size = left+packedSlack, int(count)*width
			count *= 8
		}
		if count > uint64(most) {
			return nil, tooLong(count, left)
		}
		at += k + size
		if left -= int(count); left <= 0 {
			return data[:min(at, len(data))], nil
		}
	}
	return data, nil
}

func tooLong(count uint64, left int) error {
	return fmt.Errorf("%w: a run of %d values where %d are left", errDamaged, count, left)
}

// runAt reads the head of a run: how many values it has, packed ones in eights.
func runAt(data []byte) (count uint64, packed bool, k int) {
	u, k := binary.Uvarint(data)
	return u >> 1, u&1 != 0, k
}

// flags decodes n flags encoded in runs, behind their length, into bits, the
// first into the lowest. What follows them is not looked at: a known writer
// repeats there what it wrote on the page before.
func flags(dst, data []byte, n int) ([]byte, error) {
	if len(data) < 4 || uint64(binary.LittleEndian.Uint32(data)) > uint64(len(data)-4) {
		return nil, fmt.Errorf("%w: flags without a length", errDamaged)
	}
	data = data[4 : 4+binary.LittleEndian.Uint32(data)]
	dst = growTo(dst[:0], (n+7)/8)
	clear(dst)
	done := 0
	for done < n && len(data) > 0 {
		count, packed, k := runAt(data)
		if k <= 0 {
			return nil, fmt.Errorf("%w: a run without a length", errDamaged)
		}
		data = data[k:]
		if packed {
			from := data[:min(count, uint64(len(data)))]
			data = data[len(from):]
			done = appendPacked(dst, done, from, n)
			continue
		}
		if len(data) == 0 {
			break
		}
		to := done + int(min(count, uint64(n-done)))
		if data[0]&1 != 0 {
			setBits(dst, done, to)
		}
		done, data = to, data[1:]
	}
	if done < n {
		return nil, fmt.Errorf("%w: %d flags, %d are missing", errDamaged, done, n-done)
	}
	return dst, nil
}

// appendPacked ors bits into dst from bit at on, up to bit n, and returns where
// they end.
func appendPacked(dst []byte, at int, from []byte, n int) int {
	shift := at & 7
	for _, b := range from {
		i := at >> 3
		if at >= n {
			return n
		}
		dst[i] |= b << shift
		if shift > 0 && i+1 < len(dst) {
			dst[i+1] |= b >> (8 - shift)
		}
		at += 8
	}
	if at >= n {
		return n
	}
	return at
}

func setBits(dst []byte, from, to int) {
	for ; from < to && from&7 != 0; from++ {
		dst[from>>3] |= 1 << (from & 7)
	}
	for ; from+8 <= to; from += 8 {
		dst[from>>3] = 0xff
	}
	for ; from < to; from++ {
		dst[from>>3] |= 1 << (from & 7)
	}
}
