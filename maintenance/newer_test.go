package maintenance

import (
	"strings"
	"testing"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/storage"
	"github.com/hivesink/hivesink/storage/memfs"
)

// TestNewerUnit: what a newer hivesink was about to do is neither done nor taken
// for nothing (MT10).
func TestNewerUnit(t *testing.T) {
	fs := memfs.New()
	check(t, storage.MkdirAllSync(fs, "/", root))
	pl := &place{fs: fs, root: root, staging: root, unit: unit{Version: unitVersion, ID: "00000000000000aa"}}
	check(t, pl.writeDown())
	if p, err := readUnit(fs, root, root, pl.ID); p == nil || err != nil {
		t.Fatalf("%v, %v", p, err)
	}
	check(t, fs.Remove(pl.file()))
	pl.Version++
	check(t, pl.writeDown())
	p, err := readUnit(fs, root, root, pl.ID)
	if p != nil || err == nil || fault.ClassOf(err) != fault.Halt || !strings.Contains(err.Error(), "newer") {
		t.Errorf("%v, %v", p, err)
	}
}
