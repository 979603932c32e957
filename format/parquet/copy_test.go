package parquetfile

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	lib "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// joinInputs are files of several writers, all of one schema each.
func joinInputs(t testing.TB) map[string][]*File {
	t.Helper()
	out := map[string][]*File{}
	rs := schemaOf(t, allTypes...)
	s := compiled(t, rs)
	rnd := rand.New(rand.NewPCG(1, 2))
	for name, o := range map[string]WriterOptions{"ours": {Codec: "zstd"}, "ours, hidden": {Codec: "none", Hidden: true}} {
		for range 3 {
			var groups []*Columns
			for range 2 {
				c := s.NewColumns()
				c.Append(foreignBatch(rs.Arrow, 1+rnd.IntN(900), rnd.Uint64()), nil)
				groups = append(groups, c)
			}
			out[name] = append(out[name], opened(t, encode(t, s, o, map[string]string{"k": "v"}, groups...)))
		}
	}
	as := arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int64}, {Name: "u", Type: arrow.PrimitiveTypes.Uint64, Nullable: true},
		{Name: "s", Type: arrow.BinaryTypes.String, Nullable: true}, {Name: "ok", Type: arrow.FixedWidthTypes.Boolean, Nullable: true},
		{Name: "ns", Type: arrow.FixedWidthTypes.Timestamp_ns, Nullable: true},
		{Name: "l", Type: arrow.ListOf(arrow.PrimitiveTypes.Int32), Nullable: true},
		{Name: "f", Type: arrow.PrimitiveTypes.Float64, Nullable: true}, {Name: "x", Type: &arrow.FixedSizeBinaryType{ByteWidth: 5}, Nullable: true},
		{Name: "dec", Type: &arrow.Decimal128Type{Precision: 30, Scale: 2}, Nullable: true}}, nil)
	for name, options := range map[string][]parquet.WriterProperty{
		"arrow":                  {parquet.WithCompression(compress.Codecs.Snappy), parquet.WithPageIndexEnabled(true)},
		"arrow, v2 pages":        {parquet.WithDataPageVersion(parquet.DataPageV2), parquet.WithCompression(compress.Codecs.Zstd)},
		"arrow, no dictionaries": {parquet.WithDictionaryDefault(false), parquet.WithStats(false)},
		"arrow, delta": {parquet.WithDictionaryDefault(false), parquet.WithEncodingFor("id", parquet.Encodings.DeltaBinaryPacked),
			parquet.WithEncodingFor("s", parquet.Encodings.DeltaByteArray)},
		"arrow, bloom filters": {parquet.WithBloomFilterEnabledFor("s", true), parquet.WithBloomFilterEnabledFor("id", true)},
	} {
		for i := range 3 {
			out[name] = append(out[name], foreign(t, as, 400, options, foreignBatch(as, 1000+i, uint64(i))))
		}
	}
	type row struct {
		ID   int64    `parquet:"id"`
		Name string   `parquet:"name,dict,zstd"`
		Tags []string `parquet:"tags,list"`
		Nine *float64 `parquet:"nine,optional"`
	}
	for i := range 3 {
		var b bytes.Buffer
		w := lib.NewGenericWriter[row](&b, lib.PageBufferSize(2000), lib.BloomFilters(lib.SplitBlockFilter(10, "name")))
		for k := range 500 {
			r := row{ID: int64(k), Name: fmt.Sprint("n", k%7), Tags: []string{"a", fmt.Sprint(k)}[:k%3]}
			if k%5 != 0 {
				v := float64(k)
				r.Nine = &v
			}
			if _, err := w.Write([]row{r}); err != nil {
				t.Fatal(err)
			}
			if k%(200+i) == 199 {
				if err := w.Flush(); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		out["parquet-go"] = append(out["parquet-go"], opened(t, b.Bytes()))
	}
	return out
}

// all is the bytes of a file.
func (f *File) all(t testing.TB) []byte {
	t.Helper()
	b, err := io.ReadAll(io.NewSectionReader(f.r, 0, f.size))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestCopyIsByteForByte: column chunks, page indexes, bloom filters and
// statistics of the inputs are those of the output (F10).
func TestCopyIsByteForByte(t *testing.T) {
	for name, inputs := range joinInputs(t) {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			info, err := Copy(context.Background(), inputs, &b, JoinOptions{Meta: map[string]string{"a": "1"}})
			if err != nil {
				t.Fatal(err)
			}
			if info.Bytes != int64(b.Len()) {
				t.Fatalf("Info says %d bytes, the file has %d", info.Bytes, b.Len())
			}
			out := opened(t, b.Bytes())
			if !reflect.DeepEqual(out.Meta(), map[string]string{"a": "1"}) || out.CreatedBy() != "hivesink" {
				t.Fatalf("metadata %v, created by %q", out.Meta(), out.CreatedBy())
			}
			if err := Same([]*File{inputs[0], out}); err != nil {
				t.Fatal(err)
			}
			g := 0
			var want []string
			for _, in := range inputs {
				data := in.all(t)
				want = append(want, arrowRows(t, data)...)
				for k := range in.groups() {
					compareGroup(t, data, in, k, b.Bytes(), out, g)
					g++
				}
			}
			if g != len(out.groups()) || info.RowGroups != g {
				t.Fatalf("%d row groups, want %d", len(out.groups()), g)
			}
			if got := arrowRows(t, b.Bytes()); strings.Join(got, "\n") != strings.Join(want, "\n") {
				t.Fatal("the rows are not the inputs' rows")
			}
			checkIndexes(t, b.Bytes())
			if _, err := lib.OpenFile(bytes.NewReader(b.Bytes()), int64(b.Len())); err != nil {
				t.Fatalf("parquet-go with page index: %v", err)
			}
		})
	}
}

