package pipeline

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/hivesink/hivesink/config"
	"github.com/hivesink/hivesink/internal/fault"
)

// TestStateInsideTable: whatever way leads there, by what the texts of the two
// options do not tell.
func TestStateInsideTable(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	table := filepath.Join(dir, "w", "t")
	for _, err := range []error{os.MkdirAll(table, 0o777), os.Symlink(table, filepath.Join(dir, "link"))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for state, refused := range map[string]bool{"w/t/state": true, "w/t": true, "link/a/b": true, "w": false, "w/t2": false, "w/t/../state": false} {
		cfg, err := config.Parse("c.yaml", []byte("pipeline: p\nstate_dir: "+state+"\ntable: {name: t, location: "+table+", columns: [id bigint]}\n"), nil)
		if err != nil {
			t.Fatal(err)
		}
		p, err := Open(t.Context(), Options{Config: cfg, Version: "test"})
		if err == nil {
			err = p.Release()
		}
		if refused != (fault.ClassOf(err) == fault.Config) || !refused && err != nil {
			t.Errorf("state_dir %s: %v", state, err)
		}
	}
	if left, err := os.ReadDir(table); err != nil || len(left) != 1 {
		t.Errorf("the table's directory has more than the table: %v %v", left, err)
	}
}
