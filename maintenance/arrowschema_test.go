package maintenance

import (
	"fmt"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/parquet-go/parquet-go"

	"github.com/hivesink/hivesink/storage/memfs"
)

// TestArrowSchemaIsKept: types that only the Arrow schema has are those of the
// new file, though each input's also tells how many rows that has; of inputs
// with other fields there it says nothing.
func TestArrowSchemaIsKept(t *testing.T) {
	of := func(typ arrow.DataType, rows int) map[string]string {
		m := arrow.MetadataFrom(map[string]string{"pandas": fmt.Sprint("rows: ", rows), "team": "web"})
		text, err := encodeArrow(arrow.NewSchema([]arrow.Field{{Name: "id", Type: typ, Nullable: true},
			{Name: "name", Type: &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}, Nullable: true}}, &m))
		check(t, err)
		return map[string]string{arrowSchemaKey: text}
	}
	for _, c := range []struct {
		name string
		meta []map[string]string
		want bool
	}{
		{"other rows", []map[string]string{of(arrow.FixedWidthTypes.Duration_ns, 10), of(arrow.FixedWidthTypes.Duration_ns, 11), of(arrow.FixedWidthTypes.Duration_ns, 10)}, true},
		{"another type", []map[string]string{of(arrow.FixedWidthTypes.Duration_ns, 10), of(arrow.FixedWidthTypes.Duration_us, 11)}, false},
		{"one has none", []map[string]string{of(arrow.FixedWidthTypes.Duration_ns, 10), nil}, false},
		{"one is damaged", []map[string]string{of(arrow.FixedWidthTypes.Duration_ns, 10), {arrowSchemaKey: "/////1AAAAA="}}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			fsys := memfs.New()
			for i, meta := range c.meta {
				put(t, fsys, fmt.Sprintf("%s/dt=0/%d.parquet", root, i), fileOf(t, 10*i, 10*i+10, meta))
			}
			outcome(t, run(t, options(fsys)), "dt=0", Compacted)
			text, there := only(t, fsys).Meta()[arrowSchemaKey]
			if there != c.want {
				t.Fatalf("the new file has an Arrow schema: %v", there)
			}
			if !c.want {
				return
			}
			s, err := decodeArrow(text)
			check(t, err)
			if got := s.Field(0).Type; got != arrow.FixedWidthTypes.Duration_ns {
				t.Errorf("id is %s", got)
			}
			if m := s.Metadata().ToMap(); len(m) != 1 || m["team"] != "web" {
				t.Errorf("its metadata are %v", m)
			}
		})
	}
}

// TestRewriteForgetsOtherSchemas: what the inputs' footers say of their columns
// is not said of a file that has the table's.
func TestRewriteForgetsOtherSchemas(t *testing.T) {
	fsys := memfs.New()
	meta := map[string]string{"team": "web"}
	for _, key := range schemaKeys {
		meta[key] = "the same in all"
	}
	put(t, fsys, root+"/dt=0/a.parquet", fileOf(t, 0, 10, meta))
	var writer []parquet.WriterOption
	for k, v := range meta {
		writer = append(writer, parquet.KeyValueMetadata(k, v))
	}
	put(t, fsys, root+"/dt=0/b.parquet", narrow(t, 10, 20, writer...))
	o := options(fsys)
	o.Columns = columns(t, "name string", "id bigint")
	if p := outcome(t, run(t, o), "dt=0", Compacted); p.Targets[0].Mode != ModeRewrite {
		t.Fatalf("it was done by %s", p.Targets[0].Mode)
	}
	if got := only(t, fsys).Meta(); len(got) != 1 || got["team"] != "web" {
		t.Errorf("the new file says %v", got)
	}
}

// TestDataFramesKeepTheirTypes: what files say of their data frame is said of the
// new one, though each counts its own rows and categories; an index of another
// name, or other types, are not the same.
func TestDataFramesKeepTheirTypes(t *testing.T) {
	of := func(rows int, typ, index, version string) map[string]string {
		return map[string]string{pandasKey: fmt.Sprintf(`{"index_columns": [{"kind": "range", "name": %s, "start": 0, "stop": %d, "step": 1}], "column_indexes": [],
			"columns": [{"name": "id", "numpy_type": %q, "metadata": null}, {"name": "name", "numpy_type": "int8", "metadata": {"num_categories": %d, "ordered": false}}],
			"creator": {"library": "pyarrow", "version": %q}, "pandas_version": %q}`, index, rows, typ, rows/2, version, version)}
	}
	for _, c := range []struct {
		name string
		meta []map[string]string
		want string
	}{
		{"other rows and versions", []map[string]string{of(10, "Int64", `"n"`, "1"), of(11, "Int64", `"n"`, "2"), of(10, "Int64", `"n"`, "1")},
			`{"column_indexes":[],"columns":[{"metadata":null,"name":"id","numpy_type":"Int64"},{"metadata":{"num_categories":30,"ordered":false},"name":"name","numpy_type":"int8"}],` +
				`"index_columns":[{"kind":"range","name":"n","start":0,"step":1,"stop":30}]}`},
		{"other types", []map[string]string{of(10, "Int64", `"n"`, "1"), of(10, "int64", `"n"`, "1")}, ""},
		{"another index", []map[string]string{of(10, "Int64", `"n"`, "1"), of(10, "Int64", "null", "1")}, ""},
		{"none", []map[string]string{of(10, "Int64", `"n"`, "1"), nil}, ""},
		{"no JSON", []map[string]string{of(10, "Int64", `"n"`, "1"), {pandasKey: "{"}}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			fsys := memfs.New()
			for i, meta := range c.meta {
				put(t, fsys, fmt.Sprintf("%s/dt=0/%d.parquet", root, i), fileOf(t, 10*i, 10*i+10, meta))
			}
			outcome(t, run(t, options(fsys)), "dt=0", Compacted)
			if got := only(t, fsys).Meta()[pandasKey]; got != c.want {
				t.Errorf("the new file says\n%s, want\n%s", got, c.want)
			}
		})
	}
}
