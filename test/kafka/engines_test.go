//go:build integration

package kafkatest

import (
	"slices"

	"github.com/hivesink/hivesink/test/engines"
)

// wantEngines: Spark through the metastore, DuckDB and PyArrow agree on the
// table, and on its ids with what is wanted.
func (w *world) wantEngines(ids []int64) {
	w.t.Helper()
	found := engines.Agree(w.t, engines.Table{Location: w.location(), Name: "kafka." + w.table, Rows: true})
	got := make([]int64, len(found.Values))
	for i, row := range found.Values {
		id, ok := row[slices.Index(found.Order, "id")].(float64) // JSON has no other numbers
		if !ok {
			w.t.Fatalf("the engines see a row without id: %v", row)
		}
		got[i] = int64(id)
	}
	slices.Sort(got)
	if !slices.Equal(got, ids) {
		w.t.Fatalf("the engines see the ids %v, want %v", got, ids)
	}
}
