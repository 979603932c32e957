package parquetfile

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	lib "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// TestCheckPages: files of any writer pass; a page without its values, in a file
// whose footer is right, is noticed.
func TestCheckPages(t *testing.T) {
	for name, inputs := range joinInputs(t) {
		for _, f := range inputs {
			if err := f.CheckPages(t.Context()); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	flag, number := lib.Leaf(lib.BooleanType), lib.Leaf(lib.Int64Type)
	for name, data := range map[string][]byte{
		"no flags":      handmade(t, flag, format.Uncompressed, 100, 100, handPage(t, 100, format.Plain, 0, nil), 0),
		"a number less": handmade(t, number, format.Uncompressed, 10, 10, handPage(t, 10, format.Plain, 72, make([]byte, 72)), 0),
		"no places":     handmade(t, number, format.Uncompressed, 10, 10, handPage(t, 10, format.RLEDictionary, 1, []byte{0}), 0),
		"a page less":   handmade(t, number, format.Uncompressed, 10, 10, handPage(t, 5, format.Plain, 40, make([]byte, 40)), 0),
		"rows less":     handmade(t, number, format.Uncompressed, 10, 5, handPage(t, 5, format.Plain, 40, make([]byte, 40)), 0),
	} {
		if err := opened(t, data).CheckPages(t.Context()); err == nil || !strings.Contains(err.Error(), "column c of row group 0") {
			t.Errorf("%s: %v", name, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	good := handmade(t, number, format.Uncompressed, 5, 5, handPage(t, 5, format.Plain, 40, make([]byte, 40)), 0)
	if err := opened(t, good).CheckPages(ctx); err == nil {
		t.Error("it does not stop")
	}
}

// BenchmarkCheckPages is what it costs beside the merge that made the file.
func BenchmarkCheckPages(b *testing.B) {
	const rows, part = 250_000, 5000
	rs, rec := benchBatch(rows)
	s := compiled(b, rs)
	cols := s.NewColumns()
	var files []*File
	for i := range rows / part {
		cols.Reset()
		cols.Append(rec.NewSlice(int64(i*part), int64((i+1)*part)), nil)
		files = append(files, opened(b, encode(b, s, WriterOptions{Codec: "zstd"}, nil, cols)))
	}
	var out bytes.Buffer
	if _, err := Merge(context.Background(), files, &out, JoinOptions{Codec: "zstd"}); err != nil {
		b.Fatal(err)
	}
	f := opened(b, out.Bytes())
	for name, work := range map[string]func() error{
		"merge": func() error {
			_, err := Merge(context.Background(), files, io.Discard, JoinOptions{Codec: "zstd"})
			return err
		},
		"check": func() error { return f.CheckPages(context.Background()) },
	} {
		b.Run(name, func(b *testing.B) {
			cpu := cpuForTest()
			for b.Loop() {
				if err := work(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric((cpuForTest()-cpu)/float64(b.N)/rows*1e9, "CPUns/row")
		})
	}
}
