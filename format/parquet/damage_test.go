package parquetfile

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// TestOpenSaysWhatIsWrong (case EM-01, F7).
func TestOpenSaysWhatIsWrong(t *testing.T) {
	_, good, _ := written(t, []string{"id bigint"}, `{"id":1}`)
	footer := func(n uint32) []byte {
		return append(binary.LittleEndian.AppendUint32(bytes.Clone(good[:len(good)-8]), n), "PAR1"...)
	}
	for _, c := range []struct {
		data []byte
		says string
	}{
		{nil, "zero bytes"}, {[]byte("PAR1"), "4 bytes, too few"},
		{[]byte("{\"id\":1}\n{\"id\":2}\n"), `begins with "{\"id"`},
		{good[:len(good)-1], "cut short"}, {good[:len(good)/2], "cut short"}, {append(bytes.Clone(good), 0), "cut short"},
		{append(bytes.Clone(good[:len(good)-4]), 0, 0, 0, 0), "cut short"},
		{footer(0xffffffff), "footer has 4294967295 bytes"}, {footer(uint32(len(good))), "footer has"},
		{footer(0), "footer is damaged"}, {footer(20), "footer is damaged"},
	} {
		if _, err := Open(bytes.NewReader(c.data), int64(len(c.data))); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%.30q: %v, want %q", c.data, err, c.says)
		}
	}
	// The size that is asked for is not there.
	if _, err := Open(bytes.NewReader(good), int64(len(good))+10); err == nil {
		t.Error("a file shorter than its size is opened")
	}
}

// TestEveryTruncationIsRefused: no prefix of a file is a file (F7).
func TestEveryTruncationIsRefused(t *testing.T) {
	_, good, _ := written(t, allTypes, allRows...)
	for n := range good {
		if _, err := Open(bytes.NewReader(good[:n]), int64(n)); err == nil {
			t.Fatalf("the first %d of %d bytes are opened", n, len(good))
		}
	}
}

// bodies are the ranges of a file that pages fill behind their headers.
func bodies(t testing.TB, f *File, data []byte) (out [][2]int) {
	t.Helper()
	for _, g := range library(f).Metadata().RowGroups {
		for _, c := range g.Columns {
			at := c.MetaData.DataPageOffset
			if d := c.MetaData.DictionaryPageOffset; d > 0 {
				at = d
			}
			end := at + c.MetaData.TotalCompressedSize
			for at < end {
				in := bytes.NewReader(data[at:])
				var h format.PageHeader
				if err := thrift.NewDecoder(new(thrift.CompactProtocol).NewReader(in)).Decode(&h); err != nil {
					t.Fatal(err)
				}
				from := len(data) - in.Len()
				at = int64(from) + int64(h.CompressedPageSize)
				out = append(out, [2]int{from, int(at)})
			}
		}
	}
	return out
}

// TestDamageIsNoticed turns bits everywhere: in the values of a page that is
// noticed by its checksum; elsewhere it may go unnoticed where it does no harm,
// but nothing panics or hangs (F7).
func TestDamageIsNoticed(t *testing.T) {
	for _, codec := range []string{"zstd", "snappy", "lz4", "none"} {
		rs := schemaOf(t, allTypes...)
		s := compiled(t, rs)
		c := s.NewColumns()
		for range 3 {
			c.Append(fromJSON(t, rs, allRows...), nil)
		}
		good := encode(t, s, WriterOptions{Codec: codec}, nil, c)
		inside := make([]bool, len(good))
		for _, b := range bodies(t, opened(t, good), good) {
			for i := b[0]; i < b[1]; i++ {
				inside[i] = true
			}
		}
		step := 1
		if testing.Short() {
			step = 16
		}
		for i := 0; i < len(good); i += step {
			bad := bytes.Clone(good)
			bad[i] ^= 1 << (i % 8)
			f, err := Open(bytes.NewReader(bad), int64(len(bad)))
			if err == nil {
				_, err = s.Rewrite(context.Background(), []*File{f}, io.Discard, WriterOptions{Codec: "none"}, nil)
			}
			if inside[i] && err == nil {
				t.Fatalf("%s: byte %d of %d, in a page: not noticed", codec, i, len(good))
			}
		}
	}
}

