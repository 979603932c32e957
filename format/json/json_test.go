package jsonrow

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/hivesink/hivesink/format"
	"github.com/hivesink/hivesink/hivetype"
	"github.com/hivesink/hivesink/record"
)

// schema is that of columns written "name type" or "name type not null".
func schema(t testing.TB, columns ...string) *record.Schema {
	t.Helper()
	var fields []hivetype.Field
	for _, c := range columns {
		var name, text string
		if _, err := fmt.Sscan(c, &name); err != nil {
			t.Fatal(err)
		}
		text = c[len(name)+1:]
		notNull := false
		const suffix = " not null"
		if len(text) > len(suffix) && text[len(text)-len(suffix):] == suffix {
			notNull, text = true, text[:len(text)-len(suffix)]
		}
		typ, err := hivetype.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		fields = append(fields, hivetype.Field{Name: name, Type: typ, NotNull: notNull})
	}
	s, err := record.NewSchema(fields, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// decode appends the lines of in and returns the accepted rows and the errors
// by line number from 1.
func decode(t *testing.T, o Options, in []byte, columns ...string) (rows []string, bad map[int]*format.Error) {
	t.Helper()
	d, err := New(schema(t, columns...), o)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Release()
	bad = map[int]*format.Error{}
	split := NewSplitter()
	for line := 1; len(in) > 0; line++ {
		rec, n := split.Next(in, true)
		in = in[n:]
		before := d.Len()
		if err := d.Append(rec); err != nil {
			var e *format.Error
			if !errors.As(err, &e) {
				t.Fatalf("line %d: error of type %T", line, err)
			}
			if d.Len() != before {
				t.Fatalf("T1: line %d is bad, but %d rows were appended", line, d.Len()-before)
			}
			bad[line] = e
		}
	}
	b := d.NewBatch()
	if b == nil {
		return nil, bad
	}
	defer b.Release()
	for i := range int(b.NumRows()) {
		var cells []string
		for _, c := range b.Columns() {
			cells = append(cells, cell(c, i))
		}
		rows = append(rows, strings.Join(cells, "|"))
	}
	return rows, bad
}

// cell shows times as their number and text in quotes.
func cell(a arrow.Array, i int) string {
	if a.IsNull(i) {
		return "null"
	}
	switch a := a.(type) {
	case *array.Timestamp:
		return fmt.Sprint(int64(a.Value(i)))
	case *array.Date32:
		return fmt.Sprint(int32(a.Value(i)))
	case *array.String:
		return fmt.Sprintf("%q", a.Value(i))
	case *array.Binary:
		return fmt.Sprintf("%x", a.Value(i))
	}
	return a.ValueStr(i)
}

// TestEveryType decodes {"v": in} for one column.
func TestEveryType(t *testing.T) {
	const typ, rng, syn, null = "!" + record.ClassType, "!" + record.ClassRange, "!" + record.ClassSyntax, "!" + record.ClassNull
	long := strings.Repeat("9", 38)
	cases := []struct{ column, in, want string }{
		{"int", "1.0", "1"}, {"int", "1e3", "1000"}, {"int", "1.5", rng}, {"int", "1e-1", rng}, {"int", "-0", "0"},
		{"int", "0.0e99999999999", "0"}, {"int", "1e99999999999", rng}, {"int", "1e-99999999999", rng},
		{"int", "2147483648", rng}, {"int", "-2147483648", "-2147483648"}, {"int", `"007"`, "7"}, {"int", `"+7"`, "7"},
		{"int", `""`, typ}, {"int", `" 7"`, typ}, {"int", `"1e2"`, "100"}, {"int", `"-"`, typ}, {"int", "true", typ},
		{"int", "{}", typ}, {"int", "[]", typ}, {"int", "01", syn}, {"int", "1.", syn}, {"int", "-", syn}, {"int", "+1", syn},
		{"tinyint", "-128", "-128"}, {"tinyint", "128", rng}, {"smallint", "32767", "32767"}, {"smallint", "32768", rng},
		{"bigint", "9223372036854775808", rng}, {"bigint", "-9223372036854775809", rng},
		{"bigint", "9223372036854775807.000", "9223372036854775807"}, {"bigint", "922337203685477580.7e1", "9223372036854775807"},
		{"bigint", "99999999999999999999", rng}, {"bigint", `"-9223372036854775808"`, "-9223372036854775808"},
		{"boolean", "true", "true"}, {"boolean", `"False"`, "false"}, {"boolean", "1", typ}, {"boolean", `"yes"`, typ},
		{"double", "0.1", "0.1"}, {"double", "1e23", "1e+23"}, {"double", "9007199254740993", "9.007199254740992e+15"},
		{"double", "5e-324", "5e-324"}, {"double", "1e-400", "0"}, {"double", "-0", "-0"}, {"double", "1.7976931348623157e308", "1.7976931348623157e+308"},
		{"double", `"1.5"`, "1.5"}, {"double", `"NaN"`, typ}, {"double", `"Infinity"`, typ}, {"double", `"0x1p3"`, typ},
		{"double", `"1_0"`, typ}, {"double", "-1e400", rng}, {"float", "1e39", rng}, {"float", "16777217", "1.6777216e+07"},
		{"float", "1.00000017881393432617187499", "1.0000001"}, {"float", "0.1", "0.1"},
		{"decimal(38,0)", long, long}, {"decimal(38,0)", "-" + long, "-" + long}, {"decimal(38,0)", long + "0", rng},
		{"decimal(38,38)", "0." + long, "0." + long}, {"decimal(38,38)", "1", rng}, {"decimal(5,2)", "1e2", "100"},
		{"decimal(5,2)", "12.3e-1", "1.23"}, {"decimal(5,2)", "1.239", rng}, {"decimal(5,2)", "1e3", rng}, {"decimal(5,2)", "0e9999", "0"},
		{"decimal(5,2)", "1.2300000000000000000000000000", "1.23"}, {"decimal(5,2)", "-0.001", rng}, {"decimal(5,2)", `"x"`, typ},
		{"decimal(10,0)", "1e-9999999999", rng}, {"decimal(20,0)", "123.45e2", "12345"},
		{"string", "1.50", `"1.50"`}, {"string", "true", `"true"`}, {"string", "[1]", typ}, {"string", "{}", typ}, {"string", `""`, `""`},
		{"string", `"\ud83d\ude00"`, `"😀"`}, {"string", `"\ud83dx"`, `"` + "\uFFFD" + `x"`}, {"string", `"\ud83d\ud83d\ude00"`, `"` + "\uFFFD" + `😀"`},
		{"string", `"\"\\\/\b\f\n\r\t\u00e9"`, `"\"\\/\b\f\n\r\té"`}, {"string", `"é`, syn}, {"string", `"\x"`, syn}, {"string", `"\u12g4"`, syn},
		{"string", "\"a\tb\"", syn}, {"string", `"abcdefghijk\n"`, `"abcdefghijk\n"`}, {"string", "\"\xed\xa0\x80\"", `"` + strings.Repeat("\uFFFD", 3) + `"`},
		{"varchar(3)", `"äöü"`, `"äöü"`}, {"varchar(3)", `"abc "`, rng}, {"varchar(3)", "1234", rng}, {"char(3)", `"ab   "`, `"ab"`}, {"char(3)", `"abcd"`, rng},
		{"binary", `"aGk="`, "6869"}, {"binary", `"aGk"`, "6869"}, {"binary", `""`, ""}, {"binary", `"a"`, typ}, {"binary", `"aGk=="`, typ},
		{"binary", `"a\nGk"`, typ}, {"binary", `"-_"`, typ}, {"binary", "12", typ}, {"binary", "true", typ},
		{"date", `"2024-02-29"`, "19782"}, {"date", `"2023-02-29"`, rng}, {"date", `"0000-01-01"`, rng}, {"date", `"2024-13-01"`, rng},
		{"date", `"2024-1-01"`, typ}, {"date", "20240101", typ}, {"date", `"2024-01-01T00:00:00Z"`, typ}, {"date", `"10000-01-01"`, typ},
		{"timestamp", `"2026-01-01T00:00:00.000Z"`, "1767225600000000"}, {"timestamp", `"2026-01-01 00:00:00z"`, "1767225600000000"},
		{"timestamp", `"2026-01-01t01:00:00+01:00"`, "1767225600000000"}, {"timestamp", `"2026-01-01"`, "1767225600000000"},
		{"timestamp", `"2026-01-01T00:00:00.1234567Z"`, "1767225600123456"}, {"timestamp", `"1969-12-31T23:59:59.9999999"`, "-1"},
		{"timestamp", `"2026-01-01T00:00:60Z"`, rng}, {"timestamp", `"2026-01-01T24:00:00Z"`, rng}, {"timestamp", `"2026-01-01T00:00Z"`, typ},
		{"timestamp", `"2026-01-01T00:00:00."`, typ}, {"timestamp", `"2026-01-01T00:00:00+0100"`, typ}, {"timestamp", `"2026-01-01T00:00:00+24:00"`, rng},
		{"timestamp", `"0001-01-01T00:00:00+00:01"`, rng}, {"timestamp", `"9999-12-31T23:59:59.999999Z"`, "253402300799999999"},
		{"timestamp", `"9999-12-31T23:59:59-00:01"`, rng}, {"timestamp", "1767225600", typ}, {"timestamp", `"today"`, typ},
		{"int not null", "null", null}, {"int", "null", "null"}, {"int", "nul", syn}, {"int", "nulll", syn}, {"int", "", syn},
		{"array<int>", "[1,2.0,null]", "[1,2,null]"}, {"array<int>", `[1,"x"]`, typ}, {"array<int>", "[1,]", syn}, {"array<int>", "[1 2]", syn},
		{"array<int>", "1", typ}, {"array<int>", `"[1]"`, typ}, {"array<int>", "{}", typ}, {"array<array<int>>", "[[],[1],null]", "[[],[1],null]"},
		{"array<struct<a:int,b:array<string>>>", `[{"b":["x"]},null,{"A":1}]`, `[{"a":null,"b":["x"]},null,{"a":1,"b":null}]`},
		{"map<int,int>", `{"1":1,"1.0":2}`, `[{"key":1,"value":2}]`}, {"map<int,int>", `{"x":1}`, typ}, {"map<string,int>", "[]", typ},
		{"map<string,int>", `{"a":"bad","a":2}`, `[{"key":"a","value":2}]`}, {"map<string,int>", `{"\u0061":1,"a":2}`, `[{"key":"a","value":2}]`},
		{"map<string,map<string,int>>", `{"a":{"b":1}}`, `[{"key":"a","value":[{"key":"b","value":1}]}]`},
		{"struct<a:int>", `{"a":1,"A":"bad"}`, `{"a":1}`}, {"struct<a:int>", `{"A":"bad","a":1}`, `{"a":1}`}, {"struct<a:int>", `{"A":1,"A":2}`, `{"a":2}`},
		{"struct<a:int>", `{"a":{"b":[1,{}]}}`, typ}, {"struct<a:int>", "[]", typ},
	}
	for _, c := range cases {
		rows, bad := decode(t, Options{}, []byte(`{"v":`+c.in+`}`), "v "+c.column)
		got := ""
		if len(rows) == 1 {
			got = rows[0]
		} else if bad[1] != nil {
			got = "!" + bad[1].Class
			if bad[1].Column != "" && !strings.HasPrefix(bad[1].Column, "v") {
				t.Errorf("%s %s: error of column %q", c.column, c.in, bad[1].Column)
			}
		}
		if got != c.want {
			t.Errorf("%s %s: got %s, want %s (%v)", c.column, c.in, got, c.want, bad[1])
		}
	}
}

func TestEpochs(t *testing.T) {
	cases := []struct{ unit, in, want string }{
		{"s", "1767225600", "1767225600000000"}, {"s", "1.9999999", "1999999"}, {"s", "-0.0000001", "-1"}, {"s", `"1.5e0"`, "1500000"},
		{"s", "253402300800", "range"}, {"s", "253402300799.9999999", "253402300799999999"}, {"s", "-62135596800", "-62135596800000000"},
		{"s", "-62135596800.0000001", "range"}, {"s", "1e400", "range"}, {"s", "-1e-400", "-1"}, {"s", `"2026-01-01"`, "type"},
		{"ms", "1", "1000"}, {"ms", "1.0005", "1000"}, {"ms", "-1.0005", "-1001"}, {"ms", "253402300800000", "range"},
		{"us", "-1", "-1"}, {"us", "253402300799999999", "253402300799999999"}, {"us", "253402300800000000", "range"},
		{"ns", "1999", "1"}, {"ns", "-1", "-1"}, {"ns", "-1000", "-1"}, {"ns", "99999999999999999999", "99999999999999999"},
		{"ns", "true", "type"},
	}
	for _, c := range cases {
		rows, bad := decode(t, Options{Timestamps: c.unit}, []byte(`{"v":`+c.in+`}`), "v timestamp")
		got := strings.Join(rows, "")
		if bad[1] != nil {
			got = bad[1].Class
		}
		if got != c.want {
			t.Errorf("%s %s: got %s, want %s", c.unit, c.in, got, c.want)
		}
	}
	if _, err := New(schema(t, "v timestamp"), Options{Timestamps: "sec"}); err == nil {
		t.Error("an unknown unit was taken")
	}
}

func TestZone(t *testing.T) {
	zone := time.FixedZone("east", 3600)
	rows, _ := decode(t, Options{Zone: zone}, []byte(`{"v":"1970-01-01"}
{"v":"1970-01-01T00:00:00.0000019"}
{"v":"1970-01-01T00:00:00Z"}`), "v timestamp")
	if want := []string{"-3600000000", "-3599999999", "0"}; !reflect.DeepEqual(rows, want) {
		t.Errorf("%v, want %v", rows, want)
	}
	if _, bad := decode(t, Options{Zone: zone}, []byte(`{"v":"0001-01-01"}`), "v timestamp"); bad[1] == nil || bad[1].Class != record.ClassRange {
		t.Errorf("before the year 1: %v", bad)
	}
}

func TestNullOnBadTime(t *testing.T) {
	in := []byte(`{"a":"x","b":1}
{"a":[1],"b":2}
{"a":"2024-02-30","b":3}
{"a":"1970-01-02","b":4}`)
	rows, bad := decode(t, Options{NullOnBadTime: map[string]bool{"a": true}}, in, "a date", "b int")
	if want := []string{"null|1", "null|2", "null|3", "1|4"}; !reflect.DeepEqual(rows, want) || len(bad) > 0 {
		t.Errorf("%v %v", rows, bad)
	}
	_, bad = decode(t, Options{NullOnBadTime: map[string]bool{"a": true}}, in[:15], "a timestamp not null", "b int")
	if bad[1] == nil || bad[1].Class != record.ClassNull {
		t.Errorf("not null: %v", bad)
	}
	if _, err := New(schema(t, "b int"), Options{NullOnBadTime: map[string]bool{"b": true}}); err == nil {
		t.Error("a column that is no time was taken")
	}
}

// TestRollbackOfEveryShape puts a bad value behind good ones of every shape. T1.
func TestRollbackOfEveryShape(t *testing.T) {
	columns := []string{"a int", "s string", "l array<string>", "m map<string,int>", "o struct<x:int>", "z int not null"}
	good := `{"a":%d,"s":"t\n","l":["p","q"],"m":{"k":1},"o":{"x":1},"z":%d}`
	var in []byte
	var want []string
	for i := range 50 {
		in = fmt.Appendf(in, good+"\n", i, i)
		want = append(want, fmt.Sprintf(`%d|"t\n"|["p","q"]|[{"key":"k","value":1}]|{"x":1}|%d`, i, i))
		for _, z := range []string{`"bad"`, "null", "1e99", "{", "1}x"} {
			in = append(in, strings.Replace(fmt.Sprintf(good, 7, 777), "777", z, 1)+"\n"...)
		}
	}
	rows, bad := decode(t, Options{}, in, columns...)
	if !reflect.DeepEqual(rows, want) {
		t.Errorf("rows %q", rows)
	}
	if len(bad) != 250 {
		t.Errorf("%d bad records", len(bad))
	}
}

func TestUnknownKeys(t *testing.T) {
	d, err := New(schema(t, "a int", "o struct<x:int>"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Release()
	for _, rec := range []string{`{"b":[{"c":"\u0001"}],"a":1}`, `{"a":2,"o":{"y":1},"\u0062":null}`, `{"b":1,"a":"x"}`} {
		_ = d.Append([]byte(rec))
	}
	if n := d.UnknownKeys(); n != 3 || d.Len() != 2 {
		t.Errorf("%d unknown keys in %d rows", n, d.Len())
	}
	d.NewBatch().Release()
	if d.UnknownKeys() != 0 || d.Len() != 0 || d.Size() != 0 || d.NewBatch() != nil {
		t.Error("the batch goes on after NewBatch")
	}
	for i := range 10_000 { // ever new keys are not remembered
		if err := d.Append(fmt.Appendf(nil, `{"k%d":1,"A":%d}`, i, i)); err != nil {
			t.Fatal(err)
		}
	}
	b := d.NewBatch()
	defer b.Release()
	if got := b.Column(0).(*array.Int32).Value(9999); got != 9999 {
		t.Errorf("a is %d", got)
	}
}

func TestErrors(t *testing.T) {
	cases := []struct{ rec, class, column, reason string }{
		{`{"a":1,}`, record.ClassSyntax, "", `at offset 7: want a key in quotes, not "}"`},
		{`{"a":1`, record.ClassSyntax, "", "ends at offset 6"},
		{`[1]`, record.ClassSyntax, "", "at offset 0: want a JSON object"},
		{``, record.ClassSyntax, "", "ends at offset 0"},
		{`{"a":1} x`, record.ClassSyntax, "", "at offset 8: want the end of the record"},
		{`{"a":"` + strings.Repeat("y", 65) + `"}`, record.ClassType, "a", `"` + strings.Repeat("y", 64) + `"… is not of type int`},
		{`{"a":"\u0007"}`, record.ClassType, "a", `"\a" is not of type int`},
		{`{"o":{"l":[1,300]}}`, record.ClassRange, "o.l.element", `"300" is out of the range of type tinyint`},
		{`{"o":{}}`, record.ClassNull, "o.n", "null or missing"},
		{`{"m":{"1":1e9}}`, record.ClassRange, "m.value", "tinyint"},
		{`{"m":{"k":1}}`, record.ClassType, "m.key", `"k" is not of type int`},
	}
	s := schema(t, "a int", "o struct<l:array<tinyint>,n:int>", "m map<int,tinyint>")
	s.Columns[1].Type.Fields[1].NotNull = true
	d, err := New(s, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Release()
	for _, c := range cases {
		var e *format.Error
		if err := d.Append([]byte(c.rec)); !errors.As(err, &e) {
			t.Errorf("%s: %v", c.rec, err)
		} else if e.Class != c.class || e.Column != c.column || !strings.Contains(e.Reason, c.reason) {
			t.Errorf("%s: class %s column %s: %s", c.rec, e.Class, e.Column, e.Reason)
		}
	}
}

func TestDepth(t *testing.T) { // J1
	column := "known " + strings.Repeat("array<", 30) + "int" + strings.Repeat(">", 30)
	for _, name := range []string{"known", "other"} {
		for depth, fine := range map[int]bool{30: true, 63: true, 64: false, 100_000: false} {
			rec := `{"` + name + `":` + strings.Repeat("[", depth) + strings.Repeat("]", depth) + "}"
			_, bad := decode(t, Options{}, []byte(rec), "a int", column)
			if refused := bad[1] != nil && bad[1].Class == record.ClassSyntax; refused == fine {
				t.Errorf("%s, %d arrays: %v", name, depth, bad)
			}
		}
	}
}

func TestManyMapKeys(t *testing.T) {
	var rec []byte
	for i := range 1000 {
		rec = fmt.Appendf(rec, `,"%d":%d`, i%300, i)
	}
	rec = append(append([]byte(`{"m":{`), rec[1:]...), "}}"...)
	rows, _ := decode(t, Options{}, rec, "m map<int,int>")
	var pairs []struct{ Key, Value int }
	if err := json.Unmarshal([]byte(rows[0]), &pairs); err != nil || len(pairs) != 300 {
		t.Fatalf("%d keys, %v", len(pairs), err)
	}
	seen := map[int]bool{}
	for _, p := range pairs {
		if seen[p.Key] || p.Value%300 != p.Key || p.Value < 700 {
			t.Errorf("key %d has %d", p.Key, p.Value)
		}
		seen[p.Key] = true
	}
}

func TestNoAllocations(t *testing.T) { // T4
	d, err := New(schema(t, "id bigint", "s string", "l array<int>", "m map<string,double>", "o struct<a:date>", "v decimal(9,2)"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Release()
	recs := [][]byte{
		[]byte(`{"id":1,"s":"a\n\ud83d\ude00","l":[1,2,3],"m":{"x":1.5,"y":2},"o":{"a":"2024-01-01"},"v":"1.20","other":[{}]}`),
		[]byte(`{"v":12345.67,"ID":2,"s":"plain text","l":[],"o":{"A":null},"\u006d":{}}`),
	}
	batch := func(n int) {
		for i := range n {
			if err := d.Append(recs[i%2]); err != nil {
				t.Fatal(err)
			}
		}
		d.NewBatch().Release()
	}
	batch(8000)
	few := testing.AllocsPerRun(3, func() { batch(1000) })
	many := testing.AllocsPerRun(3, func() { batch(8000) })
	if many-few > 70 { // buffers double; 0.01 a record
		t.Errorf("%v allocations for 1000 rows, %v for 8000", few, many)
	}
}

func TestSplitter(t *testing.T) { // J4
	in := "{\"a\":1}\r\n  \t\r\n\n{\"a\":\n2}"
	want := []string{`{"a":1}`, "", "", `{"a":`, "2}"}
	for step := 1; step < len(in); step++ {
		s := NewSplitter()
		var got []string
		var buf []byte
		for at := 0; at < len(in) || len(buf) > 0; {
			rec, n := s.Next(buf, at == len(in))
			if n > 0 {
				got, buf = append(got, string(rec)), buf[n:]
				continue
			}
			next := min(len(in), at+step)
			buf, at = append(buf, in[at:next]...), next
		}
		if !slices.Equal(got, want) {
			t.Errorf("step %d: %q", step, got)
		}
	}
	s := &splitter{}
	if s.Next([]byte("abc"), false); s.seen != 3 {
		t.Errorf("seen %d", s.seen)
	}
}

// nested is how deep objects and arrays are in a JSON text.
func nested(b []byte) (deepest int) {
	d := json.NewDecoder(bytes.NewReader(b))
	for depth := 0; ; {
		token, err := d.Token()
		if err != nil {
			return deepest
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
			deepest = max(deepest, depth)
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
	}
}

// FuzzValid compares what is JSON with encoding/json, for keys that are
// unknown and for columns of every shape.
func FuzzValid(f *testing.F) {
	for _, s := range []string{`{"a":1}`, `{"l":[{"x":"\u00e9"}]}`, `{"m":{"k":-0.1e+2}} `, `{"n":[01]}`, "{\"a\":\"\x01\"}", `{"b":tru}`,
		`{"s":"\ud800"}`, `{}`, `[]`, `{"a" : null , "b":[ ] }`, "{\"s\":\"\xff\"}", `{"o":{"x":[1,2,{"y":1}]}}`} {
		f.Add([]byte(s))
	}
	d, err := New(schema(f, "a int", "s string", "l array<struct<x:string>>", "m map<string,double>", "o struct<x:array<int>>"), Options{})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, rec []byte) {
		valid := json.Valid(rec) && bytes.TrimLeft(rec, " \t\r\n")[0] == '{'
		if valid && nested(rec) > 64 {
			return
		}
		before := d.Len()
		err := d.Append(rec)
		var e *format.Error
		if err != nil && !errors.As(err, &e) {
			t.Fatalf("error of type %T", err)
		}
		if refused := e != nil && e.Class == record.ClassSyntax; refused == valid {
			t.Errorf("%q: %v, but valid is %t", rec, err, valid)
		}
		if (d.Len() != before) != (err == nil) {
			t.Errorf("T1: %d rows after %d: %v", d.Len(), before, err)
		}
		if b := d.NewBatch(); b != nil {
			b.Release()
		}
	})
}
