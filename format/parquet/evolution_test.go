package parquetfile

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/metadata"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
)

// rewritten reads the inputs as a table of other columns has them.
func rewritten(t testing.TB, columns []string, inputs ...*File) ([]byte, error) {
	t.Helper()
	s := compiled(t, schemaOf(t, columns...))
	var out bytes.Buffer
	info, err := s.Rewrite(context.Background(), inputs, &out, WriterOptions{Codec: "zstd"}, nil)
	if err != nil {
		return nil, err
	}
	if err := s.Verify(opened(t, out.Bytes()), info.Rows); err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), nil
}

// TestColumnsGoByName: another order, a column more (case CO-02, F3).
func TestColumnsGoByName(t *testing.T) {
	_, _, a := written(t, []string{"id int", "name string"}, `{"id":1,"name":"n1"}`, `{"id":2,"name":"n2"}`)
	_, _, b := written(t, []string{"name string", "city string", "id int"},
		`{"id":3,"city":"c3","name":"n3"}`, `{"id":4,"city":"c4","name":"n4"}`)
	data, err := rewritten(t, []string{"id int", "city string", "name string"}, a, b)
	if err != nil {
		t.Fatal(err)
	}
	want := "[id=1 city=(null) name=n1 id=2 city=(null) name=n2 id=3 city=c3 name=n3 id=4 city=c4 name=n4]"
	if got := fmt.Sprint(arrowRows(t, data)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestIntWidens: and so do the statistics (case CO-03, F3).
func TestIntWidens(t *testing.T) {
	_, _, a := written(t, []string{"n int"}, `{"n":1}`)
	_, _, b := written(t, []string{"n bigint"}, `{"n":5000000000}`, `{"n":-1}`)
	data, err := rewritten(t, []string{"n bigint"}, a, b)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(arrowRows(t, data)); got != "[n=1 n=5000000000 n=-1]" {
		t.Errorf("got %s", got)
	}
	st := otherStatistics(t, data, 0).(*metadata.Int64Statistics)
	if st.Min() != -1 || st.Max() != 5000000000 {
		t.Errorf("statistics %d to %d", st.Min(), st.Max())
	}
}

// TestTypesThatWiden: nothing is lost, or it is refused by name (F3).
func TestTypesThatWiden(t *testing.T) {
	for _, c := range []struct{ from, to, cell, want string }{
		{"tinyint", "smallint", "-7", "-7"}, {"smallint", "bigint", "-700", "-700"}, {"int", "bigint", "-1", "-1"},
		{"float", "double", "0.5", "0.5"}, {"string", "varchar(9)", `"x"`, "x"},
		{"decimal(5,2)", "decimal(9,2)", `"-1.25"`, "-1.25"}, {"decimal(5,2)", "decimal(18,2)", `"-1.25"`, "-1.25"},
		{"decimal(5,2)", "decimal(38,2)", `"-1.25"`, "-1.25"}, {"decimal(18,2)", "decimal(20,2)", `"-1.25"`, "-1.25"},
		{"decimal(20,2)", "decimal(38,2)", `"-1.25"`, "-1.25"},
		{"int", "smallint", "1", ""}, {"bigint", "int", "1", ""}, {"int", "string", "1", ""}, {"string", "int", `"1"`, ""},
		{"int", "double", "1", ""}, {"double", "float", "1", ""}, {"bigint", "timestamp", "1", ""}, {"timestamp", "bigint", "1", ""},
		{"int", "date", "1", ""}, {"date", "int", "1", ""}, {"decimal(5,2)", "decimal(9,3)", `"1"`, ""}, {"binary", "string", `"AA=="`, ""},
		{"decimal(9,2)", "decimal(5,2)", `"1"`, ""}, {"int", "decimal(9,0)", "1", ""}, {"decimal(9,0)", "int", `"1"`, ""},
		{"boolean", "int", "true", ""}, {"array<int>", "int", "[1]", ""}, {"int", "array<int>", "1", ""}, {"struct<a:int>", "int", `{"a":1}`, ""},
		{"int", "struct<a:int>", "1", ""}, {"struct<a:int>", "struct<b:int>", `{"a":1}`, ""}, {"array<int>", "map<string,int>", "[1]", ""},
		{"array<int>", "struct<list:int>", "[1]", ""},
	} {
		_, _, f := written(t, []string{"v " + c.from}, `{"v":`+c.cell+`}`, `{"v":null}`)
		data, err := rewritten(t, []string{"v " + c.to}, f)
		switch {
		case c.want == "" && (err == nil || !strings.Contains(err.Error(), "column v")):
			t.Errorf("%s as %s: error %v", c.from, c.to, err)
		case c.want != "" && err != nil:
			t.Errorf("%s as %s: %v", c.from, c.to, err)
		case c.want != "":
			if got, want := fmt.Sprint(arrowRows(t, data)), "[v="+c.want+" v=(null)]"; got != want {
				t.Errorf("%s as %s: got %s, want %s", c.from, c.to, got, want)
			}
		}
	}
}

// TestFieldIsAdded: to a struct, in a list, in a map; at every depth null is
// told from empty (F3).
func TestFieldIsAdded(t *testing.T) {
	_, _, f := written(t, []string{"id int", "v array<struct<a:array<int>,o:struct<x:int>>>"},
		`{"id":1,"v":[{"a":[1,2],"o":{"x":1}},null,{"a":[],"o":null}]}`, `{"id":2,"v":[]}`, `{"id":3,"v":null}`, `{"id":4,"v":[{"a":null,"o":{"x":null}}]}`)
	data, err := rewritten(t, []string{"w map<string,bigint>", "v array<struct<new:string,a:array<int>,o:struct<y:array<string>,x:bigint>>>", "id int"}, f)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`w=(null) v=[{"a":[1,2],"new":null,"o":{"x":1,"y":null}},null,{"a":[],"new":null,"o":null}] id=1`,
		`w=(null) v=[] id=2`, `w=(null) v=(null) id=3`, `w=(null) v=[{"a":null,"new":null,"o":{"x":null,"y":null}}] id=4`,
	}
	got := arrowRows(t, data)
	for i, w := range want {
		if sortedKeys(got[i]) != sortedKeys(w) {
			t.Errorf("row %d:\n got %s\nwant %s", i, got[i], w)
		}
	}
}

// sortedKeys evens out the order of an object's keys.
func sortedKeys(s string) string {
	s = strings.ReplaceAll(s, `"new":null,"a":[1,2]`, `"a":[1,2],"new":null`)
	s = strings.ReplaceAll(s, `"new":null,"a":[]`, `"a":[],"new":null`)
	s = strings.ReplaceAll(s, `"new":null,"a":null`, `"a":null,"new":null`)
	return strings.NewReplacer(`"y":null,"x":1`, `"x":1,"y":null`, `"y":null,"x":null`, `"x":null,"y":null`).Replace(s)
}

// foreign has another library write a file: required columns, dictionaries of
// numbers, small pages, several row groups.
func foreign(t testing.TB, schema *arrow.Schema, groupRows int64, options []parquet.WriterProperty, recs ...arrow.RecordBatch) *File {
	t.Helper()
	var out bytes.Buffer
	props := parquet.NewWriterProperties(append([]parquet.WriterProperty{parquet.WithMaxRowGroupLength(groupRows), parquet.WithDataPageSize(1000)}, options...)...)
	w, err := pqarrow.NewFileWriter(schema, &out, props, pqarrow.DefaultWriterProps())
	if err != nil {
		t.Fatal(err)
	}
	for _, rec := range recs {
		if err := w.Write(rec); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return opened(t, out.Bytes())
}

// TestFilesOfOthers reads what another library wrote: its encodings, both page
// formats, its row groups, required columns at any depth (F3).
func TestFilesOfOthers(t *testing.T) {
	inner := arrow.StructOf(arrow.Field{Name: "x", Type: arrow.BinaryTypes.String}, arrow.Field{Name: "y", Type: arrow.PrimitiveTypes.Float64, Nullable: true})
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "s", Type: arrow.BinaryTypes.String}, {Name: "n", Type: arrow.PrimitiveTypes.Int32},
		{Name: "ok", Type: arrow.FixedWidthTypes.Boolean, Nullable: true},
		{Name: "l", Type: arrow.ListOfField(arrow.Field{Name: "element", Type: inner}), Nullable: true},
		{Name: "m", Type: &arrow.Decimal128Type{Precision: 30, Scale: 2}, Nullable: true}}, nil)
	var rows []string
	for i := range 5000 {
		row := fmt.Sprintf(`{"s":"s%d","n":%d,"ok":%v,"m":"%d.25","l":[`, i%77, i-2500, i%3 == 0, i-2500)
		for k := range i % 4 {
			row += strings.Repeat(",", min(k, 1)) + fmt.Sprintf(`{"x":"x%d","y":%d.5}`, i, k)
		}
		if row += "]}"; i%10 == 0 {
			row = fmt.Sprintf(`{"s":"","n":%d,"ok":null,"l":null,"m":null}`, i)
		}
		rows = append(rows, row)
	}
	rec, _, err := array.RecordFromJSON(memory.DefaultAllocator, schema, strings.NewReader("["+strings.Join(rows, ",")+"]"))
	if err != nil {
		t.Fatal(err)
	}
	for name, options := range map[string][]parquet.WriterProperty{
		"dictionaries":     {parquet.WithDictionaryDefault(true), parquet.WithCompression(compress.Codecs.Snappy)},
		"plain, v2 pages":  {parquet.WithDictionaryDefault(false), parquet.WithDataPageVersion(parquet.DataPageV2), parquet.WithCompression(compress.Codecs.Zstd)},
		"delta":            {parquet.WithDictionaryDefault(false), parquet.WithEncodingFor("s", parquet.Encodings.DeltaByteArray), parquet.WithEncodingFor("n", parquet.Encodings.DeltaBinaryPacked)},
		"dictionaries, v2": {parquet.WithDictionaryDefault(true), parquet.WithDataPageVersion(parquet.DataPageV2)},
	} {
		f := foreign(t, schema, 1700, options, rec)
		if len(f.RowGroups()) < 3 {
			t.Fatalf("%s: row groups %v", name, f.RowGroups())
		}
		data, err := rewritten(t, []string{"n bigint", "l array<struct<x:string,y:double>>", "s string", "ok boolean", "m decimal(38,2)"}, f, f)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got := arrowRows(t, data)
		if len(got) != 2*len(rows) {
			t.Fatalf("%s: %d rows", name, len(got))
		}
		for i := range got {
			k := i % len(rows)
			want := fmt.Sprintf("n=%s l=%s s=%s ok=%s m=%s", rec.Column(1).ValueStr(k), rec.Column(3).ValueStr(k), rec.Column(0).ValueStr(k),
				rec.Column(2).ValueStr(k), rec.Column(4).ValueStr(k))
			if got[i] != want {
				t.Fatalf("%s, row %d:\n got %s\nwant %s", name, i, got[i], want)
			}
		}
	}
}

