package avrorow

import (
	"encoding/binary"
	"fmt"
	"math/big"
	"strings"
)

// A writer's decimals may have any precision and scale. Those that the column
// holds without loss are kept, whatever they look like in Avro (V2).

// maxScale is the largest scale of a writer's decimals that is read. Larger ones
// are valid, but nobody's; what they cost is not bounded by the record.
const maxScale = 1000

// powers of ten, up to the largest precision of a column.
var powers = func() (p [39]*big.Int) {
	p[0] = big.NewInt(1)
	for i := 1; i < len(p); i++ {
		p[i] = new(big.Int).Mul(p[i-1], big.NewInt(10))
	}
	return p
}()

// scaling brings a writer's decimals to the scale of a column.
type scaling struct {
	scale  int      // of the writer
	times  *big.Int // nil: not
	over   *big.Int // nil: not
	limit  *big.Int // what the column holds is less
	bytes  int      // what is longer does not fit, however it is scaled
	column int      // scale
}

func newScaling(scale, precision, column int) *scaling {
	s := &scaling{scale: scale, limit: powers[precision], column: column}
	widest := precision
	switch {
	case scale < column:
		s.times = powers[column-scale]
	case scale > column:
		s.over = new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale-column)), nil)
		widest += scale - column
	}
	// Ten to the n has less than n*10/3+1 bits; one more is the sign.
	s.bytes = (widest*10/3 + 2 + 7) / 8
	return s
}

// numbers are the scratch of one decoder.
type numbers struct {
	x, y, rest big.Int
	flipped    []byte
}

// decimal stores a decimal, given in two's complement, brought to the column's
// scale without loss.
func (d *Decoder) decimal(n *node, at int32, b []byte) {
	s, z := n.scaling, &d.numbers
	whole := len(b)
	for len(b) > 1 && (b[0] == 0 && b[1] < 0x80 || b[0] == 0xff && b[1] >= 0x80) {
		b = b[1:] // says the sign again
	}
	if len(b) > s.bytes {
		d.rows.Bad(n.col, at, true, fmt.Appendf(nil, "a decimal of %d bytes", whole))
		return
	}
	if len(b) > 0 && b[0] >= 0x80 { // -x is the complement of x-1
		z.flipped = z.flipped[:0]
		for _, c := range b {
			z.flipped = append(z.flipped, ^c)
		}
		z.x.SetBytes(z.flipped)
		z.x.Not(&z.x)
	} else {
		z.x.SetBytes(b)
	}
	d.scaled(n, at)
}

// number stores an int or long.
func (d *Decoder) number(n *node, at int32, v int64) {
	d.numbers.x.SetInt64(v)
	d.scaled(n, at)
}

// scaled stores numbers.x.
func (d *Decoder) scaled(n *node, at int32) {
	s, z := n.scaling, &d.numbers
	y := &z.x
	switch {
	case s.times != nil:
		y = z.y.Mul(&z.x, s.times)
	case s.over != nil:
		y, _ = z.y.QuoRem(&z.x, s.over, &z.rest)
		if z.rest.Sign() != 0 {
			d.rows.Bad(n.col, at, true, written(&z.x, s.scale))
			return
		}
	}
	if y.CmpAbs(s.limit) >= 0 {
		d.rows.Bad(n.col, at, true, written(&z.x, s.scale))
		return
	}
	var words [16]byte
	y.FillBytes(words[:])
	hi, lo := int64(binary.BigEndian.Uint64(words[:8])), binary.BigEndian.Uint64(words[8:])
	if y.Sign() < 0 {
		hi, lo = ^hi, -lo
		if lo == 0 {
			hi++
		}
	}
	d.rows.Decimal(at, hi, lo)
}

// written is a decimal as people write it.
func written(x *big.Int, scale int) []byte {
	digits, sign := x.String(), ""
	if digits[0] == '-' {
		digits, sign = digits[1:], "-"
	}
	if scale == 0 {
		return []byte(sign + digits)
	}
	if missing := scale + 1 - len(digits); missing > 0 {
		digits = strings.Repeat("0", missing) + digits
	}
	point := len(digits) - scale
	return []byte(sign + digits[:point] + "." + digits[point:])
}
