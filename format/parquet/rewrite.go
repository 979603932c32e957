package parquetfile

import (
	"context"
	"fmt"
	"io"
)

// Limits of a row group.
const (
	RowGroupRows  = 128 << 10
	RowGroupBytes = 64 << 20
)

// stepRows is how many rows a rewrite moves at once.
const stepRows = 4096

// Rewrite decodes the inputs and encodes their rows, in order, as one file with
// full row groups (F1, F2). Memory is bounded by one row group and one page per
// column (F5). buf may be nil; it is reset.
func (s *Schema) Rewrite(ctx context.Context, inputs []*File, w io.Writer, o WriterOptions, meta map[string]string) (Info, error) {
	out := s.NewWriter(w, o)
	buf := s.NewColumns()
	for i, f := range inputs {
		if err := s.move(ctx, f, buf, out); err != nil {
			return Info{}, fmt.Errorf("input %d: %w", i, err)
		}
	}
	if err := out.WriteRowGroup(buf); err != nil {
		return Info{}, err
	}
	return out.Close(meta)
}

// move appends one input to buf, writing a row group whenever one is full.
func (s *Schema) move(ctx context.Context, f *File, buf *Columns, out *Writer) error {
	r, err := s.newReader(f)
	if err != nil {
		return err
	}
	defer r.close()
	for r.left > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		if _, err := r.read(buf, min(stepRows, RowGroupRows-buf.rows)); err != nil {
			return err
		}
		if buf.rows >= RowGroupRows || buf.Bytes() >= RowGroupBytes {
			if err := out.WriteRowGroup(buf); err != nil {
				return err
			}
			buf.Reset()
		}
	}
	return nil
}
