package jsonrow_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/hivesink/hivesink/format"
	. "github.com/hivesink/hivesink/format/json"
	"github.com/hivesink/hivesink/hivetype"
	"github.com/hivesink/hivesink/record"
)

func schema(t testing.TB, columns ...string) *record.Schema {
	t.Helper()
	fields := make([]hivetype.Field, len(columns))
	for i, c := range columns {
		f, err := hivetype.ParseColumn(c)
		if err != nil {
			t.Fatal(err)
		}
		fields[i] = f
	}
	s, err := record.NewSchema(fields, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// decode decodes each line and prints its row, or the class of its error.
func decode(t testing.TB, s *record.Schema, o Options, input []byte) []string {
	t.Helper()
	d, err := New(s, o)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Release()
	var out []string
	var rows []int // index in out of each good row
	split := NewSplitter()
	for len(input) > 0 {
		rec, n := split.Next(input, true)
		input = input[n:]
		if len(rec) == 0 {
			continue
		}
		before := d.Len()
		if err := d.Append(rec); err != nil {
			e, ok := err.(*format.Error)
			if !ok {
				t.Fatalf("%q: %v is no *format.Error", rec, err)
			}
			if d.Len() != before {
				t.Fatalf("%q: bad, and a row was appended", rec)
			}
			out = append(out, "!"+e.Class)
			continue
		}
		rows = append(rows, len(out))
		out = append(out, "")
	}
	if rec := d.NewBatch(); rec != nil {
		defer rec.Release()
		for i, at := range rows {
			out[at] = rowText(t, rec, i)
		}
	}
	return out
}

func rowText(t testing.TB, rec arrow.RecordBatch, row int) string {
	t.Helper()
	var cells []string
	for c := range int(rec.NumCols()) {
		v, err := json.Marshal(rec.Column(c).GetOneForMarshal(row))
		if err != nil {
			v = []byte(rec.Column(c).ValueStr(row))
		}
		cells = append(cells, string(v))
	}
	return strings.Join(cells, " ")
}

func same(t *testing.T, got, want []string) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		g, w := "(none)", "(none)"
		if i < len(got) {
			g = got[i]
		}
		if i < len(want) {
			w = want[i]
		}
		if g != w {
			t.Errorf("record %d: got %s, want %s", i+1, g, w)
		}
	}
}

// TestReportedCases: public bug reports, as inputs.
func TestReportedCases(t *testing.T) {
	for _, c := range []struct {
		name    string
		columns []string
		want    []string
	}{
		{"NU-01", []string{"id int", "n bigint", "o struct<n:bigint>"}, []string{
			`1 9007199254740993 null`, `2 -9007199254740993 null`, `3 9223372036854775807 null`, `4 -9223372036854775808 null`,
			`5 null {"n":1234567890123456789}`}},
		{"DE-01", []string{"id int", "v decimal(18,4)"}, []string{`1 "-200000"`, `2 "-0.0001"`, `3 "0.0001"`, `4 "-0.0128"`,
			`5 "99999999999999.9999"`, `6 "-99999999999999.9999"`, `7 "0"`, `8 "-6553.6"`}},
		{"DE-02", []string{"id int", "v decimal(5,2)"}, []string{`1 "999.99"`, `!range`, `!range`, `4 "1.23"`, `5 "-999.99"`, `6 "0.1"`}},
		{"JS-01", []string{"id int", "x int", "s struct<a:int>"}, []string{`1 1 null`, `2 1 null`, `3 3 null`, `4 null {"a":1}`}},
		{"JS-02", []string{"id int", "d double"}, []string{`1 1.5`, `!syntax`, `!syntax`, `!type`, `!range`, `6 -0`, `7 2.5`}},
		{"UT-01", []string{"id int", "s string"}, []string{`1 "ok"`, "2 \"he\ufffdlo\"", "3 \"cut \ufffd\ufffd\"", "4 \"\ufffd alone\"", `5 "nul \u0000 in"`}},
		{"NE-01", []string{"id int", "v array<double>"}, []string{`1 null`, `2 []`, `3 [null]`, `4 [1.5]`, `5 [1.5,null,2.5]`, `6 null`}},
		{"NE-02", []string{"id int", "m map<string,bigint>"}, []string{`1 [{"key":"a","value":1},{"key":"b","value":null}]`, `2 []`, `3 null`, `4 [{"key":"","value":5}]`}},
		{"NE-03", []string{"id int", "o struct<z:int>"}, []string{`1 {"z":null}`, `2 {"z":1}`, `3 null`}},
		{"NM-01", []string{"id int", "username string", "addr struct<zipcode:string>"}, []string{`1 "u1" {"zipcode":"z1"}`, `2 "u2" {"zipcode":"z2"}`}},
		{"OD-01", []string{"id int", "ts timestamp"}, []string{`1 "1969-12-31T23:59:59.5Z"`, `2 "1969-12-31T23:59:59.999999Z"`, `3 "1970-01-01T00:00:00Z"`, `4 "1965-07-04T00:00:00.25Z"`}},
		{"OD-02", []string{"id int", "d date"}, []string{`1 "0001-01-01"`, `2 "1000-03-01"`, `3 "1582-10-04"`, `4 "1582-10-10"`, `5 "1582-10-15"`,
			`6 "1900-01-01"`, `7 "9999-12-31"`, `!range`, `!range`, `!range`}},
		{"RI-01", []string{"id int", "ts timestamp", "u32 bigint", "u64 decimal(20,0)"}, []string{
			`1 "2024-01-15T12:30:00.123456Z" 4294967295 "18446744073709551615"`, `2 "1969-12-31T23:59:59.999999Z" 0 "0"`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			data, err := os.ReadFile("testdata/" + c.name + ".ndjson")
			if err != nil {
				t.Fatal(err)
			}
			same(t, decode(t, schema(t, c.columns...), Options{}, data), c.want)
		})
	}
}

