package parquetfile

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// pagesV2 writes plain data pages V2, without a page index, that end at the first
// place where ends says so of what they have. numRows is what their headers say.
func pagesV2(t *testing.T, s *Schema, rows *Columns, ends func(levels int, row bool) bool, numRows func(rows, levels int) int) *File {
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
		at := span{}
		page := func() {
			for k := at.from; k < at.to; k++ {
				if l.maxRep == 0 || l.reps[k] == 0 {
					at.rows++
				}
				if l.defs[k] == l.maxDef {
					at.values++
				}
			}
			writeV2(t, w, &c, l, at, numRows(at.rows, at.to-at.from))
			at = span{from: at.to, to: at.to, firstValue: at.firstValue + at.values}
		}
		for at.to < len(l.defs) {
			if n := at.to - at.from; n > 0 && ends(n, l.maxRep == 0 || l.reps[at.to] == 0) {
				page()
			}
			at.to++
		}
		page()
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

func writeV2(t *testing.T, w *Writer, c *chunk, l *leaf, p span, numRows int) {
	t.Helper()
	levels := func(v []uint8, most uint8) []byte {
		if most == 0 {
			return nil
		}
		b, err := w.appendLevels(nil, v[p.from:p.to], most)
		if err != nil {
			t.Fatal(err)
		}
		return b[4:] // without their length
	}
	reps, defs := levels(l.reps, l.maxRep), levels(l.defs, l.maxDef)
	body := append(append(bytes.Clone(reps), defs...), l.appendPlain(nil, p.firstValue, p.values)...)
	nulls := p.to - p.from - p.values
	header := format.PageHeader{Type: format.DataPageV2, DataPageHeaderV2: thrift.New(format.DataPageHeaderV2{
		NumValues: int32(p.to - p.from), NumNulls: int32(nulls), NumRows: int32(numRows), Encoding: format.Plain,
		DefinitionLevelsByteLength: int32(len(defs)), RepetitionLevelsByteLength: int32(len(reps)), IsCompressed: thrift.New(false)})}
	at := w.out.n
	if err := w.emit(c.meta, &header, body); err != nil {
		t.Fatal(err)
	}
	c.placed(format.DataPageV2, format.Plain, at, w.out.n, p.to-p.from, p.rows, int64(nulls))
}

// TestMergeOfPagesV2: what a page V2 says of rows is not believed: Arrow's C++
// before 12 wrote the number of values, and ended pages within rows, as its Go
// does at times. A page that is moved has whole rows, and the rows that the page
// index says (F8, F11).
func TestMergeOfPagesV2(t *testing.T) {
	rs := schemaOf(t, "id bigint", "l array<bigint>", "names array<string>", "f array<struct<x:double,y:boolean>>")
	s := compiled(t, rs)
	for name, c := range map[string]struct {
		ends    func(levels int, row bool) bool
		numRows func(rows, levels int) int
		moved   bool
	}{
		"as they have to be":                 {func(n int, row bool) bool { return n >= 2000 && row }, func(rows, levels int) int { return rows }, true},
		"the number of values":               {func(n int, row bool) bool { return n >= 2000 && row }, func(rows, levels int) int { return levels }, true},
		"cut within rows":                    {func(n int, row bool) bool { return n >= 2000 && !row }, func(rows, levels int) int { return rows }, false},
		"and the number of values":           {func(n int, row bool) bool { return n >= 2000 && !row }, func(rows, levels int) int { return levels }, false},
		"a row less, and one more elsewhere": {func(n int, row bool) bool { return n >= 2000 && row }, func(rows, levels int) int { return rows + levels%2 }, true},
	} {
		t.Run(name, func(t *testing.T) {
			var inputs []*File
			var want []string
			cut := 0
			for i := range 3 {
				cols := s.NewColumns()
				cols.Append(foreignBatch(rs.Arrow, 3000+i, uint64(i)), nil)
				f := pagesV2(t, s, cols, c.ends, c.numRows)
				inputs = append(inputs, f)
				want = append(want, arrowRows(t, f.all(t))...)
				cut += wholeRows(t, s, f, false)
			}
			if (cut == 0) != c.moved {
				t.Fatalf("%d pages of the inputs begin within a row: the test tests something else", cut)
			}
			data := merged(t, inputs, JoinOptions{Codec: "zstd", KeepCodec: true})
			sameRows(t, arrowRows(t, data), want)
			checkFacts(t, data)
			checkIndexes(t, data)
			out := opened(t, data)
			wholeRows(t, s, out, true)
			moved := map[string]bool{}
			for i := range out.foot.rowGroups[0].columns {
				e := out.foot.rowGroups[0].columns[i].pages()
				var p rawPage
				for chunk := data[e.from:e.to]; len(chunk) > 0; {
					var err error
					if chunk, err = nextPage(chunk, &p); err != nil {
						t.Fatal(err)
					}
					moved[out.typ.names[i]] = moved[out.typ.names[i]] || p.kind == format.DataPageV2
				}
			}
			if l := out.typ.names[1]; !moved["id"] || moved[l] != c.moved {
				t.Errorf("pages moved: %v, those of %s: want %v", moved, l, c.moved)
			}
			checkFirstRows(t, s, out)
		})
	}
}

// checkFirstRows reads each column page by page and compares the rows with what
// the page index says.
func checkFirstRows(t *testing.T, s *Schema, f *File) {
	t.Helper()
	src, err := s.sources(f)
	if err != nil {
		t.Fatal(err)
	}
	var x pageIndexes
	if err := f.readPageIndex(&x); err != nil {
		t.Fatal(err)
	}
	for gi := range f.groups() {
		for i := range src {
			facts := chunkFacts{}
			facts.readOffsetIndex(x.offsetIndex(gi, i))
			r := columnReader{source: src[i], f: f}
			r.pages.open(f, src[i].column, &f.groups()[gi].columns[i])
			row := int64(0)
			for page, first := range facts.firstRows {
				if first != row {
					t.Fatalf("page %d of column %s begins with row %d, the page index says %d", page, f.typ.names[i], row, first)
				}
				if err := r.nextPage(); err != nil {
					t.Fatal(fmt.Errorf("page %d of column %s: %w", page, f.typ.names[i], err))
				}
				if row += int64(r.levels); r.reps != nil {
					row += int64(bytes.Count(r.reps, []byte{0}) - r.levels)
				}
			}
		}
	}
}