// TestTimesOfOthers: only what means the same is taken (F3).
func TestTimesOfOthers(t *testing.T) {
	for _, c := range []struct {
		typ arrow.DataType
		ok  bool
	}{
		{&arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}, true},
		{&arrow.TimestampType{Unit: arrow.Millisecond, TimeZone: "UTC"}, false},
		{&arrow.TimestampType{Unit: arrow.Nanosecond, TimeZone: "UTC"}, false},
		{&arrow.TimestampType{Unit: arrow.Microsecond}, false}, // a local time
	} {
		schema := arrow.NewSchema([]arrow.Field{{Name: "ts", Type: c.typ, Nullable: true}}, nil)
		b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
		b.Field(0).(*array.TimestampBuilder).Append(1705321800123456)
		rec := b.NewRecordBatch()
		f := foreign(t, schema, 10, []parquet.WriterProperty{parquet.WithVersion(parquet.V2_LATEST)}, rec)
		if _, err := rewritten(t, []string{"ts timestamp"}, f); (err == nil) != c.ok {
			t.Errorf("%s as timestamp: %v", c.typ, err)
		}
	}
}

// TestVerifyRefuses: another count, order, type or name.
func TestVerifyRefuses(t *testing.T) {
	s, _, f := written(t, []string{"id bigint", "m decimal(5,2)"}, `{"id":1}`)
	if err := s.Verify(f, 1); err != nil {
		t.Fatal(err)
	}
	if err := s.Verify(f, 2); err == nil {
		t.Error("one row is two rows")
	}
	for _, columns := range [][]string{{"m decimal(5,2)", "id bigint"}, {"id int", "m decimal(5,2)"}, {"id bigint", "m decimal(5,1)"},
		{"id bigint", "m decimal(6,2)"}, {"id bigint"}, {"id bigint", "m decimal(5,2)", "x int"}, {"id bigint", "n decimal(5,2)"}, {"id timestamp", "m decimal(5,2)"}} {
		if err := compiled(t, schemaOf(t, columns...)).Verify(f, 1); err == nil {
			t.Errorf("a file of id bigint, m decimal(5,2) passes as %v", columns)
		}
	}
}

// TestTakesGoesByWholePaths: a column whose name has a dot in it is not the
// field of a struct, and of two columns of one name only one would be read.
func TestTakesGoesByWholePaths(t *testing.T) {
	s := compiled(t, schemaOf(t, "id bigint", "a struct<b:bigint>"))
	for name, fields := range map[string][]arrow.Field{
		"a dot": {{Name: "id", Type: arrow.PrimitiveTypes.Int64}, {Name: "a.b", Type: arrow.PrimitiveTypes.Int64}},
		"twice": {{Name: "id", Type: arrow.PrimitiveTypes.Int64}, {Name: "id", Type: arrow.PrimitiveTypes.Int64}},
	} {
		as := arrow.NewSchema(fields, nil)
		f := foreign(t, as, 100, nil, foreignBatch(as, 10, 1))
		if err := s.Takes(f); err == nil || !strings.Contains(err.Error(), "would be lost") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
