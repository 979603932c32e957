package parquetfile

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	lib "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// handmade is a file of one column and one row group: these pages.
func handmade(t testing.TB, node lib.Node, codec format.CompressionCodec, rows, values int64, pages []byte, dictionary int64) []byte {
	t.Helper()
	f, err := lib.OpenFile(bytes.NewReader(emptyOf(t, node)), int64(len(emptyOf(t, node))))
	if err != nil {
		t.Fatal(err)
	}
	c := format.ColumnMetaData{Type: format.Type(node.Type().Kind()), PathInSchema: []string{"c"}, Codec: codec, NumValues: values,
		TotalCompressedSize: int64(len(pages)), TotalUncompressedSize: int64(len(pages)), DataPageOffset: 4 + dictionary}
	if dictionary > 0 {
		c.DictionaryPageOffset = 4
	}
	meta := *f.Metadata()
	meta.NumRows = rows
	meta.RowGroups = []format.RowGroup{{NumRows: rows, Columns: []format.ColumnChunk{{MetaData: c}}}}
	foot, err := thrift.Marshal(new(thrift.CompactProtocol), &meta)
	if err != nil {
		t.Fatal(err)
	}
	out := append([]byte("PAR1"), pages...)
	out = append(out, foot...)
	return append(binary.LittleEndian.AppendUint32(out, uint32(len(foot))), "PAR1"...)
}

func emptyOf(t testing.TB, node lib.Node) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := lib.NewGenericWriter[any](&b, lib.NewSchema("x", lib.Group{"c": node})).Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// handPage is a data page as its header claims it.
func handPage(t testing.TB, values int32, e format.Encoding, size int32, body []byte) []byte {
	t.Helper()
	return handHeader(t, &format.PageHeader{Type: format.DataPage, UncompressedPageSize: size, CompressedPageSize: int32(len(body)),
		DataPageHeader: thrift.New(format.DataPageHeader{NumValues: values, Encoding: e, DefinitionLevelEncoding: format.RLE, RepetitionLevelEncoding: format.RLE})}, body)
}

func handHeader(t testing.TB, h *format.PageHeader, body []byte) []byte {
	t.Helper()
	b, err := thrift.Marshal(new(thrift.CompactProtocol), h)
	if err != nil {
		t.Fatal(err)
	}
	return append(b, body...)
}

// behind is a body behind its length.
func behind(body ...byte) []byte {
	return append(binary.LittleEndian.AppendUint32(nil, uint32(len(body))), body...)
}

func uvarints(v ...uint64) (b []byte) {
	for _, u := range v {
		b = binary.AppendUvarint(b, u)
	}
	return b
}

