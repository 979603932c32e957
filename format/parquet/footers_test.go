package parquetfile

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	lib "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/format"
)

// refooted is the file with another footer.
func refooted(t testing.TB, f *File, edit func(end *footer)) *File {
	t.Helper()
	return opened(t, refootedBytes(t, f, edit))
}

func refootedBytes(t testing.TB, f *File, edit func(end *footer)) []byte {
	t.Helper()
	data := f.all(t)
	n := int(binary.LittleEndian.Uint32(data[len(data)-tailBytes:]))
	body, foot := data[:len(data)-tailBytes-n], data[len(data)-tailBytes-n:len(data)-tailBytes]
	end := footer{version: 1, schema: f.foot.schema, orders: f.foot.orders, rows: f.foot.rows, count: len(f.foot.rowGroups),
		createdBy: f.foot.createdBy, meta: f.Meta()}
	w := walker{b: foot}
	for id, typ := range w.fields {
		if v := w.skip(typ); id == 4 {
			list := walker{b: v}
			list.list()
			end.groups = v[list.at:]
		}
	}
	edit(&end)
	b := end.encode()
	body = append(append(bytes.Clone(body), b...), binary.LittleEndian.AppendUint32(nil, uint32(len(b)))...)
	return append(body, magic...)
}

// editStruct copies the structs of a list, or one struct, with what edit makes of
// each field; a nil value leaves it out.
func editStruct(dst []byte, w *walker, edit func(id int16, typ byte, v []byte) []byte, more func(s *thriftStructOf)) []byte {
	out := thriftStructOf{dst: dst}
	for id, typ := range w.fields {
		if v := edit(id, typ, w.skip(typ)); v != nil {
			out.raw(id, typ, v)
		}
	}
	if more != nil {
		more(&out)
	}
	return out.end()
}

func same(_ int16, _ byte, v []byte) []byte {
	if v == nil {
		return []byte{}
	}
	return v
}

// withLogical adds a logical type, or another field, to the element of a name.
func withLogical(schema []byte, name string, field int16, value []byte) []byte {
	w := walker{b: schema}
	elem, n := w.list()
	out := appendListHeader(nil, elem, n)
	for range n {
		is := false
		out = editStruct(out, &w, func(id int16, typ byte, v []byte) []byte {
			is = is || id == 4 && strings.HasSuffix(string(v), name)
			return same(id, typ, v)
		}, func(s *thriftStructOf) {
			if is {
				s.raw(field, thriftStruct, value)
			}
		})
	}
	return out
}

// union is a LogicalType or a ColumnOrder of a kind that has no fields.
func unionOf(kind int16) []byte {
	u := thriftStructOf{}
	u.raw(kind, thriftStruct, []byte{0})
	return u.end()
}

// TestTypesOfLaterVersions: a column of a type that is not known here is moved
// and copied, with its annotation and no bounds, together with none of another
// type; and is no column of a table (F3, F8, F10).
func TestTypesOfLaterVersions(t *testing.T) {
	schema := lib.NewSchema("t", lib.Group{"id": lib.Leaf(lib.Int64Type), "x": lib.Leaf(lib.ByteArrayType)})
	plain := kindFile(t, schema, 0, 5000, 9, 1, "snappy")
	of := func(kind int16) *File {
		return refooted(t, plain, func(end *footer) { end.schema = withLogical(end.schema, "x", elementLogical, unionOf(kind)) })
	}
	later := of(31)
	for name, other := range map[string]*File{"plain": plain, "of another kind": of(32),
		"with another field": refooted(t, plain, func(end *footer) { end.schema = withLogical(end.schema, "x", 11, []byte{0}) })} {
		err := Same([]*File{later, other})
		if err == nil || strings.Count(err.Error(), "byte_array x") < 1 && strings.Count(err.Error(), " x") < 2 {
			t.Errorf("%s: %v", name, err)
		}
		if err := Same([]*File{other, later}); err == nil {
			t.Errorf("%s: the same", name)
		}
	}
	data := merged(t, []*File{later, of(31)}, JoinOptions{Codec: "zstd"})
	out := opened(t, data)
	if err := Same([]*File{later, out}); err != nil {
		t.Error(err)
	}
	for k, bounded := range []bool{true, false} {
		c := &out.foot.rowGroups[0].columns[k]
		if got := c.said().min != nil; got != bounded || (c.columnIndexLength > 0) != bounded {
			t.Errorf("column %d has bounds: %v, want %v", k, got, bounded)
		}
	}
	want := valuesOfAll(t, plain.all(t))
	for k, got := range valuesOfAll(t, data) {
		if len(got) != 2*len(want[k]) {
			t.Errorf("column %d has %d values", k, len(got))
		}
	}
	s := compiled(t, schemaOf(t, "id bigint", "x binary"))
	if err := s.Takes(plain); err != nil {
		t.Error(err)
	}
	if err := s.Takes(later); err == nil {
		t.Error("a type that is not known becomes bytes")
	}
}

