package compactor

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/hivesink/hivesink/format/parquet"
	"github.com/hivesink/hivesink/hivetype"
	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/record"
)

// columns makes the bench a table of other columns.
func (b *bench) columns(t *testing.T, columns ...string) {
	t.Helper()
	var fields []hivetype.Field
	for _, c := range columns {
		f, err := hivetype.ParseColumn(c)
		if err != nil {
			t.Fatal(err)
		}
		fields = append(fields, f)
	}
	rs, err := record.NewSchema(fields, nil)
	if err != nil {
		t.Fatal(err)
	}
	if b.schema, err = parquetfile.NewSchema(rs); err != nil {
		t.Fatal(err)
	}
	b.rs = rs
	s := b.schema
	b.o.Schema = func(string) *parquetfile.Schema { return s }
}

// rows writes rows of JSON as a part.
func (b *bench) rows(t *testing.T, final bool, rows ...string) Input {
	t.Helper()
	rec, _, err := array.RecordFromJSON(memory.DefaultAllocator, b.rs.Arrow, strings.NewReader("["+strings.Join(rows, ",")+"]"))
	if err != nil {
		t.Fatal(err)
	}
	c := b.schema.NewColumns()
	c.Append(rec, nil)
	in := b.write(t, c, len(rows), final)
	in.Schema = b.rs.ID
	return in
}

// TestColumnsChanged: parts of before a change of table.columns become the
// table's where nothing is lost, and keep their own columns where something
// would be (C7).
func TestColumnsChanged(t *testing.T) {
	rows := []string{`{"id":0,"name":"n0"}`, `{"id":1,"name":null}`, `{"id":2,"name":"n2"}`}
	for _, c := range []struct {
		name  string
		to    []string
		reads []string // the columns and rows of the target
	}{
		{"a column more", []string{"id bigint", "new int", "name string"}, []string{"id,new,name", "0,(null),n0", "1,(null),(null)", "2,(null),n2"}},
		{"another order", []string{"name string", "id bigint"}, []string{"name,id", "n0,0", "(null),1", "n2,2"}},
		{"not null", []string{"id bigint not null", "name string"}, []string{"id,name", "0,n0", "1,(null)", "2,n2"}},
		{"a column less", []string{"id bigint"}, []string{"id,name", "0,n0", "1,(null)", "2,n2"}},
		{"another name", []string{"id bigint", "label string"}, []string{"id,name", "0,n0", "1,(null)", "2,n2"}},
		{"narrower", []string{"id int", "name string"}, []string{"id,name", "0,n0", "1,(null)", "2,n2"}},
		{"another type", []string{"id string", "name binary"}, []string{"id,name", "0,n0", "1,(null)", "2,n2"}},
	} {
		for _, final := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, final %v", c.name, final), func(t *testing.T) {
				b := newBench(t)
				b.columns(t, "id bigint", "name string")
				j := unitOf(b.rows(t, final, rows[:2]...), b.rows(t, final, rows[2]))
				b.columns(t, c.to...)
				built, err := b.o.Build(context.Background(), j)
				if err != nil {
					t.Fatal(err)
				}
				if got := b.reads(t, built.Path); strings.Join(got, "\n") != strings.Join(c.reads, "\n") {
					t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.reads, "\n"))
				}
				footer := built.Footer.Sources["src"]
				var all ledger.Sum
				for n := range int64(3) {
					all.Row(n)
				}
				if footer.Sum != all {
					t.Errorf("the audit footer says %+v, want %+v", footer.Sum, all)
				}
			})
		}
	}
}

// TestColumnsMixed: of what was planned together, before and after a change, one
// file cannot be made; the unit is given up then, and no input is touched.
func TestColumnsMixed(t *testing.T) {
	b := newBench(t)
	b.columns(t, "id bigint", "name string")
	before := b.rows(t, false, `{"id":0,"name":"n0"}`)
	b.columns(t, "id bigint")
	j := unitOf(before, b.rows(t, false, `{"id":1}`))
	_, err := b.o.Build(context.Background(), j)
	var target *TargetError
	if !errors.As(err, &target) || !strings.Contains(err.Error(), "column name") {
		t.Errorf("got %v", err)
	}
}

// unitOf is a unit of inputs.
func unitOf(inputs ...Input) Job {
	j := Job{Unit: ledger.Unit{ID: "0000000000000001", Target: "part-1-0000000000000001.parquet"}, Inputs: inputs}
	var parts []*ledger.Part
	for i := range inputs {
		j.Unit.Inputs = append(j.Unit.Inputs, inputs[i].ID)
		j.Unit.Rows += inputs[i].Rows
		parts = append(parts, &inputs[i].Part)
	}
	j.Unit.Mode, _ = Choose(parts, "zstd")
	return j
}

// reads is a file as another library reads it: a line of names, then the rows.
func (b *bench) reads(t *testing.T, name string) []string {
	t.Helper()
	r, err := b.o.FS.Open(path.Clean(name))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	tbl := readTable(t, r)
	var names []string
	lines := make([]string, tbl.NumRows()+1)
	for i := range int(tbl.NumCols()) {
		names = append(names, tbl.Column(i).Name())
		row := 1
		for _, chunk := range tbl.Column(i).Data().Chunks() {
			for k := range chunk.Len() {
				if i > 0 {
					lines[row] += ","
				}
				lines[row] += chunk.ValueStr(k)
				row++
			}
		}
	}
	lines[0] = strings.Join(names, ",")
	return lines
}
