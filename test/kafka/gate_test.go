//go:build integration

package kafkatest

import (
	"io"
	"net"
	"sync"
	"testing"
)

// gate passes connections on to a server, unless it is closed.
type gate struct {
	t      *testing.T
	addr   string
	to     string
	mu     sync.Mutex
	closed bool
	conns  []net.Conn
}

func newGate(t *testing.T, to string) *gate {
	t.Helper()
	l, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{t: t, addr: l.Addr().String(), to: to}
	t.Cleanup(func() {
		l.Close()
		g.close()
	})
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			g.pass(c)
		}
	}()
	return g
}

func (g *gate) pass(c net.Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		c.Close()
		return
	}
	s, err := net.Dial("tcp", g.to)
	if err != nil {
		c.Close()
		return
	}
	g.conns = append(g.conns, c, s)
	go copyAll(c, s)
	go copyAll(s, c)
}

func copyAll(to, from net.Conn) {
	io.Copy(to, from)
	to.Close()
}

// close cuts all connections and refuses new ones.
func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	for _, c := range g.conns {
		c.Close()
	}
	g.conns = nil
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = false
}