// TestColumnOrders: what a footer says of the order of minima and maxima holds
// for all that are in the file (F8).
func TestColumnOrders(t *testing.T) {
	schema := lib.NewSchema("t", lib.Group{"a": lib.Leaf(lib.DoubleType), "b": lib.Leaf(lib.ByteArrayType)})
	file := kindFile(t, schema, 0, 5000, 9, 1, "snappy")
	with := func(orders ...int16) *File {
		return refooted(t, file, func(end *footer) {
			if end.orders = appendOrders(orders); orders == nil {
				end.orders = nil
			}
		})
	}
	typed, ieee, unknown, silent := with(1, 1), with(2, 1), with(1, 9), with()
	for _, c := range []struct {
		name          string
		inputs        []*File
		copied, moved []int16 // nil: not said
	}{
		{"as ever", []*File{typed, typed}, []int16{1, 1}, []int16{1, 1}},
		{"IEEE's", []*File{ieee, ieee}, []int16{2, 1}, []int16{1, 1}},
		{"both", []*File{typed, ieee, typed}, []int16{1, 1}, []int16{1, 1}},
		{"one that is not known", []*File{unknown, unknown}, []int16{1, 9}, nil},
		{"and one that is", []*File{unknown, typed}, nil, nil},
		{"not said", []*File{silent, silent}, nil, nil},
		{"not said by one", []*File{typed, silent, typed}, nil, nil},
	} {
		var b bytes.Buffer
		if _, err := Copy(context.Background(), c.inputs, &b, JoinOptions{}); err != nil {
			t.Fatal(err)
		}
		for mode, got := range map[string][2][]int16{"copy": {saidOrders(opened(t, b.Bytes())), c.copied},
			"merge": {saidOrders(opened(t, merged(t, c.inputs, JoinOptions{Codec: "zstd", KeepCodec: true}))), c.moved}} {
			if fmt.Sprint(got[0]) != fmt.Sprint(got[1]) {
				t.Errorf("%s, %s: %v, want %v", c.name, mode, got[0], got[1])
			}
		}
	}
}

func saidOrders(f *File) (out []int16) {
	w := walker{b: f.foot.orders}
	if f.foot.orders == nil {
		return nil
	}
	_, n := w.list()
	for range n {
		for id, typ := range w.fields {
			w.skip(typ)
			out = append(out, id)
		}
	}
	return out
}

// editMeta rewrites the ColumnMetaData of every column chunk.
func editMeta(end *footer, edit func(id int16, typ byte, v []byte) []byte, more func(s *thriftStructOf)) {
	w := walker{b: end.groups}
	var out []byte
	for range end.count {
		out = editStruct(out, &w, func(id int16, typ byte, v []byte) []byte {
			if id != 1 {
				return same(id, typ, v)
			}
			list := walker{b: v}
			elem, n := list.list()
			columns := appendListHeader(nil, elem, n)
			for range n {
				columns = editStruct(columns, &list, func(id int16, typ byte, v []byte) []byte {
					if id != 3 {
						return same(id, typ, v)
					}
					return editStruct(nil, &walker{b: v}, edit, more)
				}, nil)
			}
			return columns
		}, nil)
	}
	end.groups = out
}

