package record

import (
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/hivesink/hivesink/hivetype"
)

// valuesOf is a column of a type, one value for each, whose null values and
// those below null ones are as bad as can be.
func valuesOf(t *testing.T, typ *hivetype.Type, values ...any) arrow.Array {
	t.Helper()
	b := array.NewBuilder(memory.DefaultAllocator, ArrowType(typ))
	defer b.Release()
	for _, v := range values {
		appendAny(t, b, v)
	}
	return b.NewArray()
}

func appendAny(t *testing.T, b array.Builder, v any) {
	t.Helper()
	switch b := b.(type) {
	case *array.StringBuilder:
		if v == nil {
			b.AppendNull()
		} else {
			b.Append(v.(string))
		}
	case *array.Decimal128Builder:
		switch v := v.(type) {
		case nil:
			b.AppendNull()
		case int:
			b.Append(decimal128.FromI64(int64(v)))
		case decimal128.Num:
			b.Append(v)
		}
	case *array.Int32Builder:
		b.Append(int32(v.(int)))
	case *array.ListBuilder:
		b.Append(v != nil)
		if v != nil {
			for _, e := range v.([]any) {
				appendAny(t, b.ValueBuilder(), e)
			}
		}
	case *array.MapBuilder:
		b.Append(v != nil)
		if v != nil {
			for i, e := range v.([]any) {
				if i%2 == 0 {
					appendAny(t, b.KeyBuilder(), e)
				} else {
					appendAny(t, b.ItemBuilder(), e)
				}
			}
		}
	case *array.StructBuilder:
		list, valid := v.([]any)
		if bad, null := v.(map[string]any); null { // a null struct with something in it
			list = bad["null"].([]any)
		}
		b.Append(valid)
		for i, e := range list {
			appendAny(t, b.FieldBuilder(i), e)
		}
	default:
		t.Fatalf("no builder for %T", b)
	}
}

// Values that Arrow's types can hold and the table's cannot are refused, at any
// depth, with column and row named; what is null or below null does not matter.
func TestConformChecksValues(t *testing.T) {
	least := decimal128.New(-1<<63, 0)
	for _, c := range []struct {
		typ    string
		values []any
		want   string // "": fine; else row and column
	}{
		{"string", []any{"a", nil, "é", "", "日本"}, ""},
		{"string", []any{"a", "caf\xe9"}, `row 1 of the batch: column "c": "caf\xe9" is not UTF-8`},
		{"string", []any{"a", "\xc3", "\xa9"}, `row 1 of the batch: column "c"`}, // together they are é
		{"varchar(3)", []any{"abc", "日本語", "abcd"}, `row 2 of the batch: column "c": "abcd" is longer than varchar(3)`},
		{"char(3)", []any{"ab   ", "abc"}, ""},
		{"char(3)", []any{"ab  x"}, "row 0"},
		{"decimal(5,2)", []any{99999, nil, -99999, 0}, ""},
		{"decimal(5,2)", []any{1, 100000}, `row 1 of the batch: column "c": 1000.00 has more digits than decimal(5,2)`},
		{"decimal(9,0)", []any{1 << 32}, "row 0"}, // INT32 would keep 0
		{"decimal(38,0)", []any{least}, "row 0"},
		{"array<varchar(2)>", []any{[]any{"ab", nil}, nil, []any{}, []any{"ab", "abc"}}, `row 3 of the batch: column "c.element"`},
		{"map<string,decimal(3,0)>", []any{[]any{"k", 999}, []any{"k", 1000}}, `row 1 of the batch: column "c.value"`},
		{"map<string,int>", []any{nil, []any{"\xff", 1}}, `row 1 of the batch: column "c.key"`},
		{"struct<a:int,b:string>", []any{[]any{1, "x"}, map[string]any{"null": []any{1, "\xff"}}}, ""},
		{"struct<a:int,b:string>", []any{[]any{1, "\xff"}}, `row 0 of the batch: column "c.b"`},
		{"array<struct<a:int>>", []any{[]any{[]any{1}}}, ""},
	} {
		typ, err := hivetype.Parse(c.typ)
		if err != nil {
			t.Fatal(err)
		}
		s, err := NewSchema([]hivetype.Field{{Name: "c", Type: typ}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		whole := valuesOf(t, typ, c.values...)
		// With rows before that are cut off: every array has its offset then.
		both, err := array.Concatenate([]arrow.Array{whole, whole}, memory.DefaultAllocator)
		if err != nil {
			t.Fatal(err)
		}
		for _, arr := range []arrow.Array{whole, array.NewSlice(both, int64(whole.Len()), int64(both.Len()))} {
			for _, schema := range []*arrow.Schema{s.Arrow, arrow.NewSchema(s.Arrow.Fields(), nil)} {
				rec := array.NewRecordBatch(schema, []arrow.Array{arr}, int64(arr.Len()))
				out, err := Conform(s, rec)
				switch {
				case c.want == "" && err != nil:
					t.Errorf("%s %v: %v", c.typ, c.values, err)
				case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
					t.Errorf("%s %v: %v, want %s", c.typ, c.values, err, c.want)
				}
				if err == nil {
					out.Release()
				}
			}
		}
	}
}

// Nothing is allocated for a value that is fine.
func TestCheckValuesAllocatesNothing(t *testing.T) {
	for typ, value := range map[string]any{"string": "é", "varchar(9)": "text", "decimal(9,2)": 7, "array<string>": []any{"a", "b"},
		"map<string,decimal(3,0)>": []any{"k", 9}, "struct<a:string>": []any{"x"}} {
		parsed, err := hivetype.Parse(typ)
		if err != nil {
			t.Fatal(err)
		}
		s, err := NewSchema([]hivetype.Field{{Name: "c", Type: parsed}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		values := make([]any, 100)
		for i := range values {
			values[i] = value
		}
		rec := array.NewRecordBatch(s.Arrow, []arrow.Array{valuesOf(t, parsed, values...)}, 100)
		if n := testing.AllocsPerRun(10, func() {
			if err := checkValues(s, rec); err != nil {
				t.Fatal(err)
			}
		}); n > 0 {
			t.Errorf("%s: %v allocations for 100 rows", typ, n)
		}
	}
}
