package parquetfile

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	lib "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
)

// everyKind has every physical type with every encoding that the library
// writes for it.
func everyKind() lib.Group {
	g := lib.Group{}
	for name, kind := range map[string]struct {
		node      lib.Node
		encodings []string
	}{
		"bool":   {lib.Leaf(lib.BooleanType), []string{"plain", "dict"}},
		"int32":  {lib.Leaf(lib.Int32Type), []string{"plain", "dict", "delta", "split"}},
		"int64":  {lib.Leaf(lib.Int64Type), []string{"plain", "dict", "delta", "split"}},
		"int96":  {lib.Leaf(lib.Int96Type), []string{"plain", "dict"}},
		"float":  {lib.Leaf(lib.FloatType), []string{"plain", "dict", "split"}},
		"double": {lib.Leaf(lib.DoubleType), []string{"plain", "dict", "split"}},
		"bytes":  {lib.Leaf(lib.ByteArrayType), []string{"plain", "dict", "deltalength", "deltabytes"}},
		"text":   {lib.String(), []string{"plain", "dict", "deltalength", "deltabytes"}},
		"fixed":  {lib.Leaf(lib.FixedLenByteArrayType(5)), []string{"plain", "dict", "deltabytes"}},
	} {
		for _, e := range kind.encodings {
			n := kind.node
			switch e {
			case "dict":
				n = lib.Encoded(n, &lib.RLEDictionary)
			case "delta":
				n = lib.Encoded(n, &lib.DeltaBinaryPacked)
			case "split":
				n = lib.Encoded(n, &lib.ByteStreamSplit)
			case "deltalength":
				n = lib.Encoded(n, &lib.DeltaLengthByteArray)
			case "deltabytes":
				n = lib.Encoded(n, &lib.DeltaByteArray)
			}
			g["r_"+name+"_"+e] = lib.Required(n)
			g["o_"+name+"_"+e] = lib.Optional(n)
			g["l_"+name+"_"+e] = lib.Repeated(n)
		}
	}
	return g
}

// kindValue is one of so many different values of a kind.
func kindValue(kind lib.Kind, i, different int) lib.Value {
	v := (i*7 + i/5) % different
	switch kind {
	case lib.Boolean:
		return lib.BooleanValue(v%3 == 0)
	case lib.Int32:
		return lib.Int32Value(int32(v) - 3)
	case lib.Int64:
		return lib.Int64Value(int64(v) << 20)
	case lib.Int96:
		return lib.Int96Value(deprecated.Int96{uint32(v), 7, 2440588})
	case lib.Float:
		return lib.FloatValue(float32(v) / 4)
	case lib.Double:
		return lib.DoubleValue(math.Sqrt(float64(v)))
	case lib.FixedLenByteArray:
		return lib.FixedLenByteArrayValue(fmt.Appendf(nil, "%05d", v))
	}
	return lib.ByteArrayValue(fmt.Appendf(nil, "value %d", v))
}

