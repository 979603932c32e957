package parquetfile

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/hivesink/hivesink/record"
)

// written encodes rows as one row group and opens the result.
func written(t testing.TB, columns []string, rows ...string) (*Schema, []byte, *File) {
	t.Helper()
	rs := schemaOf(t, columns...)
	s := compiled(t, rs)
	c := s.NewColumns()
	c.Append(fromJSON(t, rs, rows...), nil)
	data := encode(t, s, WriterOptions{Codec: "zstd"}, nil, c)
	return s, data, opened(t, data)
}

func opened(t testing.TB, data []byte) *File {
	t.Helper()
	f, err := Open(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// levelsOf reads a leaf with the library that writes no part of our files.
func levelsOf(t testing.TB, data []byte, leaf int) (reps, defs []int16) {
	t.Helper()
	pf, err := file.NewParquetReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	col, err := pf.RowGroup(0).Column(leaf)
	if err != nil {
		t.Fatal(err)
	}
	defs, reps = make([]int16, 100), make([]int16, 100)
	values := make([]float64, 100)
	n, _, err := col.(*file.Float64ColumnChunkReader).ReadBatch(100, values, defs, reps)
	if err != nil {
		t.Fatal(err)
	}
	return reps[:n], defs[:n]
}

// TestListsStayDifferent: null, [] and [null] are three things, by the
// standard's levels (case NE-01, F4).
func TestListsStayDifferent(t *testing.T) {
	_, data, f := written(t, []string{"v array<double>"},
		`{"v":null}`, `{"v":[]}`, `{"v":[null]}`, `{"v":[1.5]}`, `{"v":[1.5,null,2.5]}`, `{}`)
	reps, defs := levelsOf(t, data, 0)
	if want := "[0 0 0 0 0 1 1 0] [0 1 2 3 3 2 3 0]"; fmt.Sprint(reps, defs) != want {
		t.Errorf("levels %v %v, want %s", reps, defs, want)
	}
	if got := shape(f); !strings.Contains(got, "optional group v (LIST) {\n\t\trepeated group list {\n\t\t\toptional double element;") {
		t.Errorf("shape:\n%s", got)
	}
}

func shape(f *File) string { return library(f).Schema().String() }

// TestMapsStayDifferent: null map, empty map, null value and empty key (case
// NE-02, F4).
func TestMapsStayDifferent(t *testing.T) {
	_, data, f := written(t, []string{"m map<string,bigint>"},
		`{"m":[{"key":"a","value":1},{"key":"b","value":null}]}`, `{"m":[]}`, `{"m":null}`, `{"m":[{"key":"","value":5}]}`)
	if got, want := fmt.Sprint(arrowRows(t, data)), `[m=[{"key":"a","value":1},{"key":"b","value":null}] m=[] m=(null) m=[{"key":"","value":5}]]`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	got := shape(f)
	for _, want := range []string{"optional group m (MAP) {", "repeated group key_value {", "required binary key (STRING);", "optional int64 value"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in:\n%s", want, got)
		}
	}
}

// TestEmptyStruct: {} is there, null is not (case NE-03 b).
func TestEmptyStruct(t *testing.T) {
	_, data, _ := written(t, []string{"o struct<z:int>"}, `{"o":{}}`, `{"o":{"z":1}}`, `{"o":null}`)
	if got, want := fmt.Sprint(arrowRows(t, data)), `[o={"z":null} o={"z":1} o=(null)]`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestDecimalBytes: the bytes of negative decimals in every width (case DE-01,
// F4): a decimal(19,4) is the same number, a byte wider.
func TestDecimalBytes(t *testing.T) {
	text := []string{"-200000.0000", "-0.0001", "0.0001", "-0.0128", "99999999999999.9999", "-99999999999999.9999", "0.0000", "-6553.6000"}
	want := []string{"ffffffff88ca6c00", "ffffffffffffffff", "0000000000000001", "ffffffffffffff80",
		"0de0b6b3a763ffff", "f21f494c589c0001", "0000000000000000", "fffffffffc180000"}
	rows := make([]string, len(text))
	for i, v := range text {
		rows[i] = fmt.Sprintf(`{"narrow":%q,"wide":%q}`, v, v)
	}
	_, data, f := written(t, []string{"narrow decimal(18,4)", "wide decimal(19,4)"}, rows...)
	if got := shape(f); !strings.Contains(got, "optional int64 narrow (DECIMAL(18,4))") ||
		!strings.Contains(got, "optional fixed_len_byte_array(9) wide (DECIMAL(19,4))") {
		t.Fatalf("shape:\n%s", got)
	}
	rg := library(f).RowGroups()[0]
	for i, v := range libraryValues(t, rg.ColumnChunks()[0]) {
		if got := fmt.Sprintf("%016x", uint64(v.Int64())); got != want[i] {
			t.Errorf("%s is %s, want %s", text[i], got, want[i])
		}
	}
	for i, v := range libraryValues(t, rg.ColumnChunks()[1]) {
		sign := "00"
		if want[i][0] == 'f' {
			sign = "ff"
		}
		if got := hex.EncodeToString(v.ByteArray()); got != sign+want[i] {
			t.Errorf("%s is %s, want %s", text[i], got, sign+want[i])
		}
	}
	for i, row := range arrowRows(t, data) {
		if v := strings.TrimSuffix(strings.TrimRight(text[i], "0"), "."); !strings.Contains(row, v) {
			t.Errorf("row %d reads as %s, want %s", i, row, text[i])
		}
	}
}

func libraryValues(t testing.TB, c parquet.ColumnChunk) []parquet.Value {
	t.Helper()
	pages := c.Pages()
	defer pages.Close()
	var out []parquet.Value
	for {
		p, err := pages.ReadPage()
		if err != nil {
			return out
		}
		values := make([]parquet.Value, p.NumValues())
		n, _ := p.Values().ReadValues(values)
		for _, v := range values[:n] {
			out = append(out, v.Clone())
		}
	}
}

// TestDecimalWidths: as few bytes as the precision needs (F4).
func TestDecimalWidths(t *testing.T) {
	for p := 1; p <= 38; p++ {
		most := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(p)), nil)
		want := most.Sub(most, big.NewInt(1)).BitLen()/8 + 1 // a bit for the sign
		if got := decimalWidth(p); got != want {
			t.Errorf("precision %d takes %d bytes, want %d", p, got, want)
		}
	}
}

// TestTimesBefore1970: microseconds and days are floored (case OD-01, F4).
func TestTimesBefore1970(t *testing.T) {
	_, _, f := written(t, []string{"ts timestamp", "d date"},
		`{"ts":"1969-12-31T23:59:59.5Z","d":"1969-12-31"}`, `{"ts":"1969-12-31T23:59:59.999999Z","d":"1969-12-31"}`,
		`{"ts":"1970-01-01T00:00:00Z","d":"1970-01-01"}`, `{"ts":"1965-07-04T00:00:00.25Z","d":"1965-07-04"}`)
	rg := library(f).RowGroups()[0]
	var ts, days []string
	for _, v := range libraryValues(t, rg.ColumnChunks()[0]) {
		ts = append(ts, v.String())
	}
	for _, v := range libraryValues(t, rg.ColumnChunks()[1]) {
		days = append(days, fmt.Sprint(v.Int32()))
	}
	if got := strings.Join(ts, " "); got != "-500000 -1 0 -141868799750000" {
		t.Errorf("microseconds %s", got)
	}
	if got := strings.Join(days, " "); got != "-1 -1 0 -1642" {
		t.Errorf("days %s", got)
	}
}

// TestTypesOtherReadersKnow: no nanoseconds, nothing unsigned (case RI-01, F4).
func TestTypesOtherReadersKnow(t *testing.T) {
	_, _, f := written(t, append([]string{"u64 decimal(20,0)", "u32 bigint"}, allTypes...),
		`{"u32":4294967295,"u64":"18446744073709551615","ts":"2024-01-15T10:30:00.123456Z"}`)
	got := shape(f)
	for _, bad := range []string{"NANOS", "UINT", "false)", "int96"} {
		if strings.Contains(strings.ReplaceAll(got, "isAdjustedToUTC=false", "false)"), bad) {
			t.Errorf("%s in:\n%s", bad, got)
		}
	}
	for _, want := range []string{"int64 ts (TIMESTAMP(isAdjustedToUTC=true,unit=MICROS))", "int32 day (DATE)", "int32 t (INT(8,true))",
		"int32 s (INT(16,true))", "int32 d5 (DECIMAL(5,2))", "binary str (STRING)", "binary bin;"} {
		if !strings.Contains(got, "optional "+want) {
			t.Errorf("no %q in:\n%s", want, got)
		}
	}
	if got := f.Meta()["writer.date.proleptic"]; got != "true" {
		t.Errorf("dates before 1582 are another day in Hive 4: writer.date.proleptic is %q", got)
	}
	// Hive reads no column of another type that has a length.
	for _, e := range library(f).Metadata().Schema {
		if e.TypeLength.Valid != (e.Type.Valid && e.Type.V == format.FixedLenByteArray) {
			t.Errorf("%s %v has length %v", e.Name, e.Type.V, e.TypeLength)
		}
	}
	if v := libraryValues(t, library(f).RowGroups()[0].ColumnChunks()[1])[0]; v.Int64() != 4294967295 {
		t.Errorf("u32 is %v", v)
	}
	if v := libraryValues(t, library(f).RowGroups()[0].ColumnChunks()[0])[0]; hex.EncodeToString(v.ByteArray()) != "00ffffffffffffffff" {
		t.Errorf("u64 is %x", v.ByteArray())
	}
}

// TestExactBoundaries: rows that fill row groups exactly leave no empty one
// behind (case EM-02, F1).
func TestExactBoundaries(t *testing.T) {
	rs := schemaOf(t, "id bigint")
	s := compiled(t, rs)
	for _, rows := range []int{RowGroupRows - 1, RowGroupRows, RowGroupRows + 1, 2 * RowGroupRows} {
		c := s.NewColumns()
		c.Append(numbered(rs, rows), nil)
		in := opened(t, encode(t, s, WriterOptions{Codec: "snappy", Hidden: true}, nil, c))
		var out bytes.Buffer
		info, err := s.Rewrite(context.Background(), []*File{in}, &out, WriterOptions{Codec: "zstd"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		var want []int64
		for left := rows; left > 0; left -= RowGroupRows {
			want = append(want, int64(min(left, RowGroupRows)))
		}
		f := opened(t, out.Bytes())
		if !slices.Equal(f.RowGroups(), want) || info.RowGroups != len(want) || info.Rows != int64(rows) {
			t.Errorf("%d rows: row groups %v (%+v), want %v", rows, f.RowGroups(), info, want)
		}
		if err := s.Verify(f, int64(rows)); err != nil {
			t.Errorf("%d rows: %v", rows, err)
		}
	}
}

// TestNoRows: no rows, no row group; the file is still a whole file (F1).
func TestNoRows(t *testing.T) {
	s := compiled(t, schemaOf(t, allTypes...))
	data := encode(t, s, WriterOptions{Codec: "zstd"}, map[string]string{"b": "2", "a": "1"}, s.NewColumns())
	f := opened(t, data)
	if len(f.RowGroups()) != 0 || f.Rows() != 0 {
		t.Fatalf("row groups %v", f.RowGroups())
	}
	if rows := arrowRows(t, data); len(rows) != 0 {
		t.Fatalf("rows %v", rows)
	}
	var out bytes.Buffer
	info, err := s.Rewrite(context.Background(), []*File{f, f}, &out, WriterOptions{Codec: "zstd"}, nil)
	if err != nil || info.RowGroups != 0 {
		t.Fatalf("%+v, %v", info, err)
	}
	if err := s.Verify(opened(t, out.Bytes()), 0); err != nil {
		t.Fatal(err)
	}
}

// TestMetadataIsSorted: the same file has the same bytes.
func TestMetadataIsSorted(t *testing.T) {
	s := compiled(t, schemaOf(t, "id bigint"))
	meta := map[string]string{}
	for i := range 50 {
		meta[fmt.Sprintf("k%02d", i)] = fmt.Sprint(i)
	}
	first := encode(t, s, WriterOptions{Codec: "zstd", CreatedBy: "hivesink version 1.2.3"}, meta)
	for range 5 {
		if !bytes.Equal(first, encode(t, s, WriterOptions{Codec: "zstd", CreatedBy: "hivesink version 1.2.3"}, meta)) {
			t.Fatal("the bytes differ from time to time")
		}
	}
	f := opened(t, first)
	if f.CreatedBy() != "hivesink version 1.2.3" {
		t.Errorf("created by %q", f.CreatedBy())
	}
	kv := library(f).Metadata().KeyValueMetadata
	if len(kv) != 50 || !slices.IsSortedFunc(kv, func(a, b format.KeyValue) int { return strings.Compare(a.Key, b.Key) }) {
		t.Errorf("metadata %v", kv)
	}
}

// TestNames: names that no Go program could have as fields.
func TestNames(t *testing.T) {
	names := []string{"1a", "a b", "a-b", "a_b", "日本", "_id", "type", "func", "größe"}
	var cols []string
	var cells []string
	for i, n := range names {
		cols = append(cols, "`"+n+"` struct<`"+n+"`:bigint>")
		cells = append(cells, fmt.Sprintf(`%q:{%q:%d}`, n, n, i))
	}
	s, data, f := written(t, cols, "{"+strings.Join(cells, ",")+"}")
	for i, n := range names {
		if want := fmt.Sprintf(`%s={"%s":%d}`, n, n, i); !strings.Contains(arrowRows(t, data)[0], want) {
			t.Errorf("no %s in %s", want, arrowRows(t, data)[0])
		}
	}
	if err := s.Verify(f, 1); err != nil {
		t.Error(err)
	}
}

// numbered is a batch of one bigint column: 0, 1, 2, …
func numbered(rs *record.Schema, n int) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.DefaultAllocator, rs.Arrow)
	for i := range n {
		b.Field(0).(*array.Int64Builder).Append(int64(i))
	}
	return b.NewRecordBatch()
}

// TestLargeRows: row groups end by bytes too, and a rewrite moves few large
// rows at once (F1, F5).
func TestLargeRows(t *testing.T) {
	rs := schemaOf(t, "s string")
	s := compiled(t, rs)
	var files []*File
	row := strings.Repeat("x", 1<<20)
	for k := range 3 {
		b := array.NewRecordBuilder(memory.DefaultAllocator, rs.Arrow)
		for i := range 30 {
			b.Field(0).(*array.StringBuilder).Append(fmt.Sprint(k, i) + row)
		}
		c := s.NewColumns()
		c.Append(b.NewRecordBatch(), nil)
		files = append(files, opened(t, encode(t, s, WriterOptions{Codec: "snappy", Hidden: true}, nil, c)))
	}
	var out bytes.Buffer
	info, err := s.Rewrite(context.Background(), files, &out, WriterOptions{Codec: "snappy"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	groups := library(opened(t, out.Bytes())).Metadata().RowGroups
	if info.Rows != 90 || len(groups) != 2 {
		t.Fatalf("%+v, %d row groups", info, len(groups))
	}
	if n := groups[0].TotalByteSize; n < RowGroupBytes || n > RowGroupBytes+2*stepBytes {
		t.Errorf("the first row group has %d bytes", n)
	}
}

// library is a file as the library opens it.
func library(f *File) *parquet.File {
	pq, err := parquet.OpenFile(f.r, f.size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		panic(err)
	}
	return pq
}
