package parquetfile

import "encoding/binary"

// unpackOldLZ4 decompresses what the deprecated codec LZ4 names: Hadoop's blocks,
// each behind its length and those of its parts, or, with some writers, what
// LZ4_RAW names.
func unpackOldLZ4(dst, src []byte) bool { return unpackHadoopLZ4(dst, src) || unpackLZ4(dst, src) }

func unpackHadoopLZ4(dst, src []byte) bool {
	d := 0
	for len(src) > 0 {
		if len(src) < 4 {
			return false
		}
		size := uint64(binary.BigEndian.Uint32(src))
		src = src[4:]
		if size > uint64(len(dst)-d) {
			return false
		}
		for end := d + int(size); d < end; {
			if len(src) < 4 {
				return false
			}
			n := uint64(binary.BigEndian.Uint32(src))
			if src = src[4:]; n == 0 || n > uint64(len(src)) {
				return false
			}
			k, ok := blockLZ4(dst[d:end], src[:n])
			if !ok || k == 0 {
				return false
			}
			d, src = d+k, src[n:]
		}
	}
	return d == len(dst)
}

// unpackLZ4 decompresses a block that fills dst exactly. It is here because
// the library's, given a damaged block, doubles its buffer for ever.
func unpackLZ4(dst, src []byte) bool {
	n, ok := blockLZ4(dst, src)
	return ok && n == len(dst)
}

// blockLZ4 decompresses a block and returns how many bytes it has.
func blockLZ4(dst, src []byte) (size int, ok bool) {
	d := 0
	for len(src) > 0 {
		token := src[0]
		literals, rest, ok := lengthLZ4(src[1:], int(token>>4))
		if !ok || literals > len(rest) || literals > len(dst)-d {
			return 0, false
		}
		d += copy(dst[d:], rest[:literals])
		if rest = rest[literals:]; len(rest) == 0 { // the last sequence has no match
			return d, true
		}
		if len(rest) < 2 {
			return 0, false
		}
		back := int(rest[0]) | int(rest[1])<<8
		match, rest, ok := lengthLZ4(rest[2:], int(token&15))
		match += 4
		if !ok || back == 0 || back > d || match > len(dst)-d {
			return 0, false
		}
		for end, from := d+match, d-back; d < end; { // what was copied may be copied again
			d += copy(dst[d:end], dst[from:d])
		}
		src = rest
	}
	return 0, false
}

// lengthLZ4 reads the rest of a length whose first four bits are n.
func lengthLZ4(src []byte, n int) (length int, rest []byte, ok bool) {
	if n < 15 {
		return n, src, true
	}
	for i, b := range src {
		n += int(b)
		if b < 255 {
			return n, src[i+1:], true
		}
	}
	return 0, nil, false
}
