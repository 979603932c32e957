package parquetfile

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"github.com/apache/arrow-go/v18/arrow/array"
)

// TestRewriteEveryCodec reads pages that compress badly and well, of ours and
// of another writer, with both versions of pages.
func TestRewriteEveryCodec(t *testing.T) {
	rs, rec := benchBatch(20000)
	s := compiled(t, rs)
	c := s.NewColumns()
	c.Append(rec, nil)
	files := map[string][]byte{}
	for _, codec := range []string{"zstd", "snappy", "gzip", "lz4", "none"} {
		for _, hidden := range []bool{false, true} {
			files[fmt.Sprintf("%s hidden %v", codec, hidden)] = encode(t, s, WriterOptions{Codec: codec, Hidden: hidden}, nil, c)
		}
	}
	for _, version := range []parquet.DataPageVersion{parquet.DataPageV1, parquet.DataPageV2} {
		for _, codec := range []compress.Compression{compress.Codecs.Lz4Raw, compress.Codecs.Snappy} {
			files[fmt.Sprintf("arrow %v pages %d", codec, version)] = arrowFile(t, rec, codec, version)
		}
	}
	want := fmt.Sprint(arrowRows(t, files["none hidden true"]))
	for name, data := range files {
		if got := fmt.Sprint(arrowRows(t, data)); got != want {
			t.Errorf("%s: rows differ as written", name)
		}
		f, err := Open(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if _, err := s.Rewrite(context.Background(), []*File{f}, &out, WriterOptions{Codec: "zstd"}, nil); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := fmt.Sprint(arrowRows(t, out.Bytes())); got != want {
			t.Errorf("%s: rows differ after a rewrite", name)
		}
	}
}

func arrowFile(t *testing.T, rec arrow.RecordBatch, codec compress.Compression, version parquet.DataPageVersion) []byte {
	t.Helper()
	var out bytes.Buffer
	props := parquet.NewWriterProperties(parquet.WithCompression(codec), parquet.WithDataPageVersion(version))
	tbl := array.NewTableFromRecords(rec.Schema(), []arrow.RecordBatch{rec})
	if err := pqarrow.WriteTable(tbl, &out, 1<<20, props, pqarrow.NewArrowWriterProperties(pqarrow.WithAllocator(memory.DefaultAllocator))); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
