//go:build integration

// Package hdfs tests hivesink on the HDFS clusters of test/services.
package hdfs

import (
	"context"
	"fmt"
	"os"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/hivesink/hivesink/storage"
	"github.com/hivesink/hivesink/storage/hdfsfs"
	"github.com/hivesink/hivesink/storage/storagetest"
	"github.com/hivesink/hivesink/test/services"
)

// nameNode is the single cluster's name node.
func nameNode() string { return services.Address("HIVESINK_HDFS", services.HDFSNameNode) }

// open connects with short time limits.
func open(t testing.TB, o hdfsfs.Options) *hdfsfs.FS {
	t.Helper()
	if o.Authority == "" {
		o.Authority = nameNode()
	}
	if o.CallTimeout == 0 {
		o.CallTimeout = 5 * time.Second
	}
	if o.Notify == nil {
		o.Notify = func(what string, err error) { t.Logf("%s: %v", what, err) }
	}
	fs, err := hdfsfs.New(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fs.Close() })
	return fs
}

// scratch is a directory of the test's own, removed at its end.
func scratch(t testing.TB, fs storage.FS) string {
	t.Helper()
	name := strings.NewReplacer("/", "_", " ", "_").Replace(t.Name())
	dir := path.Join("/", fmt.Sprintf("test-%s-%d-%d", name, os.Getpid(), time.Now().UnixNano()))
	if err := fs.Mkdir(dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := storage.RemoveAll(fs, dir); err != nil {
			t.Errorf("clean up: %v", err)
		}
	})
	return dir
}

// TestConformance: every rule of storage.FS on a real cluster.
func TestConformance(t *testing.T) {
	storagetest.Run(t, func(t *testing.T) (storage.FS, string) {
		fs := open(t, hdfsfs.Options{})
		return fs, scratch(t, fs)
	}, storagetest.Volatile, storagetest.Lockless)
}
