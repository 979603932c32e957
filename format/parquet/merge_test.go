package parquetfile

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	lib "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

func merged(t testing.TB, inputs []*File, o JoinOptions) []byte {
	t.Helper()
	var b bytes.Buffer
	info, err := Merge(context.Background(), inputs, &b, o)
	if err != nil {
		t.Fatal(err)
	}
	if info.Bytes != int64(b.Len()) {
		t.Fatalf("Info says %d bytes, the file has %d", info.Bytes, b.Len())
	}
	return b.Bytes()
}

// TestMerge: the rows are the inputs' rows in order, in one row group, and all
// that the footer and the page index say is true (F2, F8, F11).
func TestMerge(t *testing.T) {
	for name, inputs := range joinInputs(t) {
		for _, o := range []JoinOptions{{Codec: "zstd", KeepCodec: true}, {Codec: "zstd"}, {Codec: "none"}} {
			t.Run(fmt.Sprintf("%s, %s %v", name, o.Codec, o.KeepCodec), func(t *testing.T) {
				data := merged(t, inputs, o)
				var want []string
				for _, in := range inputs {
					want = append(want, arrowRows(t, in.all(t))...)
				}
				sameRows(t, arrowRows(t, data), want)
				out := opened(t, data)
				if err := Same([]*File{inputs[0], out}); err != nil {
					t.Fatal(err)
				}
				if got := out.RowGroups(); len(got) != 1 || got[0] != int64(len(want)) {
					t.Fatalf("row groups %v, want one of %d", got, len(want))
				}
				if !o.KeepCodec {
					for i, c := range out.groups()[0].columns {
						if codec, _ := codecOf(o.Codec); c.codec != codec.CompressionCodec() {
							t.Fatalf("column %d is in codec %s", i, c.codec)
						}
					}
				}
				checkFacts(t, data)
			})
		}
	}
}

func sameRows(t testing.TB, got, want []string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d rows, want %d", len(got), len(want))
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("row %d:\n got %s\nwant %s", i, got[i], want[i])
		}
	}
}

// checkFacts reads every value with another reader, and compares the counts of
// nulls, the page index and the statistics with them (F8).
func checkFacts(t testing.TB, data []byte) {
	t.Helper()
	checkIndexes(t.(*testing.T), data)
	f, err := lib.OpenFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	for g, rg := range f.RowGroups() {
		for k, chunk := range rg.ColumnChunks() {
			what := fmt.Sprintf("row group %d, column %d", g, k)
			meta := &f.Metadata().RowGroups[g].Columns[k].MetaData
			values := libraryValues(t, chunk)
			if int64(len(values)) != meta.NumValues {
				t.Fatalf("%s: %d values, the footer says %d", what, len(values), meta.NumValues)
			}
			nulls := int64(0)
			for _, v := range values {
				if v.IsNull() {
					nulls++
				}
			}
			if meta.Statistics.NullCount != nulls {
				t.Fatalf("%s: %d nulls, the footer says %d", what, nulls, meta.Statistics.NullCount)
			}
			typ := chunk.Type()
			less := orderForTest(typ)
			if st := meta.Statistics; st.MinValue != nil && less != nil {
				lo, hi := extremesForTest(values, less)
				if !bytes.Equal(st.MinValue, zeroed(lo, -1)) || !bytes.Equal(st.MaxValue, zeroed(hi, 1)) {
					t.Fatalf("%s: statistics %x to %x, the values are %x to %x", what, st.MinValue, st.MaxValue, lo.Bytes(), hi.Bytes())
				}
			}
			o, err := chunk.OffsetIndex()
			if err != nil || o == nil {
				t.Fatalf("%s: no offset index: %v", what, err)
			}
			x, err := chunk.ColumnIndex()
			if err != nil || x == nil {
				continue // floats that are all NaN; types without order
			}
			at := 0
			for p := range o.NumPages() {
				to := len(values)
				if p+1 < o.NumPages() {
					to = levelOfRow(values, int(o.FirstRowIndex(p+1)))
				}
				checkPageFacts(t, fmt.Sprintf("%s, page %d", what, p), x, p, values[at:to], less)
				at = to
			}
		}
	}
}

