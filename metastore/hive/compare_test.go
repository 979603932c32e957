package hive_test

import (
	"strings"
	"testing"

	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/metastore/hive"
	"github.com/hivesink/hivesink/metastore/hivetest"
)

// TestCompare: what differs between log and metastore is found, and what is not
// there is added with its totals; the rest is left alone.
func TestCompare(t *testing.T) {
	s := hivetest.New(t)
	o := options(t, s)
	spec := o.Tables[ledger.MainTable]
	spec.Keys = fields(t, "hr int")
	o.Tables[ledger.MainTable] = spec
	c := open(t, o)
	st := ledger.NewState()
	var as []ledger.Announcement
	for _, hr := range []string{"07", "08", "09", "10"} {
		path := "hr=" + hr
		as = append(as, ledger.Announcement{Partition: path, Values: []string{hr}, Number: 2, Cut: 1, Files: 2, Rows: 20, Bytes: 200})
		st.Partitions[ledger.PartitionKey(ledger.MainTable, path)] = &ledger.Partition{Path: path, Announced: 2, AnnouncedFiles: 2, AnnouncedRows: 20, AnnouncedBytes: 200, AnnouncedCut: 1}
	}
	read := func() (*ledger.State, error) { return st, nil }
	kinds := func() string {
		t.Helper()
		ds, err := c.Compare(t.Context(), read)
		must(t, err)
		var out []string
		for _, d := range ds {
			out = append(out, d.Kind+" "+d.Partition)
		}
		return strings.Join(out, ", ")
	}
	if got := kinds(); got != hive.NoTable+" " {
		t.Errorf("without a table: %s", got)
	}
	must(t, c.Announce(t.Context(), as))
	if got := kinds(); got != "" {
		t.Errorf("after announcing: %s", got)
	}
	// Compacted at rest: fewer files, the same rows, no announcement.
	compacted := *st.Partitions[ledger.PartitionKey(ledger.MainTable, "hr=07")]
	compacted.Files, compacted.AnnouncedFiles, compacted.AnnouncedBytes = 1, 1, 150
	st.Partitions[ledger.PartitionKey(ledger.MainTable, "hr=07")] = &compacted
	if got := kinds(); got != "" {
		t.Errorf("after compaction at rest: %s", got)
	}
	s.DropPartition("web.t", "hr=7")
	s.MovePartition("web.t", "hr=8", "file:/elsewhere/8")
	st.Partitions[ledger.PartitionKey(ledger.MainTable, "hr=09")].Announced = 3
	delete(st.Partitions, ledger.PartitionKey(ledger.MainTable, "hr=10"))
	want := "outdated hr=09, elsewhere hr=08, not-there hr=07, unknown hr=10"
	if got := kinds(); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	s.Calls()
	if n, err := c.Add(t.Context(), read); err != nil || n != 1 {
		t.Errorf("added %d, %v", n, err)
	}
	for _, call := range s.Calls() {
		if strings.HasPrefix(call, "alter") {
			t.Errorf("what was there was changed: %s", call)
		}
	}
	if got, want := kinds(), "outdated hr=09, elsewhere hr=08, unknown hr=10"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	e, err := c.Get(t.Context(), ledger.MainTable, "hr=07")
	if err != nil || e.Number != 2 || e.NumRows != 20 || !strings.HasSuffix(e.Location, "/t/hr=07") {
		t.Errorf("%+v, %v", e, err)
	}
	// The table was dropped and made again by somebody.
	s.DropTable("web.t")
	if n, err := c.Add(t.Context(), read); err != nil || n != 3 {
		t.Errorf("added %d, %v", n, err)
	}
	if got := kinds(); got != "" && !strings.Contains(got, "outdated") {
		t.Errorf("at the end: %s", got)
	}
}
