package s3fs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/hivesink/hivesink/storage"
)

const (
	tailBytes  = 64 << 10 // read when an object is opened: a Parquet footer is in it
	blockBytes = 1 << 20  // read at once, for small reads
	blocksKept = 4        // of one reader
)

// Open opens an object with the bytes it has now: a later one of the same name
// is an error of ReadAt. Its end comes along, so that a footer costs no further
// request.
func (f *FS) Open(name string) (storage.Reader, error) {
	k, err := key(name)
	if err != nil {
		return nil, wrap(storage.OpOpen, name, err)
	}
	r := &reader{f: f, name: name, key: k}
	err = f.do(background(), "GetObject", k, func(ctx context.Context) error {
		out, err := f.client.GetObject(ctx, &s3.GetObjectInput{Bucket: f.bucket, Key: &k, Range: aws.String(fmt.Sprintf("bytes=-%d", tailBytes))})
		if err != nil {
			return err
		}
		defer out.Body.Close()
		r.etag = aws.ToString(out.ETag)
		if r.tail, err = io.ReadAll(out.Body); err != nil {
			return err
		}
		if r.size, err = total(aws.ToString(out.ContentRange), int64(len(r.tail))); err != nil {
			return err
		}
		return saidETag(out.ETag)
	})
	if code(err) == "InvalidRange" { // an empty object has no last byte
		var info storage.Info
		if info, err = f.Stat(name); err == nil && info.Size > 0 {
			err = fmt.Errorf("its size changed to %d bytes", info.Size)
		}
		err = cause(err)
	}
	if err != nil {
		return nil, wrap(storage.OpOpen, name, err)
	}
	return r, nil
}

// total is the size in a Content-Range, "bytes 0-9/10"; without one the whole
// object came.
func total(contentRange string, got int64) (int64, error) {
	if contentRange == "" {
		return got, nil
	}
	_, size, ok := strings.Cut(contentRange, "/")
	n, err := strconv.ParseInt(size, 10, 64)
	if !ok || err != nil {
		return 0, fmt.Errorf("the store gives the range %q", contentRange)
	}
	return n, nil
}

// reader reads an object by ranges. Small reads go by blocks, of which it keeps
// a few: a Parquet page costs no request of its own.
type reader struct {
	f         *FS
	name, key string
	etag      string
	size      int64
	tail      []byte // the last bytes

	mu     sync.Mutex
	closed bool
	blocks []block // last used first
}

type block struct {
	at   int64
	data []byte
}

func (r *reader) Size() int64 { return r.size }

func (r *reader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return wrap(storage.OpClose, r.name, fs.ErrClosed)
	}
	r.closed, r.blocks, r.tail = true, nil, nil
	return nil
}

func (r *reader) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, wrap(storage.OpReadAt, r.name, fs.ErrInvalid)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return 0, wrap(storage.OpReadAt, r.name, fs.ErrClosed)
	}
	want := p[:max(0, min(int64(len(p)), r.size-off))]
	for done := 0; done < len(want); {
		n, err := r.some(want[done:], off+int64(done))
		if err != nil {
			return done, wrap(storage.OpReadAt, r.name, err)
		}
		done += n
	}
	if len(want) < len(p) {
		return len(want), io.EOF
	}
	return len(want), nil
}

// some reads at least one byte of what is wanted.
func (r *reader) some(p []byte, off int64) (int, error) {
	if begin := r.size - int64(len(r.tail)); off >= begin {
		return copy(p, r.tail[off-begin:]), nil
	}
	for i, b := range r.blocks {
		if off >= b.at && off < b.at+int64(len(b.data)) {
			copy(r.blocks[1:i+1], r.blocks[:i])
			r.blocks[0] = b
			return copy(p, b.data[off-b.at:]), nil
		}
	}
	if len(p) >= blockBytes {
		return len(p), r.get(p, off)
	}
	at := off - off%blockBytes
	b := block{at, make([]byte, min(blockBytes, r.size-at))}
	if err := r.get(b.data, at); err != nil {
		return 0, err
	}
	r.blocks = append([]block{b}, r.blocks[:min(len(r.blocks), blocksKept-1)]...)
	return copy(p, b.data[off-at:]), nil
}

// get fills p from the object as it was when it was opened.
func (r *reader) get(p []byte, off int64) error {
	return r.f.do(background(), "GetObject", r.key, func(ctx context.Context) error {
		in := &s3.GetObjectInput{Bucket: r.f.bucket, Key: &r.key, Range: aws.String(fmt.Sprintf("bytes=%d-%d", off, off+int64(len(p))-1))}
		if r.etag != "" {
			in.IfMatch = &r.etag
		}
		out, err := r.f.client.GetObject(ctx, in)
		if errors.Is(plain(err), storage.ErrExist) { // If-Match does not hold
			return errors.New("it was replaced after it was opened")
		}
		if err != nil {
			return err
		}
		defer out.Body.Close()
		if from := aws.ToString(out.ContentRange); !strings.HasPrefix(from, fmt.Sprintf("bytes %d-", off)) && (from != "" || off != 0) {
			return said(fmt.Sprintf("that the bytes are those from %d on, but %q", off, from), false)
		}
		_, err = io.ReadFull(out.Body, p)
		return err
	})
}
