package s3fs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/hivesink/hivesink/storage"
)

const (
	tailBytes  = 64 << 10  // read when an object is opened: a Parquet footer is in it
	wholeBytes = 256 << 10 // a slice, or an object, that is read at once
	blockBytes = 1 << 20   // of a larger one, for small reads
	// grainBytes is what slices are rounded to: the next one may be in it.
	grainBytes = 16 << 10
	// magicBytes is read of a file's beginning to see what it is, long before
	// what follows: no reason to fetch that.
	magicBytes = 16
)

// Open opens an object with the bytes it has now: a later one of the same name
// is an error of ReadAt. Its end comes along, so that a footer costs no further
// request.
func (f *FS) Open(name string) (storage.Reader, error) {
	k, err := key(name)
	if err != nil {
		return nil, wrap(storage.OpOpen, name, err)
	}
	got, err := f.fetch(k, fmt.Sprintf("bytes=-%d", tailBytes), tailBytes)
	if outside(err) { // an empty object has no last byte
		got, err = f.end(k, name)
	}
	if err == nil && got.from+int64(len(got.data)) != got.total {
		err = fmt.Errorf("the store gives the bytes %d to %d of %d for its end", got.from, got.from+int64(len(got.data)), got.total)
	}
	if err != nil {
		return nil, wrap(storage.OpOpen, name, err)
	}
	o := &cached{key: k, known: true, etag: got.etag, size: got.total}
	f.cache.keep(o, got.from, got.data)
	return &reader{f: f, name: name, o: o, size: got.total}, nil
}

// outside says that the object has none of the bytes that were asked for. The
// word for it is missing in the answers of some stores.
func outside(err error) bool {
	return code(err) == "InvalidRange" || status(err) == http.StatusRequestedRangeNotSatisfiable
}

// end is the end of an object that has no last tailBytes, says the store: it has
// none at all, or the store gives no more of an end than there is.
func (f *FS) end(k, name string) (piece, error) {
	info, err := f.Stat(name)
	if err != nil || info.Size == 0 {
		return piece{}, cause(err)
	}
	from := max(0, info.Size-tailBytes)
	got, err := f.fetch(k, fmt.Sprintf("bytes=%d-%d", from, info.Size-1), info.Size-from)
	if err == nil && (got.from != from || got.total != info.Size) {
		err = errReplaced
	}
	return got, err
}

// OpenSlice opens a part of an object that never changes (storage.Slicer). What
// is kept of the object serves all its slices; it is not asked for when all of
// the slice is there.
func (f *FS) OpenSlice(name string, offset, size int64) (storage.Reader, error) {
	k, err := key(name)
	if err == nil && (offset < 0 || size <= 0) {
		err = fs.ErrInvalid
	}
	if err != nil {
		return nil, wrap(storage.OpOpen, name, err)
	}
	r := &reader{f: f, name: name, o: f.cache.object(k), from: offset, size: size}
	_, total, known := f.cache.identity(r.o)
	if !known {
		// The end comes first: of all that is read of a slice, the footer is.
		from, to := r.window(offset+size-1, size, offset+size+grainBytes)
		got, err := f.fetch(k, fmt.Sprintf("bytes=%d-%d", from, to-1), to-from)
		switch {
		case outside(err):
			err = fmt.Errorf("it ends before byte %d, the part is the %d from byte %d", from, size, offset)
		case err == nil && got.from != from:
			err = fmt.Errorf("the store gives the bytes from %d on for those from %d on", got.from, from)
		case err == nil && !f.cache.identify(r.o, got.etag, got.total):
			err = errReplaced
		}
		if err != nil {
			return nil, wrap(storage.OpOpen, name, err)
		}
		total = got.total
		f.cache.keep(r.o, from, got.data)
	}
	if err := storage.CheckSlice(total, offset, size); err != nil {
		return nil, wrap(storage.OpOpen, name, err)
	}
	return r, nil
}

var errReplaced = errors.New("it was replaced after it was opened")

// reader reads an object, or a slice of it, by ranges. Small reads go by blocks,
// which the file system keeps (cache): a Parquet page costs no request of its
// own. A reader keeps nothing itself: thousands may be open (X7).
type reader struct {
	f          *FS
	name       string
	o          *cached
	from, size int64 // in the object

	mu     sync.Mutex
	closed bool
}

func (r *reader) Size() int64 { return r.size }

