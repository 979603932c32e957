package compactor

import (
	"strings"
	"syscall"
	"testing"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/storage"
	"github.com/hivesink/hivesink/storage/faultfs"
)

// TestOutageIsNoDamage: a storage that does not answer says nothing about a
// file. Who moved the unit's own target away would lose rows.
func TestOutageIsNoDamage(t *testing.T) {
	b := newBench(t)
	built := b.unit(t, "0000000000000001")
	if _, err := b.o.Publish(built); err != nil {
		t.Fatal(err)
	}
	fs := faultfs.New(b.o.FS)
	b.o.FS = fs
	for _, c := range []struct {
		err  error
		hint bool
	}{{syscall.ECONNREFUSED, false}, {syscall.EIO, true}} {
		fs.Inject(faultfs.Rule{Kind: storage.OpReadAt, Err: c.err}).MustFire(t)
		_, err := b.o.Done(&built.Unit, built.Footer.Leaves)
		if fault.ClassOf(err) != fault.Halt || strings.Contains(err.Error(), "move the file away") != c.hint {
			t.Errorf("%v: %v", c.err, err)
		}
		in := b.part(t, 5, false)
		fs.Inject(faultfs.Rule{Kind: storage.OpReadAt, Err: c.err}).MustFire(t)
		_, err = b.o.Build(t.Context(), Job{Unit: ledger.Unit{ID: "2", Target: "x.parquet", Mode: ledger.ModeRewrite, Rows: 5}, Inputs: []Input{in}})
		if fault.ClassOf(err) != fault.Halt || strings.Contains(err.Error(), "run fsck") != c.hint {
			t.Errorf("%v: %v", c.err, err)
		}
	}
	if there, err := b.o.Done(&built.Unit, built.Footer.Leaves); err != nil || there == nil {
		t.Fatalf("healed: %v, %v", there, err)
	}
}

// TestPublishBelowForeignDirectory: the directory that the table lies in may be
// one that cannot be synced.
func TestPublishBelowForeignDirectory(t *testing.T) {
	b := newBench(t)
	fs := faultfs.New(b.o.FS)
	b.o.FS = fs
	b.o.Location = func(string) string { return "/t" }
	for i, err := range []error{syscall.EACCES, syscall.ENOTSUP} {
		fs.Inject(faultfs.Rule{Kind: storage.OpSyncDir, Match: func(op faultfs.Op) bool { return op.Name == "/" }, Err: err}).MustFire(t)
		if _, err := b.o.Publish(b.unit(t, "000000000000000"+string(rune('1'+i)))); err != nil {
			t.Fatal(err)
		}
	}
	fs.Inject(faultfs.Rule{Kind: storage.OpSyncDir, Match: func(op faultfs.Op) bool { return op.Name == "/" }, Err: syscall.EIO}).MustFire(t)
	if _, err := b.o.Publish(b.unit(t, "0000000000000003")); err == nil {
		t.Fatal("a disk that cannot keep the directory passes")
	}
}
