package parquetfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding"
)

// File is an open Parquet file, of any writer.
type File struct {
	pq   *parquet.File
	size int64
}

var magic = []byte("PAR1")

// Open reads a file's footer. The error says what is wrong with the file.
func Open(r io.ReaderAt, size int64) (f *File, err error) {
	if size == 0 {
		return nil, errors.New("it is empty: zero bytes")
	}
	if size < 12 {
		return nil, fmt.Errorf("it has %d bytes, too few for a Parquet file", size)
	}
	var head, tail [4]byte
	if _, err := r.ReadAt(head[:], 0); err != nil && err != io.EOF {
		return nil, fmt.Errorf("read its first bytes: %w", err)
	}
	if !bytes.Equal(head[:], magic) {
		return nil, errors.New("it is no Parquet file: it does not begin with PAR1")
	}
	if _, err := r.ReadAt(tail[:], size-4); err != nil && err != io.EOF {
		return nil, fmt.Errorf("read its last bytes: %w", err)
	}
	if !bytes.Equal(tail[:], magic) {
		return nil, errors.New("it is cut short or still being written: it does not end with PAR1")
	}
	defer func() { // a hostile footer must not kill the process
		if p := recover(); p != nil {
			f, err = nil, fmt.Errorf("its footer is damaged: %v", p)
		}
	}()
	pq, err := parquet.OpenFile(r, size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return nil, fmt.Errorf("its footer is damaged: %w", err)
	}
	f = &File{pq: pq, size: size}
	var rows int64
	for _, g := range pq.RowGroups() {
		rows += g.NumRows()
	}
	if rows != pq.NumRows() {
		return nil, fmt.Errorf("its footer is damaged: %d rows, %d in its row groups", pq.NumRows(), rows)
	}
	return f, nil
}

// Rows is the number of rows.
func (f *File) Rows() int64 { return f.pq.NumRows() }

// Size is the number of bytes.
func (f *File) Size() int64 { return f.size }

// RowGroups is the number of rows of each row group.
func (f *File) RowGroups() []int64 {
	var out []int64
	for _, g := range f.pq.RowGroups() {
		out = append(out, g.NumRows())
	}
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

// Verify checks that a file is what this schema writes: its rows, its columns
// in order, no empty row group (F1).
func (s *Schema) Verify(f *File, rows int64) error {
	if f.Rows() != rows {
		return fmt.Errorf("%d rows, want %d", f.Rows(), rows)
	}
	for i, n := range f.RowGroups() {
		if n == 0 {
			return fmt.Errorf("row group %d is empty", i)
		}
	}
	got := f.pq.Schema().Columns()
	if len(got) != len(s.leaves) {
		return fmt.Errorf("%d leaf columns, want %d", len(got), len(s.leaves))
	}
	for i, l := range s.leaves {
		if strings.Join(got[i], ".") != strings.Join(l.path, ".") {
			return fmt.Errorf("leaf column %d is %v, want %v", i, got[i], l.path)
		}
		have, _ := f.pq.Schema().Lookup(got[i]...)
		want, _ := s.pq.Lookup(l.path...)
		if have.Node.Type().String() != want.Node.Type().String() {
			return fmt.Errorf("column %v is %s, want %s", l.path, have.Node.Type(), want.Node.Type())
		}
	}
	return nil
}

// reader reads the rows of a file as leaf columns, a few thousand at a time.
type reader struct {
	f       *File
	left    int64
	columns []columnReader
}

// columnReader reads one leaf through all row groups, page by page.
type columnReader struct {
	f      *File
	column int // in the file; -1: the file does not have it
	from   leafType
	widen  bool // INT32 in the file, INT64 here
	group  int
	pages  parquet.Pages
	page   parquet.Page
	levels int // of the page
	defs   []uint8
	reps   []uint8
	data   encoding.Values
	dict   *dictionaryPage // of the page; nil: plain
	level  int             // levels and values of the page that were taken
	value  int
}

// dictionaryPage are the different values of a column chunk.
type dictionaryPage struct{ data encoding.Values }

// newReader matches the file's columns by name (F3).
func (s *Schema) newReader(f *File) (*reader, error) {
	r := &reader{f: f, left: f.Rows(), columns: make([]columnReader, len(s.leaves))}
	for i, want := range s.leaves {
		c := columnReader{f: f, column: -1}
		if have, ok := f.pq.Schema().Lookup(want.path...); ok && have.Node.Leaf() {
			from, err := match(want, have)
			if err != nil {
				return nil, fmt.Errorf("column %s: %w", strings.Join(want.path, "."), err)
			}
			c.column, c.from = have.ColumnIndex, from
			c.widen = from.phys == physInt32 && want.phys == physInt64
		} else if len(want.path) > 1 && present(f, want.path[0]) {
			return nil, fmt.Errorf("column %s: the file has another structure of %s", strings.Join(want.path, "."), want.path[0])
		}
		r.columns[i] = c
	}
	return r, nil
}

func present(f *File, top string) bool {
	for _, p := range f.pq.Schema().Columns() {
		if p[0] == top {
			return true
		}
	}
	return false
}

// match says how values of the file's column become ours: the same physical
// type, or INT32 as INT64.
func match(want leafType, have parquet.LeafColumn) (leafType, error) {
	from := leafType{path: want.path, maxDef: uint8(have.MaxDefinitionLevel), maxRep: uint8(have.MaxRepetitionLevel)}
	switch have.Node.Type().Kind() {
	case parquet.Boolean:
		from.phys = physBool
	case parquet.Int32:
		from.phys = physInt32
	case parquet.Int64:
		from.phys = physInt64
	case parquet.Float:
		from.phys = physFloat
	case parquet.Double:
		from.phys = physDouble
	case parquet.ByteArray:
		from.phys = physBytes
	case parquet.FixedLenByteArray:
		from.phys, from.width = physFixed, have.Node.Type().Length()
	default:
		return from, fmt.Errorf("the file has physical type %s", have.Node.Type().Kind())
	}
	switch {
	case from.phys == want.phys && from.width == want.width:
	case from.phys == physInt32 && want.phys == physInt64 && signedInt(have.Node.Type()):
	default:
		return from, fmt.Errorf("the file has type %s", have.Node.Type())
	}
	if from.maxRep != want.maxRep || (from.maxDef != want.maxDef && (want.maxDef != 1 || from.maxDef != 0)) {
		return from, errors.New("the file nests or requires it otherwise")
	}
	return from, nil
}

// signedInt: a plain signed integer, no date, time or decimal.
func signedInt(t parquet.Type) bool {
	lt := t.LogicalType()
	return lt == nil || strings.HasPrefix(lt.String(), "INT(") && strings.HasSuffix(lt.String(), "true)")
}

// read appends up to n rows to dst and returns how many.
func (r *reader) read(dst *Columns, n int) (int, error) {
	n = int(min(int64(n), r.left))
	for i := range r.columns {
		if err := r.columns[i].read(&dst.leaves[i], n); err != nil {
			return 0, fmt.Errorf("column %s: %w", strings.Join(dst.leaves[i].path, "."), err)
		}
	}
	dst.rows += n
	r.left -= int64(n)
	return n, nil
}

func (r *reader) close() {
	for i := range r.columns {
		r.columns[i].closePage()
		if r.columns[i].pages != nil {
			r.columns[i].pages.Close()
			r.columns[i].pages = nil
		}
	}
}
