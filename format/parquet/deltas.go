package parquetfile

import (
	"encoding/binary"
	"fmt"
	"math"
	"unsafe"

	"github.com/parquet-go/parquet-go/encoding"
)

// deltas walks over n numbers encoded as deltas and returns what follows them.
func deltas(data []byte, n int) (rest []byte, err error) {
	var head [3]uint64 // the values of a block, its parts, all values
	for i := range head {
		v, k := binary.Uvarint(data)
		if k <= 0 {
			return nil, fmt.Errorf("%w: deltas without a head", errDamaged)
		}
		head[i], data = v, data[k:]
	}
	block, parts, total := head[0], head[1], head[2]
	if total > uint64(n) {
		return nil, fmt.Errorf("%w: %d deltas for %d values", errDamaged, total, n)
	}
	if parts == 0 || parts > block || block > 1<<16 {
		return nil, fmt.Errorf("%w: deltas in blocks of %d in %d parts", errDamaged, block, parts)
	}
	_, k := binary.Varint(data)
	if k <= 0 {
		return nil, fmt.Errorf("%w: deltas without a head", errDamaged)
	}
	data = data[k:]
	each := int(block / parts)
	for left := int(total) - 1; left > 0; {
		_, k := binary.Varint(data)
		if k <= 0 || len(data) < k {
			return nil, fmt.Errorf("%w: %d deltas are missing", errDamaged, left)
		}
		widths := data[k:min(len(data), k+int(parts))]
		data = data[k+len(widths):]
		if len(widths) == 0 {
			return nil, fmt.Errorf("%w: %d deltas are missing", errDamaged, left)
		}
		for _, width := range widths {
			if left > 0 {
				data = data[min(len(data), each*int(width)/8):] // the last part may be cut short
				left -= each
			}
		}
	}
	return data, nil
}

// decodeDeltas decodes numbers that were believed (deltas). It is here because the
// library's decoder (version 0.32.0) makes other numbers, without an error, of what
// DuckDB writes: parts of 256 deltas of 33 bits and more, for numbers of 32 bits as
// for those of 64.
func (p *pageReader) decodeDeltas(phys physical, data []byte) (out encoding.Values, err error) {
	switch phys {
	case physInt32:
		if p.narrow, err = unpackDeltas(p.narrow, data); err == nil {
			out = encoding.Int32Values(p.narrow)
		}
	case physInt64:
		if p.wide, err = unpackDeltas(p.wide, data); err == nil {
			out = encoding.Int64Values(p.wide)
		}
	default:
		err = fmt.Errorf("%w: deltas of physical type %d", errDamaged, phys)
	}
	return out, err
}

// unpackDeltas counts modulo 2^64, and so modulo 2^32: whichever the writer did.
func unpackDeltas[T int32 | int64](dst []T, data []byte) ([]T, error) {
	var head [3]uint64 // the values of a block, its parts, all values
	for i := range head {
		v, k := binary.Uvarint(data)
		head[i], data = v, data[k:]
	}
	first, k := binary.Varint(data)
	data = data[k:]
	each, total := int(head[0]/head[1]), int(head[2])
	dst = growTo(dst[:0], total)
	if total == 0 {
		return dst, nil
	}
	if head[0]%head[1] != 0 || each%8 != 0 {
		return dst, fmt.Errorf("%w: deltas in blocks of %d in %d parts", errDamaged, head[0], head[1])
	}
	if unsafe.Sizeof(dst[0]) == 4 && (first < math.MinInt32 || first > math.MaxUint32) {
		return dst, fmt.Errorf("%w: a number of 32 bits is %d", errDamaged, first)
	}
	last := uint64(first)
	dst[0] = T(last)
	for at := 1; at < total; {
		least, k := binary.Varint(data)
		if k <= 0 {
			return dst, fmt.Errorf("%w: %d deltas are missing", errDamaged, total-at)
		}
		widths := data[k:min(len(data), k+int(head[1]))]
		data = data[k+len(widths):]
		if len(widths) == 0 {
			return dst, fmt.Errorf("%w: %d deltas are missing", errDamaged, total-at)
		}
		for _, w := range widths {
			if at == total {
				break
			}
			n, width := min(each, total-at), int(w)
			part := data[:min(len(data), each*width/8)]
			data = data[len(part):]
			if width > 64 || (n*width+7)/8 > len(part) {
				return dst, fmt.Errorf("%w: deltas of %d bits in %d bytes", errDamaged, width, len(part))
			}
			for i := range n {
				last += uint64(least) + bitsAt(part, i*width, width)
				dst[at+i] = T(last)
			}
			at += n
		}
	}
	return dst, nil
}

// bitsAt is a number of so many bits from bit at on, the first bit the lowest. All
// of them are there.
func bitsAt(b []byte, at, width int) uint64 {
	i, shift := at>>3, at&7
	if len(b)-i < 9 {
		var last [9]byte
		copy(last[:], b[min(i, len(b)):])
		b, i = last[:], 0
	}
	v := binary.LittleEndian.Uint64(b[i:]) >> shift
	if shift+width > 64 {
		v |= uint64(b[i+8]) << (64 - shift)
	}
	if width < 64 {
		v &= 1<<width - 1
	}
	return v
}