func checkPageFacts(t testing.TB, what string, x lib.ColumnIndex, p int, values []lib.Value, less func(a, b lib.Value) int) {
	t.Helper()
	nulls := int64(0)
	for _, v := range values {
		if v.IsNull() {
			nulls++
			continue
		}
		if less == nil || isNaN(v) {
			continue
		}
		if less(x.MinValue(p), v) > 0 || less(x.MaxValue(p), v) < 0 {
			t.Fatalf("%s: %v is outside %v to %v", what, v, x.MinValue(p), x.MaxValue(p))
		}
	}
	if x.NullCount(p) != nulls || x.NullPage(p) != (nulls == int64(len(values))) {
		t.Fatalf("%s: %d nulls (null page: %v) of %d, want %d", what, x.NullCount(p), x.NullPage(p), len(values), nulls)
	}
}

func isNaN(v lib.Value) bool {
	return v.Kind() == lib.Double && math.IsNaN(v.Double()) || v.Kind() == lib.Float && math.IsNaN(float64(v.Float()))
}

// levelOfRow is where a row begins among the levels.
func levelOfRow(values []lib.Value, row int) int {
	n := -1
	for i, v := range values {
		if v.RepetitionLevel() == 0 {
			n++
		}
		if n == row {
			return i
		}
	}
	return len(values)
}

// orderForTest is the specification's order; nil: none.
func orderForTest(typ lib.Type) func(a, b lib.Value) int {
	lt := typ.LogicalType()
	if typ.Kind() == lib.Int96 {
		return nil
	}
	if lt != nil {
		if _, ok := lt.Value.(*format.DecimalType); ok && typ.Kind() == lib.FixedLenByteArray {
			return func(a, b lib.Value) int { return number(a.ByteArray()).Cmp(number(b.ByteArray())) }
		}
	}
	return typ.Compare
}

func extremesForTest(values []lib.Value, less func(a, b lib.Value) int) (lo, hi lib.Value) {
	for _, v := range values {
		if v.IsNull() || isNaN(v) {
			continue
		}
		if lo.IsNull() || less(v, lo) < 0 {
			lo = v
		}
		if hi.IsNull() || less(v, hi) > 0 {
			hi = v
		}
	}
	return lo, hi
}

// zeroed is a value as statistics have it: a zero with the given sign.
func zeroed(v lib.Value, sign float64) []byte {
	switch {
	case v.Kind() == lib.Double && v.Double() == 0:
		return lib.DoubleValue(math.Copysign(0, sign)).Bytes()
	case v.Kind() == lib.Float && v.Float() == 0:
		return lib.FloatValue(float32(math.Copysign(0, sign))).Bytes()
	}
	return v.Bytes()
}

// TestMergeMovesPages: pages of large columns are the inputs' pages, whoever
// wrote them (F11).
func TestMergeMovesPages(t *testing.T) {
	as := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}, {Name: "f", Type: arrow.PrimitiveTypes.Float64, Nullable: true}}, nil)
	for _, options := range [][]parquet.WriterProperty{
		{parquet.WithDictionaryDefault(false), parquet.WithCompression(compress.Codecs.Snappy), parquet.WithDataPageSize(1 << 20)},
		{parquet.WithDictionaryDefault(false), parquet.WithCompression(compress.Codecs.Zstd), parquet.WithDataPageVersion(parquet.DataPageV2), parquet.WithDataPageSize(1 << 20)},
		{parquet.WithDictionaryDefault(false), parquet.WithEncodingFor("id", parquet.Encodings.DeltaBinaryPacked), parquet.WithDataPageSize(1 << 20)},
	} {
		var inputs []*File
		for i := range 4 {
			inputs = append(inputs, foreign(t, as, 1<<20, append(slices.Clone(options), parquet.WithDataPageSize(1<<20)), foreignBatch(as, 5000, uint64(i))))
		}
		data := merged(t, inputs, JoinOptions{Codec: "zstd", KeepCodec: true})
		for i, in := range inputs {
			for k, c := range in.groups()[0].columns {
				e := c.pages()
				pages := in.all(t)[e.from:e.to]
				if len(pages) == 0 {
					t.Fatal("no pages")
				}
				if !bytes.Contains(data, pages) {
					t.Errorf("input %d, column %d: its pages are not in the output", i, k)
				}
			}
		}
		checkFacts(t, data)
	}
}

