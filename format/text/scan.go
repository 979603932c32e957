package textval

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// special8 has the high bit of each byte set that is a quote, a backslash, a
// control character or not ASCII; it is exact for the lowest such byte.
func special8(x uint64) uint64 {
	quote := x ^ '"'*ones
	slash := x ^ '\\'*ones
	return ((quote-ones)&^quote | (slash-ones)&^slash | (x-0x20*ones)&^x | x) & highs
}

// str reads the string that starts at p, after its quote, and returns it
// unescaped and as valid UTF-8. It is plain when it is just as written.
func (r *Rows) str(p int) (text []byte, plain bool, end int) {
	rec := r.rec
	q := p
	for q+8 <= len(rec) {
		m := special8(binary.LittleEndian.Uint64(rec[q:]))
		if m == 0 {
			q += 8
			continue
		}
		q += bits.TrailingZeros64(m) >> 3
		if rec[q] == '"' {
			return rec[p:q:q], true, q + 1
		}
		return r.strSlow(p, q)
	}
	for q < len(rec) {
		c := rec[q]
		if c == '"' {
			return rec[p:q:q], true, q + 1
		}
		if c < 0x20 || c == '\\' || c >= utf8.RuneSelf {
			break
		}
		q++
	}
	return r.strSlow(p, q)
}

// strSlow reads a string that starts at p; up to q it is ASCII.
func (r *Rows) strSlow(p, q int) ([]byte, bool, int) {
	rec := r.rec
	ascii, escaped := true, false
	start := q
	for ; ; q++ {
		if q >= len(rec) {
			return nil, false, r.fail(q, "a closing quote")
		}
		c := rec[q]
		if c == '"' {
			break
		}
		if c < 0x20 {
			return nil, false, r.fail(q, "an escape for a control character")
		}
		if c >= utf8.RuneSelf {
			ascii = false
		}
		if c == '\\' {
			escaped = true
			next := escape(rec, q+1)
			if next < 0 {
				return nil, false, r.fail(^next, "an escape sequence")
			}
			q = next - 1
		}
	}
	if !escaped && (ascii || utf8.Valid(rec[start:q])) {
		return rec[p:q:q], true, q + 1
	}
	n := len(r.scratch)
	r.scratch = appendUnescaped(r.scratch, rec[p:q])
	return r.scratch[n:len(r.scratch):len(r.scratch)], false, q + 1
}

// escape is where the escape sequence ends whose letter is at p, or ^offset of
// what is wrong with it.
func escape(b []byte, p int) int {
	if p >= len(b) {
		return ^p
	}
	switch b[p] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return p + 1
	case 'u':
		for i := p + 1; i < p+5; i++ {
			if i >= len(b) || hexDigit(b[i]) < 0 {
				return ^i
			}
		}
		return p + 5
	}
	return ^p
}

func hexDigit(c byte) rune {
	switch {
	case c-'0' <= 9:
		return rune(c - '0')
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return rune(c|0x20-'a') + 10
	}
	return -1
}

func hex4(b []byte) rune {
	return hexDigit(b[0])<<12 | hexDigit(b[1])<<8 | hexDigit(b[2])<<4 | hexDigit(b[3])
}

// appendUnescaped appends what a string stands for, whose escapes are known to
// be well formed. T5.
func appendUnescaped(dst, b []byte) []byte {
	for len(b) > 0 {
		n := bytes.IndexByte(b, '\\')
		if n < 0 {
			return appendValid(dst, b)
		}
		dst = appendValid(dst, b[:n])
		c := b[n+1]
		b = b[n+2:]
		switch c {
		case 'b':
			c = '\b'
		case 'f':
			c = '\f'
		case 'n':
			c = '\n'
		case 'r':
			c = '\r'
		case 't':
			c = '\t'
		case 'u':
			u := hex4(b)
			b = b[4:]
			if utf16.IsSurrogate(u) {
				both := rune(utf8.RuneError)
				if len(b) >= 6 && b[0] == '\\' && b[1] == 'u' {
					both = utf16.DecodeRune(u, hex4(b[2:]))
				}
				if both != utf8.RuneError {
					b = b[6:]
				}
				u = both
			}
			dst = utf8.AppendRune(dst, u)
			continue
		}
		dst = append(dst, c)
	}
	return dst
}

