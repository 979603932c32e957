package source

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/ledger"
)

// streamPrefix begins the ID of every stream; its number follows.
const streamPrefix = "stdin:"

// linger is how long a batch waits for more bytes of a stream that has paused.
const linger = 50 * time.Millisecond

type stdin struct {
	r      io.Reader
	o      Options
	form   recordFormat
	resume bool
	opened atomic.Bool
}

// NewStdin reads one stream, compressed or not. Every run is a new stream,
// stdin:1, stdin:2, … With resume it is the last one again, from its first
// byte, and what was read of it is passed over; one that was read to its end is
// no split any more.
//
// r is read in a goroutine of the reader's, so that Read returns when its
// context ends although r blocks. Close does not wait for that goroutine: it
// ends when the call of r.Read it is in returns. So r must not be used by
// anybody else afterwards.
func NewStdin(r io.Reader, o Options, resume bool) (Source, error) {
	o = o.withDefaults()
	form, err := o.recordFormat()
	if err != nil {
		return nil, err
	}
	return &stdin{r: r, o: o, form: form, resume: resume}, nil
}

// Splits implements Source.
func (s *stdin) Splits(_ context.Context, known map[string]ledger.Source) ([]Split, error) {
	last := 0
	for id := range known {
		if n, ok := strings.CutPrefix(id, streamPrefix); ok {
			if i, err := strconv.Atoi(n); err == nil {
				last = max(last, i)
			}
		}
	}
	if !s.resume || last == 0 {
		last++
	} else if known[streamPrefix+strconv.Itoa(last)].Ended {
		return nil, nil // it was read to its end
	}
	return []Split{{ID: streamPrefix + strconv.Itoa(last), Name: "stdin"}}, nil
}

// Open implements Source. The stream can be opened once.
func (s *stdin) Open(ctx context.Context, split Split, from ledger.Source) (Reader, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p, err := parsePosition(split.Name, from)
	if err != nil {
		return nil, err
	}
	if s.opened.Swap(true) {
		return nil, fmt.Errorf("read stdin: it was opened before, and what was read of it is gone")
	}
	in := newStreamInput(s.r, linger)
	return newFramer(split.Name, streamRemedy, in, s.o, s.form, p, from.NextRow), nil
}

// Progress implements Source: nobody knows how long a stream is.
func (s *stdin) Progress() float64 { return 0 }

const streamRemedy = "run again with --resume and the same stream from its first byte"

// streamInput reads and decompresses a stream in a goroutine of its own, two
// chunks ahead.
type streamInput struct {
	full   chan chunk  // closed after the last one
	empty  chan []byte // buffers to fill
	quit   chan struct{}
	linger time.Duration

	cur    chunk  // being read
	rest   []byte // of cur
	prefix []byte // the first bytes of the stream, decompressed
	hash   string // of prefix[:hashed]
	hashed int
}

type chunk struct {
	b   []byte
	err error // after b
}

func newStreamInput(r io.Reader, linger time.Duration) *streamInput {
	in := &streamInput{full: make(chan chunk), empty: make(chan []byte, 2), quit: make(chan struct{}), linger: linger}
	in.empty <- make([]byte, chunkBytes)
	in.empty <- make([]byte, chunkBytes)
	go in.pump(r) // owned by the reader; ends after its last chunk, or after close and the end of r.Read
	return in
}

// pump fills chunks until the stream ends or close is called.
func (in *streamInput) pump(r io.Reader) {
	var z io.ReadCloser
	compression := plain
	open := func() (err error) {
		b := bufio.NewReaderSize(r, chunkBytes)
		if compression, err = sniff(b); err == nil {
			z, err = decompress(compression, b)
		}
		return err
	}
	err := open()
	defer func() {
		if z != nil {
			z.Close()
		}
	}()
	for {
		var b []byte
		select {
		case b = <-in.empty:
		case <-in.quit:
			return
		}
		n := 0
		if err == nil {
			n, err = z.Read(b[:cap(b)])
		}
		select {
		case in.full <- chunk{b[:n], damaged(compression, err)}:
		case <-in.quit:
			return
		}
		if err != nil {
			return
		}
	}
}

func (in *streamInput) read(ctx context.Context, p []byte, patient bool) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	for len(in.rest) == 0 {
		if in.cur.err != nil {
			return 0, in.cur.err
		}
		if err := in.receive(ctx, patient); err != nil {
			return 0, err
		}
	}
	n := copy(p, in.rest)
	in.rest = in.rest[n:]
	if len(in.prefix) < fingerprintBytes {
		in.prefix = append(in.prefix, p[:min(n, fingerprintBytes-len(in.prefix))]...)
	}
	return n, nil
}

// receive waits for the next chunk.
func (in *streamInput) receive(ctx context.Context, patient bool) error {
	if in.cur.b != nil {
		in.empty <- in.cur.b // has room: there are two buffers
		in.cur.b = nil
	}
	var quiet <-chan time.Time // never, when patient
	if !patient {
		t := time.NewTimer(in.linger)
		defer t.Stop()
		quiet = t.C
	}
	select {
	case in.cur = <-in.full:
		in.rest = in.cur.b
		return nil
	case <-quiet:
		return errQuiet
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (in *streamInput) seek(int64) (bool, error) { return false, nil }

func (in *streamInput) mark(p *position) {
	n := int(min(int64(len(in.prefix)), p.Offset))
	if n != in.hashed || in.hash == "" {
		in.hashed, in.hash = n, fingerprint(in.prefix[:n])
	}
	p.N, p.Hash = int64(n), in.hash
}

// resumed halts when the stream begins otherwise than before (S4).
func (in *streamInput) resumed(p position) error {
	n := min(int(p.N), len(in.prefix))
	if h := fingerprint(in.prefix[:n]); h != p.Hash {
		return fault.New(fault.Halt, "--resume is for the same stream from its first byte; without it, this is a new stream",
			"resume stdin: it is another stream than the last one: the hash of its first %d bytes was %s and is %s", p.N, p.Hash, h)
	}
	return nil
}

func (in *streamInput) close() error {
	close(in.quit)
	return nil
}