// TestMergeUnifiesDictionaries: one dictionary of all, without double entries;
// numbers in it are small again (F9, F11).
func TestMergeUnifiesDictionaries(t *testing.T) {
	as := arrow.NewSchema([]arrow.Field{{Name: "s", Type: arrow.BinaryTypes.String, Nullable: true}, {Name: "n", Type: arrow.PrimitiveTypes.Int32}}, nil)
	var inputs []*File
	for i := range 8 {
		inputs = append(inputs, foreign(t, as, 1<<20, []parquet.WriterProperty{parquet.WithDictionaryDefault(true)}, foreignBatch(as, 3000, uint64(i))))
	}
	data := merged(t, inputs, JoinOptions{Codec: "snappy", KeepCodec: true})
	f, err := lib.OpenFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	for k, chunk := range f.RowGroups()[0].ColumnChunks() {
		pages := chunk.Pages()
		p, err := pages.ReadPage()
		if err != nil {
			t.Fatal(err)
		}
		if p.Dictionary() == nil || p.Dictionary().Len() != 9 {
			t.Errorf("column %d: dictionary %v, want one of 9", k, p.Dictionary())
		}
		pages.Close()
	}
	checkFacts(t, data)
}

// TestMergeGivesUpDictionaries: of values that hardly repeat a dictionary is
// written no more, and the file is not larger than a fresh one (F9).
func TestMergeGivesUpDictionaries(t *testing.T) {
	rs := schemaOf(t, "id bigint", "s string", "rare string", "city string")
	as := rs.Arrow
	s := compiled(t, rs)
	var inputs []*File
	for i := range 20 {
		b := newBuilder(as)
		for k := range 4000 {
			n := i*4000 + k
			b.append(int64(n), fmt.Sprintf("name-%08x", n*2654435761), fmt.Sprintf("rare-%d", (n*7919)%3000), fmt.Sprintf("city-%d", n%50))
		}
		inputs = append(inputs, foreign(t, as, 1<<20, []parquet.WriterProperty{parquet.WithDictionaryDefault(true), parquet.WithCompression(compress.Codecs.Snappy)}, b.batch()))
	}
	data := merged(t, inputs, JoinOptions{Codec: "snappy"})
	out := opened(t, data)
	var dict []bool
	for _, c := range out.groups()[0].columns {
		dict = append(dict, c.dictionary > 0)
	}
	if want := []bool{false, false, true, true}; !slices.Equal(dict, want) {
		t.Errorf("dictionaries %v, want %v", dict, want)
	}
	var fresh bytes.Buffer
	if _, err := s.Rewrite(context.Background(), inputs, &fresh, WriterOptions{Codec: "snappy"}, nil); err != nil {
		t.Fatal(err)
	}
	if float64(len(data)) > 1.05*float64(fresh.Len()) {
		t.Errorf("%d bytes, a fresh file has %d", len(data), fresh.Len())
	}
	sameRows(t, arrowRows(t, data), arrowRows(t, fresh.Bytes()))
	checkFacts(t, data)
}

