package source

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/hivesink/hivesink/internal/fault"
)

// Compressions.
const (
	plain = ""
	gz    = "gzip"
	zst   = "zstd"
)

// maxWindow bounds the memory of a zstd stream: what the zstd tool itself
// accepts without being asked (--long=27).
const maxWindow = 128 << 20

var (
	gzipMagic = []byte{0x1f, 0x8b}
	zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}
)

// magicBytes is how many bytes at the start tell a compression.
const magicBytes = 10

// shortMagic is how many are enough for those that are read here.
const shortMagic = 4

// foreign are the first bytes of what is no text and is not read here. Taken for
// lines it would become some bad records, and the file would count as read.
var foreign = []struct{ magic, what string }{
	{"\xfd7zXZ\x00", "xz"}, {"\x04\x22\x4d\x18", "lz4"}, {"PK\x03\x04", "zip"}, {"\xff\x06\x00\x00sNaPpY", "snappy"},
	{"PAR1\x15", "Parquet"}, {"Obj\x01", "Avro"},
}

// isForeign names what start is the start of, "" when it may be text.
func isForeign(start []byte) string {
	for _, f := range foreign {
		if bytes.HasPrefix(start, []byte(f.magic)) {
			return f.what
		}
	}
	if len(start) >= 10 && bytes.HasPrefix(start, []byte("BZh")) && string(start[4:10]) == "1AY&SY" {
		return "bzip2"
	}
	return ""
}

// mayBeForeign says whether more of the start might tell that it is.
func mayBeForeign(start []byte) bool {
	for _, f := range foreign {
		if strings.HasPrefix(f.magic, string(start)) {
			return true
		}
	}
	return bytes.HasPrefix(start, []byte("BZh"))
}

// compressionOf tells how a file or stream is compressed by its first bytes. A
// name that promises a compression the bytes do not have is an error, and so is
// what is not read here.
func compressionOf(name string, start []byte) (string, error) {
	promised := plain
	switch lower := strings.ToLower(name); {
	case strings.HasSuffix(lower, ".gz"):
		promised = gz
	case strings.HasSuffix(lower, ".zst"), strings.HasSuffix(lower, ".zstd"):
		promised = zst
	}
	is := plain
	switch {
	case bytes.HasPrefix(start, gzipMagic):
		is = gz
	case bytes.HasPrefix(start, zstdMagic), zstdSkippable(start):
		is = zst
	}
	if promised != plain && is != promised {
		if len(start) == 0 {
			return "", fmt.Errorf("it is empty, which no %s file is", promised)
		}
		return "", fmt.Errorf("its name says %s, its first bytes (% x) do not", promised, start[:min(len(start), 4)])
	}
	if what := isForeign(start); what != "" {
		return "", fault.New(fault.Halt, "convert or unpack it first", "it is %s, which is not read here: lines of text are, plain or as gzip or zstd", what)
	}
	return is, nil
}

// zstdSkippable says whether start begins a skippable frame, which may come
// before the first real one.
func zstdSkippable(start []byte) bool {
	return len(start) >= 4 && start[0]&0xf0 == 0x50 && start[1] == 0x2a && start[2] == 0x4d && start[3] == 0x18
}

// decompress reads r, which may be several members or frames one after the
// other. The bytes it delivers before an error are right as far as the format
// can tell.
func decompress(compression string, r io.Reader) (io.ReadCloser, error) {
	switch compression {
	case gz:
		m := &members{b: bufio.NewReader(r)}
		var err error
		if m.z, err = gzip.NewReader(m.b); err != nil {
			return nil, err
		}
		m.z.Multistream(false)
		return m, nil
	case zst:
		d, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderLowmem(true))
		if err != nil {
			return nil, err
		}
		return d.IOReadCloser(), nil
	}
	return io.NopCloser(r), nil
}

// members reads the members of a gzip file, one after the other. Zeros behind
// the last one are padding (of a tape's or device's blocks), as for gzip itself:
// the library takes them for a damaged member, and no other copy of the file
// would help.
type members struct {
	b *bufio.Reader
	z *gzip.Reader
}

func (m *members) Read(p []byte) (int, error) {
	for {
		n, err := m.z.Read(p)
		if err != io.EOF {
			return n, err
		}
		if n > 0 {
			return n, nil // the end comes again
		}
		if next, err := m.b.Peek(1); err != nil {
			return 0, err // io.EOF: that was the last one
		} else if next[0] == 0 {
			return 0, m.padding()
		}
		if err := m.z.Reset(m.b); err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return 0, err
		}
		m.z.Multistream(false)
	}
}

// padding is io.EOF when there are nothing but zeros up to the end.
func (m *members) padding() error {
	for {
		c, err := m.b.ReadByte()
		if err != nil {
			return err
		}
		if c != 0 {
			return gzip.ErrHeader
		}
	}
}

func (m *members) Close() error { return m.z.Close() }

// sniff tells the compression of a stream without a name.
func sniff(b *bufio.Reader) (string, error) {
	start, err := b.Peek(shortMagic)
	if err == nil && mayBeForeign(start) { // else the next line may be long in coming
		start, err = b.Peek(magicBytes)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	return compressionOf("", start)
}
