package ledger

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/internal/kv"
	"github.com/hivesink/hivesink/storage/localfs"
)

// TestLocalDisk is a life on a real file system with a real index: three owners
// after one another, the lock between them.
func TestLocalDisk(t *testing.T) {
	root := t.TempDir()
	fsys := localfs.New()
	w := newWorld()
	for i := range 3 {
		index, err := kv.OpenBadger(filepath.Join(root, "state", "index"))
		if err != nil {
			t.Fatal(err)
		}
		o := w.options(fsys)
		o.Table, o.Lock, o.Index, o.SnapshotEvery = filepath.Join(root, "web.db", "clicks"), true, index, 5
		l := mustOpen(t, o)
		if i > 0 && l.State().Checkpoint == 0 {
			t.Error("nothing was kept")
		}
		if err := (&script{l: l, fsys: fsys}).run(4*i, 4, nil); err != nil {
			t.Fatal(err)
		}
		if l.IndexErr() != nil || l.UpkeepErr() != nil {
			t.Error(l.IndexErr(), l.UpkeepErr())
		}
		_, err = Open(context.Background(), o)
		if fault.ClassOf(err) != fault.Fenced || !strings.Contains(err.Error(), fmt.Sprintf("process %d", os.Getpid())) {
			t.Errorf("a second owner at the same time: %v", err)
		}
		st, err := Read(fsys, o.Table)
		if err != nil || canon(t, st) != canon(t, l.State()) {
			t.Errorf("read beside the run: %v", err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if err := index.Close(); err != nil {
			t.Error(err)
		}
	}
}