// TestMergeKeepsLargeGroups: what is large is copied, what is small is joined,
// and order is kept (F2).
func TestMergeKeepsLargeGroups(t *testing.T) {
	rs := schemaOf(t, "id bigint")
	s := compiled(t, rs)
	var inputs []*File
	next := 0
	var want []int64
	for _, groups := range [][]int{{100, 200}, {keptRows + 5, 7}, {9, keptRows}, {RowGroupRows - 10}, {5}, {6}} {
		var cs []*Columns
		for _, n := range groups {
			b := newBuilder(rs.Arrow)
			for range n {
				b.append(int64(next))
				want = append(want, int64(next))
				next++
			}
			c := s.NewColumns()
			c.Append(b.batch(), nil)
			cs = append(cs, c)
		}
		inputs = append(inputs, opened(t, encode(t, s, WriterOptions{Codec: "snappy"}, nil, cs...)))
	}
	if mode, why := Advise(inputs, JoinOptions{Codec: "snappy"}); mode != ModeMerge || why == "" {
		t.Errorf("advised %s, %s", mode, why)
	}
	info, err := Merge(context.Background(), inputs, io.Discard, JoinOptions{Codec: "snappy"})
	if err != nil || info.RowGroups != 6 || info.Copied != 3 {
		t.Errorf("%+v, %v; want 6 row groups, 3 of them copied", info, err)
	}
	out := opened(t, merged(t, inputs, JoinOptions{Codec: "snappy"}))
	if got, want := out.RowGroups(), []int64{300, keptRows + 5, 16, keptRows, RowGroupRows - 10, 11}; !slices.Equal(got, want) {
		t.Errorf("row groups %v, want %v", got, want)
	}
	c := s.NewColumns()
	r, err := s.NewReader(out)
	if err != nil {
		t.Fatal(err)
	}
	for r.Left() > 0 {
		if _, err := r.Read(c, 1000); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(c.leaves[0].i64, want) {
		t.Error("other rows, or another order")
	}
	// A second time there is nothing to do.
	if mode, _ := Advise(inputs[2:3], JoinOptions{Codec: "snappy"}); mode != ModeCopy {
		t.Errorf("one file is advised to %s", mode)
	}
	if mode, _ := Advise(inputs[2:3], JoinOptions{Codec: "zstd"}); mode != ModeMerge {
		t.Errorf("one file of another codec is advised to %s", mode)
	}
}

// TestSchemaMerge: columns go by name; what has another type or is missing is
// decoded, it alone, and the rest is moved (F3, F11).
func TestSchemaMerge(t *testing.T) {
	old := schemaOf(t, "n int", "s string", "id bigint", "o struct<a:int>", "l array<struct<x:string>>")
	now := schemaOf(t, "id bigint", "n bigint", "s string", "new double", "o struct<a:int,b:string>", "l array<struct<x:string,y:int>>")
	a, b := compiled(t, old), compiled(t, now)
	var inputs []*File
	for i := range 3 {
		s, rs := a, old
		if i == 1 {
			s, rs = b, now
		}
		c := s.NewColumns()
		c.Append(foreignBatch(rs.Arrow, 4000, uint64(i)), nil)
		inputs = append(inputs, opened(t, encode(t, s, WriterOptions{Codec: "snappy"}, nil, c)))
	}
	var got, want bytes.Buffer
	if _, err := b.Merge(context.Background(), inputs, &got, JoinOptions{Codec: "snappy"}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Rewrite(context.Background(), inputs, &want, WriterOptions{Codec: "snappy"}, nil); err != nil {
		t.Fatal(err)
	}
	sameRows(t, arrowRows(t, got.Bytes()), arrowRows(t, want.Bytes()))
	out := opened(t, got.Bytes())
	if err := b.Verify(out, 12000); err != nil {
		t.Fatal(err)
	}
	for i, in := range inputs {
		k := 2
		if i == 1 {
			k = 0
		}
		e := in.groups()[0].columns[k].pages()
		if !bytes.Contains(got.Bytes(), in.all(t)[e.from:e.to]) {
			t.Errorf("input %d: the pages of id are not in the output", i)
		}
	}
	checkFacts(t, got.Bytes())
}

// TestMergeRefusesOtherSchemas: package Merge has no table to go by.
func TestMergeRefusesOtherSchemas(t *testing.T) {
	a := compiled(t, schemaOf(t, "id bigint"))
	b := compiled(t, schemaOf(t, "id int"))
	files := []*File{opened(t, encode(t, a, WriterOptions{Codec: "zstd"}, nil)), opened(t, encode(t, b, WriterOptions{Codec: "zstd"}, nil))}
	for _, join := range []func(context.Context, []*File, io.Writer, JoinOptions) (Info, error){Merge, Copy} {
		_, err := join(context.Background(), files, io.Discard, JoinOptions{Codec: "zstd"})
		if err == nil || !strings.Contains(err.Error(), "input 1 has") {
			t.Errorf("error %v", err)
		}
	}
}

// BenchmarkMerge joins 250,000 rows, opening the files included; what the
// bytes of a fresh file are is reported beside.
func BenchmarkMerge(b *testing.B) {
	const rows = 250000
	rs, rec := benchBatch(rows)
	s := compiled(b, rs)
	ours := func(o WriterOptions) func(from, n int) []byte {
		return func(from, n int) []byte {
			c := s.NewColumns()
			c.Append(rec.NewSlice(int64(from), int64(from+n)), nil)
			return encode(b, s, o, nil, c)
		}
	}
	arrows := func(options ...parquet.WriterProperty) func(from, n int) []byte {
		return func(from, n int) []byte {
			return foreign(b, rs.Arrow, 1<<20, append(options, parquet.WithDataPageSize(1<<20)), rec.NewSlice(int64(from), int64(from+n))).all(b)
		}
	}
	for _, w := range []struct {
		name  string
		codec string
		write func(from, n int) []byte
	}{
		{"arrow snappy", "snappy", arrows(parquet.WithCompression(compress.Codecs.Snappy))},
		{"ours snappy", "snappy", ours(WriterOptions{Codec: "snappy"})},
		{"ours zstd", "zstd", ours(WriterOptions{Codec: "zstd"})},
		{"hidden", "zstd", ours(WriterOptions{Codec: "none", Hidden: true})},
	} {
		for _, n := range []int{500, 5000, 50000} {
			var data [][]byte
			for at := 0; at < rows; at += n {
				data = append(data, w.write(at, n))
			}
			open := func() (files []*File) {
				for _, d := range data {
					files = append(files, opened(b, d))
				}
				return files
			}
			var fresh counter
			fresh.w = io.Discard
			if _, err := s.Rewrite(context.Background(), open(), &fresh, WriterOptions{Codec: w.codec}, nil); err != nil {
				b.Fatal(err)
			}
			for _, mode := range []string{"merge", "rewrite"} {
				b.Run(fmt.Sprintf("%s/%d/%s", w.name, n, mode), func(b *testing.B) {
					b.ReportAllocs()
					var out counter
					cpu := cpuForTest()
					for b.Loop() {
						out = counter{w: io.Discard}
						var err error
						if mode == "merge" {
							_, err = Merge(context.Background(), open(), &out, JoinOptions{Codec: w.codec})
						} else {
							_, err = s.Rewrite(context.Background(), open(), &out, WriterOptions{Codec: w.codec}, nil)
						}
						if err != nil {
							b.Fatal(err)
						}
					}
					b.ReportMetric(float64(rows)*float64(b.N)/(cpuForTest()-cpu)/1e6, "Mrows/CPUs")
					b.ReportMetric(float64(out.n)/float64(fresh.n), "size/fresh")
				})
			}
		}
	}
}

// cpuForTest is the process's CPU time in seconds: other processes do not
// count.
func cpuForTest() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

// TestMergeNoticesDamage: a byte that is another one is an error, or nothing
// that a row depends on; never a panic (F7).
func TestMergeNoticesDamage(t *testing.T) {
	rs := schemaOf(t, "id bigint", "s string", "l array<int>", "city string")
	s := compiled(t, rs)
	c := s.NewColumns()
	c.Append(foreignBatch(rs.Arrow, 2500, 3), nil)
	ours := encode(t, s, WriterOptions{Codec: "snappy"}, nil, c)
	as := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}, {Name: "s", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "l", Type: arrow.ListOf(arrow.PrimitiveTypes.Int32), Nullable: true}}, nil)
	theirs := foreign(t, as, 1<<20, []parquet.WriterProperty{parquet.WithCompression(compress.Codecs.Snappy), parquet.WithPageIndexEnabled(true)}, foreignBatch(as, 2500, 4)).all(t)
	for name, data := range map[string][]byte{"ours": ours, "theirs": theirs} {
		want := arrowRows(t, data)
		noticed, same := 0, 0
		for at := 4; at < len(data)-8; at += 1 + len(data)/400 {
			bad := bytes.Clone(data)
			bad[at] ^= 0x41
			f, err := Open(bytes.NewReader(bad), int64(len(bad)))
			if err != nil {
				noticed++
				continue
			}
			var b bytes.Buffer
			if _, err := Merge(context.Background(), []*File{f, opened(t, data)}, &b, JoinOptions{Codec: "snappy"}); err != nil {
				noticed++
				continue
			}
			if name == "theirs" {
				continue // without checksums: other values are not seen
			}
			got, err := tryArrowRows(b.Bytes())
			if err != nil {
				t.Fatalf("%s, byte %d: the output cannot be read: %v", name, at, err)
			}
			sameRows(t, got, slices.Concat(want, want))
			same++
		}
		if noticed == 0 {
			t.Errorf("%s: no damage was noticed", name)
		}
		t.Logf("%s: %d noticed, %d without effect", name, noticed, same)
	}
}

