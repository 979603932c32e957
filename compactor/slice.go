package compactor

import (
	"fmt"
	"io"

	"github.com/hivesink/hivesink/storage"
)

// slice is a part that shares its file with others: a whole Parquet file that
// begins at an offset of a bundle.
type slice struct {
	io.ReaderAt
	bundle storage.Reader
	size   int64
}

// sliceOf is the part of a bundle at an offset.
func sliceOf(r storage.Reader, offset, size int64) (storage.Reader, error) {
	if offset+size > r.Size() {
		return nil, fmt.Errorf("it has %d bytes, the part is the %d from byte %d", r.Size(), size, offset)
	}
	return slice{io.NewSectionReader(r, offset, size), r, size}, nil
}

func (s slice) Size() int64  { return s.size }
func (s slice) Close() error { return s.bundle.Close() }
