//go:build integration

package metastore

import (
	"fmt"
	"testing"

	"github.com/hivesink/hivesink/hivetype"
	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/metastore/hive"
	"github.com/hivesink/hivesink/metastore/metastoretest"
)

// TestConformance: a real metastore passes the suite of the embedded catalogue.
func TestConformance(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s server) {
		metastoretest.Run(t, func(t *testing.T, partitioned bool) metastoretest.Fixture {
			var now int64
			w := newWarehouse(t, s)
			var keys []hivetype.Field
			if partitioned {
				keys = columns(t, "dt string", "country string")
			}
			o := w.options(t, "t", columns(t, "id bigint", "name string"), keys)
			o.Now = func() int64 { return now }
			for _, side := range []string{ledger.LateTable, ledger.DeadTable} {
				spec := o.Tables[ledger.MainTable]
				spec.Name, spec.Location = "t_"+side, spec.Location+"_"+side
				if side == ledger.DeadTable {
					spec.Keys = nil
				}
				o.Tables[side] = spec
			}
			c := hive.New(o)
			t.Cleanup(func() { c.Close() })
			if err := c.Check(t.Context()); err != nil {
				t.Fatal(err)
			}
			return metastoretest.Fixture{Catalog: c, Database: w.database, Name: "t", Location: fmt.Sprintf("file:%s/t", w.dir),
				Clock: func(us int64) { now = us }}
		})
	})
}