// TestPrivateFields: what a writer has under a number that the format took later
// is not taken for that; and its places do not come along (F7, F10).
func TestPrivateFields(t *testing.T) {
	schema := lib.NewSchema("t", lib.Group{"id": lib.Leaf(lib.Int64Type)})
	list := append(appendListHeader(nil, thriftI64, 2), appendZigzag(appendZigzag(nil, 22), 44)...)
	f := refooted(t, kindFile(t, schema, 0, 5000, 9, 1, "snappy"), func(end *footer) {
		editMeta(end, same, func(s *thriftStructOf) {
			s.raw(14, thriftList, list)
			s.raw(15, thriftList, list)
			s.raw(99, thriftList, list)
		})
	})
	var b bytes.Buffer
	if _, err := Copy(context.Background(), []*File{f, f}, &b, JoinOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, data := range [][]byte{b.Bytes(), merged(t, []*File{f, f}, JoinOptions{Codec: "snappy"})} {
		if got := valuesOfAll(t, data)[0]; len(got) != 10000 {
			t.Errorf("%d values", len(got))
		}
	}
	for i := range opened(t, b.Bytes()).foot.rowGroups {
		fields := map[int16]bool{}
		w := walker{b: opened(t, b.Bytes()).foot.rowGroups[i].columns[0].raw}
		for id, typ := range w.fields {
			if id != 3 {
				w.skip(typ)
				continue
			}
			for id, typ := range w.fields {
				w.skip(typ)
				fields[id] = true
			}
		}
		if fields[14] || fields[15] || !fields[99] {
			t.Errorf("row group %d has the fields %v", i, fields)
		}
	}
}

// TestCopyForgetsDistrustedBounds: the deprecated minima and maxima of what is
// not a signed number are left out, for what readers know of their writer they
// do not know of the copy's; the count of nulls stays.
func TestCopyForgetsDistrustedBounds(t *testing.T) {
	schema := lib.NewSchema("t", lib.Group{"bytes": lib.Leaf(lib.ByteArrayType), "i": lib.Leaf(lib.Int32Type), "u": lib.Uint(32), "v": lib.Uint(64),
		"d": lib.Decimal(2, 20, lib.FixedLenByteArrayType(9)), "f": lib.Leaf(lib.DoubleType), "t": lib.Leaf(lib.Int96Type), "date": lib.Date()})
	keep := map[string]bool{"i": true, "f": true, "date": true}
	var values []string
	for _, path := range schema.Columns() {
		values = append(values, path[0])
	}
	f := refooted(t, fixedFile(t, schema), func(end *footer) {
		end.orders = nil
		editMeta(end, func(id int16, typ byte, v []byte) []byte {
			if id != 12 {
				return same(id, typ, v)
			}
			s := thriftStructOf{}
			s.text(1, "max.max.")
			s.text(2, "min.min.")
			s.int(3, thriftI64, 7)
			return s.end()
		}, nil)
	})
	var b bytes.Buffer
	if _, err := Copy(context.Background(), []*File{f, f}, &b, JoinOptions{}); err != nil {
		t.Fatal(err)
	}
	out, err := lib.OpenFile(bytes.NewReader(b.Bytes()), int64(b.Len()), lib.SkipPageIndex(true))
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range out.Metadata().RowGroups {
		for k := range g.Columns {
			s := g.Columns[k].MetaData.Statistics
			if s.NullCount != 7 || (s.Min != nil) != keep[values[k]] || (s.Max != nil) != keep[values[k]] {
				t.Errorf("column %s: statistics %+v", values[k], s)
			}
		}
	}
}

// fixedFile has three rows of zeros.
func fixedFile(t testing.TB, schema *lib.Schema) *File {
	t.Helper()
	var out bytes.Buffer
	w := lib.NewGenericWriter[any](&out, schema)
	var row lib.Row
	for k, path := range schema.Columns() {
		leaf, _ := schema.Lookup(path...)
		v := lib.ZeroValue(leaf.Node.Type().Kind())
		switch leaf.Node.Type().Kind() {
		case lib.FixedLenByteArray:
			v = lib.FixedLenByteArrayValue(make([]byte, leaf.Node.Type().Length()))
		case lib.Int96:
			v = lib.Int96Value(deprecated.Int96{})
		}
		row = append(row, v.Level(0, 0, k))
	}
	if _, err := w.WriteRows([]lib.Row{row, row, row}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return opened(t, out.Bytes())
}

// TestSummaryFilesAreRefused: a file whose column chunks lie in other files has
// none of its rows (F7). An empty path is none.
func TestSummaryFilesAreRefused(t *testing.T) {
	schema := lib.NewSchema("t", lib.Group{"id": lib.Leaf(lib.Int64Type)})
	file := kindFile(t, schema, 0, 5000, 9, 1, "snappy")
	for where, refused := range map[string]bool{"": false, "part-0.parquet": true} {
		var data bytes.Buffer
		f := func() (f *File, err error) {
			elsewhere := refootedBytes(t, file, func(end *footer) {
				w := walker{b: end.groups}
				end.groups = editStruct(nil, &w, func(id int16, typ byte, v []byte) []byte {
					if id != 1 {
						return same(id, typ, v)
					}
					list := walker{b: v}
					elem, n := list.list()
					columns := appendListHeader(nil, elem, n)
					for range n {
						chunk := thriftStructOf{dst: columns}
						chunk.text(1, where)
						for id, typ := range list.fields {
							if v := list.skip(typ); id != 1 {
								chunk.raw(id, typ, v)
							}
						}
						columns = chunk.end()
					}
					return columns
				}, nil)
			})
			return Open(bytes.NewReader(elsewhere), int64(len(elsewhere)))
		}
		in, err := f()
		if (err != nil) != refused {
			t.Fatalf("%q: %v", where, err)
		}
		if refused {
			if !strings.Contains(err.Error(), "other files") {
				t.Errorf("it says: %v", err)
			}
			continue
		}
		if _, err := Copy(context.Background(), []*File{in, in}, &data, JoinOptions{}); err != nil {
			t.Error(err)
		}
		if got := valuesOfAll(t, data.Bytes())[0]; len(got) != 10000 {
			t.Errorf("%d values", len(got))
		}
	}
}

// TestSecondDictionary: a column chunk has one dictionary at most. What refers to
// a second one is not taken for a reference to the first (F7).
func TestSecondDictionary(t *testing.T) {
	schema := lib.NewSchema("t", lib.Group{"x": lib.Encoded(lib.Leaf(lib.Int64Type), &lib.RLEDictionary)})
	a, b := kindFile(t, schema, 0, 5000, 9, 1, "none"), kindFile(t, schema, 1, 5000, 700, 1, "none")
	both := append([]byte(nil), magic...)
	var columns format.ColumnMetaData
	for i, f := range []*File{a, b} {
		meta := library(f).Metadata().RowGroups[0].Columns[0].MetaData
		e := f.groups()[0].columns[0].pages()
		if i == 0 {
			columns = meta
			columns.DictionaryPageOffset, columns.DataPageOffset = 4, 4+meta.DataPageOffset-meta.DictionaryPageOffset
		} else {
			columns.NumValues += meta.NumValues
			columns.TotalCompressedSize += meta.TotalCompressedSize
			columns.TotalUncompressedSize += meta.TotalUncompressedSize
		}
		both = append(both, f.all(t)[e.from:e.to]...)
	}
	columns.Statistics = format.Statistics{}
	j := joiner{}
	if err := j.addGroup(&format.RowGroup{Columns: []format.ColumnChunk{{MetaData: columns}}, NumRows: 10000, TotalByteSize: columns.TotalUncompressedSize},
		make([]format.ColumnIndex, 1), make([]format.OffsetIndex, 1)); err != nil {
		t.Fatal(err)
	}
	end := footer{version: 1, schema: a.foot.schema, rows: 10000, count: 1}
	var at, at2 int64
	g := j.groups[0]
	g.columns[0].offsetIndexLength = 0
	var err error
	if end.groups, err = g.appendTo(nil, 0, &at, &at2); err != nil {
		t.Fatal(err)
	}
	foot := end.encode()
	both = append(append(append(both, foot...), binary.LittleEndian.AppendUint32(nil, uint32(len(foot)))...), magic...)
	f := opened(t, both)
	if _, err := Merge(context.Background(), []*File{f, a}, new(bytes.Buffer), JoinOptions{Codec: "none"}); err == nil || !strings.Contains(err.Error(), "two dictionaries") {
		t.Errorf("merged: %v", err)
	}
}