func TestNullsAndUnknownKeys(t *testing.T) {
	s := schema(t, "id int not null", "o struct<a:int>")
	got := decode(t, s, Options{}, []byte("{\"id\":null}\n{}\n{\"id\":1,\"zz\":{\"deep\":[1,2]},\"o\":{\"q\":1}}\n\n  \r\n[1]\n{\"id\":2}}\n{\"id\":2\n"))
	same(t, got, []string{"!null", "!null", `1 {"a":null}`, "!syntax", "!syntax", "!syntax"})
	d, _ := New(s, Options{})
	if err := d.Append([]byte(`{"id":1,"zz":1,"yy":2}`)); err != nil || d.UnknownKeys() != 2 {
		t.Fatalf("%v, %d unknown keys, want 2", err, d.UnknownKeys())
	}
}

// J3: case is that of Unicode, as in the names of the table: a column declared
// as ÄNDERUNG is änderung.
func TestKeysInOtherCase(t *testing.T) {
	s := schema(t, "ÄNDERUNG int", "o struct<Größe:int>", "ключ string")
	got := decode(t, s, Options{}, []byte(`{"ÄNDERUNG":1,"o":{"GRÖßE":2},"КЛЮЧ":"x"}
{"änderung":1,"ÄNDERUNG":2,"o":{"größe":3,"Größe":4},"ключ":"x","Ключ":"y"}
{"ÄNDERUNG":1,"änderung":2}
{"\u00c4nderung":7}`))
	same(t, got, []string{`1 {"größe":2} "x"`, `1 {"größe":3} "x"`, `2 null null`, `7 null null`})
}

// TestRollback: a bad record in the middle of nested columns leaves the batch
// as it was (textval T1).
func TestRollback(t *testing.T) {
	s := schema(t, "id int", "tags array<struct<n:int,s:string>>", "m map<string,int>", "z int not null")
	good := `{"id":%d,"tags":[{"n":1,"s":"x"},{"n":2}],"m":{"a":1,"b":2},"z":3}` + "\n"
	bad := `{"id":9,"tags":[{"n":1,"s":"x"},{"n":"oops"}],"m":{"a":1},"z":3}` + "\n" + `{"id":9,"tags":[{"n":5}],"m":{"a":1,"c":7},"z":null}` + "\n"
	input := fmt.Sprintf(good, 1) + bad + fmt.Sprintf(good, 2)
	row := ` [{"n":1,"s":"x"},{"n":2,"s":null}] [{"key":"a","value":1},{"key":"b","value":2}] 3`
	same(t, decode(t, s, Options{}, []byte(input)), []string{"1" + row, "!type", "!null", "2" + row})
}

const benchLine = `{"id":%d,"ts":"2026-01-%02dT03:04:05.678Z","user_name":"user-%06d","country":"C%03d","amount":%d.%02d,"url":"/shop/category-%02d/item-%05d","ok":true}`

var benchColumns = []string{"id bigint", "ts timestamp", "user_name string", "country string", "amount double", "url string", "ok boolean"}

