package parquetfile

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/bits"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/parquet"

	lib "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// dictionaryPage has so many entries.
func dictionaryPage(t testing.TB, n int32, body []byte) []byte {
	t.Helper()
	return handHeader(t, &format.PageHeader{Type: format.DictionaryPage, UncompressedPageSize: int32(len(body)), CompressedPageSize: int32(len(body)),
		DictionaryPageHeader: thrift.New(format.DictionaryPageHeader{NumValues: n, Encoding: format.Plain})}, body)
}

// TestBytesBehindADictionary: Arrow's C++ makes room for each entry of the
// dictionary it was given, also for one that it had before; readers take as many
// as the header says.
func TestBytesBehindADictionary(t *testing.T) {
	for name, c := range map[string]struct {
		node    lib.Node
		entries int32
		dict    []byte
		column  string
		want    string
	}{
		"texts":   {lib.Required(lib.String()), 2, append(appendText(appendText(nil, nil), []byte("ab")), 0xff, 0xff, 0xff, 0x7f, 9), "c string", "[c= c=ab c=ab]"},
		"numbers": {lib.Leaf(lib.Int32Type), 2, []byte{1, 0, 0, 0, 2, 0, 0, 0, 9}, "c int", "[c=1 c=2 c=2]"},
	} {
		page := dictionaryPage(t, c.entries, c.dict)
		data := handPage(t, 3, format.RLEDictionary, 4, []byte{1, 3, 0b110, 0})
		f := opened(t, handmade(t, c.node, format.Uncompressed, 3, 3, append(bytes.Clone(page), data...), int64(len(page))))
		if out, err := rewritten(t, []string{c.column}, f); err != nil || fmt.Sprint(arrowRows(t, out)) != c.want {
			t.Errorf("%s, rewritten: %v", name, err)
		}
		var b bytes.Buffer
		if _, err := Merge(context.Background(), []*File{f, f}, &b, JoinOptions{Codec: "zstd"}); err != nil {
			t.Errorf("%s, merged: %v", name, err)
		} else if got := fmt.Sprint(arrowRows(t, b.Bytes())[3:]); got != c.want {
			t.Errorf("%s, merged: %s", name, got)
		}
	}
}

// TestNullsThatWereNotCounted: Arrow's C++ does not count the nulls of a struct
// above a dictionary. A merge that gives the dictionaries up counts them.
func TestNullsThatWereNotCounted(t *testing.T) {
	const n = 5000
	file := func(first int) *File {
		var dict []byte
		ids := make([]int32, n)
		for i := range ids {
			dict, ids[i] = appendText(dict, fmt.Appendf(nil, "%06d", first+i)), int32(i)
		}
		packed, err := lib.RLEDictionary.EncodeInt32(nil, ids)
		if err != nil {
			t.Fatal(err)
		}
		body := append(behind(append(append(uvarints(1<<1), 0), append(uvarints(n<<1), 1)...)...), packed...)
		data := handHeader(t, &format.PageHeader{Type: format.DataPage, UncompressedPageSize: int32(len(body)), CompressedPageSize: int32(len(body)),
			DataPageHeader: thrift.New(format.DataPageHeader{NumValues: n + 1, Encoding: format.RLEDictionary, DefinitionLevelEncoding: format.RLE,
				RepetitionLevelEncoding: format.RLE, Statistics: format.Statistics{MinValue: fmt.Appendf(nil, "%06d", first), MaxValue: fmt.Appendf(nil, "%06d", first+n-1)}})}, body)
		page := dictionaryPage(t, n, dict)
		return opened(t, handmade(t, lib.Optional(lib.String()), format.Uncompressed, n+1, n+1, append(page, data...), int64(len(page))))
	}
	var b bytes.Buffer
	if _, err := Merge(context.Background(), []*File{file(0), file(n)}, &b, JoinOptions{Codec: "none"}); err != nil {
		t.Fatal(err)
	}
	out := opened(t, b.Bytes())
	if nulls := out.Nulls(); nulls[0] != 2 {
		t.Errorf("%d nulls, want 2", nulls[0])
	}
	rows := arrowRows(t, b.Bytes())
	if rows[0] != "c=(null)" || rows[1] != "c=000000" || rows[n+1] != "c=(null)" || rows[2*n+1] != "c=009999" {
		t.Errorf("rows %q %q %q %q", rows[0], rows[1], rows[n+1], rows[2*n+1])
	}
	checkFacts(t, b.Bytes())
}

