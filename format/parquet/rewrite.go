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
	b := s.borrow(w, o)
	for i, f := range inputs {
		if err := b.move(ctx, f); err != nil {
			return Info{}, fmt.Errorf("input %d: %w", i, err)
		}
	}
	if err := b.out.WriteRowGroup(b.buf); err != nil {
		return Info{}, err
	}
	info, err := b.out.Close(meta)
	if err == nil {
		s.giveBack(b)
	}
	return info, err
}

// bench is what a rewrite works with.
type bench struct {
	in  *Reader
	buf *Columns
	out *Writer
}

// borrow takes an idle bench, or makes one. Those that stay idle are garbage
// collected.
func (s *Schema) borrow(w io.Writer, o WriterOptions) *bench {
	pool, _ := s.benches.LoadOrStore(o, new(sync.Pool))
	if b, _ := pool.(*sync.Pool).Get().(*bench); b != nil {
		b.out.Reset(w)
		return b
	}
	return &bench{in: s.newReader(), buf: s.NewColumns(), out: s.NewWriter(w, o)}
}

func (s *Schema) giveBack(b *bench) {
	b.in.release()
	b.out.Reset(nil)
	b.buf.Reset()
	pool, _ := s.benches.Load(b.out.asked)
	pool.(*sync.Pool).Put(b)
}

// move appends one input to buf, writing a row group whenever one is full.
func (b *bench) move(ctx context.Context, f *File) error {
	r, buf := b.in, b.buf
	if err := r.Reset(f); err != nil {
		return err
	}
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
			if err := b.out.WriteRowGroup(buf); err != nil {
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
