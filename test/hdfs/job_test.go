//go:build integration

package hdfs

import (
	"path"
	"testing"

	"github.com/hivesink/hivesink/storage/hdfsfs"
	"github.com/hivesink/hivesink/test/mainjob"
)

// jobPlace is a table in a scratch directory of the single cluster.
func jobPlace(t *testing.T) mainjob.Place {
	t.Helper()
	fs := open(t, hdfsfs.Options{})
	root := path.Join(scratch(t, fs), "table")
	return mainjob.Place{FS: fs, Root: root, Location: "hdfs://" + nameNode() + root, Config: "hdfs: {call_timeout: 5s}"}
}

// TestKills: the state directory kept, lost and old.
func TestKills(t *testing.T) { mainjob.Kills(t, jobPlace(t), 60_000, 12_000, 10) }

// TestTakeOvers: SIGSTOP, take-over, SIGCONT.
func TestTakeOvers(t *testing.T) { mainjob.TakeOvers(t, jobPlace(t), 100_000, 12_000, 3) }
