package hive

import (
	"crypto/tls"
	"time"

	"github.com/hivesink/hivesink/hivetype"
	"github.com/hivesink/hivesink/internal/krb5"
)

// Options say which metastore, and what table is announced there.
type Options struct {
	Addresses      []string      // host:port, tried in turn
	Timeout        time.Duration // of a call
	ConnectTimeout time.Duration // of a connection and its authentication
	Auth           Auth
	TLS            *tls.Config // nil: the connections are not encrypted by TLS
	Batch          int         // partitions in one call at most

	Database string
	// Tables are the table and its side tables, named as in the ledger.
	Tables map[string]Table
	// CreateTable and AlterTable allow to make what is missing.
	CreateTable, AlterTable bool

	// Owner is asked before anything is changed: an error means that this
	// process must not (ledger.Ledger.Confirm). Nil: always.
	Owner func() error
	// NotBefore holds back the first change: a former owner's last call may
	// still be under way. The zero time does not.
	NotBefore time.Time
	// Now is the wall clock, microseconds.
	Now func() int64

	tickets *krb5.Tickets // nil without Kerberos
}

// Table is what hivesink knows of a table.
type Table struct {
	Name     string
	Location string           // URI of its root directory
	Columns  []hivetype.Field // of its data files
	Keys     []hivetype.Field // its partition columns
}

// Auth says how the metastore is told who asks.
type Auth struct {
	Mechanism string // "" (the metastore does not ask), Plain or GSSAPI
	User      string
	Password  func() (string, error) // read when a connection is made
	Kerberos  krb5.Identity
	// Service is the metastore's principal, for GSSAPI; _HOST stands for the
	// host of its address.
	Service string
}

// Mechanisms, by their SASL names.
const (
	Plain  = "PLAIN"
	GSSAPI = krb5.Mechanism
)
