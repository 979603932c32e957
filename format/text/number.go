package textval

import (
	"math"
	"math/bits"
	"strconv"
	"unsafe"
)

// number is a decimal number as written: mant × 10^exp. When big is set, mant
// and exp do not hold it and its text must be read.
type number struct {
	mant uint64
	exp  int32
	neg  bool
	big  bool
}

// mantDigits is how many decimal digits always fit a uint64.
const mantDigits = 19

var pow10 = [...]uint64{
	1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9,
	1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19,
}

var float10 = [...]float64{
	1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11,
	1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
}

// limit10 is 10^i as high and low word.
var limit10 = func() (t [39][2]uint64) {
	t[0][1] = 1
	for i := 1; i < len(t); i++ {
		t[i][0], t[i][1] = mulAdd(t[i-1][0], t[i-1][1], 0)
	}
	return t
}()

// mulAdd is (hi, lo) × 10 + d.
func mulAdd(hi, lo, d uint64) (uint64, uint64) {
	h, l := bits.Mul64(lo, 10)
	h += hi * 10
	l, carry := bits.Add64(l, d, 0)
	return h + carry, l
}

// scanNumber reads a JSON number at b[p:]. An end below zero is ^offset of the
// byte that does not belong there.
func scanNumber(b []byte, p int) (n number, end int) {
	if p < len(b) && b[p] == '-' {
		n.neg = true
		p++
	}
	start := p
	var m uint64
	for p < len(b) && b[p]-'0' <= 9 {
		m = m*10 + uint64(b[p]-'0')
		p++
	}
	digits := p - start
	if digits == 0 || digits > 1 && b[start] == '0' {
		if digits > 0 {
			return n, ^(start + 1)
		}
		return n, ^p
	}
	exp := 0
	if p < len(b) && b[p] == '.' {
		p++
		dot := p
		for p < len(b) && b[p]-'0' <= 9 {
			m = m*10 + uint64(b[p]-'0')
			p++
		}
		if p == dot {
			return n, ^p
		}
		exp = dot - p
		digits += p - dot
	}
	if p < len(b) && b[p]|0x20 == 'e' {
		e, next := scanExponent(b, p+1)
		if next < 0 {
			return n, next
		}
		p, exp = next, exp+e
	}
	n.mant, n.exp = m, int32(exp)
	n.big = digits > mantDigits || exp > maxExponent || exp < -maxExponent
	return n, p
}

// maxExponent is where an exponent saturates; every type ends far below it.
const maxExponent = 1 << 28

// scanExponent reads what follows the e.
func scanExponent(b []byte, p int) (e, end int) {
	neg := false
	if p < len(b) && (b[p] == '+' || b[p] == '-') {
		neg = b[p] == '-'
		p++
	}
	start := p
	for p < len(b) && b[p]-'0' <= 9 {
		if e < maxExponent {
			e = e*10 + int(b[p]-'0')
		}
		p++
	}
	if p == start {
		return 0, ^p
	}
	if e > maxExponent {
		e = maxExponent
	}
	if neg {
		e = -e
	}
	return e, p
}

// parseNumber reads a number written as text: as in JSON, but with a plus
// sign, leading zeros and an empty integer part or fraction allowed.
func parseNumber(b []byte) (n number, ok bool) {
	p := 0
	if p < len(b) && (b[p] == '-' || b[p] == '+') {
		n.neg = b[p] == '-'
		p++
	}
	digits, exp, dot := 0, 0, -1
	for ; p < len(b); p++ {
		c := b[p]
		if c-'0' <= 9 {
			n.mant = n.mant*10 + uint64(c-'0')
			digits++
		} else if c == '.' && dot < 0 {
			dot = digits
		} else {
			break
		}
	}
	if digits == 0 {
		return n, false
	}
	if dot >= 0 {
		exp = dot - digits
	}
	if p < len(b) && b[p]|0x20 == 'e' {
		e, next := scanExponent(b, p+1)
		if next < 0 {
			return n, false
		}
		p, exp = next, exp+e
	}
	n.exp = int32(exp)
	n.big = digits > mantDigits || exp > maxExponent || exp < -maxExponent
	return n, p == len(b)
}

// digits are the significant digits of a well-formed number's text: the value
// is d × 10^exp, with d neither starting nor ending in 0. count 0 is zero.
type digits struct {
	text  []byte // from the first significant digit to the last, maybe with a dot
	count int
	exp   int
}

