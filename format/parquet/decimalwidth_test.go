package parquetfile

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	lib "github.com/parquet-go/parquet-go"
)

// TestDecimalsOfMoreBytes: DuckDB writes every decimal of more than 18 digits in
// 16 bytes. A number is the same in fewer; one that is not is refused (F3).
func TestDecimalsOfMoreBytes(t *testing.T) {
	file := func(precision int, numbers ...[]byte) *File {
		schema := lib.NewSchema("x", lib.Group{"m": lib.Optional(lib.Decimal(2, precision, lib.FixedLenByteArrayType(16)))})
		var out bytes.Buffer
		w := lib.NewGenericWriter[any](&out, schema)
		for _, v := range numbers {
			if _, err := w.WriteRows([]lib.Row{{lib.FixedLenByteArrayValue(v).Level(0, 1, 0)}}); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return opened(t, out.Bytes())
	}
	number := func(sign byte, low ...byte) []byte {
		return append(bytes.Repeat([]byte{sign}, 16-len(low)), low...)
	}
	for _, precision := range []int{9, 18, 20} {
		columns := []string{fmt.Sprintf("m decimal(%d,2)", precision)}
		data, err := rewritten(t, columns, file(precision, number(0, 0x7f, 0x02), number(0xff, 0x80), number(0)))
		if err != nil || fmt.Sprint(arrowRows(t, data)) != "[m=325.14 m=-1.28 m=0]" {
			t.Errorf("decimal(%d,2): %v, %v", precision, arrowRows(t, data), err)
		}
		for _, v := range [][]byte{number(0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0), number(0xff, 0x7f, 0, 0, 0, 0, 0, 0, 0, 0), number(0, 0x80, 0, 0, 0, 0, 0, 0, 0, 0)} {
			if _, err := rewritten(t, columns, file(precision, v)); err == nil || !strings.Contains(err.Error(), "more digits") {
				t.Errorf("%x as decimal(%d,2): %v", v, precision, err)
			}
		}
	}
}

// TestDecimalsOfEightBytes: Arrow's Rust writes decimals of one digit as INT64.
func TestDecimalsOfEightBytes(t *testing.T) {
	file := func(n int64) *File {
		schema := lib.NewSchema("x", lib.Group{"m": lib.Optional(lib.Decimal(1, 1, lib.Int64Type))})
		var out bytes.Buffer
		w := lib.NewGenericWriter[any](&out, schema)
		if _, err := w.WriteRows([]lib.Row{{lib.Int64Value(n).Level(0, 1, 0)}}); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return opened(t, out.Bytes())
	}
	for n, want := range map[int64]string{-9: "[m=-0.9]", 7: "[m=0.7]"} {
		data, err := rewritten(t, []string{"m decimal(1,1)"}, file(n))
		if err != nil || fmt.Sprint(arrowRows(t, data)) != want {
			t.Errorf("%d: %v", n, err)
		}
	}
	for _, n := range []int64{1 << 31, -1<<31 - 1, 1 << 62} {
		if _, err := rewritten(t, []string{"m decimal(1,1)"}, file(n)); err == nil || !strings.Contains(err.Error(), "more digits") {
			t.Errorf("%d as decimal(1,1): %v", n, err)
		}
	}
}