// skip passes over a value of any kind. depth is that of the object or array
// it is in.
func (r *Rows) skip(p, depth int) int {
	rec := r.rec
	if p >= len(rec) {
		return r.fail(p, "a value")
	}
	switch c := rec[p]; {
	case c == '"':
		return r.skipString(p + 1)
	case c == '-' || c-'0' <= 9:
		_, end := scanNumber(rec, p)
		if end < 0 {
			return r.fail(^end, "a digit of a number")
		}
		return end
	case c == '{' || c == '[':
		return r.skipNested(p, depth+1)
	case c == 't':
		return r.word(p, "true")
	case c == 'f':
		return r.word(p, "false")
	case c == 'n':
		return r.word(p, "null")
	}
	return r.fail(p, "a value")
}

func (r *Rows) word(p int, w string) int {
	if end := p + len(w); end <= len(r.rec) && string(r.rec[p:end]) == w {
		return end
	}
	return r.fail(p, w)
}

// skipString passes over a string. What it unescapes to is not kept.
func (r *Rows) skipString(p int) int {
	n := len(r.scratch)
	_, _, end := r.str(p)
	r.scratch = r.scratch[:n]
	return end
}

func (r *Rows) skipNested(p, depth int) int {
	rec := r.rec
	if depth > maxDepth {
		return r.fail(p, "at most 64 levels")
	}
	object, closing, want := true, byte('}'), "a comma or a closing brace"
	if rec[p] == '[' {
		object, closing, want = false, ']', "a comma or a closing bracket"
	}
	p = space(rec, p+1)
	if p < len(rec) && rec[p] == closing {
		return p + 1
	}
	for {
		if object {
			if p >= len(rec) || rec[p] != '"' {
				return r.fail(p, "a key in quotes")
			}
			if p = r.skipString(p + 1); p < 0 {
				return p
			}
			if p = space(rec, p); p >= len(rec) || rec[p] != ':' {
				return r.fail(p, "a colon")
			}
			p = space(rec, p+1)
		}
		if p = r.skip(p, depth); p < 0 {
			return p
		}
		p = space(rec, p)
		if p < len(rec) && rec[p] == closing {
			return p + 1
		}
		if p >= len(rec) || rec[p] != ',' {
			return r.fail(p, want)
		}
		p = space(rec, p+1)
	}
}

// fewKeys is up to where keys are compared one by one.
const fewKeys = 8

// dedupe marks the keys of a map that come again: the last one wins. Keys are
// equal as values of their type.
func (r *Rows) dedupe(key *column, first int32, count int) {
	if count < 2 {
		return
	}
	text := key.texts != nil
	if count <= fewKeys {
		for i := first; i >= 0; i = r.slots[i].next {
			for j := r.slots[i].next; j >= 0; j = r.slots[j].next {
				if sameKey(&r.slots[i], &r.slots[j], text) {
					r.slots[i].state = replaced
					break
				}
			}
		}
		return
	}
	size := 1 << bits.Len(uint(2*count))
	if len(r.table) < size {
		r.table = make([]int32, size)
	}
	table := r.table[:size]
	clear(table)
	mask := uint64(size - 1)
	for i := first; i >= 0; i = r.slots[i].next {
		h := keyHash(&r.slots[i], text) & mask
		for ; table[h] != 0; h = (h + 1) & mask {
			if sameKey(&r.slots[table[h]-1], &r.slots[i], text) {
				r.slots[table[h]-1].state = replaced
				break
			}
		}
		table[h] = i + 1
	}
}

func sameKey(a, b *slot, text bool) bool {
	if a.state != good || b.state != good {
		return false
	}
	if text {
		return bytes.Equal(a.text, b.text)
	}
	return a.i == b.i && a.hi == b.hi
}

func keyHash(s *slot, text bool) uint64 {
	if text {
		return maphash.Bytes(seed, s.text)
	}
	return maphash.Comparable(seed, s.i)
}
