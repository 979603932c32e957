//go:build integration

package hdfs

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"testing"
)

// proxy stands between a client and a name node. It can lose the answers to
// calls of a method, together with the connection, have them come late, or answer
// them itself; then the first of them is what the name node gets in place of the
// next one. A connection has one call at a time.
type proxy struct {
	t    testing.TB
	addr string

	mu     sync.Mutex
	method string // of the calls that are meddled with
	times  int    // how often still
	answer []byte // what is answered without asking the name node; nil: its answer is lost
	fired  int
	first  []byte // of the calls that were answered here, without its header

	late     bool // calls are not lost but come late: when the next one does
	held     net.Conn
	heldCall []byte
}

func newProxy(t testing.TB, to string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	p := &proxy{t: t, addr: l.Addr().String()}
	t.Cleanup(func() { _ = l.Close() })
	go func() { // ends with the listener
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", to)
			if err != nil {
				_ = client.Close()
				continue
			}
			go p.forward(client, server)
		}
	}()
	return p
}

// meddle sets what happens to the next calls of a method.
func (p *proxy) meddle(method string, times int, answer []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.method, p.times, p.answer, p.fired, p.first = method, times, answer, 0, nil
}

// mustFire fails the test when the fault did not happen so often.
func (p *proxy) mustFire(times int) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fired != times {
		p.t.Fatalf("%s was meddled with %d times, want %d", p.method, p.fired, times)
	}
}

// hit says whether a call is one to meddle with, and counts it.
func (p *proxy) hit(call []byte) (hit bool, answer, forward []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	// The method's name stands in the call, after its length.
	if !bytes.Contains(call, append([]byte{byte(len(p.method))}, p.method...)) {
		return false, nil, call
	}
	header := 4 + 1 + int(call[4])
	if p.times == 0 {
		if p.first != nil {
			replaced := binary.BigEndian.AppendUint32(nil, uint32(header-4+len(p.first)))
			call = append(append(replaced, call[4:header]...), p.first...)
			p.first = nil
		}
		return false, nil, call
	}
	if p.answer != nil && p.first == nil {
		p.first = bytes.Clone(call[header:])
	}
	p.times--
	p.fired++
	return true, p.answer, call
}

// keep holds a call back, whose sender is told nothing.
func (p *proxy) keep(server net.Conn, call []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held, p.heldCall = server, call
}

// deliver has the server do what was kept before it gets the next call of the
// same method.
func (p *proxy) deliver(call []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held == nil || !bytes.Contains(call, append([]byte{byte(len(p.method))}, p.method...)) {
		return
	}
	defer p.held.Close()
	if _, err := p.held.Write(p.heldCall); err != nil {
		p.t.Errorf("a late call: %v", err)
	}
	if _, err := readPacket(p.held); err != nil {
		p.t.Errorf("the answer to a late call: %v", err)
	}
	p.held = nil
}

// nopConn is closed instead of a connection that is kept.
type nopConn struct{ net.Conn }

func (nopConn) Close() error { return nil }

// forward passes the handshake (7 bytes and a packet) and then call by call.
func (p *proxy) forward(client, server net.Conn) {
	defer client.Close()
	defer func() { server.Close() }()
	hello := make([]byte, 7)
	if _, err := io.ReadFull(client, hello); err != nil {
		return
	}
	context, err := readPacket(client)
	if err != nil {
		return
	}
	if _, err := server.Write(append(hello, context...)); err != nil {
		return
	}
	for {
		call, err := readPacket(client)
		if err != nil {
			return
		}
		p.deliver(call)
		hit, answer, call := p.hit(call)
		if hit && p.late {
			p.keep(server, call)
			server = nopConn{}
			return
		}
		if hit && answer != nil {
			if _, err := client.Write(answerTo(call, answer)); err != nil {
				return
			}
			continue
		}
		if _, err := server.Write(call); err != nil {
			return
		}
		got, err := readPacket(server)
		if err != nil || hit {
			return
		}
		if _, err := client.Write(got); err != nil {
			return
		}
	}
}

// readPacket reads a packet with its length.
func readPacket(r io.Reader) ([]byte, error) {
	packet := make([]byte, 4)
	if _, err := io.ReadFull(r, packet); err != nil {
		return nil, err
	}
	packet = append(packet, make([]byte, binary.BigEndian.Uint32(packet))...)
	_, err := io.ReadFull(r, packet[4:])
	return packet, err
}

// answerTo is the packet of a good answer to a call. Of the call's header (after
// the packet's length and its own) it takes field 3, the call's number.
func answerTo(call, message []byte) []byte {
	const number = 4 + 1 + 5 // after two small fields and its own tag
	id, _ := binary.Varint(call[number:])
	header := binary.AppendUvarint([]byte{8}, uint64(uint32(id))) // field 1: the number
	header = append(header, 16, 0)                                // field 2: success
	packet := append([]byte{byte(len(header))}, header...)
	packet = append(append(packet, byte(len(message))), message...)
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(packet))), packet...)
}
