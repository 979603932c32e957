package parquetfile

import (
	"bytes"
	"context"
	"io"
	"testing"
)

// perRow is how many allocations each further row costs: the difference
// between a small and a large input, so that what a file or a page costs does
// not count.
func perRow(t *testing.T, small, large int, pass func(rows int) func()) float64 {
	t.Helper()
	a, b := testing.AllocsPerRun(3, pass(small)), testing.AllocsPerRun(3, pass(large))
	return (b - a) / float64(large-small)
}

// TestWritingAllocatesNothingPerRow keeps F6.
func TestWritingAllocatesNothingPerRow(t *testing.T) {
	rs, rec := benchBatch(64 << 10)
	s := compiled(t, rs)
	for _, o := range []WriterOptions{{Codec: "zstd"}, {Codec: "snappy"}, {Codec: "none", Hidden: true}} {
		w, c := s.NewWriter(io.Discard, o), s.NewColumns()
		got := perRow(t, 4<<10, 64<<10, func(rows int) func() {
			part := rec.NewSlice(0, int64(rows))
			return func() {
				c.Reset()
				c.Append(part, nil)
				w.Reset(io.Discard)
				if err := w.WriteRowGroup(c); err != nil {
					t.Fatal(err)
				}
				if _, err := w.Close(nil); err != nil {
					t.Fatal(err)
				}
			}
		})
		if got > 0.01 {
			t.Errorf("%+v: %.4f allocations a row", o, got)
		}
	}
}

// TestRewritingAllocatesNothingPerRow keeps F6.
func TestRewritingAllocatesNothingPerRow(t *testing.T) {
	rs, rec := benchBatch(64 << 10)
	s := compiled(t, rs)
	for _, o := range []WriterOptions{{Codec: "zstd"}, {Codec: "lz4"}, {Codec: "none", Hidden: true}} {
		got := perRow(t, 4<<10, 64<<10, func(rows int) func() {
			c := s.NewColumns()
			c.Append(rec.NewSlice(0, int64(rows)), nil)
			data := encode(t, s, o, nil, c)
			f, err := Open(bytes.NewReader(data), int64(len(data)))
			if err != nil {
				t.Fatal(err)
			}
			return func() {
				if _, err := s.Rewrite(context.Background(), []*File{f}, io.Discard, WriterOptions{Codec: "zstd"}, nil); err != nil {
					t.Fatal(err)
				}
			}
		})
		if got > 0.01 {
			t.Errorf("from %+v: %.4f allocations a row", o, got)
		}
	}
}

// TestResetWritesTheSameBytes: nothing of one file is left over in the next,
// whatever came between, an unfinished file included.
func TestResetWritesTheSameBytes(t *testing.T) {
	rs, rec := benchBatch(3000)
	s := compiled(t, rs)
	all, some := s.NewColumns(), s.NewColumns()
	all.Append(rec, nil)
	some.Append(rec.NewSlice(100, 200), nil)
	for _, o := range []WriterOptions{{Codec: "zstd"}, {Codec: "snappy"}, {Codec: "gzip"}, {Codec: "lz4"}, {Codec: "none", Hidden: true}} {
		want := encode(t, s, o, map[string]string{"a": "1"}, all, some)
		var out bytes.Buffer
		w := s.NewWriter(&out, o)
		write := func(meta map[string]string, finish bool, groups ...*Columns) {
			out.Reset()
			w.Reset(&out)
			for _, c := range groups {
				if err := w.WriteRowGroup(c); err != nil {
					t.Fatal(err)
				}
			}
			if !finish {
				return
			}
			if _, err := w.Close(meta); err != nil {
				t.Fatal(err)
			}
		}
		write(map[string]string{"other": "2"}, true, some)
		write(nil, false, some, all)
		for range 2 {
			write(map[string]string{"a": "1"}, true, all, some)
			if !bytes.Equal(out.Bytes(), want) {
				t.Errorf("%+v: a reused writer writes other bytes than a new one", o)
			}
		}
	}
}