// bombs compress so many zeros.
func bomb(t testing.TB, n int, with func(w io.Writer) io.WriteCloser) []byte {
	t.Helper()
	var b bytes.Buffer
	w := with(&b)
	zeros := make([]byte, 1<<20)
	for range n >> 20 {
		if _, err := w.Write(zeros); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestClaimsAreHeldAgainstBytes: pages of some tens of bytes that claim
// gigabytes are refused, by a read and by a merge, before there is room for
// them; the error says where (F7).
func TestClaimsAreHeldAgainstBytes(t *testing.T) {
	const huge = 1<<31 - 1
	i32, i64, text, flag := lib.Leaf(lib.Int32Type), lib.Leaf(lib.Int64Type), lib.String(), lib.Leaf(lib.BooleanType)
	dictionary := handHeader(t, &format.PageHeader{Type: format.DictionaryPage, UncompressedPageSize: 4, CompressedPageSize: 4,
		DictionaryPageHeader: thrift.New(format.DictionaryPageHeader{NumValues: 1, Encoding: format.Plain})}, []byte{1, 0, 0, 0})
	dictionaryOf := func(n int32) []byte {
		return handHeader(t, &format.PageHeader{Type: format.DictionaryPage, UncompressedPageSize: 4, CompressedPageSize: 4,
			DictionaryPageHeader: thrift.New(format.DictionaryPageHeader{NumValues: n, Encoding: format.Plain})}, []byte{1, 0, 0, 0})
	}
	run := uvarints(huge << 1) // of huge values
	packed := uvarints(huge<<1 | 1)
	deltas := func(n uint64) []byte { return append(uvarints(128, 4, n, 2), 0, 0, 0, 0, 0) }
	long := append(uvarints(128, 4, 10, 2<<30), 0, 0, 0, 0, 0) // ten lengths of 1 GB
	gz := bomb(t, 64<<20, func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) })
	br := bomb(t, 64<<20, func(w io.Writer) io.WriteCloser { return brotli.NewWriter(w) })
	zs := bomb(t, 64<<20, func(w io.Writer) io.WriteCloser {
		e, err := zstd.NewWriter(w)
		if err != nil {
			t.Fatal(err)
		}
		return e
	})
	// A frame that says it has 1 GB, and one block of it: 128 KB of one byte.
	frame := append([]byte{0x28, 0xb5, 0x2f, 0xfd, 0xa0}, binary.LittleEndian.AppendUint32(nil, 1<<30)...)
	frame = append(frame, 0x03, 0x00, 0x10, 0)
	sn := binary.AppendUvarint(nil, 1<<30)
	for name, c := range map[string]struct {
		node       lib.Node
		codec      format.CompressionCodec
		values     int32
		all        int64
		encoding   format.Encoding
		size       int // 0: the body's
		body       []byte
		dictionary []byte
	}{
		"a run of levels":                 {node: lib.Optional(i32), values: 10, encoding: format.Plain, body: behind(append(run, 1)...)},
		"packed levels":                   {node: lib.Optional(i32), values: 10, encoding: format.Plain, body: behind(packed...)},
		"runs of levels":                  {node: lib.Repeated(i32), values: 10, encoding: format.Plain, body: append(behind(append(run, 0)...), behind(append(run, 1)...)...)},
		"a run of places":                 {node: i32, values: 10, encoding: format.RLEDictionary, body: append([]byte{1}, append(run, 0)...), dictionary: dictionary},
		"places without width, a run":     {node: i32, values: 10, encoding: format.RLEDictionary, body: append([]byte{0}, run...), dictionary: dictionary},
		"places without width, packed":    {node: i32, values: 10, encoding: format.RLEDictionary, body: append([]byte{0}, packed...), dictionary: dictionary},
		"a run of flags":                  {node: flag, values: huge, encoding: format.RLE, body: behind(append(run, 1)...)},
		"a dictionary of many":            {node: i32, values: 10, encoding: format.RLEDictionary, body: append([]byte{0}, uvarints(20)...), dictionary: dictionaryOf(huge)},
		"plain numbers":                   {node: i64, values: huge, encoding: format.Plain, body: make([]byte, 8)},
		"plain texts":                     {node: text, values: huge, encoding: format.Plain, body: make([]byte, 8)},
		"split numbers":                   {node: i64, values: huge, encoding: format.ByteStreamSplit, body: make([]byte, 8)},
		"deltas":                          {node: i64, values: 10, encoding: format.DeltaBinaryPacked, body: deltas(huge)},
		"deltas of 32 bits":               {node: i32, values: 10, encoding: format.DeltaBinaryPacked, body: deltas(huge)},
		"lengths":                         {node: text, values: 10, encoding: format.DeltaLengthByteArray, body: deltas(huge)},
		"long lengths":                    {node: text, values: 10, encoding: format.DeltaLengthByteArray, body: long},
		"prefixes":                        {node: text, values: 10, encoding: format.DeltaByteArray, body: deltas(huge)},
		"suffixes":                        {node: text, values: 10, encoding: format.DeltaByteArray, body: append(deltas(10), deltas(huge)...)},
		"long prefixes":                   {node: text, values: 10, encoding: format.DeltaByteArray, body: append(bytes.Clone(long), deltas(10)...)},
		"a page of zstd":                  {node: i64, codec: format.Zstd, values: 1 << 27, encoding: format.Plain, size: 1 << 30, body: frame},
		"a frame of zstd":                 {node: i64, codec: format.Zstd, values: 10, encoding: format.Plain, size: 80, body: frame},
		"zstd that goes on":               {node: i64, codec: format.Zstd, values: 10, encoding: format.Plain, size: 80, body: zs},
		"gzip that goes on":               {node: i64, codec: format.Gzip, values: 10, encoding: format.Plain, size: 80, body: gz},
		"a page of gzip":                  {node: i64, codec: format.Gzip, values: 1 << 27, encoding: format.Plain, size: 1 << 30, body: []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0}},
		"brotli that goes on":             {node: i64, codec: format.Brotli, values: 10, encoding: format.Plain, size: 80, body: br},
		"a page of brotli":                {node: i64, codec: format.Brotli, values: 1 << 27, encoding: format.Plain, size: 1 << 30, body: []byte{0x3b}},
		"a page of snappy":                {node: i64, codec: format.Snappy, values: 1 << 27, encoding: format.Plain, size: 1 << 30, body: append(sn, 0, 0)},
		"a page of lz4":                   {node: i64, codec: format.Lz4Raw, values: 1 << 27, encoding: format.Plain, size: 1 << 30, body: []byte{0x1f, 0, 1, 0}},
		"a page larger than any":          {node: i64, codec: format.Zstd, values: 10, encoding: format.Plain, size: huge, body: frame},
		"more values than the column has": {node: i32, values: huge, all: 10, encoding: format.Plain, body: make([]byte, 40)},
	} {
		t.Run(name, func(t *testing.T) {
			if c.size == 0 {
				c.size = len(c.body)
			}
			rows := int64(c.values)
			if c.all > 0 {
				rows = c.all
			}
			pages := append(bytes.Clone(c.dictionary), handPage(t, c.values, c.encoding, int32(c.size), c.body)...)
			data := handmade(t, c.node, c.codec, rows, rows, pages, int64(len(c.dictionary)))
			f := opened(t, data)
			s, err := fileSchema(f)
			if err != nil {
				t.Fatal(err)
			}
			for what, try := range map[string]func() error{
				"merge": func() error {
					_, err := Merge(context.Background(), []*File{f, f}, io.Discard, JoinOptions{Codec: "none"})
					return err
				},
				"read": func() error {
					if s.leaves[0].maxRep > 0 {
						_, err := Merge(context.Background(), []*File{f}, io.Discard, JoinOptions{Codec: "gzip"})
						return err
					}
					c := columnReader{source: source{column: f.typ.leaves[0], phys: s.leaves[0].phys, width: s.leaves[0].width, ours: sameLevels[:s.leaves[0].maxDef+1], like: -1}, f: f}
					l := leaf{leafType: s.leaves[0]}
					defer func() {
						if p := recover(); p != nil {
							t.Errorf("panic: %v", p)
						}
					}()
					return c.read(&l, 1)
				},
			} {
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				err := try()
				runtime.ReadMemStats(&after)
				if err == nil {
					t.Errorf("%s: nothing is wrong", what)
				} else if what == "merge" && !strings.Contains(err.Error(), "column c") {
					t.Errorf("%s: the error does not say where: %v", what, err)
				}
				if got := after.TotalAlloc - before.TotalAlloc; got > 32<<20 {
					t.Errorf("%s: %d MB were allocated; %v", what, got>>20, err)
				}
				t.Logf("%s: %v", what, err)
			}
		})
	}
}

