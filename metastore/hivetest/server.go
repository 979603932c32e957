package hivetest

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/apache/thrift/lib/go/thrift"
	hms "github.com/beltran/gohive/hive_metastore"
)

// Server is a metastore. It is safe for concurrent use.
type Server struct {
	address  string
	listener net.Listener

	mu             sync.Mutex
	user, password string
	before         func(call string) error
	latin1         bool

	conns  map[net.Conn]bool
	calls  []string
	dbs    map[string]*hms.Database
	tables map[string]*table
}

type table struct {
	table *hms.Table
	parts map[string]*hms.Partition // by name
}

// New starts a server, which ends with the test.
func New(t testing.TB) *Server {
	t.Helper()
	s := &Server{conns: make(map[net.Conn]bool), tables: make(map[string]*table),
		dbs: map[string]*hms.Database{"default": {Name: "default", LocationUri: "file:" + t.TempDir()}}}
	s.Start(t)
	t.Cleanup(s.Stop)
	return s
}

// AskFor has the server ask new connections for a name and a password, by SASL
// PLAIN; not for an empty name.
func (s *Server) AskFor(user, password string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.user, s.password = user, password
}

// Before has f called with the name of each call; its error is the answer. A
// call hangs as long as f does.
func (s *Server) Before(f func(call string) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = f
}

// Latin1 has the server keep partitions as a database does whose columns have no
// other letters: a question mark stands for each, in what it is asked for, too.
func (s *Server) Latin1() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.latin1 = true
}

// kept is text as the server keeps it. The caller has the lock.
func (s *Server) kept(text string) string {
	if !s.latin1 {
		return text
	}
	return strings.Map(func(r rune) rune {
		if r > 0xff {
			return '?'
		}
		return r
	}, text)
}

// Address is host:port, the same after a restart.
func (s *Server) Address() string { return s.address }

// Start listens again after Stop.
func (s *Server) Start(t testing.TB) {
	t.Helper()
	if s.address == "" {
		s.address = "127.0.0.1:0"
	}
	l, err := net.Listen("tcp", s.address)
	for end := time.Now().Add(time.Minute); errors.Is(err, syscall.EADDRINUSE) && time.Now().Before(end); l, err = net.Listen("tcp", s.address) {
		time.Sleep(20 * time.Millisecond) // a connection of somebody's has the port for a while
	}
	if err != nil {
		t.Fatal(err)
	}
	s.address, s.listener = l.Addr().String(), l
	go func() { // ends with Stop
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.conns[c] = true
			s.mu.Unlock()
			go s.serve(c)
		}
	}()
}

// Stop refuses connections and cuts those there are. What was told is kept.
func (s *Server) Stop() {
	s.listener.Close()
	s.Cut()
}

// Cut ends all connections.
func (s *Server) Cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.Close()
		delete(s.conns, c)
	}
}

// Calls are the names of the calls since the last time it was asked.
func (s *Server) Calls() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	calls := s.calls
	s.calls = nil
	return calls
}

func (s *Server) serve(c net.Conn) {
	defer func() {
		s.mu.Lock()
		delete(s.conns, c)
		s.mu.Unlock()
		c.Close()
	}()
	f := &frames{r: bufio.NewReader(c), w: c}
	s.mu.Lock()
	user, password := s.user, s.password
	s.mu.Unlock()
	if user != "" {
		if err := authenticate(f, user, password); err != nil {
			return
		}
		f.framed = true
	}
	p := thrift.NewTBinaryProtocolConf(f, nil)
	processor := hms.NewThriftHiveMetastoreProcessor(&handler{s: s})
	for {
		if ok, err := processor.Process(context.Background(), p, p); !ok && err != nil {
			var app thrift.TApplicationException
			if !errors.As(err, &app) {
				return
			}
		}
	}
}

// authenticate is the server's side of SASL PLAIN.
func authenticate(f *frames, user, password string) error {
	if status, text, err := f.message(); err != nil || status != 1 || string(text) != "PLAIN" {
		f.say(4, "Unsupported mechanism type "+string(text))
		return errors.Join(err, io.EOF)
	}
	_, text, err := f.message()
	if err != nil {
		return err
	}
	if string(text) != "\x00"+user+"\x00"+password {
		f.say(3, "Error validating the login")
		return io.EOF
	}
	return f.say(5, "")
}

// frames is a transport with or without frames.
type frames struct {
	r      *bufio.Reader
	w      io.Writer
	framed bool
	left   uint32 // of the frame that is read
	out    []byte
}

func (f *frames) message() (status byte, text []byte, err error) {
	var head [5]byte
	if _, err := io.ReadFull(f.r, head[:]); err != nil {
		return 0, nil, err
	}
	text = make([]byte, binary.BigEndian.Uint32(head[1:])&0xfffff)
	_, err = io.ReadFull(f.r, text)
	return head[0], text, err
}

func (f *frames) say(status byte, text string) error {
	_, err := f.w.Write(append(binary.BigEndian.AppendUint32([]byte{status}, uint32(len(text))), text...))
	return err
}

func (f *frames) Read(p []byte) (int, error) {
	if !f.framed {
		return f.r.Read(p)
	}
	for f.left == 0 {
		var head [4]byte
		if _, err := io.ReadFull(f.r, head[:]); err != nil {
			return 0, err
		}
		f.left = binary.BigEndian.Uint32(head[:])
	}
	n, err := f.r.Read(p[:min(len(p), int(f.left))])
	f.left -= uint32(n)
	return n, err
}

func (f *frames) Write(p []byte) (int, error) {
	f.out = append(f.out, p...)
	return len(p), nil
}

// Flush sends what was written, when framed as two frames: a reader must not
// take a frame for a message.
func (f *frames) Flush(context.Context) error {
	out := f.out
	f.out = nil
	if !f.framed {
		_, err := f.w.Write(out)
		return err
	}
	for _, part := range [][]byte{out[:len(out)/2], out[len(out)/2:]} {
		if _, err := f.w.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(part))), part...)); err != nil {
			return err
		}
	}
	return nil
}

func (f *frames) Open() error            { return nil }
func (f *frames) IsOpen() bool           { return true }
func (f *frames) Close() error           { return nil }
func (f *frames) RemainingBytes() uint64 { return ^uint64(0) }
