package avrorow

import (
	"encoding/binary"
	"fmt"
	"math/big"
	"strings"
	"testing"
)

// decimalBytes is a decimal as Avro has it: the shortest two's complement.
func decimalBytes(t testing.TB, unscaled string) []byte {
	t.Helper()
	x, ok := new(big.Int).SetString(unscaled, 10)
	if !ok {
		t.Fatalf("%q is no number", unscaled)
	}
	n := x.BitLen()/8 + 1
	if x.Sign() < 0 {
		x.Add(x, new(big.Int).Lsh(big.NewInt(1), uint(8*n)))
	}
	return x.FillBytes(make([]byte, n))
}

func tens(n int) string { return strings.Repeat("0", n) }

// A decimal of whatever precision and scale is kept where it fits the column
// without loss, and otherwise makes its record bad, with what it is (V2, V4).
func TestDecimals(t *testing.T) {
	for _, c := range []struct {
		precision, scale int
		unscaled         string
		column           string
		want             string // as the column's text has it, or how the error begins
	}{
		{50, 45, "15" + tens(44), "decimal(10,2)", "1.5"},
		{50, 45, "-15" + tens(44), "decimal(10,2)", "-1.5"},
		{50, 45, "0", "decimal(10,2)", "0"},
		{50, 45, "1", "decimal(10,2)", `column x: "0.` + tens(44) + `1" is out of the range`},
		{50, 45, "-12345" + tens(41), "decimal(10,2)", `column x: "-1.2345`},
		{50, 45, "12345" + tens(41), "decimal(10,4)", "1.2345"},
		{60, 0, "1" + tens(40), "decimal(38,0)", `column x: "a decimal of 17 bytes" is out of the range`},
		{45, 40, "1" + tens(40), "decimal(10,2)", "1"},
		{45, 40, "3", "decimal(38,38)", `column x: "0.` + tens(39) + `3" is out of the range`},
		{45, 40, "300", "decimal(38,38)", "3e-38"},
		{38, 0, "1" + tens(37), "decimal(38,2)", `column x: "1` + tens(37) + `" is out of the range`}, // 10^39: more than 127 bits
		{38, 0, "-1" + tens(35), "decimal(38,2)", "-1" + tens(35)},
		{38, 0, "99999999999999999999999999999999999999", "decimal(38,0)", "99999999999999999999999999999999999999"},
		{38, 0, "-170141183460469231731687303715884105728", "decimal(38,0)", `column x: "-170141183460469231731687303715884105728" is out of the range`}, // the least of 128 bits
		{900, 899, "7" + tens(899), "decimal(3,1)", "7"},
		{5000, 4999, "7" + tens(4999), "decimal(3,1)", `column x: "Avro bytes (decimal of scale 4999)" is not of type decimal(3,1)`},
		{10, 2, "1" + tens(3000), "decimal(10,2)", `column x: "a decimal of 1246 bytes" is out of the range`},
	} {
		d := newDecoder(t, Options{}, "x "+c.column)
		s, err := d.Compile(recordOf(fmt.Sprintf(`{"name":"x","type":{"type":"bytes","logicalType":"decimal","precision":%d,"scale":%d}}`, c.precision, c.scale)))
		if err != nil {
			t.Errorf("decimal(%d,%d): %v", c.precision, c.scale, err)
			continue
		}
		v := decimalBytes(t, c.unscaled)
		got := ""
		if err := d.Append(s, append(binary.AppendVarint(nil, int64(len(v))), v...)); err != nil {
			got = err.Error()
		} else {
			b := d.NewBatch()
			got = b.Column(0).ValueStr(0)
			b.Release()
		}
		if got != c.want && !(strings.HasPrefix(c.want, "column") && strings.HasPrefix(got, c.want)) {
			t.Errorf("%s of decimal(%d,%d) in %s: %s, want %s", c.unscaled, c.precision, c.scale, c.column, got, c.want)
		}
	}
}

// Sign bytes more than needed say nothing.
func TestDecimalPadding(t *testing.T) {
	d := newDecoder(t, Options{}, "x decimal(10,2)", "y decimal(10,4)")
	s, err := d.Compile(recordOf(`{"name":"x","type":{"type":"fixed","name":"F","size":40,"logicalType":"decimal","precision":10,"scale":2}}`, `{"name":"y","type":"F"}`))
	if err != nil {
		t.Fatal(err)
	}
	rec := make([]byte, 80)
	rec[39] = 5
	for i := 40; i < 80; i++ {
		rec[i] = 0xff
	}
	if err := d.Append(s, rec); err != nil {
		t.Fatal(err)
	}
	b := d.NewBatch()
	defer b.Release()
	if got := b.Column(0).ValueStr(0) + " " + b.Column(1).ValueStr(0); got != "0.05 -0.01" {
		t.Errorf("%s", got)
	}
}