// kindFile has rows from a number on.
func kindFile(t testing.TB, schema *lib.Schema, from, rows, different, version int, codec string, more ...lib.WriterOption) *File {
	t.Helper()
	var out bytes.Buffer
	compression, err := codecOf(codec)
	if err != nil {
		t.Fatal(err)
	}
	w := lib.NewGenericWriter[any](&out, append([]lib.WriterOption{schema, lib.DataPageVersion(version), lib.Compression(compression), lib.PageBufferSize(64 << 10)}, more...)...)
	leaves := schema.Columns()
	row := make(lib.Row, 0, 2*len(leaves))
	for i := from; i < from+rows; i++ {
		row = row[:0]
		for k, path := range leaves {
			leaf, _ := schema.Lookup(path...)
			kind := leaf.Node.Type().Kind()
			switch {
			case leaf.Node.Repeated():
				n := i % 3
				if n == 0 {
					row = append(row, lib.NullValue().Level(0, 0, k))
				}
				for r := range n {
					row = append(row, kindValue(kind, i+r, different).Level(min(r, 1), 1, k))
				}
			case leaf.Node.Optional() && i%5 == 0:
				row = append(row, lib.NullValue().Level(0, 0, k))
			case leaf.Node.Optional():
				row = append(row, kindValue(kind, i, different).Level(0, 1, k))
			default:
				row = append(row, kindValue(kind, i, different).Level(0, 0, k))
			}
		}
		if _, err := w.WriteRows([]lib.Row{row}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return opened(t, out.Bytes())
}

// valuesOfAll are all values of all columns, as the library reads them.
func valuesOfAll(t testing.TB, data []byte) [][]lib.Value {
	t.Helper()
	f, err := lib.OpenFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	out := make([][]lib.Value, len(f.Schema().Columns()))
	for _, g := range f.RowGroups() {
		for k, chunk := range g.ColumnChunks() {
			out[k] = append(out[k], libraryValues(t, chunk)...)
		}
	}
	return out
}

// TestMergeEveryKind: whatever physical type, encoding, nesting and version of
// pages, few different values or many, what comes out of a merge is what went
// in (F2, F11).
func TestMergeEveryKind(t *testing.T) {
	schema := lib.NewSchema("all", everyKind())
	for _, version := range []int{1, 2} {
		for _, c := range []struct {
			rows, different int
			codec           string
		}{{5000, 9, "snappy"}, {5000, 4000, "none"}, {300, 9, "lz4"}} {
			inputs := []*File{kindFile(t, schema, 0, c.rows, c.different, version, c.codec), kindFile(t, schema, c.rows, c.rows, c.different, version, c.codec)}
			want := valuesOfAll(t, inputs[0].all(t))
			for k, more := range valuesOfAll(t, inputs[1].all(t)) {
				want[k] = append(want[k], more...)
			}
			for _, o := range []JoinOptions{{Codec: "zstd", KeepCodec: true}, {Codec: "gzip"}} {
				t.Run(fmt.Sprintf("v%d, %d rows of %d, %s to %s", version, c.rows, c.different, c.codec, o.Codec), func(t *testing.T) {
					data := merged(t, inputs, o)
					for k, got := range valuesOfAll(t, data) {
						if !slices.EqualFunc(got, want[k], lib.DeepEqual) {
							t.Errorf("column %v: %d values, want %d, or others", schema.Columns()[k], len(got), len(want[k]))
						}
					}
				})
			}
			if c.rows > 300 {
				continue
			}
			var b bytes.Buffer
			if _, err := Copy(context.Background(), inputs, &b, JoinOptions{}); err != nil {
				t.Fatal(err)
			}
			for k, got := range valuesOfAll(t, b.Bytes()) {
				if !slices.EqualFunc(got, want[k], lib.DeepEqual) {
					t.Errorf("copy, column %v: other values", schema.Columns()[k])
				}
			}
		}
	}
}

// TestMergeFlagsOfOthers: flags in runs, of any length, as other writers have
// them, are the same flags when they are decoded (F2).
func TestMergeFlagsOfOthers(t *testing.T) {
	as := arrow.NewSchema([]arrow.Field{{Name: "r", Type: arrow.FixedWidthTypes.Boolean}, {Name: "o", Type: arrow.FixedWidthTypes.Boolean, Nullable: true},
		{Name: "l", Type: arrow.ListOf(arrow.FixedWidthTypes.Boolean), Nullable: true}}, nil)
	for _, rows := range []int{1, 3, 100, 5000, 20000} {
		for _, options := range [][]parquet.WriterProperty{
			{parquet.WithEncoding(parquet.Encodings.RLE), parquet.WithDictionaryDefault(false)},
			{parquet.WithEncoding(parquet.Encodings.RLE), parquet.WithDictionaryDefault(false), parquet.WithDataPageVersion(parquet.DataPageV2), parquet.WithCompression(compress.Codecs.Snappy)},
			{parquet.WithDataPageVersion(parquet.DataPageV2), parquet.WithCompression(compress.Codecs.Zstd)},
		} {
			var inputs []*File
			var want []string
			for i := range 3 {
				rnd := rand.New(rand.NewPCG(uint64(rows), uint64(i)))
				b := array.NewRecordBuilder(memory.DefaultAllocator, as)
				run, flag := 0, false
				for range rows {
					if run == 0 {
						run, flag = 1+rnd.IntN(1+rnd.IntN(40)), !flag
					}
					run--
					b.Field(0).(*array.BooleanBuilder).Append(flag)
					if rnd.IntN(5) == 0 {
						b.Field(1).AppendNull()
					} else {
						b.Field(1).(*array.BooleanBuilder).Append(flag)
					}
					l := b.Field(2).(*array.ListBuilder)
					l.Append(true)
					for range rnd.IntN(3) {
						l.ValueBuilder().(*array.BooleanBuilder).Append(flag)
					}
				}
				f := foreign(t, as, 1<<20, options, b.NewRecordBatch())
				inputs = append(inputs, f)
				want = append(want, arrowRows(t, f.all(t))...)
			}
			for _, o := range []JoinOptions{{Codec: "zstd", KeepCodec: true}, {Codec: "gzip"}} {
				sameRows(t, arrowRows(t, merged(t, inputs, o)), want)
			}
		}
	}
}

// TestPagesThatRunOnAreNotMoved: of writers whose DELTA_BYTE_ARRAY pages may go
// on where the one before ended, no such page gets under another created_by.
func TestPagesThatRunOnAreNotMoved(t *testing.T) {
	schema := lib.NewSchema("texts", lib.Group{"s": lib.Encoded(lib.String(), &lib.DeltaByteArray)})
	for by, moves := range map[[2]string]bool{{"parquet-mr", "1.7.0"}: false, {"parquet-mr", "1.6.0rc3"}: false, {"parquet-mr", "unknown"}: false, {"parquet-mr (build 32c46643845e)", ""}: false,
		{"parquet-mr", "1.8.0"}: true, {"parquet-mr", "1.10.1"}: true, {"parquet-cpp-arrow", "1.0.0"}: true} {
		var inputs []*File
		var want []lib.Value
		for i := range 2 {
			f := kindFile(t, schema, i*keptRows, keptRows, 1<<20, 1, "none", lib.CreatedBy(by[0], by[1], "abc"))
			if !f.groups()[0].columns[0].deltaBytes {
				t.Fatal("no page is encoded so")
			}
			inputs = append(inputs, f)
			want = append(want, valuesOfAll(t, f.all(t))[0]...)
		}
		mode, why := Advise(inputs, JoinOptions{Codec: "none"})
		if _, err := Copy(context.Background(), inputs, new(bytes.Buffer), JoinOptions{}); (err == nil) != moves || (mode == ModeCopy) != moves {
			t.Errorf("%v: copied: %v; advised %s: %s", by, err, mode, why)
		}
		data := merged(t, inputs, JoinOptions{Codec: "none"})
		if got := valuesOfAll(t, data)[0]; !slices.EqualFunc(got, want, lib.DeepEqual) {
			t.Errorf("%v: other values", by)
		}
		e := inputs[0].groups()[0].columns[0].pages()
		if bytes.Contains(data, inputs[0].all(t)[e.from:e.to]) != moves || opened(t, data).groups()[0].columns[0].deltaBytes != moves {
			t.Errorf("%v: pages moved: %v, want %v", by, !moves, moves)
		}
	}
}
