package parquetfile

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"sync"
)

// File is an open Parquet file, of any writer.
type File struct {
	r    io.ReaderAt
	size int64
	foot *rawFooter
	typ  *fileType
	// from and to are the row groups that count: all of them, or a slice's.
	from, to int
	// index are bytes of the page index that were read with the footer, from
	// byte indexAt on.
	index   []byte
	indexAt int64
}

var (
	magic          = []byte("PAR1")
	magicEncrypted = []byte("PARE") // its footer is
)

// errElsewhere is a file that has the footers of others, and no data.
var errElsewhere = errors.New("its column chunks lie in other files: it is a summary of them (file_path)")

// tailBytes follow the footer: its length and the closing magic.
const tailBytes = 8

// tailGuess is how much of a file's end is read at first: most footers fit.
const tailGuess = 4 << 10

// Open reads a file's footer, and its page index where that comes with it. The
// error says what is wrong with the file; its name is the caller's to add.
func Open(r io.ReaderAt, size int64) (*File, error) {
	t, _ := tails.Get().(*tail)
	if t == nil {
		t = new(tail)
	}
	defer tails.Put(t)
	b, err := t.footer(r, size)
	if err != nil {
		return nil, err
	}
	f := &File{r: r, size: size}
	if f.foot, err = parseFooter(b); err == nil {
		f.typ, err = fileTypeOf(f.foot.schema)
	}
	if err == nil {
		f.foot.schema = f.typ.schema
		err = f.check()
	}
	if errors.Is(err, errElsewhere) {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("its footer is damaged: %w", err)
	}
	f.to = len(f.foot.rowGroups)
	if e, _ := f.indexExtent(); e.to > e.from && e.from >= t.at && e.to <= t.at+int64(len(t.b)) {
		f.index, f.indexAt = bytes.Clone(t.b[e.from-t.at:e.to-t.at]), e.from
	}
	return f, nil
}

// Slice is the file as if it had only the row groups [from, to). It shares
// the footer: a file of thousands of slices is parsed once.
func (f *File) Slice(from, to int) (*File, error) {
	if from < 0 || to > f.to-f.from || from > to {
		return nil, fmt.Errorf("row groups %d to %d of a file that has %d", from, to, f.to-f.from)
	}
	s := *f
	s.from, s.to = f.from+from, f.from+to
	return &s, nil
}

// groups are the row groups that count.
func (f *File) groups() []rowGroup { return f.foot.rowGroups[f.from:f.to] }

// tail is the end of a file.
type tail struct {
	buf [tailGuess]byte
	b   []byte // what there is of it
	at  int64  // where in the file it begins
}

// tails are idle buffers.
var tails sync.Pool

// footer looks at the first and the last bytes, and returns the footer.
func (t *tail) footer(r io.ReaderAt, size int64) ([]byte, error) {
	if size == 0 {
		return nil, errors.New("it is empty: zero bytes")
	}
	if size < int64(len(magic)+tailBytes) {
		return nil, fmt.Errorf("it has %d bytes, too few for a Parquet file", size)
	}
	if size > tailGuess {
		head := t.buf[:len(magic)]
		if n, err := r.ReadAt(head, 0); n < len(head) {
			return nil, fmt.Errorf("read its first bytes: %w", err)
		}
		if err := checkHead(head); err != nil {
			return nil, err
		}
	}
	t.b, t.at = t.buf[:min(size, tailGuess)], max(0, size-tailGuess)
	if n, err := r.ReadAt(t.b, t.at); n < len(t.b) {
		return nil, fmt.Errorf("read its last bytes: %w", err)
	}
	if t.at == 0 {
		if err := checkHead(t.b[:len(magic)]); err != nil {
			return nil, err
		}
	}
	rest, end := t.b[:len(t.b)-tailBytes], t.b[len(t.b)-tailBytes:]
	if !bytes.Equal(end[4:], magic) {
		return nil, fmt.Errorf("it is cut short or still being written: it ends with %q at byte %d, not with PAR1", end[4:], size-4)
	}
	n := int64(binary.LittleEndian.Uint32(end))
	if n > size-int64(len(magic)+tailBytes) {
		return nil, fmt.Errorf("its footer is damaged: it says that the footer has %d bytes, the file has %d", n, size)
	}
	if n <= int64(len(rest)) {
		return bytes.Clone(rest[int64(len(rest))-n:]), nil // the buffer is used again
	}
	b := make([]byte, n)
	if got, err := r.ReadAt(b, size-tailBytes-n); got < len(b) {
		return nil, fmt.Errorf("read its footer: %w", err)
	}
	return b, nil
}

func checkHead(head []byte) error {
	if bytes.Equal(head, magicEncrypted) {
		return ErrEncrypted
	}
	if !bytes.Equal(head, magic) {
		return fmt.Errorf("it is no Parquet file: it begins with %q, not with PAR1", head)
	}
	return nil
}

