package parquetfile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// fileType is what files have in common whose footers have the same schema,
// byte for byte. A thousand files of one writer share one.
type fileType struct {
	root     *parquet.Column
	leaves   []*parquet.Column      // the columns that have values, in the order of the chunks
	names    []string               // their paths
	null     []bool                 // those annotated as always null, whatever they are made of
	elements []format.SchemaElement // as the footer lists them
	schema   []byte                 // the same, encoded
	// passed is what the library passes over in an element, as it is: a type, and
	// fields, of a later version of the format, and that its id is 0.
	passed  []string
	strange []bool  // elements of such a type, or with such fields
	orders  []order // of the leaves
	at      []int   // the elements of the leaves
}

// fileTypes are those in use of late. A table has few; when there are many they
// are forgotten, and made anew where they are asked for.
var fileTypes = struct {
	sync.Mutex
	of map[string]*fileType
}{of: make(map[string]*fileType)}

const mostFileTypes = 256

// fileTypeOf makes sense of a schema: a list of SchemaElement.
func fileTypeOf(schema []byte) (*fileType, error) {
	fileTypes.Lock()
	t := fileTypes.of[string(schema)]
	fileTypes.Unlock()
	if t != nil {
		return t, nil
	}
	t, err := makeFileType(schema)
	if err != nil {
		return nil, err
	}
	fileTypes.Lock()
	defer fileTypes.Unlock()
	if same := fileTypes.of[string(schema)]; same != nil {
		return same, nil // made by another goroutine meanwhile: types are compared by address
	}
	if len(fileTypes.of) >= mostFileTypes {
		clear(fileTypes.of)
	}
	fileTypes.of[string(schema)] = t
	return t, nil
}

// makeFileType makes the type of a schema, or finds that of the same schema without
// the lengths that mean nothing.
func makeFileType(schema []byte) (*fileType, error) {
	plain, err := withoutLengths(schema)
	if err != nil {
		return nil, err
	}
	if plain != nil {
		return fileTypeOf(plain)
	}
	return newFileType(bytes.Clone(schema))
}

// withoutLengths leaves out the lengths of all types but FIXED_LEN_BYTE_ARRAY: Go's
// library tells one of each, and others do not read such a file (describe). nil:
// there are none.
func withoutLengths(schema []byte) ([]byte, error) {
	w := walker{b: schema}
	elem, n := w.list()
	if elem != thriftStruct {
		return nil, errThrift
	}
	out := appendListHeader(nil, elem, n)
	found := false
	for i := 0; i < n && !w.bad; i++ {
		s := thriftStructOf{dst: out}
		kind := int64(-1)
		for id, typ := range w.fields {
			v := w.skip(typ)
			if id == elementType && typ == thriftI32 {
				kind = (&walker{b: v}).int()
			}
			if id == elementLength && kind >= 0 && kind != int64(format.FixedLenByteArray) {
				found = true
				continue
			}
			s.raw(id, typ, v)
		}
		out = s.end()
	}
	switch {
	case w.bad:
		return nil, errThrift
	case !found:
		return nil, nil
	}
	return out, nil
}

// newFileType has the library open a file of this schema that has no rows.
func newFileType(schema []byte) (t *fileType, err error) {
	defer func() { // a hostile schema must not kill the process (F7)
		if p := recover(); p != nil {
			t, err = nil, fmt.Errorf("its schema: %v", p)
		}
	}()
	end := footer{version: 1, schema: schema}
	f, err := openEmpty(end.encode())
	if err != nil {
		return nil, err
	}
	t = &fileType{elements: f.Metadata().Schema, schema: schema}
	if plain, is := withoutNullType(t.elements); is {
		foot, err := thrift.Marshal(new(thrift.CompactProtocol), &format.FileMetaData{Version: 1, Schema: plain})
		if err == nil {
			f, err = openEmpty(foot)
		}
		if err != nil {
			return nil, err
		}
	}
	if err := t.passOver(schema); err != nil {
		return nil, err
	}
	t.root = f.Root()
	var add func(c *parquet.Column)
	add = func(c *parquet.Column) {
		if c.Leaf() {
			t.leaves = append(t.leaves, c)
			t.names = append(t.names, strings.Join(c.Path(), "."))
		}
		for _, sub := range c.Columns() {
			add(sub)
		}
	}
	add(t.root)
	typed := 0
	for i := range t.elements {
		if t.elements[i].Type.Valid {
			_, null := t.elements[i].LogicalType.Value.(*format.NullType)
			t.null = append(t.null, null)
			t.orders = append(t.orders, t.orderOf(i))
			t.at = append(t.at, i)
			typed++
		}
	}
	if typed != len(t.leaves) {
		return nil, fmt.Errorf("its schema has %d columns, %d of them with a type", len(t.leaves), typed)
	}
	return t, nil
}

// Fields of a SchemaElement. There are no others so far.
const (
	elementType    = 1
	elementLength  = 2
	elementID      = 9
	elementLogical = 10
)

// passOver finds what the library passed over.
func (t *fileType) passOver(schema []byte) error {
	t.passed, t.strange = make([]string, len(t.elements)), make([]bool, len(t.elements))
	w := walker{b: schema}
	elem, n := w.list()
	if elem != thriftStruct || n != len(t.elements) {
		return errThrift
	}
	for i := 0; i < n && !w.bad; i++ {
		e := &t.elements[i]
		for id, typ := range w.fields {
			v := w.skip(typ)
			switch {
			case id == elementID && e.FieldID == 0:
			case id == elementLogical && len(v) > 1 && e.LogicalType.Value == nil, id > elementLogical:
				t.strange[i] = true
			default:
				continue
			}
			t.passed[i] += fmt.Sprintf(" %d:%x", id, v)
		}
	}
	if w.bad {
		return errThrift
	}
	return nil
}

// lacks says whether a column is not there, or annotated as always null, which is
// the same whatever type somebody else gives it.
func (t *fileType) lacks(name string) bool {
	col := t.root.Column(name)
	return col == nil || col.Leaf() && t.null[col.Index()]
}

// openEmpty has the library open a file that has this footer and nothing else.
func openEmpty(foot []byte) (*parquet.File, error) {
	b := append(bytes.Clone(magic), foot...)
	b = append(binary.LittleEndian.AppendUint32(b, uint32(len(foot))), magic...)
	return parquet.OpenFile(bytes.NewReader(b), int64(len(b)), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
}

// withoutNullType is the schema with the physical types alone where a column is
// annotated as always null: the library's type for such a column does not know
// what it is made of, and its pages, levels without values, have to be read.
func withoutNullType(elements []format.SchemaElement) (plain []format.SchemaElement, is bool) {
	plain = slices.Clone(elements)
	for i := range plain {
		if _, null := plain[i].LogicalType.Value.(*format.NullType); null && plain[i].Type.Valid {
			plain[i].LogicalType, is = format.LogicalType{}, true
		}
	}
	return plain, is
}
