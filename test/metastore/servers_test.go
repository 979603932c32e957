//go:build integration

// Package metastore tests announcing against real Hive Metastores.
package metastore

import (
	"crypto/rand"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/hivesink/hivesink/hivetype"
	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/metastore/hive"
	"github.com/hivesink/hivesink/test/services"
)

// server is a Hive Metastore that runs.
type server struct {
	name    string // of its daemon
	address string
}

func servers() []server {
	return []server{
		{"hms-4", services.Address("HIVESINK_HMS4", services.HMS4)},
		{"hms-3", services.Address("HIVESINK_HMS3", services.HMS3)},
	}
}

// eachDatabase runs a test against every version, and against PostgreSQL, whose
// transactions meet otherwise than Derby's.
func eachDatabase(t *testing.T, f func(t *testing.T, s server)) {
	each(t, f)
	t.Run("postgres", func(t *testing.T) {
		up(t, "hms-pg", "hmspg-4")
		f(t, server{"hmspg-4", services.HMSPostgres})
	})
}

// each runs a test against every version.
func each(t *testing.T, f func(t *testing.T, s server)) {
	for _, s := range servers() {
		t.Run(s.name, func(t *testing.T) { f(t, s) })
	}
}

// warehouse is a directory that both the test and the metastore see, and a
// database of its own.
type warehouse struct {
	server
	dir      string
	database string
}

func newWarehouse(t *testing.T, s server) *warehouse {
	dir := t.TempDir()
	if shared := os.Getenv("HIVESINK_WAREHOUSE"); shared != "" { // of a server that does not see the temporary directory
		var err error
		if dir, err = os.MkdirTemp(shared, "t"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
	}
	return &warehouse{server: s, dir: dir, database: "t_" + strings.ToLower(rand.Text())}
}

func (w *warehouse) options(t *testing.T, name string, cols, keys []hivetype.Field) hive.Options {
	return hive.Options{
		Addresses: []string{w.address}, Timeout: 2 * time.Minute, ConnectTimeout: time.Minute, CreateTable: true,
		Database: w.database,
		Tables: map[string]hive.Table{
			ledger.MainTable: {Name: name, Location: "file://" + w.dir + "/" + name, Columns: cols, Keys: keys},
		},
	}
}

func columns(t *testing.T, text ...string) []hivetype.Field {
	t.Helper()
	var out []hivetype.Field
	for _, c := range text {
		f, err := hivetype.ParseColumn(c)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, f)
	}
	return out
}
