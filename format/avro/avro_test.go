package avrorow

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/twmb/avro"

	"github.com/hivesink/hivesink/format"
	"github.com/hivesink/hivesink/hivetype"
	"github.com/hivesink/hivesink/record"
)

func tableOf(t testing.TB, columns ...string) *record.Schema {
	t.Helper()
	var fields []hivetype.Field
	for _, c := range columns {
		name, typ, _ := strings.Cut(c, " ")
		notNull := strings.HasSuffix(typ, " not null")
		parsed, err := hivetype.Parse(strings.TrimSuffix(typ, " not null"))
		if err != nil {
			t.Fatal(err)
		}
		fields = append(fields, hivetype.Field{Name: name, Type: parsed, NotNull: notNull})
	}
	s, err := record.NewSchema(fields, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func newDecoder(t testing.TB, o Options, columns ...string) *Decoder {
	t.Helper()
	d, err := New(tableOf(t, columns...), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Release)
	return d
}

// encode is what another implementation writes.
func encode(t testing.TB, schema string, v any) []byte {
	t.Helper()
	s, err := avro.Parse(schema)
	if err != nil {
		t.Fatal(err)
	}
	b, err := s.Encode(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func recordOf(fields ...string) string {
	return `{"type":"record","name":"R","fields":[` + strings.Join(fields, ",") + `]}`
}

// Each type of Avro in each type of column it fits: what the column has.
func TestTypes(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		avro   string // type of the field
		value  any
		column string
		want   string // JSON of the column, or the beginning of the error
	}{
		{`"boolean"`, true, "boolean", "true"},
		{`"int"`, int32(-7), "int", "-7"},
		{`"int"`, int32(127), "tinyint", "127"},
		{`"int"`, int32(128), "tinyint", "column x: \"128\" is out of the range"},
		{`"long"`, int64(math.MinInt64), "bigint", "-9223372036854775808"},
		{`"long"`, int64(1 << 31), "int", "column x: \"2147483648\" is out of the range"},
		{`"long"`, int64(5), "double", "5"},
		{`"long"`, int64(-5), "decimal(5,2)", `"-5"`},
		{`"long"`, int64(1000), "decimal(5,2)", "column x: \"1000\" is out of the range"},
		{`"long"`, int64(42), "string", `"42"`},
		{`"long"`, int64(42), "timestamp", "column x: \"Avro long\" is not of type timestamp"},
		{`"float"`, float32(1.5), "float", "1.5"},
		{`"float"`, float32(1.5), "double", "1.5"},
		{`"double"`, 2.25, "double", "2.25"},
		{`"double"`, 1e300, "float", "column x: \"1e+300\" is out of the range"},
		{`"double"`, 2.25, "bigint", "column x: \"Avro double\" is not of type bigint"},
		{`"string"`, "hé", "string", `"hé"`},
		{`"string"`, "12.5", "decimal(5,2)", `"12.5"`},
		{`"string"`, "2026-01-31T10:00:00Z", "timestamp", `"2026-01-31T10:00:00Z"`},
		{`"string"`, "ab", "binary", `"YWI="`},
		{`"bytes"`, []byte{0xff, 1}, "binary", `"/wE="`},
		{`"bytes"`, []byte("x"), "string", "column x: \"Avro bytes\" is not of type string"},
		{`{"type":"fixed","name":"F","size":2}`, [2]byte{1, 2}, "binary", `"AQI="`},
		{`{"type":"enum","name":"E","symbols":["A","B"]}`, "B", "string", `"B"`},
		{`{"type":"int","logicalType":"date"}`, time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC), "date", `"2026-01-31"`},
		{`{"type":"long","logicalType":"timestamp-millis"}`, time.UnixMilli(-1), "timestamp", `"1969-12-31T23:59:59.999Z"`},
		{`{"type":"long","logicalType":"timestamp-micros"}`, time.UnixMicro(1_700_000_000_123_456), "timestamp", `"2023-11-14T22:13:20.123456Z"`},
		{`{"type":"long","logicalType":"timestamp-nanos"}`, time.Unix(0, -1), "timestamp", `"1969-12-31T23:59:59.999999Z"`},
		{`{"type":"long","logicalType":"timestamp-millis"}`, time.UnixMilli(12), "bigint", "12"},
		{`{"type":"long","logicalType":"local-timestamp-millis"}`, time.UnixMilli(1_769_853_600_000), "timestamp", `"2026-01-31T09:00:00Z"`},
		{`{"type":"bytes","logicalType":"decimal","precision":10,"scale":2}`, big.NewRat(-12345, 100), "decimal(10,2)", `"-123.45"`},
		{`{"type":"bytes","logicalType":"decimal","precision":10,"scale":2}`, big.NewRat(-12345, 100), "decimal(10,4)", `"-123.45"`},
		{`{"type":"bytes","logicalType":"decimal","precision":10,"scale":2}`, big.NewRat(-12345, 100), "decimal(10,1)", "column x: \"-123.45\" is out of the range"},
		{`{"type":"fixed","name":"D","size":20,"logicalType":"decimal","precision":38,"scale":0}`, big.NewRat(-7, 1), "decimal(38,0)", `"-7"`},
		{`["null","string"]`, nil, "string", "null"},
		{`["null","string"]`, nil, "string not null", "column x: null or missing"},
		{`["string","null"]`, "s", "string", `"s"`},
		{`{"type":"array","items":"int"}`, []int32{1, 2, 3}, "array<bigint>", "[1,2,3]"},
		{`{"type":"array","items":"int"}`, []int32{}, "array<bigint>", "[]"},
		{`{"type":"array","items":["null","int"]}`, []any{nil, int32(1)}, "array<int>", "[null,1]"},
		{`{"type":"map","values":"long"}`, map[string]int64{"a": 1}, "map<string,bigint>", `[{"key":"a","value":1}]`},
		{`{"type":"record","name":"P","fields":[{"name":"B","type":"string"},{"name":"c","type":"int"},{"name":"a","type":"int"}]}`,
			map[string]any{"B": "b", "c": int32(1), "a": int32(2)}, "struct<a:int,b:string>", `{"a":2,"b":"b"}`},
		{`{"type":"array","items":"int"}`, []int32{1}, "string", "column x: \"Avro array\" is not of type string"},
	} {
		d := newDecoder(t, Options{Zone: berlin}, "x "+c.column)
		schema := recordOf(`{"name":"X","type":` + c.avro + `}`)
		s, err := d.Compile(schema)
		if err != nil {
			t.Errorf("%s: %v", c.avro, err)
			continue
		}
		err = d.Append(s, encode(t, schema, map[string]any{"X": c.value}))
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			b := d.NewBatch()
			text, jerr := json.Marshal(b.Column(0))
			if jerr != nil {
				t.Fatal(jerr)
			}
			got = strings.TrimSuffix(strings.TrimPrefix(string(text), "["), "]")
			b.Release()
		}
		if got != c.want && !(err != nil && strings.HasPrefix(got, c.want)) {
			t.Errorf("%s of %v in %s: %s, want %s", c.avro, c.value, c.column, got, c.want)
		}
	}
}

// Fields without a column are passed over, whatever they are; columns without a
// field are null.
func TestEvolution(t *testing.T) {
	schema := recordOf(`{"name":"u","type":["null","int","string"]}`, `{"name":"id","type":"long"}`,
		`{"name":"tree","type":{"type":"record","name":"Node","fields":[{"name":"v","type":"double"},{"name":"kids","type":{"type":"array","items":"Node"}}]}}`,
		`{"name":"m","type":{"type":"map","values":{"type":"array","items":"bytes"}}}`, `{"name":"f","type":{"type":"fixed","name":"F","size":3}}`)
	d := newDecoder(t, Options{}, "new string", "id bigint")
	s, err := d.Compile(schema)
	if err != nil {
		t.Fatal(err)
	}
	leaf := map[string]any{"v": 1.0, "kids": []any{}}
	rec := encode(t, schema, map[string]any{"u": "x", "id": int64(9), "tree": map[string]any{"v": 2.0, "kids": []any{leaf, leaf}},
		"m": map[string]any{"k": [][]byte{[]byte("a"), []byte("b")}}, "f": [3]byte{}})
	if err := d.Append(s, rec); err != nil {
		t.Fatal(err)
	}
	if d.UnknownKeys() != 4 {
		t.Errorf("%d unknown fields", d.UnknownKeys())
	}
	b := d.NewBatch()
	defer b.Release()
	if got := fmt.Sprint(b.Column(0), b.Column(1)); got != `[(null)] [9]` {
		t.Errorf("%s", got)
	}
	// Every cut of it is bad, and leaves nothing behind (V1).
	for n := range rec {
		var e *format.Error
		if err := d.Append(s, rec[:n]); !errors.As(err, &e) || e.Class != record.ClassSyntax {
			t.Fatalf("%d bytes of %d: %v", n, len(rec), err)
		}
	}
	if err := d.Append(s, append(rec, 0)); err == nil || d.Len() != 0 {
		t.Errorf("a byte more: %v, %d rows", err, d.Len())
	}
}

// A schema in which a type is used again, and one that refers to another.
func TestNamedTypes(t *testing.T) {
	d := newDecoder(t, Options{}, "a struct<x:int>", "b struct<x:int>", "c string")
	const point = `{"type":"record","name":"geo.Point","fields":[{"name":"x","type":"int"}]}`
	s, err := d.Compile(`{"type":"record","name":"R","namespace":"geo","fields":[{"name":"a","type":"Point"},{"name":"b","type":["null","geo.Point"]},
		{"name":"c","type":{"type":"enum","name":"E","symbols":["U","V"]}}]}`, point)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Append(s, []byte{2, 2, 4, 2}); err != nil {
		t.Fatal(err)
	}
	b := d.NewBatch()
	defer b.Release()
	if got := fmt.Sprint(b); !strings.Contains(got, "{[1]}") || !strings.Contains(got, "{[2]}") || !strings.Contains(got, `["V"]`) {
		t.Errorf("%s", got)
	}
	for _, wrong := range []string{"", "{", `"string"`, `{"type":"array","items":"int"}`, recordOf(`{"name":"x","type":"nope"}`)} {
		if _, err := d.Compile(wrong); err == nil {
			t.Errorf("%q is a schema", wrong)
		}
	}
}

const wide = `{"type":"record","name":"R","fields":[{"name":"id","type":"long"},{"name":"s","type":["null","string"]},{"name":"d","type":"double"},
	{"name":"at","type":{"type":"long","logicalType":"timestamp-micros"}},{"name":"l","type":{"type":"array","items":"long"}},
	{"name":"m","type":{"type":"map","values":"string"}},{"name":"dec","type":{"type":"bytes","logicalType":"decimal","precision":12,"scale":2}},
	{"name":"r","type":{"type":"record","name":"Q","fields":[{"name":"a","type":"int"},{"name":"n","type":{"type":"array","items":"null"}}]}}]}`

func wideDecoder(t testing.TB) (*Decoder, *Schema, []byte) {
	d := newDecoder(t, Options{}, "id bigint", "s string", "d double", "at timestamp", "l array<bigint>", "m map<string,string>", "dec decimal(12,2)", "r struct<a:int>")
	s, err := d.Compile(wide)
	if err != nil {
		t.Fatal(err)
	}
	return d, s, encode(t, wide, map[string]any{"id": int64(1), "s": "text", "d": 1.5, "at": time.UnixMicro(5), "l": []int64{1, 2},
		"m": map[string]any{"k": "v"}, "dec": big.NewRat(5, 4), "r": map[string]any{"a": int32(1), "n": []any{nil}}})
}

// Whatever the bytes are, reading ends, and a row is whole or not there (V1, V4).
func TestDamage(t *testing.T) {
	d, s, good := wideDecoder(t)
	r := rand.New(rand.NewPCG(1, 2))
	rows := 0
	for range 50_000 {
		b := append([]byte(nil), good...)
		for range 1 + r.IntN(4) {
			b[r.IntN(len(b))] = byte(r.Uint32())
		}
		if r.IntN(4) == 0 {
			b = b[:r.IntN(len(b))]
		}
		if d.Append(s, b) == nil {
			rows++
		}
		if d.Len() != rows {
			t.Fatalf("%d rows, %d were good", d.Len(), rows)
		}
	}
	b := d.NewBatch()
	defer b.Release()
	if int(b.NumRows()) != rows || rows == 0 {
		t.Errorf("%d rows of %d", b.NumRows(), rows)
	}
}

// V3.
func TestAllocations(t *testing.T) {
	d, s, good := wideDecoder(t)
	fill := func() {
		for range 1000 {
			if err := d.Append(s, good); err != nil {
				t.Fatal(err)
			}
		}
		d.NewBatch().Release()
	}
	fill()
	if per := testing.AllocsPerRun(5, fill); per > 400 {
		t.Errorf("%.0f allocations for 1000 records", per)
	}
	// So do decimals whose scale changes.
	d = newDecoder(t, Options{}, "a decimal(20,6)", "b decimal(38,2)", "c decimal(38,6)")
	schema := recordOf(`{"name":"a","type":{"type":"bytes","logicalType":"decimal","precision":18,"scale":2}}`,
		`{"name":"b","type":{"type":"bytes","logicalType":"decimal","precision":60,"scale":40}}`, `{"name":"c","type":"long"}`)
	var err error
	if s, err = d.Compile(schema); err != nil {
		t.Fatal(err)
	}
	good = encode(t, schema, map[string]any{"a": big.NewRat(-12345, 100), "b": big.NewRat(1<<40, 100), "c": int64(-7)})
	fill()
	// Divisions take their scratch from a pool, which forgets some of it under the
	// race detector.
	if per := testing.AllocsPerRun(5, fill); per > 1000 {
		t.Errorf("%.0f allocations for 1000 records with decimals", per)
	}
}
