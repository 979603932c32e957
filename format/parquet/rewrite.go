package parquetfile

import (
	"context"
	"fmt"
	"io"
	"sync"
)

// Limits of a row group.
const (
	RowGroupRows  = 128 << 10
	RowGroupBytes = 64 << 20
)

// A rewrite moves at most stepRows rows at once, and about stepBytes.
const (
	stepRows  = 4096
	stepBytes = 4 << 20
)

// Rewrite decodes the inputs and encodes their rows, in order, as one file with
// full row groups (F1, F2). Memory is bounded by one row group and one page per
// column (F5), and is used again by the next rewrite.
func (s *Schema) Rewrite(ctx context.Context, inputs []*File, w io.Writer, o WriterOptions, meta map[string]string) (Info, error) {
	out, buf := s.borrow(w, o)
	for i, f := range inputs {
		if err := s.move(ctx, f, buf, out); err != nil {
			return Info{}, fmt.Errorf("input %d: %w", i, err)
		}
	}
	if err := out.WriteRowGroup(buf); err != nil {
		return Info{}, err
	}
	info, err := out.Close(meta)
	if err == nil {
		s.giveBack(out, buf)
	}
	return info, err
}

// borrow takes an idle encoder and an idle buffer, or makes them. Those that
// stay idle are garbage collected.
func (s *Schema) borrow(w io.Writer, o WriterOptions) (*Writer, *Columns) {
	pool, _ := s.writers.LoadOrStore(o, new(sync.Pool))
	out, _ := pool.(*sync.Pool).Get().(*Writer)
	if out == nil {
		out = s.NewWriter(w, o)
	} else {
		out.Reset(w)
	}
	buf, _ := s.buffers.Get().(*Columns)
	if buf == nil {
		buf = s.NewColumns()
	}
	return out, buf
}

func (s *Schema) giveBack(w *Writer, c *Columns) {
	w.Reset(nil)
	c.Reset()
	pool, _ := s.writers.Load(w.asked)
	pool.(*sync.Pool).Put(w)
	s.buffers.Put(c)
}

// move appends one input to buf, writing a row group whenever one is full.
func (s *Schema) move(ctx context.Context, f *File, buf *Columns, out *Writer) error {
	r, err := s.NewReader(f)
	if err != nil {
		return err
	}
	defer r.Close()
	step := stepFor(f.plainBytes(), f.Rows())
	for r.Left() > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		before := buf.Bytes()
		n, err := r.Read(buf, min(step, RowGroupRows-buf.rows))
		if err != nil {
			return err
		}
		// Dictionaries make rows larger here than they are in the file.
		step = min(step, stepFor(buf.Bytes()-before, int64(n)))
		if buf.rows >= RowGroupRows || buf.Bytes() >= RowGroupBytes {
			if err := out.WriteRowGroup(buf); err != nil {
				return err
			}
			buf.Reset()
		}
	}
	return nil
}

// stepFor is how many rows to move at once when so many have so many bytes.
func stepFor(size, rows int64) int {
	if rows <= 0 || size <= 0 {
		return stepRows
	}
	return int(min(stepRows, max(1, stepBytes*rows/size)))
}