// TestChunksThatOverlap: a footer whose column chunks have bytes in common, so
// that a small file has gigabytes to load, is refused (F7).
func TestChunksThatOverlap(t *testing.T) {
	page := handPage(t, 10, format.Plain, 40, make([]byte, 40))
	data := handmade(t, lib.Leaf(lib.Int32Type), format.Uncompressed, 10, 10, page, 0)
	f, err := lib.OpenFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	meta := *f.Metadata()
	g := meta.RowGroups[0]
	for range 999 {
		meta.RowGroups = append(meta.RowGroups, g)
	}
	meta.NumRows *= 1000
	foot, err := thrift.Marshal(new(thrift.CompactProtocol), &meta)
	if err != nil {
		t.Fatal(err)
	}
	out := append(append([]byte("PAR1"), page...), foot...)
	out = append(binary.LittleEndian.AppendUint32(out, uint32(len(foot))), "PAR1"...)
	if _, err := Open(bytes.NewReader(out), int64(len(out))); err == nil || !strings.Contains(err.Error(), "column c of row group 1 lies in") {
		t.Errorf("it is opened: %v", err)
	}
}

// hadoopLZ4 packs as Hadoop does: blocks behind their length, in parts behind
// theirs.
func hadoopLZ4(t testing.TB, src []byte) (packed []byte) {
	t.Helper()
	for block := range slices.Chunk(src, 256<<10) {
		packed = binary.BigEndian.AppendUint32(packed, uint32(len(block)))
		for part := range slices.Chunk(block, 100<<10) {
			b, err := lib.Lz4Raw.Encode(nil, part)
			if err != nil {
				t.Fatal(err)
			}
			packed = append(binary.BigEndian.AppendUint32(packed, uint32(len(b))), b...)
		}
	}
	return packed
}

