package hive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/apache/thrift/lib/go/thrift"
	hms "github.com/beltran/gohive/hive_metastore"

	"github.com/hivesink/hivesink/internal/fault"
)

// client is a connection to one of several Hive Metastores, made when it is
// needed. Calls are one at a time; each has a time limit and ends with its
// context (HM1). After anything but an answer the connection is dropped (HM2).
type client struct {
	o *Options

	mu   sync.Mutex
	conn *connection
	next int // the address to try first
}

type connection struct {
	net     net.Conn
	address string
	hms     *hms.ThriftHiveMetastoreClient
	used    bool // has answered a call
}

// call has the server do something. f must be idempotent: when a connection
// that has lain idle turns out to be dead, the call is made again on a new one.
func (c *client) call(ctx context.Context, what string, f func(context.Context, *hms.ThriftHiveMetastoreClient) error) error {
	return c.change(ctx, what, nil, f)
}

// change is a call that is made only if may allows it, which is asked right
// before each try of it, when there is a connection: what it has allowed ends
// within Options.Timeout.
//
// A metastore that takes connections and does not answer (it hangs, or is a
// balancer without anything behind it) is as dead as one that refuses them: the
// other addresses are tried.
func (c *client) change(ctx context.Context, what string, may func(context.Context) error, f func(context.Context, *hms.ThriftHiveMetastoreClient) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var failed []error
	silent := make(map[string]bool) // addresses that have not answered
	for {
		if c.conn == nil {
			if err := c.connect(ctx, silent); err != nil {
				if len(failed) == 0 {
					return err
				}
				return fault.Wrap(fault.Retry, "", joined(append(failed, err)))
			}
		}
		conn := c.conn
		if may != nil {
			if err := may(ctx); err != nil {
				return err
			}
		}
		err := c.once(ctx, conn, f)
		if err == nil || answered(err) {
			conn.used = true
			return c.explain(conn, what, err)
		}
		c.drop()
		if conn.used && ctx.Err() == nil && !timedOut(err) {
			continue // the server was restarted since the last call
		}
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		hint := ""
		if !conn.used && c.o.Auth.Mechanism == "" && (errors.Is(err, io.EOF) || timedOut(err)) {
			hint = "its first call already: if the metastore asks for authentication, set metastore.sasl; if it wants TLS, metastore.tls"
		}
		failed = append(failed, fmt.Errorf("metastore.uri: %s: %s: %w", conn.address, what, c.limit(err)))
		silent[conn.address] = true
		c.next = (c.next + 1) % len(c.o.Addresses)
		if ctx.Err() != nil || !slices.ContainsFunc(c.o.Addresses, func(a string) bool { return !silent[a] }) {
			return fault.Wrap(fault.Retry, hint, joined(failed))
		}
	}
}

// once makes a call within its time limit. When ctx ends, the connection's
// deadline ends the call.
func (c *client) once(ctx context.Context, conn *connection, f func(context.Context, *hms.ThriftHiveMetastoreClient) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := conn.net.SetDeadline(time.Now().Add(c.o.Timeout)); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.net.SetDeadline(time.Unix(1, 0)) })
	err := f(ctx, conn.hms)
	if !stop() && err == nil {
		c.drop() // its deadline is, or will be, in the past
	}
	return err
}

func (c *client) drop() {
	if c.conn != nil {
		_ = c.conn.net.Close()
		c.conn = nil
	}
}

func (c *client) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop()
}

// connect tries the addresses in turn, from the one that answered last, but not
// those that were silent.
func (c *client) connect(ctx context.Context, silent map[string]bool) error {
	var errs []error
	for range c.o.Addresses {
		address := c.o.Addresses[c.next]
		if silent[address] {
			c.next = (c.next + 1) % len(c.o.Addresses)
			continue
		}
		conn, err := c.dial(ctx, address)
		if err == nil {
			c.conn = conn
			return nil
		}
		errs = append(errs, err)
		if ctx.Err() != nil {
			break
		}
		c.next = (c.next + 1) % len(c.o.Addresses)
	}
	return fault.Wrap(fault.Retry, "", &connectError{joined(errs)})
}

func (c *client) dial(ctx context.Context, address string) (*connection, error) {
	dctx, cancel := context.WithTimeout(ctx, c.o.ConnectTimeout)
	defer cancel()
	raw, err := (&net.Dialer{}).DialContext(dctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("metastore.uri: connect to %s: %w", address, err)
	}
	if err := raw.SetDeadline(time.Now().Add(c.o.ConnectTimeout)); err != nil {
		_ = raw.Close()
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = raw.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	conn, err := c.o.encrypt(dctx, raw, address)
	if err != nil {
		_ = raw.Close()
		return nil, err
	}
	transport, err := c.o.negotiate(dctx, conn, address)
	if err != nil {
		_ = raw.Close()
		return nil, err
	}
	conf := &thrift.TConfiguration{MaxMessageSize: maxMessage}
	p := thrift.NewTBinaryProtocolConf(transport, conf)
	return &connection{net: conn, address: address, hms: hms.NewThriftHiveMetastoreClient(thrift.NewTStandardClient(p, p))}, nil
}

// connectError: no call was made. Retried while the pipeline runs; the reason
// not to start.
type connectError struct{ err error }

func (e *connectError) Error() string { return e.err.Error() }
func (e *connectError) Unwrap() error { return e.err }

// limit says which option is the limit that a call has hit.
func (c *client) limit(err error) error {
	if timedOut(err) {
		return fmt.Errorf("no answer within metastore.timeout, %s: %w", c.o.Timeout, err)
	}
	return err
}

func timedOut(err error) bool {
	var n net.Error
	var t thrift.TTransportException
	return errors.As(err, &n) && n.Timeout() || errors.As(err, &t) && t.TypeId() == thrift.TIMED_OUT
}

// joined is errors in one line.
func joined(errs []error) error {
	if len(errs) == 1 {
		return errs[0]
	}
	err := errs[0]
	for _, e := range errs[1:] {
		err = fmt.Errorf("%w; %w", err, e)
	}
	return err
}
