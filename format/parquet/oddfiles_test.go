package parquetfile

import (
	"bytes"
	"context"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/parquet-go/parquet-go/format"
)

// TestColumnThatIsAlwaysNull: a column that its writer says is null in every
// row, as data frames have them, is merged, copied, checked, and read as null.
func TestColumnThatIsAlwaysNull(t *testing.T) {
	as := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}, {Name: "n", Type: arrow.Null, Nullable: true},
		{Name: "l", Type: arrow.ListOf(arrow.Null), Nullable: true}}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, as)
	defer b.Release()
	for i := range 3000 {
		b.Field(0).(*array.Int64Builder).Append(int64(i))
		b.Field(1).AppendNull()
		l := b.Field(2).(*array.ListBuilder)
		l.Append(true)
		for range i % 3 {
			l.ValueBuilder().AppendNull()
		}
	}
	rec := b.NewRecordBatch()
	inputs := []*File{foreign(t, as, 700, nil, rec), foreign(t, as, 1<<20, nil, rec)}
	nulls := 0
	for i := range inputs[0].typ.elements {
		if _, is := inputs[0].typ.elements[i].LogicalType.Value.(*format.NullType); is {
			nulls++
		}
	}
	if nulls == 0 {
		t.Fatal("no column of the input is annotated as null: the test tests nothing")
	}
	want := append(arrowRows(t, inputs[0].all(t)), arrowRows(t, inputs[1].all(t))...)
	for name, join := range map[string]func() []byte{
		"merge": func() []byte { return merged(t, inputs, JoinOptions{Codec: "zstd"}) },
		"copy": func() []byte {
			var b bytes.Buffer
			if _, err := Copy(context.Background(), inputs, &b, JoinOptions{}); err != nil {
				t.Fatal(err)
			}
			return b.Bytes()
		},
	} {
		data := join()
		sameRows(t, arrowRows(t, data), want)
		out := opened(t, data)
		if err := Same([]*File{inputs[0], out}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := out.CheckPages(context.Background()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Whatever the table has there.
	for _, typ := range []string{"int", "string", "decimal(30,2)", "boolean", "struct<x:int,l:array<string>>"} {
		data, err := rewritten(t, []string{"id bigint", "n " + typ}, inputs[1])
		if err != nil {
			t.Fatalf("%s: %v", typ, err)
		}
		if err := compiled(t, schemaOf(t, "id bigint", "n "+typ, "l array<int>")).Takes(inputs[1]); err != nil {
			t.Errorf("%s: %v", typ, err)
		}
		if got := arrowRows(t, data); len(got) != 3000 || got[7] != "id=7 n=(null)" {
			t.Errorf("%s: %d rows, the eighth %q", typ, len(got), got[7])
		}
	}
}

// TestChunkWithoutDataPages: a row group without rows may have a dictionary page
// in each column and no data page, whose place is then 0.
func TestChunkWithoutDataPages(t *testing.T) {
	_, data, _ := written(t, []string{"id bigint", "name string"}, `{"id":1,"name":"a"}`)
	full := opened(t, data)
	meta := library(full).Metadata()
	var out bytes.Buffer
	s := compiled(t, schemaOf(t, "id bigint", "name string"))
	w := s.NewWriter(&out, WriterOptions{Codec: "none"})
	if err := w.begin(); err != nil {
		t.Fatal(err)
	}
	g := format.RowGroup{Columns: make([]format.ColumnChunk, len(meta.RowGroups[0].Columns))}
	for i := range g.Columns {
		c := w.startChunk(&leaf{leafType: s.leaves[i]}, &g.Columns[i], i)
		w.dict.reset()
		if err := w.writeDictionary(&c); err != nil {
			t.Fatal(err)
		}
		w.finishChunk(&c)
	}
	w.groups, w.columnIndexes, w.offsetIndexes = []format.RowGroup{g}, nil, nil
	if _, err := w.Close(nil); err != nil {
		t.Fatal(err)
	}
	empty := opened(t, out.Bytes())
	if err := empty.CheckPages(context.Background()); err != nil {
		t.Error(err)
	}
	sameRows(t, arrowRows(t, merged(t, []*File{empty, full, empty}, JoinOptions{Codec: "zstd"})), arrowRows(t, data))
	var b bytes.Buffer
	if _, err := Copy(context.Background(), []*File{empty, full}, &b, JoinOptions{}); err != nil {
		t.Fatal(err)
	}
	sameRows(t, arrowRows(t, b.Bytes()), arrowRows(t, data))
}