// sameAsLibrary compares what is read of a footer with what the library reads.
func sameAsLibrary(t *testing.T, f *File) {
	t.Helper()
	m := library(f).Metadata()
	if len(m.RowGroups) != len(f.foot.rowGroups) || m.NumRows != f.foot.rows || m.CreatedBy != f.CreatedBy() || len(m.KeyValueMetadata) != len(f.Meta()) {
		t.Fatalf("footer %+v, the library reads %+v", f.foot, m)
	}
	for _, kv := range m.KeyValueMetadata {
		if v, ok := f.Meta()[kv.Key]; !ok || v != kv.Value {
			t.Fatalf("metadata %q is %q, the library reads %q", kv.Key, v, kv.Value)
		}
	}
	for i := range m.RowGroups {
		g, want := &f.foot.rowGroups[i], &m.RowGroups[i]
		if g.rows != want.NumRows || g.bytes != want.TotalByteSize || len(g.columns) != len(want.Columns) {
			t.Fatalf("row group %d: %+v, the library reads %+v", i, g, want)
		}
		for k := range g.columns {
			c, w, meta := &g.columns[k], &want.Columns[k], &want.Columns[k].MetaData
			s := c.said()
			got := []any{c.phys, c.codec, c.values, c.uncompressed, c.compressed, c.dataPage, c.dictionary, c.bloom, c.bloomLength,
				c.offsetIndex, c.offsetIndexLength, c.columnIndex, c.columnIndexLength, string(s.min), string(s.max), max(0, s.nulls), f.typ.names[k]}
			lib := []any{meta.Type, meta.Codec, meta.NumValues, meta.TotalUncompressedSize, meta.TotalCompressedSize, meta.DataPageOffset, meta.DictionaryPageOffset,
				meta.BloomFilterOffset, meta.BloomFilterLength, w.OffsetIndexOffset, w.OffsetIndexLength, w.ColumnIndexOffset, w.ColumnIndexLength,
				string(meta.Statistics.MinValue), string(meta.Statistics.MaxValue), meta.Statistics.NullCount, strings.Join(meta.PathInSchema, ".")}
			if !reflect.DeepEqual(got, lib) {
				t.Fatalf("row group %d, column %d: %v, the library reads %v", i, k, got, lib)
			}
		}
	}
}

