package hdfsfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"

	"github.com/colinmarc/hdfs/v2"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/storage"
)

// window is what a small read fetches, and the reader keeps: a data node is
// asked by a connection of its own for each place in a file, and Parquet is read
// in small pieces, the last ones first.
const window = 64 << 10

// reader reads a whole file at any offset. It holds no connection between two
// reads: thousands of inputs may be open.
type reader struct {
	f    *FS
	name string
	size int64

	mu     sync.Mutex
	s      *session
	in     *hdfs.FileReader // nil: to be opened again
	buf    []byte
	at     int64 // offset of buf
	closed bool
}

// open opens the file in a session. A file never changes, so one of another
// size is another file.
func (r *reader) open(s *session) error {
	in, err := s.client.Open(r.name)
	if err != nil {
		return err
	}
	switch size := in.Stat().Size(); {
	case in.Stat().IsDir():
		return errIsDir
	case r.buf != nil && size != r.size:
		return fault.New(fault.Halt, "", "the file has changed while it was read, from %d bytes to %d", r.size, size)
	default:
		r.size = size
	}
	r.in, r.s = in, s
	return nil
}

func (r *reader) Size() int64 { return r.size }

func (r *reader) ReadAt(p []byte, off int64) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return 0, r.f.wrap(storage.OpReadAt, r.name, "", fs.ErrClosed)
	}
	if off < 0 {
		return 0, r.f.wrap(storage.OpReadAt, r.name, "", fmt.Errorf("negative offset %d: %w", off, fs.ErrInvalid))
	}
	n := 0
	for n < len(p) {
		at := off + int64(n)
		if at >= r.size {
			return n, io.EOF
		}
		if m := r.kept(p[n:], at); m > 0 {
			n += m
			continue
		}
		if len(p)-n >= window {
			want := p[n:min(int64(len(p)), int64(n)+r.size-at)]
			if err := r.fetch(want, at); err != nil {
				return n, r.f.wrap(storage.OpReadAt, r.name, "", err)
			}
			n += len(want)
			continue
		}
		if err := r.fill(at, at+int64(len(p)-n)); err != nil {
			return n, r.f.wrap(storage.OpReadAt, r.name, "", err)
		}
	}
	return n, nil
}

// kept copies what the window has.
func (r *reader) kept(p []byte, at int64) int {
	if at < r.at || at >= r.at+int64(len(r.buf)) {
		return 0
	}
	return copy(p, r.buf[at-r.at:])
}

// fill moves the window over [from, to). At the end of the file it reaches back:
// a footer is read from its last bytes on.
func (r *reader) fill(from, to int64) error {
	begin := from
	if r.size-from < window {
		begin = max(0, r.size-window)
	}
	if begin+window < to {
		begin = from
	}
	if r.buf == nil {
		r.buf = make([]byte, 0, min(window, r.size))
	}
	buf := r.buf[:min(window, r.size-begin)]
	if err := r.fetch(buf, begin); err != nil {
		return err
	}
	r.buf, r.at = buf, begin
	return nil
}

// fetch reads all of p, from another session when the one it had got lost.
func (r *reader) fetch(p []byte, at int64) error {
	return r.f.do("read "+r.name, func(s *session) error {
		if r.in == nil || r.s != s {
			if err := r.open(s); err != nil {
				return err
			}
		}
		_, err := r.in.ReadAt(p, at)
		if err == nil {
			// Seeking to where it is makes it give up the connection, and keep
			// the places of the blocks.
			_, err = r.in.Seek(at, io.SeekStart)
		}
		if err != nil {
			_ = r.in.Close() // it only hangs up
			r.in = nil
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
		}
		return err
	})
}

func (r *reader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return r.f.wrap(storage.OpClose, r.name, "", fs.ErrClosed)
	}
	r.closed, r.buf = true, nil
	if r.in != nil {
		_ = r.in.Close() // it only hangs up
	}
	return nil
}
