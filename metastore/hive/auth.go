package hive

import (
	"context"
	"net"
	"os/user"

	"github.com/apache/thrift/lib/go/thrift"
)

// negotiate authenticates a fresh connection and returns the transport of its
// messages.
func (o *Options) negotiate(_ context.Context, conn net.Conn, _ string) (thrift.TTransport, error) {
	return newWire(conn), nil
}

// owner is the name under which tables are made.
func (a *Auth) owner() string {
	if a.User != "" {
		return a.User
	}
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return "hivesink"
}

// authError: the metastore and this process do not agree on who may ask, and
// how. Waiting does not mend it.
type authError struct{ err error }

func (e *authError) Error() string { return e.err.Error() }
func (e *authError) Unwrap() error { return e.err }
