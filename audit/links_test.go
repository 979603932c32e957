package audit

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/storage/localfs"
)

// TestLinks: readers follow links, and so does the audit; what leads nowhere, or
// would block whoever opens it, is a fault and no end of the audit.
func TestLinks(t *testing.T) {
	root := filepath.Join(t.TempDir(), "t")
	l, err := ledger.Open(context.Background(), ledger.Options{FS: localfs.New(), Table: root, Pipeline: "p", Lock: true})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	elsewhere := t.TempDir()
	in := func(name string) string { return filepath.Join(root, name) }
	for _, err := range []error{
		os.WriteFile(filepath.Join(elsewhere, "alien.csv"), []byte("1,2"), 0o666),
		os.Symlink(elsewhere, in("day=1")),
		os.Symlink(filepath.Join(elsewhere, "alien.csv"), in("file.csv")),
		os.Symlink(filepath.Join(elsewhere, "none"), in("nothing.parquet")),
		syscall.Mkfifo(in("pipe.parquet"), 0o666),
		os.Mkdir(in("loop"), 0o777),
		os.Symlink(in("loop"), in("loop/again")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	rep, err := Run(context.Background(), localfs.New(), root)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{in("day=1/alien.csv"), in("file.csv"), in("nothing.parquet"), in("pipe.parquet"), "/again"} {
		if !slices.ContainsFunc(rep.Faults, func(f Fault) bool { return f.Kind == Unknown && strings.HasSuffix(f.File, want) }) {
			t.Errorf("no fault of %s: %+v", want, rep.Faults)
		}
	}
	if len(rep.Faults) != 5 {
		t.Errorf("%d faults: %+v", len(rep.Faults), rep.Faults)
	}
}