// TestUnpackOldLZ4: some writers mean by Hadoop's LZ4 what others call LZ4_RAW.
func TestUnpackOldLZ4(t *testing.T) {
	for _, n := range []int{1, 16, 70_000} {
		src := make([]byte, n)
		for i := range src {
			src[i] = byte(i * i >> 7)
		}
		raw, err := lib.Lz4Raw.Encode(nil, src)
		if err != nil {
			t.Fatal(err)
		}
		for _, packed := range [][]byte{raw, hadoopLZ4(t, src)} {
			p := pageReader{codec: format.Lz4}
			if got, err := p.unpack(packed, n); err != nil || !bytes.Equal(got, src) {
				t.Errorf("%d bytes: other bytes, or %v", n, err)
			}
			for cut := range min(len(packed), 40) {
				if got, err := p.unpack(packed[:cut], n); err == nil && bytes.Equal(got, src) && cut < len(packed)-1 {
					t.Errorf("%d of %d bytes pass for all", cut, len(packed))
				}
			}
		}
	}
}

// TestUnpackEveryCodec: what is unpacked within its bounds is what was packed,
// of all codecs that are read.
func TestUnpackEveryCodec(t *testing.T) {
	for _, n := range []int{1, 100, 70_000, 3 << 20} {
		plain := make([]byte, n)
		for i := range plain {
			plain[i] = byte(i * i >> 7)
		}
		for _, src := range [][]byte{plain, make([]byte, n)} {
			for _, codec := range []format.CompressionCodec{format.Uncompressed, format.Snappy, format.Gzip, format.Brotli, format.Zstd, format.Lz4Raw, format.Lz4} {
				var packed []byte
				var err error
				if codec == format.Lz4 {
					packed = hadoopLZ4(t, src)
				} else if packed, err = lib.LookupCompressionCodec(codec).Encode(nil, src); err != nil {
					t.Fatal(err)
				}
				var p pageReader
				p.codec = codec
				for range 2 {
					if got, err := p.unpack(packed, n); err != nil || !bytes.Equal(got, src) {
						t.Fatalf("%s, %d bytes: other bytes, or %v", codec, n, err)
					}
				}
				if _, err := p.unpack(packed, n+1); err == nil {
					t.Errorf("%s: %d bytes pass for %d", codec, n, n+1)
				}
				if n > 1 {
					if _, err := p.unpack(packed, n-1); err == nil {
						t.Errorf("%s: %d bytes pass for %d", codec, n, n-1)
					}
				}
			}
		}
	}
}
