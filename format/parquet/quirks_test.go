package parquetfile

import (
	"bytes"
	"context"
	"slices"
	"testing"

	lib "github.com/parquet-go/parquet-go"
)

// hidePacking makes pages V2 say that they are not compressed, and returns how
// many it found.
func hidePacking(t *testing.T, f *File) (data []byte, pages int) {
	t.Helper()
	data = f.all(t)
	for g := range f.groups() {
		for k := range f.groups()[g].columns {
			e := f.groups()[g].columns[k].pages()
			for chunk := data[e.from:e.to]; len(chunk) > 0; {
				var p rawPage
				rest, err := nextPage(chunk, &p)
				if err != nil {
					t.Fatal(err)
				}
				w := walker{b: p.head}
				for id, typ := range w.fields {
					if id != 8 {
						w.skip(typ)
						continue
					}
					for id, typ := range w.fields {
						if id == 7 && typ == thriftTrue {
							p.head[w.at-1] ^= thriftTrue ^ thriftFalse
							pages++
						}
						w.skip(typ)
					}
				}
				chunk = rest
			}
		}
	}
	return data, pages
}

// TestPagesThatHideThatTheyArePacked: Arrow's C++, when it was parquet-cpp, said of
// every page V2 that it is not compressed. Under another created_by nobody could
// read such a page, so that none is moved (F11), and all are read as they are.
func TestPagesThatHideThatTheyArePacked(t *testing.T) {
	schema := lib.NewSchema("all", everyKind())
	for _, codec := range []string{"snappy", "zstd", "none"} {
		var inputs []*File
		want := make([][]lib.Value, len(schema.Columns()))
		for i := range 2 {
			f := kindFile(t, schema, 6000*i, 6000, 5000, 2, codec, lib.CreatedBy("parquet-cpp", "1.5.1-SNAPSHOT", ""))
			for k, values := range valuesOfAll(t, f.all(t)) {
				want[k] = append(want[k], values...)
			}
			data, pages := hidePacking(t, f)
			if codec != "none" && pages == 0 {
				t.Fatal("no page says that it is compressed: the test tests nothing")
			}
			inputs = append(inputs, opened(t, data))
		}
		check := func(data []byte) {
			t.Helper()
			for k, got := range valuesOfAll(t, data) {
				if !slices.EqualFunc(got, want[k], lib.DeepEqual) {
					t.Errorf("%s, column %v: %d values, want %d, or others", codec, schema.Columns()[k], len(got), len(want[k]))
				}
			}
		}
		check(merged(t, inputs, JoinOptions{Codec: "zstd", KeepCodec: true}))
		var b bytes.Buffer
		_, err := Copy(context.Background(), inputs, &b, JoinOptions{})
		if (err == nil) != (codec == "none") {
			t.Errorf("%s: copied: %v", codec, err)
		} else if err == nil {
			check(b.Bytes())
		}
		for _, f := range inputs { // one row group each
			if f.Coarse() {
				t.Errorf("%s: a file of %d row groups is worth writing anew", codec, len(f.RowGroups()))
			}
		}
		if mode, why := Advise(inputs, JoinOptions{KeepCodec: true, Codec: "none"}); mode != ModeMerge {
			t.Errorf("%s: advised %s: %s", codec, mode, why)
		}
	}
}
