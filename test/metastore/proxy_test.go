//go:build integration

package metastore

import (
	"net"
	"sync"
	"testing"
)

// proxy stands between the test and a metastore, and cuts connections.
type proxy struct {
	listener net.Listener
	target   string

	mu    sync.Mutex
	conns []net.Conn
	// answers left out before the connection is cut: the server has done what
	// it was asked.
	swallow int
	cuts    int
	calls   int    // messages sent to the server
	sent    []byte // to the server, since it was emptied
}

func newProxy(t *testing.T, target string) *proxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, target: target}
	t.Cleanup(func() { l.Close(); p.cut() })
	go func() { // ends with the listener
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.serve(c)
		}
	}()
	return p
}

func (p *proxy) address() string { return p.listener.Addr().String() }

func (p *proxy) serve(c net.Conn) {
	s, err := net.Dial("tcp", p.target)
	if err != nil {
		c.Close()
		return
	}
	p.mu.Lock()
	p.conns = append(p.conns, c, s)
	p.mu.Unlock()
	go func() { // ends when either side closes
		buf := make([]byte, 64<<10)
		for {
			n, err := c.Read(buf)
			if err != nil {
				break
			}
			p.mu.Lock()
			p.calls++
			p.sent = append(p.sent, buf[:n]...)
			p.mu.Unlock()
			if _, err := s.Write(buf[:n]); err != nil {
				break
			}
		}
		c.Close()
		s.Close()
	}()
	go func() { // ends when either side closes
		buf := make([]byte, 64<<10)
		for {
			n, err := s.Read(buf)
			if err != nil {
				break
			}
			p.mu.Lock()
			swallow := p.swallow > 0
			if swallow {
				p.swallow--
				p.cuts++
			}
			p.mu.Unlock()
			if swallow {
				break
			}
			if _, err := c.Write(buf[:n]); err != nil {
				break
			}
		}
		c.Close()
		s.Close()
	}()
}

// cut closes every connection.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		c.Close()
	}
	p.conns = nil
	p.cuts++
}

// lose cuts the connection at the next answers.
func (p *proxy) lose(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.swallow = n
}
