package parquetfile

import (
	"bytes"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/metadata"
	"github.com/parquet-go/parquet-go"

	"github.com/hivesink/hivesink/record"
)

// otherStatistics are a chunk's statistics as another library reads them.
func otherStatistics(t testing.TB, data []byte, leaf int) metadata.TypedStatistics {
	t.Helper()
	pf, err := file.NewParquetReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	c, err := pf.MetaData().RowGroup(0).ColumnChunk(leaf)
	if err != nil {
		t.Fatal(err)
	}
	st, err := c.Statistics()
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// indexOf is a chunk's page index.
func indexOf(t testing.TB, data []byte, leaf int) (parquet.ColumnIndex, parquet.OffsetIndex) {
	t.Helper()
	f, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	c := f.RowGroups()[0].ColumnChunks()[leaf]
	x, err := c.ColumnIndex()
	if err != nil && err != parquet.ErrMissingColumnIndex {
		t.Fatal(err)
	}
	o, err := c.OffsetIndex()
	if err != nil {
		t.Fatal(err)
	}
	return x, o
}

func doubles(t testing.TB, values ...float64) []byte {
	t.Helper()
	rs := schemaOf(t, "d double", "f float")
	b := array.NewRecordBuilder(memory.DefaultAllocator, rs.Arrow)
	for _, v := range values {
		b.Field(0).(*array.Float64Builder).Append(v)
		b.Field(1).(*array.Float32Builder).Append(float32(v))
	}
	s := compiled(t, rs)
	c := s.NewColumns()
	c.Append(b.NewRecordBatch(), nil)
	return encode(t, s, WriterOptions{Codec: "zstd"}, nil, c)
}

// TestStatisticsOfDoubles: never NaN, and a zero bound covers both zeros (case
// JS-02, F8).
func TestStatisticsOfDoubles(t *testing.T) {
	nan, minus := math.NaN(), math.Copysign(0, -1)
	for _, c := range []struct {
		values   []float64
		min, max float64
		none     bool
	}{
		{values: []float64{nan, 1, 2}, min: 1, max: 2},
		{values: []float64{1, nan, -2}, min: -2, max: 1},
		{values: []float64{nan, nan}, none: true},
		{values: []float64{0}, min: minus, max: 0},
		{values: []float64{minus}, min: minus, max: 0},
		{values: []float64{minus, 2.5}, min: minus, max: 2.5},
		{values: []float64{-1, minus}, min: -1, max: 0},
		{values: []float64{math.Inf(1), nan}, min: math.Inf(1), max: math.Inf(1)},
		{values: []float64{math.Inf(-1), 0}, min: math.Inf(-1), max: 0},
	} {
		data := doubles(t, c.values...)
		st := otherStatistics(t, data, 0).(*metadata.Float64Statistics)
		f32 := otherStatistics(t, data, 1).(*metadata.Float32Statistics)
		x, _ := indexOf(t, data, 0)
		if c.none {
			if st.HasMinMax() || f32.HasMinMax() || x != nil {
				t.Errorf("%v has bounds: %v, %v, index %v", c.values, st, f32, x)
			}
			continue
		}
		same := func(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) }
		if !st.HasMinMax() || !same(st.Min(), c.min) || !same(st.Max(), c.max) {
			t.Errorf("%v: %v to %v, want %v to %v", c.values, st.Min(), st.Max(), c.min, c.max)
		}
		if !same(float64(f32.Min()), c.min) || !same(float64(f32.Max()), c.max) {
			t.Errorf("%v as float: %v to %v", c.values, f32.Min(), f32.Max())
		}
		if !same(x.MinValue(0).Double(), c.min) || !same(x.MaxValue(0).Double(), c.max) {
			t.Errorf("%v: index %v to %v, want %v to %v", c.values, x.MinValue(0), x.MaxValue(0), c.min, c.max)
		}
	}
}

// TestStatisticsOfTexts: bounds are true bounds and valid UTF-8, also where
// they are cut (case UT-01, F8).
func TestStatisticsOfTexts(t *testing.T) {
	long := func(s string, n int) string { return strings.Repeat(s, n) }
	for _, values := range [][]string{
		{""}, {"", "a"}, {"a\x00b"}, {long("x", 63)}, {long("x", 64)}, {long("x", 65)},
		{long("€", 40)}, {"a" + long("€", 40)}, {"ab" + long("€", 40), "ab" + long("€", 39)},
		{long("\U0010ffff", 30)}, {"z", long("\U0010ffff", 17)}, {long("a", 61) + "\U0010ffff\U0010ffff"},
		{long("\ud7ff", 30)}, {long("\x7f", 70)}, {long("q", 300), "r"},
	} {
		rows := make([]string, len(values))
		for i, v := range values {
			rows[i] = fmt.Sprintf(`{"s":%s}`, jsonText(v))
		}
		_, data, _ := written(t, []string{"s string"}, rows...)
		lo, hi := values[0], values[0]
		for _, v := range values {
			lo, hi = min(lo, v), max(hi, v)
		}
		x, _ := indexOf(t, data, 0)
		from, to := string(x.MinValue(0).ByteArray()), string(x.MaxValue(0).ByteArray())
		if from > lo || to < hi || !utf8.ValidString(from) || !utf8.ValidString(to) {
			t.Errorf("%.20q…: index says %q to %q", values, from, to)
		}
		if len(to) > indexText+utf8.UTFMax && !strings.HasPrefix(hi, long("\U0010ffff", 16)) {
			t.Errorf("%.20q…: the index keeps %d bytes", values, len(to))
		}
		st, ok := otherStatistics(t, data, 0).(*metadata.ByteArrayStatistics)
		switch exact := len(lo) <= statisticsText && len(hi) <= statisticsText; {
		case exact && (!ok || !st.HasMinMax() || string(st.Min()) != lo || string(st.Max()) != hi):
			t.Errorf("%.20q…: statistics %v", values, st)
		case !exact && ok && st.HasMinMax():
			t.Errorf("%.20q…: statistics of long texts: %q to %q", values, st.Min(), st.Max())
		}
	}
}