// FuzzMerge: whatever the bytes are, there is no panic (F7).
func FuzzMerge(f *testing.F) {
	rs := schemaOf(f, "id bigint", "s string", "l array<int>")
	s := compiled(f, rs)
	c := s.NewColumns()
	c.Append(foreignBatch(rs.Arrow, 300, 3), nil)
	f.Add(encode(f, s, WriterOptions{Codec: "snappy"}, nil, c))
	as := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}, {Name: "s", Type: arrow.BinaryTypes.String, Nullable: true}}, nil)
	f.Add(foreign(f, as, 200, []parquet.WriterProperty{parquet.WithPageIndexEnabled(true)}, foreignBatch(as, 300, 4)).all(f))
	f.Fuzz(func(_ *testing.T, data []byte) {
		if len(data) > 1<<16 {
			return
		}
		in, err := Open(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return
		}
		_, _ = Merge(context.Background(), []*File{in, in}, io.Discard, JoinOptions{Codec: "zstd", KeepCodec: true})
		_, _ = Copy(context.Background(), []*File{in, in}, io.Discard, JoinOptions{})
	})
}

// BenchmarkPartsToTarget is the whole way of a row, from Arrow batch to
// published file, with parts in the hidden encoding that are rewritten and with
// parts in the table's that are merged: which encoding parts should have.
func BenchmarkPartsToTarget(b *testing.B) {
	const rows = 250000
	rs, rec := benchBatch(rows)
	s := compiled(b, rs)
	for _, n := range []int{500, 5000, 50000} {
		for _, c := range []struct {
			name  string
			part  WriterOptions
			merge bool
		}{
			{"hidden none, rewritten", WriterOptions{Codec: "none", Hidden: true}, false},
			{"hidden snappy, rewritten", WriterOptions{Codec: "snappy", Hidden: true}, false},
			{"zstd, merged", WriterOptions{Codec: "zstd"}, true},
		} {
			b.Run(fmt.Sprintf("%d/%s", n, c.name), func(b *testing.B) {
				cols := s.NewColumns()
				w := s.NewWriter(nil, c.part)
				var parts, out int64
				var bufs []*bytes.Buffer
				for range rows / n {
					bufs = append(bufs, new(bytes.Buffer))
				}
				cpu := cpuForTest()
				for b.Loop() {
					parts = 0
					var files []*File
					for i, buf := range bufs {
						buf.Reset()
						cols.Reset()
						cols.Append(rec.NewSlice(int64(i*n), int64((i+1)*n)), nil)
						w.Reset(buf)
						if err := w.WriteRowGroup(cols); err != nil {
							b.Fatal(err)
						}
						info, err := w.Close(nil)
						if err != nil {
							b.Fatal(err)
						}
						parts += info.Bytes
						files = append(files, opened(b, buf.Bytes()))
					}
					var info Info
					var err error
					if c.merge {
						info, err = s.Merge(context.Background(), files, io.Discard, JoinOptions{Codec: "zstd"})
					} else {
						info, err = s.Rewrite(context.Background(), files, io.Discard, WriterOptions{Codec: "zstd"}, nil)
					}
					if err != nil {
						b.Fatal(err)
					}
					out = info.Bytes
				}
				b.ReportMetric((cpuForTest()-cpu)/float64(b.N)/rows*1e9, "CPUns/row")
				b.ReportMetric(float64(parts+out)/rows, "B/row")
				b.ReportMetric(float64(out)/rows, "published-B/row")
			})
		}
	}
}
