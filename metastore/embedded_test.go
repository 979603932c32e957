package metastore_test

import (
	"encoding/json"
	"testing"

	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/metastore"
	"github.com/hivesink/hivesink/metastore/metastoretest"
)

// The embedded catalogue is a catalogue.
var _ metastore.Catalog = (*metastore.Embedded)(nil)

func TestEmbedded(t *testing.T) {
	metastoretest.Run(t, func(t *testing.T, _ bool) metastoretest.Fixture {
		log := &tableLog{t: t, st: ledger.NewState()}
		log.append(&ledger.Record{Epoch: 1, NewEpoch: &ledger.Epoch{Table: "0123456789abcdef", Pipeline: "p"}})
		return metastoretest.Fixture{
			Catalog:  metastore.NewEmbedded("web", "clicks", "/w/web.db/clicks", log.st),
			Database: "web", Name: "clicks", Location: "/w/web.db/clicks",
			Done: log.done,
		}
	})
}

// tableLog applies records to a state as the ledger does.
type tableLog struct {
	t  *testing.T
	st *ledger.State
}

func (l *tableLog) append(r *ledger.Record) {
	l.t.Helper()
	r.Seq, r.Epoch, r.Previous = l.st.Seq+1, 1, l.st.Checksum
	if _, err := l.st.Apply(r, ""); err != nil {
		l.t.Fatalf("apply: %v", err)
	}
}

// done notes facts. A partition is in the state since a checkpoint named a part
// of it.
func (l *tableLog) done(facts []ledger.Announced) {
	for _, f := range facts {
		key := ledger.PartitionKey(f.Table, f.Partition)
		p := l.st.Partitions[key]
		if p == nil {
			p = &ledger.Partition{Table: f.Table, Path: f.Partition}
			l.st.Partitions[key] = p
		}
		p.Files, p.Rows, p.Bytes = f.Files, f.Rows, f.Bytes
		for l.st.Checkpoint < f.Cut {
			l.append(&ledger.Record{Checkpoint: &ledger.Checkpoint{Number: l.st.Checkpoint + 1}})
		}
	}
	l.append(&ledger.Record{Announced: facts})
}

// TestEmbeddedOnlyAnnounced: what is published is no matter of the catalogue
// before it is announced, nor after that until it is announced again (M1, M2).
func TestEmbeddedOnlyAnnounced(t *testing.T) {
	st := ledger.NewState()
	p := &ledger.Partition{Path: "dt=2026-01-31", Files: 3, Rows: 30, Bytes: 300}
	st.Partitions[ledger.PartitionKey("", p.Path)] = p
	catalog := metastore.NewEmbedded("web", "clicks", "/w/clicks", st)
	list, err := catalog.List("")
	if err != nil || len(list) != 0 {
		t.Errorf("before its announcement: %v %v", list, err)
	}
	if text, err := json.Marshal(list); err != nil || string(text) != "[]" {
		t.Errorf("an empty list is %s in JSON (%v), want []", text, err)
	}
	p.Announced, p.AnnouncedFiles, p.AnnouncedRows, p.AnnouncedBytes = 1, 2, 20, 200
	list, err = catalog.List("dt=2026-01-31")
	if err != nil || len(list) != 1 || list[0].NumFiles != 2 || list[0].NumRows != 20 || list[0].TotalSize != 200 {
		t.Errorf("after it: %+v %v", list, err)
	}
}

// TestEmbeddedPolicy: the policy succeeds without doing anything.
func TestEmbeddedPolicy(t *testing.T) {
	p := metastore.NewEmbeddedPolicy()
	if err := p.Announce(t.Context(), []ledger.Announcement{{Partition: "k=v"}}); err != nil || p.Name() != "metastore" {
		t.Errorf("%s: %v", p.Name(), err)
	}
}
