package parquetfile

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	"github.com/parquet-go/parquet-go/format"
)

// cutWithinRows writes rows as some writers do: data pages V1 of so many levels,
// wherever a row ends, and no page index. The first pages refer to a dictionary
// if there is one, the others do not.
func cutWithinRows(t *testing.T, s *Schema, rows *Columns, levels int, dictPages func(page int) bool) *File {
	t.Helper()
	var out bytes.Buffer
	w := s.NewWriter(&out, WriterOptions{Codec: "none"})
	if err := w.begin(); err != nil {
		t.Fatal(err)
	}
	g := format.RowGroup{Columns: make([]format.ColumnChunk, len(rows.leaves)), NumRows: int64(rows.rows)}
	for i := range rows.leaves {
		l := &rows.leaves[i]
		c := w.startChunk(l, &g.Columns[i], i)
		dict := w.dict.build(l)
		if dict {
			if err := w.writeDictionary(&c); err != nil {
				t.Fatal(err)
			}
		}
		at := span{}
		for page := 0; at.to < len(l.defs); page++ {
			at = span{from: at.to, to: min(at.to+levels, len(l.defs)), firstRow: at.firstRow + at.rows, firstValue: at.firstValue + at.values}
			for k := at.from; k < at.to; k++ {
				if l.maxRep == 0 || l.reps[k] == 0 {
					at.rows++
				}
				if l.defs[k] == l.maxDef {
					at.values++
				}
			}
			if err := w.writePage(&c, l, at, dict && dictPages(page)); err != nil {
				t.Fatal(err)
			}
		}
		w.finishChunk(&c)
		g.TotalByteSize += g.Columns[i].MetaData.TotalUncompressedSize
	}
	w.groups, w.columnIndexes, w.offsetIndexes = append(w.groups, g), nil, nil
	w.info.Rows = g.NumRows
	if _, err := w.Close(nil); err != nil {
		t.Fatal(err)
	}
	return opened(t, out.Bytes())
}

// TestMergeOfPagesCutWithinRows: pages that end within a row become pages of
// whole rows, whatever kind of values a row goes on with: readers skip rows by
// the page index, which cannot say that a page begins within one.
func TestMergeOfPagesCutWithinRows(t *testing.T) {
	rs := schemaOf(t, "id bigint", "l array<bigint>", "names array<string>", "f array<struct<x:double,y:boolean>>", "i array<int>")
	s := compiled(t, rs)
	for name, dictPages := range map[string]func(int) bool{
		"dictionaries":              func(int) bool { return true },
		"dictionaries are given up": func(page int) bool { return page < 3 },
		"and taken up again":        func(page int) bool { return page%3 != 1 },
	} {
		for _, levels := range []int{3001, 5000} {
			t.Run(fmt.Sprintf("%s, %d levels", name, levels), func(t *testing.T) {
				var inputs []*File
				var want []string
				for i := range 3 {
					c := s.NewColumns()
					c.Append(foreignBatch(rs.Arrow, 9000+i, uint64(i)), nil)
					f := cutWithinRows(t, s, c, levels, dictPages)
					inputs = append(inputs, f)
					want = append(want, arrowRows(t, f.all(t))...)
				}
				data := merged(t, inputs, JoinOptions{Codec: "zstd", KeepCodec: true})
				sameRows(t, arrowRows(t, data), want)
				checkFacts(t, data)
				out := opened(t, data)
				cut := wholeRows(t, s, inputs[0], false)
				if cut == 0 {
					t.Fatal("no page of the input begins within a row: the test tests nothing")
				}
				wholeRows(t, s, out, true)
			})
		}
	}
}

// wholeRows counts the pages that begin within a row; must: there are none.
func wholeRows(t *testing.T, s *Schema, f *File, must bool) (n int) {
	t.Helper()
	src, err := s.sources(f)
	if err != nil {
		t.Fatal(err)
	}
	for gi := range f.groups() {
		for i := range src {
			r := columnReader{source: src[i], f: f}
			r.pages.open(f, src[i].column, &f.groups()[gi].columns[i])
			for page := 0; ; page++ {
				if err := r.nextPage(); err == io.EOF {
					break
				} else if err != nil {
					t.Fatal(err)
				}
				if r.reps != nil && r.reps[0] != 0 {
					if n++; must {
						t.Fatalf("page %d of column %s begins within a row", page, f.typ.names[i])
					}
				}
			}
		}
	}
	return n
}
