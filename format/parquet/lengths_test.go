package parquetfile

import (
	"bytes"
	"context"
	"testing"

	lib "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// TestLengthsOfTypes: Go's library tells a length of every type, and Hive does not
// read such a file. Its files are of the same schema as those of others, and what
// becomes of them is read by Hive.
func TestLengthsOfTypes(t *testing.T) {
	type row struct {
		ID    *int64   `parquet:"id,optional"`
		UUID  [16]byte `parquet:"uuid,uuid"`
		Name  *string  `parquet:"name,optional"`
		Deep  []struct{ D float64 }
		Small bool
	}
	var b bytes.Buffer
	w := lib.NewGenericWriter[row](&b)
	id := int64(7)
	if _, err := w.Write([]row{{ID: &id, Deep: []struct{ D float64 }{{1}, {2}}}}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	lengths := func(data []byte) (n int) {
		f, err := lib.OpenFile(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range f.Metadata().Schema {
			if e.Type.Valid && e.Type.V == format.FixedLenByteArray && e.TypeLength.V != 16 {
				t.Errorf("%s has length %v", e.Name, e.TypeLength)
			}
			if e.TypeLength.Valid {
				n++
			}
		}
		return n
	}
	if lengths(b.Bytes()) < 2 {
		t.Fatal("the library tells no lengths any more: withoutLengths can go")
	}
	in := opened(t, b.Bytes())
	var out bytes.Buffer
	if _, err := Copy(context.Background(), []*File{in, in}, &out, JoinOptions{}); err != nil {
		t.Fatal(err)
	}
	if n := lengths(out.Bytes()); n != 1 {
		t.Errorf("the copy has %d lengths", n)
	}
	copied := opened(t, out.Bytes())
	if err := Same([]*File{in, copied}); err != nil {
		t.Errorf("with and without lengths: %v", err)
	}
	if in.typ != copied.typ {
		t.Error("two types of one schema")
	}
	if data := merged(t, []*File{in, copied}, JoinOptions{Codec: "zstd"}); lengths(data) != 1 {
		t.Errorf("the merge has %d lengths", lengths(data))
	}
}
