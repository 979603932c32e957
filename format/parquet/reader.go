package parquetfile

import (
	"fmt"
	"strings"
)

// Reader reads the rows of a file, of any writer, as leaf columns, page by
// page: the values of a page are copied by whole runs, never one by one into
// boxes. It holds one page of each column (F5).
type Reader struct {
	s       *Schema
	left    int64
	columns []columnReader
}

// NewReader matches the file's columns with the table's by name: their order
// does not matter, a column the file does not have is null, a narrower number
// is widened (F3). Anything else is an error that names the column.
func (s *Schema) NewReader(f *File) (*Reader, error) {
	r := s.newReader()
	return r, r.Reset(f)
}

func (s *Schema) newReader() *Reader {
	return &Reader{s: s, columns: make([]columnReader, len(s.leaves))}
}

// release keeps the memory and forgets the file.
func (r *Reader) release() {
	for i := range r.columns {
		c := &r.columns[i]
		c.pages.r, c.pages.column = nil, nil
		*c = columnReader{pages: c.pages}
	}
	r.left = 0
}

// Reset goes on with another file, in the same memory.
func (r *Reader) Reset(f *File) (err error) {
	defer func() { // the library panics at a column annotated as a group (F7)
		if p := recover(); p != nil {
			err = fmt.Errorf("its footer is damaged: %v", p)
		}
	}()
	r.left = 0
	src, err := r.s.sources(f)
	if err != nil {
		return err
	}
	for i := range src {
		r.columns[i] = columnReader{source: src[i], f: f, pages: r.columns[i].pages}
	}
	r.left = f.Rows()
	return nil
}

// Left is the number of rows that are still to be read.
func (r *Reader) Left() int64 { return r.left }

// Read appends the next rows, up to n, to dst, which must be of the same
// schema, and returns how many: 0 after the last. After an error dst is of no
// use before its Reset.
func (r *Reader) Read(dst *Columns, n int) (rows int, err error) {
	n = int(min(int64(n), r.left))
	at := 0
	defer func() { // a hostile page must not kill the process (F7)
		if p := recover(); p != nil {
			rows, err = 0, fmt.Errorf("column %s: its pages are damaged: %v", strings.Join(r.s.leaves[at].path, "."), p)
		}
	}()
	for at = range r.columns {
		l := &dst.leaves[at]
		r.columns[at].first = len(l.defs)
		if err := r.columns[at].read(l, n); err != nil {
			return 0, fmt.Errorf("column %s: %w", strings.Join(l.path, "."), err)
		}
	}
	for at = range r.columns {
		if c := &r.columns[at]; c.column == nil && c.like >= 0 {
			like := &dst.leaves[c.like]
			dst.leaves[at].follow(like, r.columns[c.like].first, c.likeDef, c.likeRep)
		}
	}
	dst.rows += n
	r.left -= int64(n)
	if r.left == 0 {
		for at = range r.columns {
			if err := r.columns[at].exhausted(); err != nil {
				return 0, fmt.Errorf("column %s: %w", strings.Join(r.s.leaves[at].path, "."), err)
			}
		}
	}
	return n, nil
}

// follow appends nulls where the struct is there, and what is missing above it
// where it is not. like is a leaf of the same struct, read from level first on.
func (l *leaf) follow(like *leaf, first int, def, rep uint8) {
	for i := first; i < len(like.defs); i++ {
		r := uint8(0)
		if like.maxRep > 0 {
			r = like.reps[i]
		}
		if r <= rep {
			l.levels(min(def, like.defs[i]), r)
		}
	}
}
