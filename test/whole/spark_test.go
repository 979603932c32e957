//go:build integration

package whole

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"

	"github.com/hivesink/hivesink/test/services"
)

// spark counts the table through the metastore: every committed id once, and
// nothing else.
func (w *world) spark(rows int) {
	w.t.Helper()
	python := os.Getenv("HIVESINK_PYTHON")
	if python == "" {
		python = services.Source("..", "..", ".venv", "bin", "python")
	}
	cmd := exec.Command(python, services.Source("..", "whole", "count.py"), "thrift://"+metastore(), "whole."+w.table)
	cmd.Env = append(os.Environ(), "HADOOP_CONF_DIR="+services.HDFSSingle.ConfDir(w.home))
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		w.t.Fatalf("%v: %v (make .venv/ready makes the Python environment)\n%s", cmd, err, stderr.String())
	}
	var got struct {
		Rows, Distinct, Min, Max, Sum int64
		Days                          map[string]int64
	}
	if err := json.Unmarshal([]byte(strings.TrimSpace(string(out))), &got); err != nil {
		w.t.Fatalf("Spark says %q: %v", out, err)
	}
	n := int64(rows)
	if got.Rows != n || got.Distinct != n || got.Min != 0 || got.Max != n-1 || got.Sum != n*(n-1)/2 || len(got.Days) != 10 {
		w.t.Fatalf("Spark counts %+v, %d rows were committed", got, rows)
	}
	w.t.Logf("Spark counts %d rows in %d partitions", got.Rows, len(got.Days))
}
