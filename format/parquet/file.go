package parquetfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// File is an open Parquet file, of any writer.
type File struct {
	pq   *parquet.File
	r    io.ReaderAt
	size int64
	// from and to are the row groups that count: all of them, or a slice's.
	from, to int
	raw      *rawBox
}

var magic = []byte("PAR1")

// tailBytes follow the footer: its length and the closing magic.
const tailBytes = 8

// Open reads a file's footer and nothing else. The error says what is wrong
// with the file; its name is the caller's to add.
func Open(r io.ReaderAt, size int64) (f *File, err error) {
	if err := checkEnds(r, size); err != nil {
		return nil, err
	}
	defer func() { // a hostile footer must not kill the process (F7)
		if p := recover(); p != nil {
			f, err = nil, fmt.Errorf("its footer is damaged: %v", p)
		}
	}()
	pq, err := parquet.OpenFile(r, size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return nil, fmt.Errorf("its footer is damaged: %w", err)
	}
	if err := checkFooter(pq.Metadata(), size); err != nil {
		return nil, fmt.Errorf("its footer is damaged: %w", err)
	}
	return &File{pq: pq, r: r, size: size, to: len(pq.Metadata().RowGroups), raw: new(rawBox)}, nil
}

// Slice is the file as if it had only the row groups [from, to). It shares
// the footer: a file of thousands of slices is parsed once.
func (f *File) Slice(from, to int) (*File, error) {
	if from < 0 || to > f.to-f.from || from > to {
		return nil, fmt.Errorf("row groups %d to %d of a file that has %d", from, to, f.to-f.from)
	}
	return &File{pq: f.pq, r: f.r, size: f.size, from: f.from + from, to: f.from + to, raw: f.raw}, nil
}

// groups are the row groups that count.
func (f *File) groups() []format.RowGroup { return f.pq.Metadata().RowGroups[f.from:f.to] }

// checkEnds looks at the first and the last bytes.
func checkEnds(r io.ReaderAt, size int64) error {
	if size == 0 {
		return errors.New("it is empty: zero bytes")
	}
	if size < int64(len(magic)+tailBytes) {
		return fmt.Errorf("it has %d bytes, too few for a Parquet file", size)
	}
	var head [4]byte
	var tail [tailBytes]byte
	if n, err := r.ReadAt(head[:], 0); n < len(head) {
		return fmt.Errorf("read its first bytes: %w", err)
	}
	if !bytes.Equal(head[:], magic) {
		return fmt.Errorf("it is no Parquet file: it begins with %q, not with PAR1", head)
	}
	if n, err := r.ReadAt(tail[:], size-tailBytes); n < len(tail) {
		return fmt.Errorf("read its last bytes: %w", err)
	}
	if !bytes.Equal(tail[4:], magic) {
		return fmt.Errorf("it is cut short or still being written: it ends with %q at byte %d, not with PAR1", tail[4:], size-4)
	}
	if n := int64(binary.LittleEndian.Uint32(tail[:])); n > size-int64(len(magic)+tailBytes) {
		return fmt.Errorf("its footer is damaged: it says that the footer has %d bytes, the file has %d", n, size)
	}
	return nil
}

// checkFooter checks that rows add up and that every column chunk lies inside
// the file.
func checkFooter(m *format.FileMetaData, size int64) error {
	var rows int64
	leaves := 0
	for i := range m.Schema {
		if m.Schema[i].Type.Valid {
			leaves++
		}
	}
	for i := range m.RowGroups {
		g := &m.RowGroups[i]
		if g.NumRows < 0 || len(g.Columns) != leaves {
			return fmt.Errorf("row group %d has %d rows and %d columns, the schema has %d", i, g.NumRows, len(g.Columns), leaves)
		}
		rows += g.NumRows
		for k := range g.Columns {
			c := &g.Columns[k].MetaData
			from := c.DataPageOffset
			if c.DictionaryPageOffset > 0 {
				from = min(from, c.DictionaryPageOffset)
			}
			if from < 0 || c.TotalCompressedSize < 0 || from > size-tailBytes-c.TotalCompressedSize {
				return fmt.Errorf("column %s of row group %d takes %d bytes from byte %d, the file has %d",
					strings.Join(c.PathInSchema, "."), i, c.TotalCompressedSize, from, size)
			}
		}
	}
	if rows != m.NumRows {
		return fmt.Errorf("%d rows, %d in its row groups", m.NumRows, rows)
	}
	return nil
}

// Rows is the number of rows.
func (f *File) Rows() int64 {
	rows := int64(0)
	for i := range f.groups() {
		rows += f.groups()[i].NumRows
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
		out[i] = groups[i].NumRows
	}
	return out
}

// leaves are the columns that have values, in the order of the chunks.
func (f *File) leaves() []*parquet.Column {
	var out []*parquet.Column
	var add func(c *parquet.Column)
	add = func(c *parquet.Column) {
		if c.Leaf() {
			out = append(out, c)
		}
		for _, sub := range c.Columns() {
			add(sub)
		}
	}
	add(f.pq.Root())
	return out
}

// Meta is the key/value metadata.
func (f *File) Meta() map[string]string {
	out := make(map[string]string)
	for _, kv := range f.pq.Metadata().KeyValueMetadata {
		out[kv.Key] = kv.Value
	}
	return out
}

// CreatedBy is the program that wrote the file, as it says.
func (f *File) CreatedBy() string { return f.pq.Metadata().CreatedBy }

// plainBytes is about how much memory the rows take as Columns.
func (f *File) plainBytes() int64 {
	n := int64(0)
	for i := range f.groups() {
		n += f.groups()[i].TotalByteSize
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
	got := f.pq.Metadata().Schema
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

// elementText prints a schema element as schemas are usually written.
func elementText(e *format.SchemaElement) string {
	text := "required"
	if e.RepetitionType.Valid {
		text = strings.ToLower(e.RepetitionType.V.String())
	}
	kind := "group"
	if e.Type.Valid {
		kind = e.Type.V.String()
		if e.TypeLength.Valid {
			kind += fmt.Sprintf("(%d)", e.TypeLength.V)
		}
	}
	text += " " + kind + " " + e.Name
	if e.LogicalType.Value != nil {
		text += " (" + e.LogicalType.String() + ")"
	}
	return text
}
