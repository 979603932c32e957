//go:build integration

package metastore

import (
	"errors"
	"strings"
	"testing"

	"github.com/apache/thrift/lib/go/thrift"
	hms "github.com/beltran/gohive/hive_metastore"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/metastore/hive"
)

// drop is somebody else who drops a table.
func (w *warehouse) drop(t *testing.T, name string) {
	t.Helper()
	socket := thrift.NewTSocketConf(w.address, nil)
	must(t, socket.Open())
	p := thrift.NewTBinaryProtocolConf(thrift.NewTBufferedTransport(socket, 4096), nil)
	must(t, errors.Join(hms.NewThriftHiveMetastoreClient(thrift.NewTStandardClient(p, p)).DropTable(t.Context(), w.database, name, false), socket.Close()))
}

// TestDroppedTable: MS-02b. The table is dropped after two announcements; the
// next one waits until it is there again, and what went with the table is found
// and added.
func TestDroppedTable(t *testing.T) {
	each(t, func(t *testing.T, s server) {
		w := newWarehouse(t, s)
		o := w.options(t, "t", columns(t, "id bigint"), columns(t, "dt string"))
		st := ledger.NewState()
		read := func() (*ledger.State, error) { return st, nil }
		note := func(a ledger.Announcement) {
			st.Partitions[ledger.PartitionKey(a.Table, a.Partition)] = &ledger.Partition{Path: a.Partition, Announced: a.Number, AnnouncedCut: a.Cut,
				AnnouncedFiles: a.Files, AnnouncedRows: a.Rows, AnnouncedBytes: a.Bytes}
		}
		a, b, c := announcement(1, []string{"dt"}, "a"), announcement(2, []string{"dt"}, "b"), announcement(1, []string{"dt"}, "c")
		maker := open(t, o)
		o.CreateTable = false
		job := open(t, o)
		must(t, maker.Check(t.Context()))
		must(t, job.Announce(t.Context(), []ledger.Announcement{a, b}))
		note(a)
		note(b)
		w.drop(t, "t")
		err := job.Announce(t.Context(), []ledger.Announcement{c})
		if fault.ClassOf(err) != fault.Retry || !strings.Contains(err.Error(), w.database+".t") {
			t.Fatalf("class %s: %v", fault.ClassOf(err), err)
		}
		if ds, err := job.Compare(t.Context(), read); err != nil || len(ds) != 1 || ds[0].Kind != hive.NoTable {
			t.Fatalf("%v, %v", ds, err)
		}
		must(t, maker.Check(t.Context()))
		must(t, job.Announce(t.Context(), []ledger.Announcement{c}))
		note(c)
		if ds, err := job.Compare(t.Context(), read); err != nil || len(ds) != 2 || ds[0].Kind != hive.NotThere || ds[1].Partition != "dt=b" {
			t.Fatalf("%v, %v", ds, err)
		}
		if n, err := job.Add(t.Context(), read); err != nil || n != 2 {
			t.Fatalf("added %d, %v", n, err)
		}
		if ds, err := job.Compare(t.Context(), read); err != nil || len(ds) != 0 {
			t.Fatalf("%v, %v", ds, err)
		}
		want(t, job, b)
	})
}
