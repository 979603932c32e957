package hive

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"

	"github.com/apache/thrift/lib/go/thrift"

	"github.com/hivesink/hivesink/internal/krb5"
)

// maxMessage bounds an answer: a batch of partitions is far smaller, and a
// server of another kind must not make this process allocate what it says.
const maxMessage = 256 << 20

// wire is a Thrift transport over one connection. Its time limit is the
// connection's deadline, which the caller of a call sets: gohive's own
// connection has none, and thrift's socket would replace ours by one for each
// read.
type wire struct {
	conn net.Conn
	r    *bufio.Reader
	w    *bufio.Writer
}

func newWire(conn net.Conn) *wire {
	return &wire{conn: conn, r: bufio.NewReaderSize(conn, 32<<10), w: bufio.NewWriterSize(conn, 32<<10)}
}

func (t *wire) Open() error                 { return nil }
func (t *wire) IsOpen() bool                { return true }
func (t *wire) Close() error                { return t.conn.Close() }
func (t *wire) RemainingBytes() uint64      { return maxMessage }
func (t *wire) Read(p []byte) (int, error)  { return t.r.Read(p) }
func (t *wire) Write(p []byte) (int, error) { return t.w.Write(p) }

func (t *wire) Flush(context.Context) error { return t.w.Flush() }

// frames is a wire after a SASL negotiation: every message is a frame of four
// bytes of length and that many bytes, sealed by a security layer when one was
// agreed on.
type frames struct {
	*wire
	layer *krb5.Layer // nil: none
	in    []byte      // what is left of the frame being read
	out   []byte      // the frame being written
}

func (t *frames) Read(p []byte) (int, error) {
	for len(t.in) == 0 {
		frame, err := t.readFrame()
		if err != nil {
			return 0, err
		}
		t.in = frame
	}
	n := copy(p, t.in)
	t.in = t.in[n:]
	return n, nil
}

func (t *frames) readFrame() ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(t.r, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > maxMessage {
		return nil, fmt.Errorf("the server announces a frame of %d bytes", n)
	}
	frame := make([]byte, n)
	if _, err := io.ReadFull(t.r, frame); err != nil {
		return nil, err
	}
	if t.layer == nil {
		return frame, nil
	}
	return t.layer.Unwrap(frame)
}

func (t *frames) Write(p []byte) (int, error) {
	t.out = append(t.out, p...)
	return len(p), nil
}

// Flush sends what was written: one frame, or as many as the layer's limit
// makes of it.
func (t *frames) Flush(context.Context) error {
	defer func() { t.out = t.out[:0] }()
	if t.layer == nil {
		if err := t.writeFrame(t.out); err != nil {
			return err
		}
		return t.w.Flush()
	}
	for piece := range slices.Chunk(t.out, t.layer.Most()) {
		sealed, err := t.layer.Wrap(piece)
		if err != nil {
			return err
		}
		if err := t.writeFrame(sealed); err != nil {
			return err
		}
	}
	return t.w.Flush()
}

func (t *frames) writeFrame(frame []byte) error {
	var head [4]byte
	binary.BigEndian.PutUint32(head[:], uint32(len(frame)))
	if _, err := t.w.Write(head[:]); err != nil {
		return err
	}
	_, err := t.w.Write(frame)
	return err
}

var _, _ thrift.TTransport = (*wire)(nil), (*frames)(nil)
