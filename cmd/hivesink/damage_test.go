package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hivesink/hivesink/layout"
)

// TestLogWithAGap: the history shows what there is, and says that a record is
// missing which is not merely old.
func TestLogWithAGap(t *testing.T) {
	tb := newTable(t, madeUp(1000, 0))
	tb.run()
	if err := os.Remove(filepath.Join(tb.root, layout.MetaDir, layout.LogDir, layout.LogFile(2))); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"log", "fsck", "partitions", "drain", "compact"} {
		r := want(t, exitFailed, command, "-c", tb.config)
		if !strings.Contains(r.Err, "record 2 is missing") {
			t.Errorf("%s: %v", command, r)
		}
		if command == "log" && !strings.Contains(r.Out, "announced: ") {
			t.Errorf("log shows nothing of what is there: %v", r)
		}
	}
}