func jsonText(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		if r < ' ' {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// randomBatch has every flat type, nulls in runs, NaN, long texts of all kinds
// of characters, and a column whose first pages are null.
func randomBatch(rs *record.Schema, n int, rnd *rand.Rand) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.DefaultAllocator, rs.Arrow)
	runes := []rune("abc€ßzÿ\U0010ffff日\x00")
	text := func(most int) string {
		out := make([]rune, rnd.IntN(most))
		for i := range out {
			out[i] = runes[rnd.IntN(len(runes))]
		}
		return string(out)
	}
	for c := range rs.Arrow.NumFields() {
		null := false
		for i := range n {
			if i%1000 == 0 {
				null = rnd.IntN(3) == 0
			}
			if null && rnd.IntN(4) > 0 || c == 0 && i < 2*pageRows {
				b.Field(c).AppendNull()
				continue
			}
			switch f := b.Field(c).(type) {
			case *array.StringBuilder:
				if rs.Columns[c].Name == "few" {
					f.Append(fmt.Sprint("v", rnd.IntN(20)+i/1000))
				} else {
					f.Append(text(200))
				}
			case *array.BinaryBuilder:
				f.Append(append([]byte{0xff, 0xff}, text(100)...))
			case *array.Int64Builder:
				f.Append(int64(rnd.Uint64()) >> rnd.IntN(64))
			case *array.Int32Builder:
				f.Append(int32(rnd.Uint32()))
			case *array.Float64Builder:
				f.Append([]float64{math.NaN(), 0, math.Copysign(0, -1), rnd.NormFloat64(), math.Inf(-1)}[rnd.IntN(5)])
			case *array.BooleanBuilder:
				f.Append(rnd.IntN(1000) == 0)
			case *array.Decimal128Builder:
				f.Append(decimal128.New(int64(rnd.Uint64())>>(12+rnd.IntN(50)), rnd.Uint64()))
			default:
				panic(fmt.Sprintf("no values for %T", f))
			}
		}
	}
	return b.NewRecordBatch()
}

// TestPageIndex compares the page index with every value: rows, nulls, bounds
// and offsets of each page (F8).
func TestPageIndex(t *testing.T) {
	rs := schemaOf(t, "late string", "few string", "s string", "x binary", "l bigint", "i int", "d double", "b boolean", "m decimal(38,2)")
	rnd := rand.New(rand.NewPCG(1, 2))
	rec := randomBatch(rs, 3*pageRows+17, rnd)
	s := compiled(t, rs)
	c := s.NewColumns()
	c.Append(rec, nil)
	data := encode(t, s, WriterOptions{Codec: "snappy"}, nil, c)
	if got := arrowRows(t, data); len(got) != int(rec.NumRows()) || got[77] != rowText(rec, 77) || got[3*pageRows] != rowText(rec, 3*pageRows) {
		t.Fatal("another reader sees other rows")
	}
	f, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	for k, chunk := range f.RowGroups()[0].ColumnChunks() {
		name := rs.Columns[k].Name
		x, o := indexOf(t, data, k)
		values := libraryValues(t, chunk)
		if len(values) != int(rec.NumRows()) || o.NumPages() < 4 {
			t.Fatalf("%s: %d values in %d pages", name, len(values), o.NumPages())
		}
		for p := range o.NumPages() {
			to := rec.NumRows()
			if p+1 < o.NumPages() {
				to = o.FirstRowIndex(p + 1)
			}
			checkPage(t, fmt.Sprintf("%s, page %d", name, p), x, p, values[o.FirstRowIndex(p):to], chunk.Type())
		}
		st := f.Metadata().RowGroups[0].Columns[k].MetaData.Statistics
		if chunk.Type().Kind() == parquet.Double || name == "s" || name == "late" || name == "x" {
			continue // NaN; long texts
		}
		lo, hi := extremeValues(chunk.Type(), values)
		if !bytes.Equal(st.MinValue, lo.Bytes()) || !bytes.Equal(st.MaxValue, hi.Bytes()) {
			t.Errorf("%s: statistics %x to %x, want %x to %x", name, st.MinValue, st.MaxValue, lo.Bytes(), hi.Bytes())
		}
	}
}

