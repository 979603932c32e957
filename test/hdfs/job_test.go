//go:build integration

package hdfs

import (
	"path"
	"testing"

	"github.com/hivesink/hivesink/storage/hdfsfs"
	"github.com/hivesink/hivesink/test/engines"
	"github.com/hivesink/hivesink/test/mainjob"
	"github.com/hivesink/hivesink/test/services"
)

// jobPlace is a table in a scratch directory of the single cluster.
func jobPlace(t *testing.T) mainjob.Place {
	t.Helper()
	fs := open(t, hdfsfs.Options{})
	root := path.Join(scratch(t, fs), "table")
	return mainjob.Place{FS: fs, Root: root, Location: "hdfs://" + nameNode() + root, Config: "hdfs: {call_timeout: 5s}",
		Readers: &engines.Table{WebHDFS: services.Address("HIVESINK_WEBHDFS", services.HDFSNameNodeHTTP)}}
}

// TestKills: the state directory kept, lost and old.
func TestKills(t *testing.T) { mainjob.Kills(t, jobPlace(t), 60_000, 12_000, 10) }

// TestTakeOvers: SIGSTOP, take-over, SIGCONT.
func TestTakeOvers(t *testing.T) { mainjob.TakeOvers(t, jobPlace(t), 100_000, 12_000, 3) }

// TestDataNodesGone: all data nodes hang while the job runs; it waits, and goes
// on by itself (R07).
func TestDataNodesGone(t *testing.T) {
	c := services.HDFSSingle
	h := heal(t, c)
	all := func(do func(string) error) func() error {
		return func() error {
			for _, role := range []string{"dn1", "dn2", "dn3"} {
				if err := do(c.Daemon(role)); err != nil {
					return err
				}
			}
			return nil
		}
	}
	mainjob.Outage(t, jobPlace(t), 80_000, 12_000, all(h.Pause), all(h.Resume))
}

// TestNameNodeGone: the name node is killed and started again while the job
// runs.
func TestNameNodeGone(t *testing.T) {
	c := services.HDFSSingle
	h := heal(t, c)
	nn := c.Daemon("nn1")
	mainjob.Outage(t, jobPlace(t), 80_000, 12_000, func() error { return h.Kill(nn) }, func() error { return h.Again(nn) })
}