// check checks that rows add up and that every column chunk lies inside the
// file, beside the others: what is read of it at once is no more than it has
// (F7).
func (f *File) check() error {
	var rows, end int64
	inOrder := true
	for i := range f.foot.rowGroups {
		g := &f.foot.rowGroups[i]
		if g.rows < 0 || len(g.columns) != len(f.typ.leaves) {
			return fmt.Errorf("row group %d has %d rows and %d columns, the schema has %d", i, g.rows, len(g.columns), len(f.typ.leaves))
		}
		rows += g.rows
		for k := range g.columns {
			c := &g.columns[k]
			if c.elsewhere {
				return errElsewhere
			}
			at := c.pages()
			if at.from < 0 || c.compressed < 0 || at.from > f.size-tailBytes-c.compressed {
				return fmt.Errorf("column %s of row group %d takes %d bytes from byte %d, the file has %d",
					f.typ.names[k], i, c.compressed, at.from, f.size)
			}
			inOrder = inOrder && at.from >= end
			end = at.to
		}
	}
	if rows != f.foot.rows {
		return fmt.Errorf("%d rows, %d in its row groups", f.foot.rows, rows)
	}
	if inOrder {
		return nil
	}
	return f.checkOverlaps()
}

// placed is where a column chunk lies.
type placed struct {
	extent
	group, column int32
}

// placeds are idle memory: bundles of parts have thousands of row groups that
// do not lie in their order.
var placeds sync.Pool

// checkOverlaps: no two column chunks have bytes in common.
func (f *File) checkOverlaps() error {
	mem, _ := placeds.Get().(*[]placed)
	if mem == nil {
		mem = new([]placed)
	}
	defer placeds.Put(mem)
	*mem = growTo((*mem)[:0], len(f.foot.rowGroups)*len(f.typ.leaves))
	all := (*mem)[:0]
	for i := range f.foot.rowGroups {
		g := &f.foot.rowGroups[i]
		for k := range g.columns {
			if e := g.columns[k].pages(); e.to > e.from {
				all = append(all, placed{e, int32(i), int32(k)})
			}
		}
	}
	slices.SortFunc(all, func(a, b placed) int { return cmp.Compare(a.from, b.from) })
	for i := 1; i < len(all); i++ {
		if a, b := &all[i-1], &all[i]; b.from < a.to {
			return fmt.Errorf("column %s of row group %d lies in column %s of row group %d: both have byte %d",
				f.typ.names[b.column], b.group, f.typ.names[a.column], a.group, b.from)
		}
	}
	return nil
}

// Encrypted says whether columns are encrypted of which the footer tells.
func (f *File) Encrypted() bool { return f.foot.encrypted }

// Rows is the number of rows.
func (f *File) Rows() int64 {
	rows := int64(0)
	for i := range f.groups() {
		rows += f.groups()[i].rows
	}
	return rows
}

// Size is the number of bytes of the whole file.
func (f *File) Size() int64 { return f.size }

// RowGroups is the number of rows of each row group.
func (f *File) RowGroups() []int64 {
	groups := f.groups()
	out := make([]int64, len(groups))
	for i := range groups {
		out[i] = groups[i].rows
	}
	return out
}

// Meta is the key/value metadata.
func (f *File) Meta() map[string]string {
	out := make(map[string]string)
	w := walker{b: f.foot.meta}
	if len(w.b) == 0 {
		return out
	}
	elem, n := w.list()
	if elem != thriftStruct {
		return out
	}
	for i := 0; i < n && !w.bad; i++ {
		key, value := w.keyValue()
		if !w.bad {
			out[string(key)] = string(value)
		}
	}
	return out
}

func (w *walker) keyValue() (key, value []byte) {
	for id, typ := range w.fields {
		switch {
		case id == 1 && typ == thriftBinary:
			key = w.bytes()
		case id == 2 && typ == thriftBinary:
			value = w.bytes()
		default:
			w.skip(typ)
		}
	}
	return key, value
}

// CreatedBy is the program that wrote the file, as it says.
func (f *File) CreatedBy() string { return f.foot.createdBy }

// plainBytes is about how much memory the rows take as Columns.
func (f *File) plainBytes() int64 {
	n := int64(0)
	for i := range f.groups() {
		n += f.groups()[i].bytes
	}
	return n
}

// Verify checks that a file is what this schema writes: its rows, its columns
// in the table's order with their types, no empty row group (F1, F3, F4).
func (s *Schema) Verify(f *File, rows int64) error {
	if f.Rows() != rows {
		return fmt.Errorf("%d rows, want %d", f.Rows(), rows)
	}
	for i, n := range f.RowGroups() {
		if n == 0 {
			return fmt.Errorf("row group %d is empty", i)
		}
	}
	got := f.typ.elements
	if len(got) != len(s.elements) {
		return fmt.Errorf("the schema has %d elements, want %d", len(got), len(s.elements))
	}
	for i := range got {
		if !reflect.DeepEqual(got[i], s.elements[i]) {
			return fmt.Errorf("element %d of the schema is %s, want %s", i, elementText(&got[i]), elementText(&s.elements[i]))
		}
	}
	return nil
}
