package parquetfile

// unpackLZ4 decompresses a block that fills dst exactly. It is here because
// the library's, given a damaged block, doubles its buffer for ever.
func unpackLZ4(dst, src []byte) bool {
	d := 0
	for len(src) > 0 {
		token := src[0]
		literals, rest, ok := lengthLZ4(src[1:], int(token>>4))
		if !ok || literals > len(rest) || literals > len(dst)-d {
			return false
		}
		d += copy(dst[d:], rest[:literals])
		if rest = rest[literals:]; len(rest) == 0 { // the last sequence has no match
			return d == len(dst)
		}
		if len(rest) < 2 {
			return false
		}
		back := int(rest[0]) | int(rest[1])<<8
		match, rest, ok := lengthLZ4(rest[2:], int(token&15))
		match += 4
		if !ok || back == 0 || back > d || match > len(dst)-d {
			return false
		}
		for end, from := d+match, d-back; d < end; { // what was copied may be copied again
			d += copy(dst[d:end], dst[from:d])
		}
		src = rest
	}
	return false
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
