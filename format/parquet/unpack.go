package parquetfile

import (
	"bytes"
	"fmt"
	"io"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// mostDecoded is the most that a page may take, unpacked or decoded. Writers cut
// pages at a megabyte; a few cut none, and have row groups that are smaller.
const mostDecoded = 1 << 30

// No codec makes more of a byte: a page that says so is damaged, and no room is
// made for it (F7).
const (
	mostOfSnappy = 22      // 64 bytes of a copy of three
	mostOfLZ4    = 255     // a byte of a length
	mostOfGzip   = 1032    // 258 bytes of two bits
	mostOfZstd   = 1 << 15 // a block of 128 KB of four
	slackOfCodec = 64
)

// unpack decompresses into size bytes; they are valid until the next page.
func (p *pageReader) unpack(src []byte, size int) ([]byte, error) {
	if size == 0 {
		return nil, nil
	}
	if size > mostDecoded {
		return nil, fmt.Errorf("%w: a page of %d bytes; the most is %d", errDamaged, size, mostDecoded)
	}
	var out []byte
	var err error
	switch p.codec {
	case format.Uncompressed:
		out = src
	case format.Lz4Raw:
		if out, err = p.room(src, size, mostOfLZ4); err == nil && !unpackLZ4(out, src) {
			err = errDamaged
		}
	case format.Lz4:
		if out, err = p.room(src, size, mostOfLZ4); err == nil && !unpackOldLZ4(out, src) {
			err = errDamaged
		}
	case format.Snappy:
		if n, e := snappy.DecodedLen(src); e != nil || n != size {
			return nil, errDamaged
		}
		if out, err = p.room(src, size, mostOfSnappy); err == nil {
			out, err = snappy.Decode(out, src)
		}
	case format.Zstd:
		if out, err = p.room(src, size, mostOfZstd); err == nil {
			var got []byte
			got, err = unzstd(out[:0:size], src)
			if len(got) > 0 && &got[0] != &out[0] {
				out = got
			}
			out = out[:len(got)] // with its slack
		}
	case format.Gzip:
		if out, err = p.room(src, size, mostOfGzip); err == nil {
			err = ungzip(out, src)
		}
	case format.Brotli:
		p.plain, err = unbrotli(p.plain[:0], src, size)
		out = p.plain
	default:
		out, err = parquet.LookupCompressionCodec(p.codec).Decode(nil, src)
	}
	if err != nil {
		return nil, fmt.Errorf("unpack a page of %d bytes to %d: %w", len(src), size, err)
	}
	if len(out) != size {
		return nil, fmt.Errorf("%w: a page unpacks to %d bytes, its header says %d", errDamaged, len(out), size)
	}
	return out, nil
}

// room is room for size bytes, if src can become so many.
func (p *pageReader) room(src []byte, size, most int) ([]byte, error) {
	if size > most*len(src)+slackOfCodec {
		return nil, fmt.Errorf("%w: so few bytes cannot become so many", errDamaged)
	}
	p.plain = growTo(p.plain[:0], size+slackOfCodec) // decoders of runs read beyond the end
	return p.plain[:size], nil
}

// zstdDecoder serves all: as many pages at once as there are processors. It
// decompresses into what there is room for, whatever the frame says.
var zstdDecoder = sync.OnceValues(func() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecodeAllCapLimit(true))
})

func unzstd(dst, src []byte) ([]byte, error) {
	d, err := zstdDecoder()
	if err != nil {
		return nil, err
	}
	return d.DecodeAll(src, dst)
}

// Readers are used again; those that stay idle are garbage collected.
var gzipReaders, brotliReaders sync.Pool

// packed is a reader of a page's bytes with what makes them plain.
type packed[R io.Reader] struct {
	in   bytes.Reader
	out  R
	more [1]byte
}

// ungzip fills dst, and fails if there is more.
func ungzip(dst, src []byte) error {
	r, _ := gzipReaders.Get().(*packed[*gzip.Reader])
	if r == nil {
		r = &packed[*gzip.Reader]{out: new(gzip.Reader)}
	}
	r.in.Reset(src)
	if err := r.out.Reset(&r.in); err != nil {
		return err
	}
	if _, err := io.ReadFull(r.out, dst); err != nil {
		return err
	}
	return r.end(&gzipReaders)
}

// end fails if there is more to read. Only a reader that came to its end is used
// again.
func (r *packed[R]) end(pool *sync.Pool) error {
	switch n, err := r.out.Read(r.more[:]); {
	case n > 0:
		return fmt.Errorf("%w: it unpacks to more than its header says", errDamaged)
	case err != io.EOF:
		return fmt.Errorf("%w: what it unpacks to does not end: %v", errDamaged, err)
	}
	r.in.Reset(nil)
	pool.Put(r)
	return nil
}

// unbrotli reads up to size bytes. Room grows with what comes: there is no
// telling what so many bytes can become.
func unbrotli(dst, src []byte, size int) ([]byte, error) {
	r, _ := brotliReaders.Get().(*packed[*brotli.Reader])
	if r == nil {
		r = &packed[*brotli.Reader]{out: brotli.NewReader(nil)}
	}
	r.in.Reset(src)
	if err := r.out.Reset(&r.in); err != nil {
		return nil, err
	}
	for room := min(size, 8*len(src)+slackOfCodec); ; room = min(size, 2*room) {
		from := len(dst)
		dst = growTo(dst, max(from, room))
		if _, err := io.ReadFull(r.out, dst[from:]); err != nil {
			return nil, err
		}
		if len(dst) == size {
			return dst, r.end(&brotliReaders)
		}
	}
}
