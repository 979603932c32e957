package kafka

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// Compression codecs of Kafka.
const (
	codecGzip   = 1
	codecSnappy = 2
	codecLZ4    = 3
	codecZstd   = 4
)

const (
	// maxWindow is the largest window of zstd: what its highest level without
	// --long asks for.
	maxWindow = 128 << 20
	// maxBlock is the largest block of snappy, which has to be whole in memory.
	maxBlock = 64 << 20
)

// codecs are the decompressors of one reader, made when first needed.
type codecs struct {
	in     bytes.Reader
	gzip   *gzip.Reader
	lz4    *lz4.Reader
	zstd   *zstd.Decoder
	snappy snappyReader
}

// open makes a reader of what b is the compressed form of.
func (c *codecs) open(codec int16, b []byte) (io.Reader, error) {
	c.in.Reset(b)
	switch codec {
	case codecGzip:
		if c.gzip == nil {
			c.gzip = new(gzip.Reader)
		}
		return c.gzip, c.gzip.Reset(&c.in)
	case codecSnappy:
		return &c.snappy, c.snappy.reset(b)
	case codecLZ4:
		if c.lz4 == nil {
			c.lz4 = lz4.NewReader(&c.in)
		}
		c.lz4.Reset(&c.in)
		return c.lz4, nil
	case codecZstd:
		if c.zstd == nil {
			d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
			if err != nil {
				return nil, err
			}
			c.zstd = d
		}
		return c.zstd, c.zstd.Reset(&c.in)
	}
	return nil, fmt.Errorf("compression codec %d is not known", codec)
}

func (c *codecs) close() {
	if c.zstd != nil {
		c.zstd.Close()
	}
}

// snappyReader reads one block, or the blocks of the framing that Java's
// library writes: a magic, two versions, and for each block its length.
type snappyReader struct {
	rest   []byte
	framed bool
	block  []byte // decoded
	r      int
	mem    []byte
}

var snappyMagic = []byte("\x82SNAPPY\x00")

func (s *snappyReader) reset(b []byte) error {
	s.rest, s.block, s.r = b, nil, 0
	if s.framed = bytes.HasPrefix(b, snappyMagic); s.framed {
		if len(b) < 16 {
			return io.ErrUnexpectedEOF
		}
		s.rest = b[16:]
	}
	return nil
}

func (s *snappyReader) Read(p []byte) (int, error) {
	for s.r == len(s.block) {
		if len(s.rest) == 0 {
			return 0, io.EOF
		}
		b := s.rest
		if s.framed {
			if len(b) < 4 {
				return 0, io.ErrUnexpectedEOF
			}
			n := binary.BigEndian.Uint32(b)
			if uint64(n) > uint64(len(b)-4) {
				return 0, io.ErrUnexpectedEOF
			}
			b, s.rest = b[4:4+n], b[4+n:]
		} else {
			s.rest = nil
		}
		n, err := snappy.DecodedLen(b)
		if err != nil {
			return 0, err
		}
		if n > maxBlock {
			return 0, errors.New("a snappy block is larger than 64 MB")
		}
		if cap(s.mem) < n {
			s.mem = make([]byte, n)
		}
		if s.block, err = snappy.Decode(s.mem[:n], b); err != nil {
			return 0, err
		}
		s.r = 0
	}
	n := copy(p, s.block[s.r:])
	s.r += n
	return n, nil
}
