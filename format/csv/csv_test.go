package csvrow

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/hivesink/hivesink/format"
	"github.com/hivesink/hivesink/hivetype"
	"github.com/hivesink/hivesink/record"
)

// schema is that of columns written "name type".
func schema(t testing.TB, columns ...string) *record.Schema {
	t.Helper()
	var fields []hivetype.Field
	for _, c := range columns {
		name, text, _ := strings.Cut(c, " ")
		text, notNull := strings.CutSuffix(text, " not null")
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

// splitAll are the records in, read in pieces of step bytes.
func splitAll(s format.Splitter, in string, step int) (recs []string) {
	var buf []byte
	for at := 0; ; {
		rec, n := s.Next(buf, at == len(in))
		if n > 0 {
			if len(rec) > 0 {
				recs = append(recs, string(rec))
			}
			buf = buf[n:]
			continue
		}
		if at == len(in) {
			return recs
		}
		next := min(len(in), at+step)
		buf = append(buf, in[at:next]...)
		at = next
	}
}

func decoder(t *testing.T, header []string, o Options, columns ...string) *Decoder {
	t.Helper()
	d, err := New(schema(t, columns...), header, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Release)
	return d
}

// cells are the values of the rows so far, columns by "|".
func cells(d *Decoder) (rows []string) {
	b := d.NewBatch()
	if b == nil {
		return nil
	}
	defer b.Release()
	for i := range int(b.NumRows()) {
		var row []string
		for _, c := range b.Columns() {
			if s, ok := c.(*array.String); ok && c.IsValid(i) {
				row = append(row, fmt.Sprintf("%q", s.Value(i)))
			} else {
				row = append(row, c.ValueStr(i))
			}
		}
		rows = append(rows, strings.Join(row, "|"))
	}
	return rows
}

func TestQuotedFile(t *testing.T) {
	in, err := os.ReadFile("testdata/IP-01.csv")
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []int{1, 7, len(in)} {
		recs := splitAll(NewSplitter(0, '"'), string(in), step)
		if len(recs) != 4 {
			t.Fatalf("step %d: records %q", step, recs)
		}
		o := Options{Quote: '"'}
		header, err := ParseHeader([]byte(recs[0]), o)
		if err != nil || !reflect.DeepEqual(header, []string{"id,x", "name", "notes"}) {
			t.Fatalf("header %q %v", header, err)
		}
		d := decoder(t, header, o, "id,x string", "name string", "notes string")
		for _, r := range recs[1:] {
			if err := d.Append([]byte(r)); err != nil {
				t.Fatal(err)
			}
		}
		want := []string{`"1"|"ann"|"line1\nline2"`, `"2"|"bob"|"he said \"hi\", ok"`, `"3"|(null)|""`}
		if got := cells(d); !reflect.DeepEqual(got, want) {
			t.Errorf("rows %q", got)
		}
	}
}

func TestFields(t *testing.T) {
	q := Options{Quote: '"'}
	pipe := Options{Delimiter: '|', Null: `\N`}
	cases := []struct {
		name  string
		o     Options
		types string // of the columns, by ";"
		rec   string
		want  string // "" for a bad record
		class string
	}{
		{"plain", q, "int;string", "1,x", `1|"x"`, ""},
		{"last empty", q, "int;string", "1,", "1|(null)", ""},
		{"quoted empty", q, "int;string", `1,""`, `1|""`, ""},
		{"two doubled fields", q, "string;string", `"a""b","c""""d"`, `"a\"b"|"c\"\"d"`, ""},
		{"only quotes", q, "string", `""""`, `"\""`, ""},
		{"null text", pipe, "string;int", `\N|\N`, "(null)|(null)", ""},
		{"quoted null text", Options{Quote: '"', Null: "NULL"}, "string;string", `"NULL",NULL`, `"NULL"|(null)`, ""},
		{"no quote", pipe, "string;int", `"a"|1`, `"\"a\""|1`, ""},
		{"carriage return in quotes", q, "string", "\"a\r\nb\"", `"a\r\nb"`, ""},
		{"nested", q, "array<int>;map<string,int>;struct<a:int>", `"[1,null]","{""k"":2}","{""A"":3}"`,
			`[1,null]|[{"key":"k","value":2}]|{"a":3}`, ""},
		{"nested null", q, "array<int>;int", `null,1`, "(null)|1", ""},
		{"nested garbage", q, "array<int>", `"[1,"`, "", record.ClassSyntax},
		{"nested type", q, "array<int>", `{}`, "", record.ClassType},
		{"bool", q, "boolean;boolean", "TRUE,false", "true|false", ""},
		{"bool digit", q, "boolean", "1", "", record.ClassType},
		{"special floats", q, "double;float;double", "NaN,-Infinity,inf", "NaN|-Inf|+Inf", ""},
		{"sign of nan", q, "double", "-nan", "", record.ClassType},
		{"space", q, "int", " 1", "", record.ClassType},
		{"range", q, "tinyint", "128", "", record.ClassRange},
		{"bad utf-8", q, "string", "a\xff\xc3", `"a` + "\uFFFD\uFFFD" + `"`, ""},
		{"too few", q, "int;int", "1", "", record.ClassSyntax},
		{"too many", q, "int", "1,2", "", record.ClassSyntax},
		{"text after quote", q, "string", `"a"b`, "", record.ClassSyntax},
		{"open quote", q, "string", `"a`, "", record.ClassSyntax},
		{"quote in text", q, "string", `a"b"`, "", record.ClassSyntax},
		{"not null", q, "int not null;int", ",1", "", record.ClassNull},
		{"decimal", q, "decimal(20,0);decimal(5,2)", "18446744073709551615,+.5", "18446744073709551615|0.5", ""},
		{"binary", q, "string;int;binary", "a,1,aGk=", `"a"|1|aGk=`, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var columns []string
			for i, typ := range strings.Split(c.types, ";") {
				columns = append(columns, fmt.Sprintf("c%d %s", i, typ))
			}
			d := decoder(t, nil, c.o, columns...)
			err := d.Append([]byte(c.rec))
			if c.class == "" {
				if got := cells(d); err != nil || len(got) != 1 || got[0] != c.want {
					t.Errorf("got %q %v, want %s", got, err, c.want)
				}
				return
			}
			var e *format.Error
			if !errors.As(err, &e) || e.Class != c.class || d.Len() != 0 || d.NewBatch() != nil {
				t.Errorf("got %v with %d rows, want class %s and none", err, d.Len(), c.class)
			}
		})
	}
}

func TestFieldCountNamesBoth(t *testing.T) {
	d := decoder(t, nil, Options{}, "a int", "b int")
	err := d.Append([]byte("1,2,3"))
	if err == nil || !strings.Contains(err.Error(), "3 fields where the header has 2") {
		t.Error(err)
	}
}

func TestHeader(t *testing.T) {
	d := decoder(t, []string{"B", "other", "a"}, Options{}, "a int", "b int", "c int")
	if err := d.Append([]byte("1,x,2")); err != nil {
		t.Fatal(err)
	}
	if n := d.UnknownKeys(); n != 1 {
		t.Errorf("C5: %d unknown", n)
	}
	if got := cells(d); got[0] != "2|1|(null)" {
		t.Error(got)
	}
	if _, err := New(schema(t, "x int"), []string{"x", "X"}, Options{}); err == nil || !strings.Contains(err.Error(), "both for column x") {
		t.Error(err)
	}
	if _, err := New(schema(t, "x int"), []string{"y"}, Options{}); err == nil {
		t.Error("a header without any column was taken")
	}
	if _, err := New(schema(t, "x int"), nil, Options{Quote: ','}); err == nil {
		t.Error("quote and delimiter were the same")
	}
}

// C3: a stray quote makes its own record bad and leaves the next ones alone.
func TestStrayQuotes(t *testing.T) {
	in := "5\" pipe,1\n\"a\"b\"c\n,2\n\"x\"\"\n\"\"\",3\nit's 6\",\"q\n,\",4\n\"end\",\n"
	want := []string{`5" pipe,1`, `"a"b"c`, `,2`, "\"x\"\"\n\"\"\",3", "it's 6\",\"q\n,\",4", `"end",`}
	for step := 1; step <= len(in); step++ {
		if got := splitAll(NewSplitter(0, '"'), in, step); !reflect.DeepEqual(got, want) {
			t.Fatalf("step %d: %q", step, got)
		}
	}
}

// C3: the splitter and the decoder agree where a record ends. What the decoder
// takes, printed with a line end, is one record; what the splitter takes as
// one, the decoder takes or refuses, and nothing of it is left over.
func FuzzSplit(f *testing.F) {
	for _, s := range []string{"a,b\nc", "\"a\nb\",c\n", "\"a\"\"\n\"", "a\"b\n\"\r\n", "\"a\"x\",\"\n\n"} {
		f.Add(s, uint8(3))
	}
	f.Fuzz(func(t *testing.T, in string, step uint8) {
		whole := splitAll(NewSplitter(0, '"'), in, len(in)+1)
		if pieces := splitAll(NewSplitter(0, '"'), in, 1+int(step)); !reflect.DeepEqual(whole, pieces) {
			t.Fatalf("in pieces of %d: %q, whole: %q", 1+int(step), pieces, whole)
		}
		for _, rec := range whole {
			names, err := ParseHeader([]byte(rec), Options{Quote: '"'})
			if err != nil || strings.HasSuffix(rec, "\r") { // that would be part of the line end
				continue
			}
			again := splitAll(NewSplitter(0, '"'), rec+"\nnext", len(rec))
			if len(again) != 2 || again[0] != rec || again[1] != "next" {
				t.Fatalf("fields %q of %q: the splitter says %q", names, rec, again)
			}
		}
	})
}

// C4, by the offset that is kept.
func TestSplitterGoesOn(t *testing.T) {
	s := &splitter{delim: ',', quote: '"'}
	buf := append([]byte(`a,"`), bytes.Repeat([]byte("x\n"), 100)...)
	if _, n := s.Next(buf, false); n != 0 || s.seen != len(buf) || s.at != insideQuotes {
		t.Fatalf("advance %d, seen %d of %d", n, s.seen, len(buf))
	}
	buf = append(buf, "\"\r\nnext"...)
	rec, n := s.Next(buf, false)
	if n != len(buf)-4 || string(rec) != string(buf[:n-2]) {
		t.Fatalf("advance %d, record %q", n, rec)
	}
	if rec, n = s.Next([]byte("next"), true); n != 4 || string(rec) != "next" {
		t.Fatalf("advance %d, record %q", n, rec)
	}
	if _, n = s.Next(nil, true); n != 0 {
		t.Fatalf("advance %d of nothing", n)
	}
}

func TestSplitterWithoutQuotes(t *testing.T) {
	got := splitAll(NewSplitter(0, 0), "a\"b\nc\r\n\n\r\nd", 2)
	if !reflect.DeepEqual(got, []string{`a"b`, "c", "d"}) {
		t.Errorf("%q", got)
	}
}

func TestNoAllocations(t *testing.T) { // T4
	d := decoder(t, nil, Options{Quote: '"'}, "a int", "b string", "c timestamp", "d array<int>")
	rec := []byte(`1,"he said ""hi""",2026-01-01T00:00:00Z,"[1,2]"`)
	fill := func() {
		for range 1000 {
			if err := d.Append(rec); err != nil {
				t.Fatal(err)
			}
		}
	}
	fill()
	d.NewBatch().Release()
	fill()
	d.NewBatch().Release()
	if n := testing.AllocsPerRun(3, func() { fill(); d.NewBatch().Release() }); n > 100 {
		t.Errorf("%v allocations for 1000 rows", n)
	}
}

func BenchmarkFields(b *testing.B) {
	d, err := New(schema(b, "id bigint", "ts timestamp", "user_name string", "amount double"), nil, Options{Quote: '"'})
	if err != nil {
		b.Fatal(err)
	}
	defer d.Release()
	rec := []byte("123456,2026-01-01T00:00:00.000Z,user-000001,12.34")
	b.ReportAllocs()
	for b.Loop() {
		if err := d.Append(rec); err != nil {
			b.Fatal(err)
		}
		if d.Len() == 8192 {
			d.NewBatch().Release()
		}
	}
}

// TestWordsAndBytes compares what reads words at a time with what reads bytes:
// fields and records of every length, marks at every place, bytes that differ
// from a mark in one bit.
func TestWordsAndBytes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	alphabet := []byte{',', '"', '-', '+', '#', 0, 'a', 'b', 'c', 0xac, 0xa2, ' ', '0', '1', '2', '3'}
	for _, o := range []Options{{Quote: '"'}, {}} {
		d := &Decoder{marks: o.marks()}
		fields, quotes := 0, 0
		for range 200_000 {
			rec := make([]byte, r.IntN(40))
			for i := range rec {
				rec[i] = 'x'
				if r.IntN(6) == 0 {
					rec[i] = alphabet[r.IntN(len(alphabet))]
				}
			}
			if len(rec) > 0 && o.Quote != 0 && rec[0] == o.Quote {
				continue
			}
			wantEnd, wantErr := len(rec), false
			for i, c := range rec {
				if c == ',' || o.Quote != 0 && c == o.Quote {
					wantEnd, wantErr = i, c != ','
					break
				}
			}
			text, _, end, err := d.field(rec, 0)
			switch {
			case (err != nil) != wantErr:
				t.Fatalf("%q: error %v", rec, err)
			case err != nil:
				quotes++
				if !strings.Contains(err.Reason, fmt.Sprintf("offset %d ", wantEnd)) {
					t.Fatalf("%q: %s, want offset %d", rec, err.Reason, wantEnd)
				}
			case end != wantEnd || string(text) != string(rec[:end]):
				t.Fatalf("%q: field %q ends at %d, want %d", rec, text, end, wantEnd)
			default:
				fields++
			}
		}
		if fields < 1000 || o.Quote != 0 && quotes < 1000 {
			t.Fatalf("only %d fields and %d stray quotes", fields, quotes)
		}
	}
}