func significant(text []byte) (d digits) {
	first, last, dot, end := -1, -1, -1, len(text)
	for i, c := range text {
		if c == '.' {
			dot = i
		} else if c|0x20 == 'e' {
			d.exp, _ = scanExponent(text, i+1)
			end = i
			break
		} else if c >= '1' && c <= '9' {
			if first < 0 {
				first = i
			}
			last = i
		}
	}
	if first < 0 {
		return digits{}
	}
	if dot < 0 {
		dot = end
	}
	d.text = text[first : last+1]
	d.count = len(d.text)
	if first < dot && dot < last {
		d.count--
	}
	if last < dot {
		d.exp += dot - last - 1
	} else {
		d.exp -= last - dot
	}
	return d
}

// scaled is floor(|value| × 10^shift) when it has at most max digits, and
// whether anything was cut off. max is at most 38.
func (d digits) scaled(shift, max int) (hi, lo uint64, cut, ok bool) {
	if d.count == 0 {
		return 0, 0, false, true
	}
	e := d.exp + shift
	if d.count+e > max {
		return 0, 0, false, false
	}
	keep := d.count
	if e < 0 {
		cut = true
		keep += e
	}
	for _, c := range d.text {
		if c == '.' {
			continue
		}
		if keep <= 0 {
			break
		}
		hi, lo = mulAdd(hi, lo, uint64(c-'0'))
		keep--
	}
	for ; e > 0; e-- {
		hi, lo = mulAdd(hi, lo, 0)
	}
	return hi, lo, cut, true
}

// integer is the number as an integer of the given bits, which a number that is
// not whole does not fit; text is how the number is written.
func (n number) integer(text []byte, width uint) (int64, state) {
	m := n.mant
	if n.exp != 0 || n.big {
		_, lo, cut, ok := significant(text).scaled(0, mantDigits)
		if cut || !ok {
			return 0, badRange
		}
		m = lo
	}
	limit := uint64(1) << (width - 1)
	if n.neg {
		if m > limit {
			return 0, badRange
		}
		return -int64(m), good
	}
	if m >= limit {
		return 0, badRange
	}
	return int64(m), good
}

// decimal is the number × 10^scale as two's complement of 128 bits.
func (n number) decimal(text []byte, precision, scale int) (hi int64, lo uint64, st state) {
	var h, l uint64
	e := int(n.exp) + scale
	if !n.big && e >= 0 && e < len(pow10) {
		h, l = bits.Mul64(n.mant, pow10[e])
	} else {
		var cut, ok bool
		h, l, cut, ok = significant(text).scaled(scale, precision)
		if cut || !ok {
			return 0, 0, badRange
		}
	}
	limit := &limit10[precision]
	if h > limit[0] || h == limit[0] && l >= limit[1] {
		return 0, 0, badRange
	}
	if n.neg {
		var borrow uint64
		l, borrow = bits.Sub64(0, l, 0)
		h, _ = bits.Sub64(0, h, borrow)
	}
	return int64(h), l, good
}

// double is the double nearest to the number.
func (n number) double(text []byte) (float64, state) {
	if !n.big && n.mant <= 1<<53 && n.exp >= -22 && n.exp <= 22 {
		// Both operands are exact, so that one operation rounds once.
		f := float64(n.mant)
		if n.exp < 0 {
			f /= float10[-n.exp]
		} else {
			f *= float10[n.exp]
		}
		if n.neg {
			f = -f
		}
		return f, good
	}
	return parseFloat(text, 64)
}

// float is the float nearest to the number. It does not go through a double,
// which would round twice.
func (n number) float(text []byte) (float64, state) {
	if !n.big && n.mant <= 1<<24 && n.exp >= -10 && n.exp <= 10 {
		f := float32(n.mant)
		if n.exp < 0 {
			f /= float32(float10[-n.exp])
		} else {
			f *= float32(float10[n.exp])
		}
		if n.neg {
			f = -f
		}
		return float64(f), good
	}
	return parseFloat(text, 32)
}

// parseFloat reads a well-formed number's text, which it does not keep.
func parseFloat(text []byte, width int) (float64, state) {
	f, err := strconv.ParseFloat(unsafe.String(unsafe.SliceData(text), len(text)), width)
	if err != nil {
		return 0, badRange
	}
	return f, good
}

// special reads the values of a float that no number is: NaN and the
// infinities, in any case.
func special(text []byte) (float64, bool) {
	sign := 1
	if len(text) > 0 && (text[0] == '-' || text[0] == '+') {
		if text[0] == '-' {
			sign = -1
		}
		text = text[1:]
		if equalFold(text, "nan") {
			return 0, false
		}
	}
	switch {
	case equalFold(text, "nan"):
		return math.NaN(), true
	case equalFold(text, "infinity"), equalFold(text, "inf"):
		return math.Inf(sign), true
	}
	return 0, false
}

// equalFold compares with a lower-case ASCII word.
func equalFold(b []byte, word string) bool {
	if len(b) != len(word) {
		return false
	}
	for i, c := range b {
		if c|0x20 != word[i] {
			return false
		}
	}
	return true
}
