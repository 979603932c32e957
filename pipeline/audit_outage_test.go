package pipeline

import (
	"errors"
	"syscall"
	"testing"

	"github.com/hivesink/hivesink/audit"
	"github.com/hivesink/hivesink/storage"
	"github.com/hivesink/hivesink/storage/faultfs"
	"github.com/hivesink/hivesink/storage/memfs"
)

// TestAuditInOutage: a storage that does not answer while files are read makes
// the audit fail, not the table; a disk that cannot read one file has answered.
func TestAuditInOutage(t *testing.T) {
	mem := memfs.New()
	if err := newSim().run(t, mem, nil); err != nil {
		t.Fatal(err)
	}
	fs := faultfs.New(mem)
	fs.Inject(faultfs.Rule{Kind: storage.OpReadAt, Glob: "*.parquet", Times: 1, Err: syscall.ECONNREFUSED}).MustFire(t)
	if rep, err := audit.Run(t.Context(), fs, simTable); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Fatalf("error %v, report %+v", err, rep)
	}
	fs = faultfs.New(mem)
	fs.Inject(faultfs.Rule{Kind: storage.OpReadAt, Glob: "*.parquet", Times: 1, Err: syscall.EIO}).MustFire(t)
	rep, err := audit.Run(t.Context(), fs, simTable)
	if err != nil || len(rep.Faults) == 0 || rep.Faults[0].Kind != audit.Damaged {
		t.Fatalf("error %v, report %+v", err, rep)
	}
}