func extremeValues(typ parquet.Type, values []parquet.Value) (lo, hi parquet.Value) {
	for _, v := range values {
		if v.IsNull() {
			continue
		}
		if lo.IsNull() || compare(typ, v, lo) < 0 {
			lo = v
		}
		if hi.IsNull() || compare(typ, v, hi) > 0 {
			hi = v
		}
	}
	return lo, hi
}

func rowText(rec arrow.RecordBatch, i int) string {
	cells := make([]string, rec.NumCols())
	for c := range cells {
		cells[c] = rec.ColumnName(c) + "=" + rec.Column(c).ValueStr(i)
	}
	return strings.Join(cells, " ")
}

func checkPage(t *testing.T, what string, x parquet.ColumnIndex, p int, values []parquet.Value, typ parquet.Type) {
	t.Helper()
	nulls, nans := int64(0), 0
	for _, v := range values {
		switch {
		case v.IsNull():
			nulls++
		case v.Kind() == parquet.Double && math.IsNaN(v.Double()):
			nans++
		case compare(typ, x.MinValue(p), v) > 0 || compare(typ, x.MaxValue(p), v) < 0:
			t.Fatalf("%s: %v is outside %v to %v", what, v, x.MinValue(p), x.MaxValue(p))
		}
	}
	if x.NullCount(p) != nulls || x.NullPage(p) != (nulls == int64(len(values))) {
		t.Fatalf("%s: %d nulls (null page: %v) of %d, want %d", what, x.NullCount(p), x.NullPage(p), len(values), nulls)
	}
}

// compare is the standard's order: of decimals that of their numbers, which the
// library takes for bytes.
func compare(typ parquet.Type, a, b parquet.Value) int {
	if typ.Kind() == parquet.FixedLenByteArray {
		return number(a.ByteArray()).Cmp(number(b.ByteArray()))
	}
	return typ.Compare(a, b)
}

// number is a big-endian two's complement number.
func number(b []byte) *big.Int {
	v := new(big.Int).SetBytes(b)
	if b[0] >= 0x80 {
		v.Sub(v, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
	}
	return v
}

// TestHiddenPartsHaveNoStatistics: nobody looks for anything in them.
func TestHiddenPartsHaveNoStatistics(t *testing.T) {
	rs := schemaOf(t, "id bigint", "s string")
	s := compiled(t, rs)
	c := s.NewColumns()
	c.Append(fromJSON(t, rs, `{"id":1,"s":"x"}`, `{"id":2,"s":"x"}`), nil)
	data := encode(t, s, WriterOptions{Codec: "none", Hidden: true}, nil, c)
	if x, _ := indexOf(t, data, 0); x != nil {
		t.Errorf("a hidden part has a column index: %v", x)
	}
	if st := otherStatistics(t, data, 0); st != nil && st.HasMinMax() {
		t.Errorf("a hidden part has bounds: %v", st)
	}
}

// TestDictionaryOnlyWhereValuesRepeat (F9).
func TestDictionaryOnlyWhereValuesRepeat(t *testing.T) {
	rs := schemaOf(t, "many string", "few string", "one string")
	b := array.NewRecordBuilder(memory.DefaultAllocator, rs.Arrow)
	for i := range 50000 {
		b.Field(0).(*array.StringBuilder).Append(fmt.Sprintf("value-%d", i))
		b.Field(1).(*array.StringBuilder).Append(fmt.Sprintf("value-%d", i%200))
		b.Field(2).(*array.StringBuilder).Append("the same")
	}
	s := compiled(t, rs)
	c := s.NewColumns()
	c.Append(b.NewRecordBatch(), nil)
	f := opened(t, encode(t, s, WriterOptions{Codec: "none"}, nil, c))
	for k, want := range []bool{false, true, true} {
		m := library(f).Metadata().RowGroups[0].Columns[k].MetaData
		if got := m.DictionaryPageOffset > 0; got != want {
			t.Errorf("%s: dictionary %v, want %v", rs.Columns[k].Name, got, want)
		}
		if want && m.TotalCompressedSize > 60000 {
			t.Errorf("%s takes %d bytes", rs.Columns[k].Name, m.TotalCompressedSize)
		}
	}
}

// TestPageHeadersCountNulls: their statistics say how many nulls a page has,
// hidden or not.
func TestPageHeadersCountNulls(t *testing.T) {
	rs := schemaOf(t, "id bigint")
	s := compiled(t, rs)
	for _, hidden := range []bool{false, true} {
		c := s.NewColumns()
		c.Append(fromJSON(t, rs, `{"id":1}`, `{"id":null}`, `{"id":null}`), nil)
		f := opened(t, encode(t, s, WriterOptions{Codec: "none", Hidden: hidden}, nil, c))
		e := f.groups()[0].columns[0].pages()
		var p rawPage
		if _, err := nextPage(f.all(t)[e.from:e.to], &p); err != nil {
			t.Fatal(err)
		}
		if p.stats.nulls != 2 {
			t.Errorf("hidden %v: the page says %d nulls, want 2", hidden, p.stats.nulls)
		}
	}
}
