package storage

import (
	"fmt"
	"io"
)

// Slicer is an FS that opens a part of a file without reading what lies around
// it: where bytes are fetched from afar, and many parts share one file.
type Slicer interface {
	// OpenSlice opens size bytes of a file from an offset on, as if they were
	// a file. The file never changes under its name.
	OpenSlice(name string, offset, size int64) (Reader, error)
}

// OpenSlice opens a part of a file, which is an error when the file does not
// have all of it.
func OpenSlice(fsys FS, name string, offset, size int64) (Reader, error) {
	if s, ok := fsys.(Slicer); ok {
		return s.OpenSlice(name, offset, size)
	}
	r, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	if err := CheckSlice(r.Size(), offset, size); err != nil {
		_ = r.Close() // it was only read
		return nil, &Error{Op: OpOpen, Name: name, Err: err}
	}
	return slice{io.NewSectionReader(r, offset, size), r, size}, nil
}

// CheckSlice is the error of a slice that is not inside its file.
func CheckSlice(file, offset, size int64) error {
	if offset < 0 || size < 0 || offset > file || size > file-offset {
		return fmt.Errorf("it has %d bytes, the part is the %d from byte %d", file, size, offset)
	}
	return nil
}

type slice struct {
	io.ReaderAt
	file Reader
	size int64
}

func (s slice) Size() int64  { return s.size }
func (s slice) Close() error { return s.file.Close() }