func benchLines(n int) [][]byte {
	out := make([][]byte, n)
	for i := range out {
		out[i] = fmt.Appendf(nil, benchLine, i, i%28+1, i*7%100000, i%200, i%1000, i%100, i%40, i*13%60000)
	}
	return out
}

func TestNoAllocationPerRecord(t *testing.T) {
	d, err := New(schema(t, benchColumns...), Options{})
	if err != nil {
		t.Fatal(err)
	}
	lines := benchLines(8192)
	batch := func(n int) {
		for _, l := range lines[:n] {
			if err := d.Append(l); err != nil {
				t.Fatal(err)
			}
		}
		d.NewBatch().Release()
	}
	batch(8192)
	small := testing.AllocsPerRun(3, func() { batch(1024) })
	large := testing.AllocsPerRun(3, func() { batch(8192) })
	if per := (large - small) / (8192 - 1024); per > 0.01 {
		t.Fatalf("%.3f allocations per record (%v for 1024, %v for 8192)", per, small, large)
	}
}

func BenchmarkDecode(b *testing.B) {
	d, err := New(schema(b, benchColumns...), Options{})
	if err != nil {
		b.Fatal(err)
	}
	lines := benchLines(8192)
	b.ReportAllocs()
	for b.Loop() {
		for _, l := range lines {
			if err := d.Append(l); err != nil {
				b.Fatal(err)
			}
		}
		d.NewBatch().Release()
	}
	b.ReportMetric(8192*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mrows/s")
}

// FuzzValues compares what is stored with what encoding/json reads.
func FuzzValues(f *testing.F) {
	for _, s := range []string{`{"s":"\u0041\ud83d\ude00","n":12}`, `{"n":1.0e2,"d":-0.1}`, `{"s":12.50,"l":["a",null,"\n"]}`, `{"d":1e308,"S":"x","s":"y"}`,
		"{\"s\":\"\xff\"}", `{"s":"\ud800"}`, `{"n":"9223372036854775807","d":"2.5"}`} {
		f.Add([]byte(s))
	}
	d, err := New(schema(f, "s string", "n bigint", "d double", "l array<string>"), Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		if d.Append(line) != nil {
			return
		}
		b := d.NewBatch()
		defer b.Release()
		in := json.NewDecoder(bytes.NewReader(line))
		in.UseNumber()
		var want map[string]any
		if err := in.Decode(&want); err != nil {
			t.Fatalf("%q is accepted: %v", line, err)
		}
		for i, name := range []string{"s", "n", "d", "l"} {
			v, ok := want[name]
			if !ok || v == nil { // it may have come by a name in another case
				continue
			}
			if err := agrees(b.Column(i), v); err != nil {
				t.Errorf("%q, column %s: %v", line, name, err)
			}
		}
	})
}

// agrees tells how the first row of a column differs from a value of
// encoding/json.
func agrees(a arrow.Array, want any) error {
	if a.IsNull(0) {
		return fmt.Errorf("null, want %v", want)
	}
	var text string
	switch v := want.(type) {
	case json.Number:
		text = v.String()
	case string:
		text = v
	case bool:
		text = fmt.Sprint(v)
	}
	switch a := a.(type) {
	case *array.String:
		if a.Value(0) != text {
			return fmt.Errorf("%q, want %q", a.Value(0), text)
		}
	case *array.Int64:
		if v, ok := new(big.Rat).SetString(text); !ok || v.Cmp(new(big.Rat).SetInt64(a.Value(0))) != 0 {
			return fmt.Errorf("%d, want %s", a.Value(0), text)
		}
	case *array.Float64:
		if v, err := strconv.ParseFloat(text, 64); err != nil || math.Float64bits(v) != math.Float64bits(a.Value(0)) {
			return fmt.Errorf("%v, want %s", a.Value(0), text)
		}
	case *array.List:
		from, to := a.ValueOffsets(0)
		list := want.([]any)
		if int(to-from) != len(list) {
			return fmt.Errorf("%d elements, want %d", to-from, len(list))
		}
		for i, v := range list {
			element := array.NewSlice(a.ListValues(), from+int64(i), from+int64(i)+1)
			defer element.Release()
			if v == nil {
				if element.IsValid(0) {
					return fmt.Errorf("element %d is not null", i)
				}
			} else if err := agrees(element, v); err != nil {
				return fmt.Errorf("element %d: %w", i, err)
			}
		}
	}
	return nil
}