func (r *reader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return wrap(storage.OpClose, r.name, fs.ErrClosed)
	}
	r.closed = true
	if !r.o.shared {
		r.f.cache.drop(r.o)
	}
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
		n, err := r.some(want[done:], r.from+off+int64(done))
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
	c := &r.f.cache
	if n := c.read(r.o, p, off); n > 0 {
		return n, nil
	}
	if len(p) >= blockBytes {
		return len(p), r.get(p, off)
	}
	_, size, _ := c.identity(r.o)
	from, to := r.window(off, int64(len(p)), size)
	from, to, follows := c.gap(r.o, off, from, to)
	if follows && r.o.shared && r.size <= wholeBytes {
		// The slice before was read, so the next one may be; with many objects
		// there is not room for that.
		ahead := min(blockBytes, c.share()/2) / grainBytes * grainBytes
		from, to, _ = c.gap(r.o, off, from, min(size, max(to, from+ahead)))
	}
	data := make([]byte, to-from)
	if err := r.get(data, from); err != nil {
		return 0, err
	}
	c.keep(r.o, from, data)
	return copy(p, data[off-from:]), nil
}

// window is what to fetch for a read of n bytes at off: no more than the reader
// may read, but for the grain, which the object of so many bytes has.
func (r *reader) window(off, n, object int64) (from, to int64) {
	begin, end := r.from, r.from+r.size
	switch at := off - begin; {
	case r.size <= wholeBytes:
	case at == 0 && n <= magicBytes:
		end = begin + 1
	case off >= end-tailBytes:
		begin = end - tailBytes
	default:
		begin += at - at%blockBytes
		end = min(end, begin+blockBytes)
	}
	return begin / grainBytes * grainBytes, min((end+grainBytes-1)/grainBytes*grainBytes, object)
}

// get fills p from the object as it was when it was opened.
func (r *reader) get(p []byte, off int64) error {
	etag, _, _ := r.f.cache.identity(r.o)
	return r.f.do(background(), "GetObject", r.o.key, func(ctx context.Context) error {
		in := &s3.GetObjectInput{Bucket: r.f.bucket, Key: &r.o.key, IfMatch: text(etag), Range: aws.String(fmt.Sprintf("bytes=%d-%d", off, off+int64(len(p))-1))}
		out, err := r.f.client.GetObject(ctx, in)
		if errors.Is(plain(err), storage.ErrExist) { // If-Match does not hold
			return errReplaced
		}
		if err != nil {
			return err
		}
		defer out.Body.Close()
		at, err := place(out)
		if err != nil {
			return err
		}
		if at.from != off {
			return said(fmt.Sprintf("that the bytes are those from %d on, but from %d", off, at.from), false)
		}
		_, err = io.ReadFull(out.Body, p)
		return err
	})
}

// piece is a range of an object, and what the object is.
type piece struct {
	from, to, total int64
	data            []byte
	etag            string
}

// fetch gets a range, of at most so many bytes, of whatever object has the key.
func (f *FS) fetch(k, bytes string, most int64) (got piece, err error) {
	err = f.do(background(), "GetObject", k, func(ctx context.Context) error {
		out, err := f.client.GetObject(ctx, &s3.GetObjectInput{Bucket: f.bucket, Key: &k, Range: &bytes})
		if err != nil {
			return err
		}
		defer out.Body.Close()
		if err := saidObject(out.ETag, out.LastModified); err != nil {
			return err
		}
		if got, err = place(out); err != nil {
			return err
		}
		n := got.to - got.from
		if n > most {
			return fmt.Errorf("the store answers with %d bytes to a request for %d: it does not keep to ranges", n, most)
		}
		got.data = make([]byte, n)
		_, err = io.ReadFull(out.Body, got.data)
		return err
	})
	return got, err
}

// place is what an answer says of where its bytes are from. Without a range they
// are all of the object.
func place(out *s3.GetObjectOutput) (piece, error) {
	p := piece{etag: aws.ToString(out.ETag)}
	if out.ContentRange == nil {
		p.to = aws.ToInt64(out.ContentLength)
		p.total = p.to
		return p, said("how many bytes it has", out.ContentLength != nil)
	}
	var last int64
	_, err := fmt.Sscanf(*out.ContentRange, "bytes %d-%d/%d", &p.from, &last, &p.total)
	p.to = last + 1
	return p, said(fmt.Sprintf("a range, but %q", *out.ContentRange), err == nil && p.from >= 0 && p.from < p.to && p.to <= p.total)
}