// compareGroup compares row group k of one file with row group g of another:
// all bytes but those that say where something is.
func compareGroup(t *testing.T, data []byte, in *File, k int, got []byte, out *File, g int) {
	t.Helper()
	sameAsLibrary(t, in)
	sameAsLibrary(t, out)
	ic, oc := in.groups()[k].columns, out.groups()[g].columns
	for i := range ic {
		a, b := ic[i].pages(), oc[i].pages()
		if !bytes.Equal(data[a.from:a.to], got[b.from:b.to]) {
			t.Fatalf("row group %d, column %d: other pages", g, i)
		}
		if x, y := cut(data, ic[i].columnIndex, ic[i].columnIndexLength), cut(got, oc[i].columnIndex, oc[i].columnIndexLength); !bytes.Equal(x, y) {
			t.Fatalf("row group %d, column %d: other column index", g, i)
		}
		if (ic[i].offsetIndexLength > 0) != (oc[i].offsetIndexLength > 0) {
			t.Fatalf("row group %d, column %d: offset index of %d bytes, was %d", g, i, oc[i].offsetIndexLength, ic[i].offsetIndexLength)
		}
		if p, q := cut(data, ic[i].bloom, ic[i].bloomLength), cut(got, oc[i].bloom, oc[i].bloomLength); !bytes.Equal(p, q) {
			t.Fatalf("row group %d, column %d: other bloom filter", g, i)
		}
		if p, q := withoutPlaces(ic[i].raw), withoutPlaces(oc[i].raw); !bytes.Equal(p, q) {
			t.Fatalf("row group %d, column %d: metadata\n%x, was\n%x", g, i, q, p)
		}
	}
}

func cut(b []byte, at int64, n int32) []byte { return b[at : at+int64(n)] }

// withoutPlaces is a column chunk's metadata, each field that says where
// something is left out.
func withoutPlaces(c rawColumn) (out []byte) {
	w := walker{b: c}
	for id, typ := range w.fields {
		if id != 3 {
			w.skip(typ)
			continue
		}
		for id, typ := range w.fields {
			v := w.skip(typ)
			switch id {
			case 9, 10, 11, 14:
			default:
				out = append(append(out, byte(id), typ), v...)
			}
		}
	}
	return out
}

// checkIndexes checks that every place an offset index names has a data page,
// and that rows go up.
func checkIndexes(t *testing.T, data []byte) {
	t.Helper()
	f := opened(t, data)
	var x pageIndexes
	if err := f.readPageIndex(&x); err != nil {
		t.Fatal(err)
	}
	for g := range f.groups() {
		for i := range f.groups()[g].columns {
			e := f.groups()[g].columns[i].pages()
			w := walker{b: x.offsetIndex(g, i)}
			row := int64(-1)
			for id, typ := range w.fields {
				if id != 1 {
					w.skip(typ)
					continue
				}
				_, n := w.list()
				for range n {
					p := w.pageLocation()
					if p.Offset < e.from || p.Offset+int64(p.CompressedPageSize) > e.to || p.FirstRowIndex <= row {
						t.Fatalf("row group %d, column %d: page %+v of chunk %+v after row %d", g, i, p, e, row)
					}
					row = p.FirstRowIndex
					var r pageReader
					r.r, r.at, r.end = f.r, p.Offset, p.Offset+int64(p.CompressedPageSize)
					var h format.PageHeader
					if err := r.header(&h); err != nil {
						t.Fatal(err)
					}
					if h.Type != format.DataPage && h.Type != format.DataPageV2 || r.at+int64(h.CompressedPageSize) != r.end {
						t.Fatalf("row group %d, column %d: no data page at %+v", g, i, p)
					}
				}
			}
			if w.bad {
				t.Fatalf("row group %d, column %d: damaged offset index", g, i)
			}
		}
	}
}

// BenchmarkCopy splices 100 files of 5,000 rows, and of 400, opening them
// included.
func BenchmarkCopy(b *testing.B) {
	for _, rows := range []int{5000, 400} {
		b.Run(strconv.Itoa(rows), func(b *testing.B) {
			rs, rec := benchBatch(rows)
			s := compiled(b, rs)
			c := s.NewColumns()
			c.Append(rec, nil)
			data := encode(b, s, WriterOptions{Codec: "snappy"}, nil, c)
			b.SetBytes(int64(100 * len(data)))
			b.ReportAllocs()
			for b.Loop() {
				inputs := make([]*File, 100)
				for i := range inputs {
					inputs[i] = opened(b, data)
				}
				if _, err := Copy(context.Background(), inputs, io.Discard, JoinOptions{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
