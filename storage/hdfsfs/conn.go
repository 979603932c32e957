package hdfsfs

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"
)

// conn gives every read and write a deadline of its own, however the client
// that uses it sets them, and is closed by its first error: what an HDFS
// connection answers after a lost answer belongs to another question (H4).
type conn struct {
	net.Conn
	limit time.Duration

	mu    sync.Mutex
	until time.Time // what the client asked for
	dead  bool
	cause error       // of its end, unless Close was
	gone  func(*conn) // told once, when closed
}

func (c *conn) deadline() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	own := time.Now().Add(c.limit)
	if !c.until.IsZero() && c.until.Before(own) {
		return c.until
	}
	return own
}

func (c *conn) SetDeadline(t time.Time) error {
	c.mu.Lock()
	c.until = t
	c.mu.Unlock()
	return nil
}

func (c *conn) SetReadDeadline(t time.Time) error  { return c.SetDeadline(t) }
func (c *conn) SetWriteDeadline(t time.Time) error { return c.SetDeadline(t) }

func (c *conn) Read(p []byte) (int, error) {
	if err := c.Conn.SetReadDeadline(c.deadline()); err != nil {
		return 0, c.failed(err)
	}
	n, err := c.Conn.Read(p)
	if err != nil {
		err = c.failed(err)
	}
	return n, err
}

func (c *conn) Write(p []byte) (int, error) {
	if err := c.Conn.SetWriteDeadline(c.deadline()); err != nil {
		return 0, c.failed(err)
	}
	n, err := c.Conn.Write(p)
	if err != nil {
		err = c.failed(err)
	}
	return n, err
}

// failed closes the connection and returns its first error: the client reads
// and writes in several goroutines, and the one that comes second only meets a
// closed connection.
func (c *conn) failed(err error) error {
	c.mu.Lock()
	if c.cause == nil {
		c.cause = err
	}
	err = c.cause
	c.mu.Unlock()
	_ = c.Close() // the error that is returned is the one that counts
	return err
}

func (c *conn) Close() error {
	c.mu.Lock()
	dead := c.dead
	c.dead = true
	c.mu.Unlock()
	if dead {
		return nil
	}
	if c.gone != nil {
		c.gone(c)
	}
	return c.Conn.Close()
}

// dialer makes a session's connections and knows those to name nodes, so that
// they can be closed at once. (Of those to data nodes the client forgets to close
// some that were refused; nobody else may hold on to them, so that the garbage
// collector closes them.)
type dialer struct {
	connect, call time.Duration

	mu   sync.Mutex
	open map[*conn]bool
	over bool
}

var errSessionOver = errors.New("the session is over")

func (d *dialer) dataNode(ctx context.Context, network, addr string) (net.Conn, error) {
	inner, err := (&net.Dialer{Timeout: d.connect}).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &conn{Conn: inner, limit: d.call}, nil
}

func (d *dialer) nameNode(ctx context.Context, network, addr string) (net.Conn, error) {
	inner, err := (&net.Dialer{Timeout: d.connect}).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: inner, limit: d.call, gone: d.forget}
	d.mu.Lock()
	if d.open == nil {
		d.open = make(map[*conn]bool)
	}
	d.open[c] = true
	over := d.over
	d.mu.Unlock()
	if over {
		return nil, errors.Join(errSessionOver, c.Close())
	}
	return c, nil
}

func (d *dialer) forget(c *conn) {
	d.mu.Lock()
	delete(d.open, c)
	d.mu.Unlock()
}

// hangUp closes every connection: whoever reads or writes one gets an error.
func (d *dialer) hangUp() {
	d.mu.Lock()
	d.over = true
	all := make([]*conn, 0, len(d.open))
	for c := range d.open {
		all = append(all, c)
	}
	d.mu.Unlock()
	for _, c := range all {
		_ = c.Close() // nothing is expected of it any more
	}
}
