//go:build integration

package hdfs

import (
	"path"
	"testing"
	"time"

	"github.com/hivesink/hivesink/storage"
	"github.com/hivesink/hivesink/storage/hdfsfs"
	"github.com/hivesink/hivesink/test/engines"
	"github.com/hivesink/hivesink/test/mainjob"
	"github.com/hivesink/hivesink/test/services"
)

// pair connects to the HA pair by the Hadoop configuration, as hdfs://pair.
func pair(t *testing.T, o hdfsfs.Options) *hdfsfs.FS {
	t.Helper()
	o.Authority, o.ConfDir = "pair", services.HDFSPair.ConfDir(home(t))
	return open(t, o)
}

// TestPair are the tests of the HA pair.
func TestPair(t *testing.T) {
	clusterUp(t, services.HDFSPair)
	t.Run("failover", testFailover)
	t.Run("job", testFailoverOfTheJob)
}

// testFailover: the active name node changes sides, and then is killed, while
// one client goes on; files are written, renamed and read in between.
func testFailover(t *testing.T) {
	c := services.HDFSPair
	h := heal(t, c)
	must(t, c.Active(h, "nn1"))
	fs := pair(t, hdfsfs.Options{CallTimeout: 3 * time.Second})
	dir := scratch(t, fs)
	use := func(name string) {
		t.Helper()
		must(t, storage.WriteFile(fs, path.Join(dir, "tmp"), []byte(name)))
		must(t, fs.Rename(path.Join(dir, "tmp"), path.Join(dir, name)))
		got, err := fs.ReadFile(path.Join(dir, name))
		if err != nil || string(got) != name {
			t.Fatalf("read %q, %v; want %q", got, err, name)
		}
	}
	use("before")
	must(t, c.Active(h, "nn2"))
	use("after a graceful failover")
	must(t, h.Kill(c.Daemon("nn2")))
	waits(t, fs, func() error { return fs.Mkdir(path.Join(dir, "d")) }, func() error { return c.Active(h, "nn1") })
	use("after the active one was killed")
	if got := listed(t, fs, dir); len(got) != 4 {
		t.Fatalf("after all: %v", got)
	}
}

// testFailoverOfTheJob: the active name node is killed while the job runs, and
// the other one takes over; the location names the service.
func testFailoverOfTheJob(t *testing.T) {
	c := services.HDFSPair
	h := heal(t, c)
	must(t, c.Active(h, "nn1"))
	fs := pair(t, hdfsfs.Options{})
	root := path.Join(scratch(t, fs), "table")
	p := mainjob.Place{FS: fs, Root: root, Location: "hdfs://pair" + root, Config: "hdfs: {call_timeout: 5s}",
		Env:     []string{"HADOOP_CONF_DIR=" + c.ConfDir(h)},
		Readers: &engines.Table{WebHDFS: services.HDFSPairHTTP, Hadoop: c.Client()}}
	mainjob.Outage(t, p, 100_000, 12_000,
		func() error { return h.Kill(c.Daemon("nn1")) }, func() error { return c.Active(h, "nn2") })
}
