package parquetfile

import (
	"fmt"

	"github.com/parquet-go/parquet-go/format"
)

// pageIndexes is the page index of a file, not decoded.
type pageIndexes struct {
	b     []byte
	mine  [][2]extent // of each chunk, in b: column index, offset index
	width int         // chunks of a row group
}

// pageIndexBytes is the most that a page index is believed to take.
const pageIndexBytes = 512 << 20

// chunkIndexes are the places of a chunk's column index and offset index.
func (f *File) chunkIndexes(c *columnChunk) [2]extent {
	return [2]extent{f.inside(c.columnIndex, c.columnIndexLength), f.inside(c.offsetIndex, c.offsetIndexLength)}
}

// indexExtent is where the page index of the row groups that count lies, from
// the first to the last of its pieces, which have sum bytes.
func (f *File) indexExtent() (all extent, sum int64) {
	for gi := range f.groups() {
		g := &f.groups()[gi]
		for i := range g.columns {
			for _, e := range f.chunkIndexes(&g.columns[i]) {
				if e.to > e.from {
					if all.to == 0 || e.from < all.from {
						all.from = e.from
					}
					all.to = max(all.to, e.to)
					sum += e.to - e.from
				}
			}
		}
	}
	return all, sum
}

// readPageIndex reads the page index of the row groups that count: at once,
// for writers put it into one place; piece by piece where it is scattered.
func (f *File) readPageIndex(x *pageIndexes) error {
	x.b, x.mine, x.width = x.b[:0], x.mine[:0], 0
	all, sum := f.indexExtent()
	if sum > pageIndexBytes {
		return fmt.Errorf("its page index takes %d bytes", sum)
	}
	whole := all.to-all.from <= 2*sum
	if whole {
		x.b = growTo(x.b, int(all.to-all.from))
		if err := f.readIndexAt(x.b, all.from); err != nil {
			return err
		}
	}
	for gi := range f.groups() {
		g := &f.groups()[gi]
		x.width = len(g.columns)
		for i := range g.columns {
			pair := f.chunkIndexes(&g.columns[i])
			for k, e := range pair {
				switch {
				case e.to == e.from:
				case whole:
					pair[k] = extent{e.from - all.from, e.to - all.from}
				default:
					at := len(x.b)
					x.b = growTo(x.b, at+int(e.to-e.from))
					if err := f.readIndexAt(x.b[at:], e.from); err != nil {
						return err
					}
					pair[k] = extent{int64(at), int64(len(x.b))}
				}
			}
			x.mine = append(x.mine, pair)
		}
	}
	return nil
}

func (f *File) readIndexAt(b []byte, at int64) error {
	if at >= f.indexAt && at+int64(len(b)) <= f.indexAt+int64(len(f.index)) {
		copy(b, f.index[at-f.indexAt:])
		return nil
	}
	if got, err := f.r.ReadAt(b, at); got < len(b) {
		return fmt.Errorf("read its page index at %d: %w", at, err)
	}
	return nil
}

// inside is a range of the file; nothing when it is not inside.
func (f *File) inside(at int64, n int32) extent {
	if at < int64(len(magic)) || n <= 0 || at > f.size-tailBytes-int64(n) {
		return extent{}
	}
	return extent{at, at + int64(n)}
}

func (x *pageIndexes) columnIndex(group, column int) []byte { return x.part(group, column, 0) }
func (x *pageIndexes) offsetIndex(group, column int) []byte { return x.part(group, column, 1) }

func (x *pageIndexes) part(group, column, which int) []byte {
	e := x.mine[group*x.width+column][which]
	return x.b[e.from:e.to]
}

// appendOffsetIndex copies an OffsetIndex, its pages moved by shift; nothing
// when it does not fit the chunk.
func appendOffsetIndex(dst, raw []byte, shift int64, chunk extent) []byte {
	before := len(dst)
	w := walker{b: raw}
	out := thriftStructOf{dst: dst}
	pages := 0
	for id, typ := range w.fields {
		if id != 1 || typ != thriftList {
			out.raw(id, typ, w.skip(typ))
			continue
		}
		elem, n := w.list()
		if elem != thriftStruct && n > 0 {
			w.fail()
		}
		out.header(1, thriftList)
		out.dst = appendListHeader(out.dst, thriftStruct, n)
		for i := 0; i < n && !w.bad; i++ {
			p := w.pageLocation()
			if p.Offset < chunk.from || p.Offset+int64(p.CompressedPageSize) > chunk.to {
				w.fail()
			}
			p.Offset += shift
			out.dst = appendPageLocation(out.dst, &p)
		}
		pages = n
	}
	if w.bad || pages == 0 {
		return dst[:before]
	}
	return out.end()
}

func (w *walker) pageLocation() (p format.PageLocation) {
	for id, typ := range w.fields {
		switch id {
		case 1:
			p.Offset = w.int()
		case 2:
			p.CompressedPageSize = int32(w.int())
		case 3:
			p.FirstRowIndex = w.int()
		default:
			w.skip(typ)
		}
	}
	return p
}

func appendPageLocation(dst []byte, p *format.PageLocation) []byte {
	out := thriftStructOf{dst: dst}
	out.int(1, thriftI64, p.Offset)
	out.int(2, thriftI32, int64(p.CompressedPageSize))
	out.int(3, thriftI64, p.FirstRowIndex)
	return out.end()
}
