//go:build integration

package metastore

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hivesink/hivesink/hivetype"
	"github.com/hivesink/hivesink/ledger"
)

// TestSchemaChanges: added columns and wider types get into the table, and into
// partitions when they are announced again; what readers could not follow is
// refused, and so is everything when it was not asked for.
func TestSchemaChanges(t *testing.T) {
	each(t, func(t *testing.T, s server) {
		w := newWarehouse(t, s)
		keys := columns(t, "dt string")
		first := w.options(t, "t", columns(t, "id int", "f float", "m decimal(10,2)", "v varchar(5)"), keys)
		must(t, open(t, first).Check(t.Context()))
		must(t, open(t, first).Announce(t.Context(), []ledger.Announcement{announcement(1, []string{"dt"}, "a")}))

		next := w.options(t, "t", columns(t, "id bigint", "f double", "m decimal(12,2)", "v string", "tags array<string>", "s struct<a:int>"), keys)
		err := open(t, next).Check(t.Context())
		if err == nil || !strings.Contains(err.Error(), "add column tags array<string>") || !strings.Contains(err.Error(), "metastore.alter_table") {
			t.Fatalf("not asked for: %v", err)
		}
		next.AlterTable = true
		c := open(t, next)
		must(t, c.Check(t.Context()))
		must(t, c.Announce(t.Context(), []ledger.Announcement{announcement(2, []string{"dt"}, "a")}))
		got, _, err := c.Columns(t.Context(), "t")
		must(t, err)
		if text := texts(got); text != "id bigint, f double, m decimal(12,2), v string, tags array<string>, s struct<a:int>" {
			t.Errorf("columns %s", text)
		}
		for _, bad := range []string{"id string", "id int", "f decimal(10,2)", "m decimal(12,4)", "tags array<int>", "s int"} {
			o := w.options(t, "t", columns(t, bad), keys)
			o.AlterTable = true
			err := open(t, o).Check(t.Context())
			name, _, _ := strings.Cut(bad, " ")
			if err == nil || !strings.Contains(err.Error(), "column "+name) || !strings.Contains(err.Error(), w.database+".t") {
				t.Errorf("%s: %v", bad, err)
			}
		}
	})
}

func texts(fs []hivetype.Field) string {
	var out []string
	for _, f := range fs {
		out = append(out, f.Name+" "+f.Type.String())
	}
	return strings.Join(out, ", ")
}

// TestWrongTable: MS-02a. A table that is missing, lies elsewhere, or is
// partitioned otherwise is an error that names it.
func TestWrongTable(t *testing.T) {
	each(t, func(t *testing.T, s server) {
		w := newWarehouse(t, s)
		o := w.options(t, "t", columns(t, "id int"), columns(t, "dt string"))
		o.CreateTable = false
		err := open(t, o).Check(t.Context())
		if err == nil || !strings.Contains(err.Error(), w.database+".t") || !strings.Contains(err.Error(), "metastore.create_table") {
			t.Fatalf("missing: %v", err)
		}
		o.CreateTable = true
		must(t, open(t, o).Check(t.Context()))
		other := w.options(t, "t", columns(t, "id int"), columns(t, "day string"))
		if err := open(t, other).Check(t.Context()); err == nil || !strings.Contains(err.Error(), "table.partitioned_by has (day)") {
			t.Fatalf("partitioned otherwise: %v", err)
		}
		elsewhere := w.options(t, "t", columns(t, "id int"), columns(t, "dt string"))
		spec := elsewhere.Tables[ledger.MainTable]
		spec.Location = "file:///elsewhere/t"
		elsewhere.Tables[ledger.MainTable] = spec
		if err := open(t, elsewhere).Check(t.Context()); err == nil || !strings.Contains(err.Error(), "/elsewhere/t") || !strings.Contains(fmt.Sprint(err), w.dir) {
			t.Fatalf("elsewhere: %v", err)
		}
	})
}