// TestColumnsThatDoNotMeet: a column with more or fewer rows than its row group
// must not shift against the others (F7).
func TestColumnsThatDoNotMeet(t *testing.T) {
	rs := schemaOf(t, "id bigint", "v array<int>")
	s := compiled(t, rs)
	for name, bend := range map[string]func(l []leaf){
		"a value less":     func(l []leaf) { l[0].defs, l[0].i64 = l[0].defs[1:], l[0].i64[1:] },
		"a value more":     func(l []leaf) { l[0].defs, l[0].i64 = append(l[0].defs, 1), append(l[0].i64, 7) },
		"a list less":      func(l []leaf) { l[1].defs, l[1].reps = l[1].defs[:2], l[1].reps[:2] },
		"a list more":      func(l []leaf) { l[1].defs, l[1].reps = append(l[1].defs, 0), append(l[1].reps, 0) },
		"a torn list":      func(l []leaf) { l[1].reps[0] = 1 },
		"a level too high": func(l []leaf) { l[1].defs[1], l[1].maxDef = 5, 7 },
	} {
		good, bent := s.NewColumns(), s.NewColumns()
		for _, c := range []*Columns{good, bent} {
			c.Append(fromJSON(t, rs, `{"id":1,"v":[1,2]}`, `{"id":2,"v":[3]}`), nil)
		}
		bend(bent.leaves)
		data := func() (data []byte) {
			defer func() {
				if recover() != nil {
					data = nil // not even we can write it
				}
			}()
			return encode(t, s, WriterOptions{Codec: "snappy"}, nil, bent, good)
		}()
		if data == nil {
			continue
		}
		_, err := s.Rewrite(context.Background(), []*File{opened(t, data)}, io.Discard, WriterOptions{Codec: "none"}, nil)
		if err == nil || !strings.Contains(err.Error(), "column ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestNullKeys: a map of another writer whose keys may be null is read while
// none is (F3).
func TestNullKeys(t *testing.T) {
	schema := parquet.NewSchema("x", parquet.Group{"m": parquet.Optional(parquet.Group{"key_value": parquet.Repeated(parquet.Group{
		"key": parquet.Optional(parquet.String()), "value": parquet.Optional(parquet.Int(32))})})})
	write := func(key parquet.Value) *File {
		var out bytes.Buffer
		w := parquet.NewGenericWriter[any](&out, schema)
		if _, err := w.WriteRows([]parquet.Row{{key, parquet.ValueOf(int32(7)).Level(0, 3, 1)}}); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return opened(t, out.Bytes())
	}
	data, err := rewritten(t, []string{"m map<string,bigint>"}, write(parquet.ValueOf("k").Level(0, 3, 0)))
	if err != nil || fmt.Sprint(arrowRows(t, data)) != `[m=[{"key":"k","value":7}]]` {
		t.Errorf("%v, %v", data, err)
	}
	if _, err := rewritten(t, []string{"m map<string,bigint>"}, write(parquet.Value{}.Level(0, 2, 0))); err == nil || !strings.Contains(err.Error(), "null where the table cannot") {
		t.Errorf("a null key: %v", err)
	}
}

// TestRewriteStops: when it is told to.
func TestRewriteStops(t *testing.T) {
	s, _, f := written(t, []string{"id bigint"}, `{"id":1}`)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := s.Rewrite(ctx, []*File{f}, io.Discard, WriterOptions{Codec: "none"}, nil); err == nil {
		t.Error("a cancelled rewrite succeeds")
	}
}

// FuzzRead: whatever a file says, reading it ends with rows or an error (F7).
func FuzzRead(f *testing.F) {
	f.Add([]byte("PAR1 something PAR1"))
	for _, codec := range []string{"zstd", "snappy", "gzip", "lz4", "none"} {
		rs := schemaOf(f, allTypes...)
		s := compiled(f, rs)
		c := s.NewColumns()
		c.Append(fromJSON(f, rs, allRows...), nil)
		f.Add(encode(f, s, WriterOptions{Codec: codec}, map[string]string{"k": "v"}, c, c))
	}
	s := compiled(f, schemaOf(f, allTypes...))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := Open(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return
		}
		_, _ = file.Meta(), s.Verify(file, 8)
		if file.Rows() < 1<<16 {
			_, _ = s.Rewrite(context.Background(), []*File{file}, io.Discard, WriterOptions{Codec: "none"}, nil)
		}
	})
}
