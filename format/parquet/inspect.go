package parquetfile

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/format"

	"github.com/hivesink/hivesink/hivetype"
)

// Leaves are the paths of the columns that have values, in the file's order.
func (f *File) Leaves() []string {
	return slices.Clone(f.typ.names)
}

// Codecs are the codecs in use, sorted, each once.
func (f *File) Codecs() []string {
	var out []string
	for i := range f.groups() {
		for k := range f.groups()[i].columns {
			name := strings.ToLower(f.groups()[i].columns[k].codec.String())
			if !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	slices.Sort(out)
	return out
}

// HasInt96 says whether a column has the deprecated type of old timestamps. What
// readers make of it depends on who wrote the file.
func (f *File) HasInt96() bool {
	for i := range f.typ.elements {
		if e := &f.typ.elements[i]; e.Type.Valid && e.Type.V == format.Int96 {
			return true
		}
	}
	return false
}

// gregorian is the first day, 1582-10-15, that has the same name in all calendars
// by which readers name days, in days since 1970.
const gregorian = -141_427

// OldDates says whether a column may have a date before 1582-10-15: its statistics
// have one, or do not say.
func (f *File) OldDates() bool {
	for i, at := range f.typ.at {
		e := &f.typ.elements[at]
		_, date := e.LogicalType.Value.(*format.DateType)
		if !date && !(e.ConvertedType.Valid && e.ConvertedType.V == deprecated.Date) {
			continue
		}
		for k := range f.groups() {
			g := &f.groups()[k]
			c := &g.columns[i]
			if n, _ := c.saidNulls(); n > 0 && n == c.values || g.rows == 0 {
				continue
			}
			first, ok := c.firstDay()
			if !ok || first < gregorian {
				return true
			}
		}
	}
	return false
}

// firstDay is the minimum of a column of dates. A deprecated one is as good: all
// compare these numbers alike.
func (c *columnChunk) firstDay() (day int32, ok bool) {
	w := walker{b: c.statistics}
	for id, typ := range w.fields {
		if (id == 2 || id == 6) && typ == thriftBinary {
			if b := w.bytes(); len(b) == 4 {
				day, ok = int32(binary.LittleEndian.Uint32(b)), true
			}
			continue
		}
		w.skip(typ)
	}
	return day, ok && !w.bad
}

// Nulls is the number of nulls of each leaf, by its place in Leaves, as the
// statistics have it; -1 where a row group does not say.
func (f *File) Nulls() []int64 {
	out := make([]int64, len(f.typ.names))
	for i := range f.groups() {
		columns := f.groups()[i].columns
		for k := range min(len(columns), len(out)) {
			if out[k] < 0 {
				continue
			}
			// No nulls, and nothing else, is what some writers say of any column.
			n, bounded := columns[k].saidNulls()
			if n > 0 || n == 0 && bounded {
				out[k] += n
			} else {
				out[k] = -1
			}
		}
	}
	return out
}

// CountNulls is the number of nulls of a leaf as its pages have it: what is said of
// them is not always true, as by Arrow's C++ of a dictionary in a struct that is null.
func (f *File) CountNulls(ctx context.Context, leaf int) (n int64, err error) {
	defer func() { // a hostile page must not kill the process (F7)
		if p := recover(); p != nil {
			n, err = 0, fmt.Errorf("column %s: %w: %v", f.typ.names[leaf], errDamaged, p)
		}
	}()
	var r columnReader
	r.column = f.typ.leaves[leaf]
	if r.phys, r.width, err = physicalOfColumn(r.column); err != nil {
		return 0, err
	}
	most := r.column.MaxDefinitionLevel()
	for i := range f.groups() {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		r.pages.open(f, r.column, &f.groups()[i].columns[leaf])
		for {
			err := r.nextPage()
			if err == io.EOF {
				break
			}
			if err != nil {
				return 0, fmt.Errorf("column %s: %w", f.typ.names[leaf], err)
			}
			if most > 0 {
				n += int64(r.levels - bytes.Count(r.defs, []byte{uint8(most)}))
			}
		}
	}
	return n, nil
}

// saidNulls is the number of nulls, -1 when it is not said, and whether a
// minimum or maximum is, be it a deprecated one.
func (c *columnChunk) saidNulls() (n int64, bounded bool) {
	n = -1
	w := walker{b: c.statistics}
	for id, typ := range w.fields {
		switch {
		case id == 3 && typ == thriftI64:
			n = w.int()
		case (id == 1 || id == 2 || id == 5 || id == 6) && typ == thriftBinary:
			bounded = len(w.bytes()) > 0 || bounded
		default:
			w.skip(typ)
		}
	}
	return n, bounded
}

// Adds says whether Rewrite gives a file a column of this name, null in every row.
func (s *Schema) Adds(f *File, column string) bool {
	return f.typ.lacks(column) && slices.ContainsFunc(s.record.Data, func(c hivetype.Field) bool { return c.Name == column })
}

// Takes says whether Rewrite takes a file and loses nothing of it: its columns
// are the table's, or fewer, with types that widen to the table's.
func (s *Schema) Takes(f *File) error {
	if _, err := s.NewReader(f); err != nil {
		return err
	}
	// Whole paths: a name may have dots in it, and a file two columns of a name.
	known := make(map[string]int, len(s.leaves))
	for i := range s.leaves {
		if path := s.leaves[i].path; f.typ.lacks(path[0]) {
			known[path[0]] = 1 // whatever the table has there
		} else {
			known[strings.Join(path, "\x00")] = 1
		}
	}
	for i, col := range f.typ.leaves {
		switch key := strings.Join(col.Path(), "\x00"); known[key] {
		case 0:
			return fmt.Errorf("column %s: the table does not have it, and its values would be lost", f.typ.names[i])
		case 1:
			known[key]++
		default:
			return fmt.Errorf("column %s: the file has it twice, and the values of one would be lost", f.typ.names[i])
		}
	}
	return nil
}