// TestPagesThatAreNotNull: Arrow's Rust says of a page of lists that it has no values
// when it has as many nulls as rows. A merge looks, or readers would miss them.
func TestPagesThatAreNotNull(t *testing.T) {
	const n = 6000
	as := arrow.NewSchema([]arrow.Field{{Name: "l", Type: arrow.ListOf(arrow.PrimitiveTypes.Float64), Nullable: true}}, nil)
	file := func(seed uint64) *File {
		f := foreign(t, as, n, []parquet.WriterProperty{parquet.WithPageIndexEnabled(true), parquet.WithDictionaryDefault(false), parquet.WithDataPageSize(1 << 20)}, foreignBatch(as, n, seed))
		c := &f.groups()[0].columns[0]
		data := make([]byte, f.Size())
		if _, err := f.r.ReadAt(data, 0); err != nil {
			t.Fatal(err)
		}
		pages := data[c.columnIndex : c.columnIndex+3] // a list of one flag
		if !(pages[0] == 1<<4|thriftList && pages[1]>>4 == 1 && pages[2] != thriftTrue) {
			t.Fatalf("the column index begins with %x", pages)
		}
		pages[2] = thriftTrue
		return opened(t, data)
	}
	var b bytes.Buffer
	if _, err := Merge(context.Background(), []*File{file(1), file(2)}, &b, JoinOptions{Codec: "none"}); err != nil {
		t.Fatal(err)
	}
	checkFacts(t, b.Bytes())
	out, err := lib.OpenFile(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	x, err := out.RowGroups()[0].ColumnChunks()[0].ColumnIndex()
	if err != nil {
		t.Fatal(err)
	}
	for p := range x.NumPages() {
		if x.NullPage(p) {
			t.Errorf("page %d is said to have no values", p)
		}
	}
}

// TestDeltasOfMoreBits: DuckDB encodes numbers of 32 bits as if they had 64, so that
// a delta, or one without a sign, takes 33. Decoded as 32 they are other numbers.
func TestDeltasOfMoreBits(t *testing.T) {
	encoded := func(v ...int64) []byte {
		b, err := lib.DeltaBinaryPacked.EncodeInt64(nil, v)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	file := func(body []byte) *File {
		page := handPage(t, 4, format.DeltaBinaryPacked, int32(len(body)), body)
		return opened(t, handmade(t, lib.Leaf(lib.Uint(32).Type()), format.Uncompressed, 4, 4, page, 0))
	}
	for _, want := range [][]uint32{{math.MaxUint32, 0, 1, math.MaxUint32}, {0, math.MaxUint32, 0, 1}, {5, 1 << 31, 3, 1<<31 - 1}} {
		f := file(encoded(int64(want[0]), int64(want[1]), int64(want[2]), int64(want[3])))
		var b bytes.Buffer
		if _, err := Merge(context.Background(), []*File{f, f}, &b, JoinOptions{Codec: "zstd"}); err != nil {
			t.Fatal(err)
		}
		if got, rows := fmt.Sprint(arrowRows(t, b.Bytes())[4:]), fmt.Sprintf("[c=%d c=%d c=%d c=%d]", want[0], want[1], want[2], want[3]); got != rows {
			t.Errorf("%s, not %s", got, rows)
		}
	}
	for _, signed := range []bool{true, false} { // many, and such that are negative
		var v []int64
		for i := range int64(1000) {
			n := i * 2654435761 % (1 << 32)
			if signed {
				n = int64(int32(n))
			}
			v = append(v, n)
		}
		body := encoded(v...)
		page := handPage(t, 1000, format.DeltaBinaryPacked, int32(len(body)), body)
		node := lib.Leaf(lib.Uint(32).Type())
		if signed {
			node = lib.Leaf(lib.Int32Type)
		}
		f := opened(t, handmade(t, node, format.Uncompressed, 1000, 1000, page, 0))
		var b bytes.Buffer
		if _, err := Merge(context.Background(), []*File{f, f}, &b, JoinOptions{Codec: "zstd"}); err != nil {
			t.Fatal(err)
		}
		for i, row := range arrowRows(t, b.Bytes()) {
			if want := fmt.Sprintf("c=%d", v[i%1000]); row != want {
				t.Fatalf("signed %v: row %d is %s, not %s", signed, i, row, want)
			}
		}
	}
	f := file(encoded(math.MaxUint32+1, 0, 1, 2))
	if _, err := Merge(context.Background(), []*File{f, f}, io.Discard, JoinOptions{Codec: "zstd"}); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("33 bits: %v", err)
	}
}

// asDuckDB encodes numbers as DuckDB does: blocks of 2048 in 8 parts, deltas of 64 bits.
func asDuckDB(v []int64) []byte {
	b := binary.AppendVarint(uvarints(2048, 8, uint64(len(v))), v[0])
	for at := 1; at < len(v); at += 2048 {
		least, most := int64(math.MaxInt64), int64(math.MinInt64)
		block := v[at:min(at+2048, len(v))]
		for i := range block {
			d := block[i] - v[at+i-1]
			least, most = min(least, d), max(most, d)
		}
		width := bits.Len64(uint64(most - least))
		b = binary.AppendVarint(b, least)
		for part := range 8 {
			if part*256 < len(block) {
				b = append(b, byte(width))
			} else {
				b = append(b, 0)
			}
		}
		packed := make([]byte, (len(block)+255)/256*256*width/8)
		for i := range block {
			d := uint64(block[i] - v[at+i-1] - least)
			for k := range width {
				bit := i*width + k
				packed[bit/8] |= byte(d>>k&1) << (bit % 8)
			}
		}
		b = append(b, packed...)
	}
	return b
}

// TestDeltasOfDuckDB: in parts of 256, of any width.
func TestDeltasOfDuckDB(t *testing.T) {
	for _, phys := range []lib.Type{lib.Int32Type, lib.Int64Type} {
		for width := 1; width < 63; width++ {
			if phys == lib.Int32Type && width > 32 {
				break
			}
			var v []int64
			for i := range int64(3000) {
				n := int64(uint64(i*-7046029254386353131) >> (64 - width))
				if phys == lib.Int32Type {
					n = int64(int32(n))
				}
				v = append(v, n)
			}
			body := asDuckDB(v)
			page := handPage(t, 3000, format.DeltaBinaryPacked, int32(len(body)), body)
			f := opened(t, handmade(t, lib.Leaf(phys), format.Uncompressed, 3000, 3000, page, 0))
			var b bytes.Buffer
			if _, err := Merge(context.Background(), []*File{f, f}, &b, JoinOptions{Codec: "zstd"}); err != nil {
				t.Fatal(err)
			}
			for i, row := range arrowRows(t, b.Bytes()) {
				if want := fmt.Sprintf("c=%d", v[i%3000]); row != want {
					t.Fatalf("%s of %d bits: row %d is %s, not %s", phys, width, i, row, want)
				}
			}
		}
	}
}
