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
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"github.com/hivesink/hivesink/hivetype"
	"github.com/hivesink/hivesink/record"
)

func schemaOf(t testing.TB, columns ...string) *record.Schema {
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

func compiled(t testing.TB, s *record.Schema) *Schema {
	t.Helper()
	ps, err := NewSchema(s)
	if err != nil {
		t.Fatal(err)
	}
	return ps
}

// fromJSON builds a batch with Arrow's own JSON reader.
func fromJSON(t testing.TB, s *record.Schema, rows ...string) arrow.RecordBatch {
	t.Helper()
	rec, _, err := array.RecordFromJSON(memory.DefaultAllocator, s.Arrow, strings.NewReader("["+strings.Join(rows, ",")+"]"))
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

func encode(t testing.TB, s *Schema, o WriterOptions, meta map[string]string, groups ...*Columns) []byte {
	t.Helper()
	var out bytes.Buffer
	w := s.NewWriter(&out, o)
	for _, c := range groups {
		if err := w.WriteRowGroup(c); err != nil {
			t.Fatal(err)
		}
	}
	info, err := w.Close(meta)
	if err != nil {
		t.Fatal(err)
	}
	if info.Bytes != int64(out.Len()) {
		t.Fatalf("Info says %d bytes, the file has %d", info.Bytes, out.Len())
	}
	return out.Bytes()
}

// arrowRows reads a file with a reader that is not ours and prints each row.
func arrowRows(t testing.TB, data []byte) []string {
	t.Helper()
	rows, err := tryArrowRows(data)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func tryArrowRows(data []byte) ([]string, error) {
	pf, err := file.NewParquetReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	fr, err := pqarrow.NewFileReader(pf, pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
	if err != nil {
		return nil, err
	}
	tbl, err := fr.ReadTable(context.Background())
	if err != nil {
		return nil, err
	}
	var out []string
	tr := array.NewTableReader(tbl, 0)
	for tr.Next() {
		rec := tr.RecordBatch()
		for i := range int(rec.NumRows()) {
			cells := make([]string, rec.NumCols())
			for c := range cells {
				cells[c] = rec.ColumnName(c) + "=" + rec.Column(c).ValueStr(i)
			}
			out = append(out, strings.Join(cells, " "))
		}
	}
	return out, nil
}

var allTypes = []string{"b boolean", "t tinyint", "s smallint", "i int", "l bigint", "f float", "d double", "d5 decimal(5,2)",
	"d18 decimal(18,4)", "d38 decimal(38,3)", "str string", "bin binary", "day date", "ts timestamp",
	"tags array<string>", "m map<string,bigint>", "o struct<a:int,b:array<struct<x:string>>>"}

var allRows = []string{
	`{"b":true,"t":-128,"s":32767,"i":-2147483648,"l":9223372036854775807,"f":1.5,"d":-0.25,"d5":"999.99","d18":"-200000.0000","d38":"-12345678901234567890123456789012345.678","str":"x","bin":"AAE=","day":"1969-12-31","ts":"1969-12-31T23:59:59.5Z","tags":["a",null,""],"m":[{"key":"k","value":1},{"key":"","value":null}],"o":{"a":1,"b":[{"x":"p"},{"x":null}]}}`,
	`{"b":null,"t":null,"s":null,"i":null,"l":null,"f":null,"d":null,"d5":null,"d18":null,"d38":null,"str":null,"bin":null,"day":null,"ts":null,"tags":null,"m":null,"o":null}`,
	`{"b":false,"t":0,"s":0,"i":0,"l":-9007199254740993,"f":0,"d":0,"d5":"-0.01","d18":"0.0001","d38":"0.000","str":"","bin":"","day":"9999-12-31","ts":"2024-01-02T03:04:05.123456Z","tags":[],"m":[],"o":{"a":null,"b":[]}}`,
	`{"b":true,"t":1,"s":2,"i":3,"l":4,"f":5,"d":6,"d5":"7.00","d18":"8.0000","d38":"9.000","str":"ünï","bin":"//8=","day":"2000-02-29","ts":"2000-02-29T00:00:00Z","tags":[null],"m":[{"key":"z","value":-1}],"o":{"a":5,"b":null}}`,
}

func TestRoundTripAllTypes(t *testing.T) {
	rs := schemaOf(t, allTypes...)
	s := compiled(t, rs)
	rec := fromJSON(t, rs, allRows...)
	want := make([]string, rec.NumRows())
	for i := range want {
		cells := make([]string, rec.NumCols())
		for c := range cells {
			cells[c] = rec.ColumnName(c) + "=" + rec.Column(c).ValueStr(i)
		}
		want[i] = strings.Join(cells, " ")
	}
	for _, o := range []WriterOptions{{Codec: "zstd"}, {Codec: "snappy", Hidden: true}, {Codec: "gzip"}, {Codec: "lz4"}, {Codec: "none"}} {
		c := s.NewColumns()
		c.Append(rec, nil)
		data := encode(t, s, o, map[string]string{"k": "v"}, c)
		check := func(what string, data []byte) {
			got := arrowRows(t, data)
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("%s %+v:\n got %s\nwant %s", what, o, strings.Join(got, "\n     "), strings.Join(want, "\n     "))
			}
		}
		check("written", data)
		f, err := Open(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			t.Fatal(err)
		}
		if f.Meta()["k"] != "v" {
			t.Fatalf("metadata: %v", f.Meta())
		}
		if err := s.Verify(f, int64(len(want))); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if _, err := s.Rewrite(context.Background(), []*File{f}, &out, o, nil); err != nil {
			t.Fatal(err)
		}
		check("rewritten", out.Bytes())
	}
}

func TestRowSelectionKeepsOrder(t *testing.T) {
	rs := schemaOf(t, allTypes...)
	s := compiled(t, rs)
	rec := fromJSON(t, rs, allRows...)
	c := s.NewColumns()
	c.Append(rec, []int32{0, 3})
	c.Append(rec.NewSlice(1, 4), []int32{1})
	got := arrowRows(t, encode(t, s, WriterOptions{Codec: "zstd"}, nil, c))
	all := s.NewColumns()
	all.Append(rec, nil)
	want := arrowRows(t, encode(t, s, WriterOptions{Codec: "zstd"}, nil, all))
	if fmt.Sprint(got) != fmt.Sprint([]string{want[0], want[3], want[2]}) {
		t.Fatalf("got %v", got)
	}
}

func TestRewriteIsConcatenation(t *testing.T) {
	rs := schemaOf(t, "id bigint", "name string", "tags array<bigint>")
	s := compiled(t, rs)
	var files []*File
	var want []string
	for i := range 5 {
		var rows []string
		for k := range 3000 + i {
			rows = append(rows, fmt.Sprintf(`{"id":%d,"name":"n%d","tags":[%d,null]}`, i*10000+k, k%7, k))
		}
		c := s.NewColumns()
		c.Append(fromJSON(t, rs, rows...), nil)
		data := encode(t, s, WriterOptions{Codec: "snappy", Hidden: i%2 == 0}, nil, c)
		f, err := Open(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
		want = append(want, arrowRows(t, data)...)
	}
	var out bytes.Buffer
	info, err := s.Rewrite(context.Background(), files, &out, WriterOptions{Codec: "zstd"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if info.RowGroups != 1 || info.Rows != int64(len(want)) {
		t.Fatalf("%+v", info)
	}
	if got := arrowRows(t, out.Bytes()); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatal("rows differ or are in another order")
	}
}

// TestRewriteOtherSchema: columns by name, whatever their order; a missing one
// is null; INT32 widens to INT64 (cases CO-02, CO-03).
func TestRewriteOtherSchema(t *testing.T) {
	mk := func(cols []string, rows ...string) *File {
		rs := schemaOf(t, cols...)
		s := compiled(t, rs)
		c := s.NewColumns()
		c.Append(fromJSON(t, rs, rows...), nil)
		data := encode(t, s, WriterOptions{Codec: "zstd"}, nil, c)
		f, err := Open(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	a := mk([]string{"id int", "name string"}, `{"id":1,"name":"n1"}`, `{"id":2,"name":"n2"}`)
	b := mk([]string{"name string", "city string", "id bigint"}, `{"name":"n3","city":"c3","id":5000000000}`)
	target := compiled(t, schemaOf(t, "id bigint", "city string", "name string"))
	var out bytes.Buffer
	if _, err := target.Rewrite(context.Background(), []*File{a, b}, &out, WriterOptions{Codec: "zstd"}, nil); err != nil {
		t.Fatal(err)
	}
	want := "[id=1 city=(null) name=n1 id=2 city=(null) name=n2 id=5000000000 city=c3 name=n3]"
	if got := fmt.Sprint(arrowRows(t, out.Bytes())); got != want {
		t.Fatalf("got %s\nwant %s", got, want)
	}
	text := compiled(t, schemaOf(t, "id string"))
	if _, err := text.Rewrite(context.Background(), []*File{a}, &out, WriterOptions{Codec: "zstd"}, nil); err == nil || !strings.Contains(err.Error(), "id") {
		t.Fatalf("an int as a string: %v", err)
	}
}

func TestOpenRefuses(t *testing.T) {
	rs := schemaOf(t, "id bigint")
	s := compiled(t, rs)
	c := s.NewColumns()
	c.Append(fromJSON(t, rs, `{"id":1}`), nil)
	good := encode(t, s, WriterOptions{Codec: "zstd"}, nil, c)
	for _, data := range [][]byte{nil, []byte("PAR1"), good[:len(good)-1], good[:40], bytes.Repeat([]byte("x"), 100),
		append(append([]byte(nil), good[:len(good)-8]...), 0xff, 0xff, 0xff, 0x7f, 'P', 'A', 'R', '1')} {
		if _, err := Open(bytes.NewReader(data), int64(len(data))); err == nil {
			t.Errorf("%d bytes %.20q: no error", len(data), data)
		}
	}
}

func FuzzOpen(f *testing.F) {
	f.Add([]byte("PAR1 something PAR1"))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := Open(bytes.NewReader(data), int64(len(data)))
		if err == nil {
			_ = file.Meta()
			_ = file.RowGroups()
		}
	})
}

func benchBatch(n int) (*record.Schema, arrow.RecordBatch) {
	var fields []hivetype.Field
	for _, c := range []string{"id bigint", "ts timestamp", "user_name string", "country string", "amount double", "url string", "ok boolean"} {
		f, _ := hivetype.ParseColumn(c)
		fields = append(fields, f)
	}
	rs, _ := record.NewSchema(fields, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, rs.Arrow)
	x := uint64(1)
	next := func(m uint64) int64 { x = x*6364136223846793005 + 1442695040888963407; return int64((x >> 33) % m) }
	for i := range n {
		b.Field(0).(*array.Int64Builder).Append(int64(i))
		b.Field(1).(*array.TimestampBuilder).Append(arrow.Timestamp(1767225600000000 + next(86400000)*1000))
		b.Field(2).(*array.StringBuilder).Append(fmt.Sprintf("user-%06d", next(100000)))
		b.Field(3).(*array.StringBuilder).Append(fmt.Sprintf("C%03d", next(200)))
		b.Field(4).(*array.Float64Builder).Append(float64(next(100000)) / 100)
		b.Field(5).(*array.StringBuilder).Append(fmt.Sprintf("/shop/category-%02d/item-%05d", next(40), next(60000)))
		b.Field(6).(*array.BooleanBuilder).Append(next(10) != 0)
	}
	return rs, b.NewRecordBatch()
}

func BenchmarkWrite(b *testing.B) {
	rs, rec := benchBatch(RowGroupRows)
	for _, o := range []WriterOptions{{Codec: "zstd"}, {Codec: "snappy"}, {Codec: "snappy", Hidden: true}, {Codec: "lz4", Hidden: true}, {Codec: "none", Hidden: true}} {
		b.Run(fmt.Sprintf("%s-hidden=%v", o.Codec, o.Hidden), func(b *testing.B) {
			s, _ := NewSchema(rs)
			c := s.NewColumns()
			var out bytes.Buffer
			w := s.NewWriter(&out, o)
			b.ReportAllocs()
			for b.Loop() {
				c.Reset()
				c.Append(rec, nil)
				out.Reset()
				w.Reset(&out)
				if err := w.WriteRowGroup(c); err != nil {
					b.Fatal(err)
				}
				if _, err := w.Close(nil); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(RowGroupRows)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mrows/s")
			b.ReportMetric(float64(out.Len())/RowGroupRows, "bytes/row")
		})
	}
}

func BenchmarkRewrite(b *testing.B) {
	rs, rec := benchBatch(RowGroupRows)
	for _, o := range []WriterOptions{{Codec: "zstd"}, {Codec: "snappy", Hidden: true}, {Codec: "lz4", Hidden: true}, {Codec: "none", Hidden: true}} {
		b.Run(fmt.Sprintf("from-%s-hidden=%v", o.Codec, o.Hidden), func(b *testing.B) {
			s, _ := NewSchema(rs)
			var files []*File
			for i := range 16 {
				n := RowGroupRows / 16
				c := s.NewColumns()
				c.Append(rec.NewSlice(int64(i*n), int64((i+1)*n)), nil)
				data := encode(b, s, o, nil, c)
				f, err := Open(bytes.NewReader(data), int64(len(data)))
				if err != nil {
					b.Fatal(err)
				}
				files = append(files, f)
			}
			b.ReportAllocs()
			for b.Loop() {
				var out bytes.Buffer
				if _, err := s.Rewrite(context.Background(), files, &out, WriterOptions{Codec: "zstd"}, nil); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(RowGroupRows)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mrows/s")
		})
	}
}
