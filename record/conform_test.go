package record

import (
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/hivesink/hivesink/hivetype"
)

func schemaOf(t *testing.T, columns ...string) *Schema {
	t.Helper()
	var fields []hivetype.Field
	for _, c := range columns {
		f, err := hivetype.ParseColumn(c)
		if err != nil {
			t.Fatal(err)
		}
		fields = append(fields, f)
	}
	s, err := NewSchema(fields, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func fromJSON(t *testing.T, typ arrow.DataType, text string) arrow.Array {
	t.Helper()
	arr, _, err := array.FromJSON(memory.DefaultAllocator, typ, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return arr
}

// TestConformTakesWhatMeansTheSame: types that are the table's but for what says
// nothing about values, as other writers of Arrow make them.
func TestConformTakesWhatMeansTheSame(t *testing.T) {
	required := func(name string, typ arrow.DataType) arrow.Field { return arrow.Field{Name: name, Type: typ} }
	sorted := arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int64)
	sorted.KeysSorted = true
	required64 := arrow.MapOfFields(required("k", arrow.BinaryTypes.String), required("v", arrow.PrimitiveTypes.Int64))
	for _, c := range []struct {
		column string
		typ    arrow.DataType
		values string
	}{
		{"c timestamp", &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "Europe/Berlin"}, `["2026-01-31 10:00:00Z", null]`},
		{"c timestamp", &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "+05:30"}, `["2026-01-31 10:00:00Z"]`},
		{"c array<bigint>", arrow.ListOfField(required("item", arrow.PrimitiveTypes.Int64)), `[[1, 2], [], null, [3]]`},
		{"c array<timestamp>", arrow.ListOf(&arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "Asia/Tokyo"}), `[["2026-01-31 10:00:00Z"]]`},
		{"c map<string,bigint>", sorted, `[[{"key": "a", "value": 1}], null]`},
		{"c map<string,bigint>", required64, `[[{"key": "a", "value": 1}], []]`},
		{"c struct<a:bigint,b:string>", arrow.StructOf(required("a", arrow.PrimitiveTypes.Int64), required("b", arrow.BinaryTypes.String)), `[{"a": 1, "b": "x"}]`},
	} {
		s := schemaOf(t, c.column)
		arr := fromJSON(t, c.typ, c.values)
		rec := array.NewRecordBatch(arrow.NewSchema([]arrow.Field{{Name: "c", Type: c.typ, Nullable: true}}, nil), []arrow.Array{arr}, int64(arr.Len()))
		out, err := Conform(s, rec)
		if err != nil {
			t.Errorf("%s from %s: %v", c.column, c.typ, err)
			continue
		}
		if got, want := out.Column(0).String(), arr.String(); got != want {
			t.Errorf("%s from %s: %s, want %s", c.column, c.typ, got, want)
		}
		out.Release()
	}
}

// TestConformLongColumns: a batch may have fewer rows than its columns have
// values; those behind are not of it.
func TestConformLongColumns(t *testing.T) {
	s := schemaOf(t, "ts timestamp", "day date", "n int", "d decimal(9,2)", "s varchar(3)", "b bigint not null")
	cols := []arrow.Array{
		fromJSON(t, s.Arrow.Field(0).Type, `["2026-01-31 10:00:00Z", "2026-01-31 11:00:00Z", "1999-01-01 00:00:00Z"]`),
		fromJSON(t, s.Arrow.Field(1).Type, `["2026-01-31", "2026-01-31", "1999-01-01"]`),
		fromJSON(t, s.Arrow.Field(2).Type, `[1, 2, 3]`),
		fromJSON(t, s.Arrow.Field(3).Type, `["1.00", "2.00", "3.00"]`),
		fromJSON(t, s.Arrow.Field(4).Type, `["a", "b", "not of the batch"]`),
		fromJSON(t, s.Arrow.Field(5).Type, `[1, 2, null]`),
	}
	for _, schema := range []*arrow.Schema{s.Arrow, arrow.NewSchema(s.Arrow.Fields(), nil)} {
		out, err := Conform(s, array.NewRecordBatch(schema, cols, 2))
		if err != nil {
			t.Fatal(err)
		}
		for i, col := range out.Columns() {
			if col.Len() != 2 || col.NullN() > 0 {
				t.Errorf("column %d has %d values, %d of them null", i, col.Len(), col.NullN())
			}
		}
		out.Release()
	}
}

// TestConformWithoutRows: what only moves a position need not have columns.
func TestConformWithoutRows(t *testing.T) {
	s := schemaOf(t, "id bigint not null", "l array<map<string,struct<a:decimal(5,2)>>>")
	out, err := Conform(s, array.NewRecordBatch(arrow.NewSchema(nil, nil), nil, 0))
	if err != nil || out.NumRows() != 0 {
		t.Fatalf("a batch without columns and rows: %v", err)
	}
	out.Release()
}
