package textval

import (
	"fmt"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/hivesink/hivesink/hivetype"
)

// column is a column, an element of an array, a key or value of a map, or a
// field of a struct: how to read it, and the builder it goes to.
type column struct {
	path    string
	typ     *hivetype.Type
	kind    hivetype.Kind
	width   uint // bits of an integer
	notNull bool
	strict  bool // it or something below it is not null
	nullBad bool // a time that cannot be read is null
	size    int  // bytes a value takes, less its text
	epoch   int  // digits of the epoch's fraction of a second; below zero: RFC 3339
	zone    *time.Location
	fields  []*column // of a struct; the element of an array; key and value of a map
	names   *names    // of a struct
	last    int       // bytes of text in the last batch
	rows    int       // values in the last batch

	bools   *array.BooleanBuilder
	int8s   *array.Int8Builder
	int16s  *array.Int16Builder
	int32s  *array.Int32Builder
	int64s  *array.Int64Builder
	floats  *array.Float32Builder
	doubles *array.Float64Builder
	decs    *array.Decimal128Builder
	texts   *array.BinaryBuilder
	dates   *array.Date32Builder
	stamps  *array.TimestampBuilder
	lists   *array.ListBuilder
	maps    *array.MapBuilder
	structs *array.StructBuilder
}

// epochs are the spellings of Options.Timestamps.
var epochs = map[string]int{"": -1, "rfc3339": -1, "s": 0, "ms": 3, "us": 6, "ns": 9}

func newColumn(path string, f hivetype.Field, b array.Builder, o *Options) (*column, error) {
	c := &column{path: path, typ: f.Type, kind: f.Type.Kind, notNull: f.NotNull, strict: f.NotNull,
		zone: o.Zone, epoch: epochs[o.Timestamps]}
	switch b := b.(type) {
	case *array.BooleanBuilder:
		c.bools, c.size = b, 1
	case *array.Int8Builder:
		c.int8s, c.size = b, 1
	case *array.Int16Builder:
		c.int16s, c.size = b, 2
	case *array.Int32Builder:
		c.int32s, c.size = b, 4
	case *array.Int64Builder:
		c.int64s, c.size = b, 8
	case *array.Float32Builder:
		c.floats, c.size = b, 4
	case *array.Float64Builder:
		c.doubles, c.size = b, 8
	case *array.Decimal128Builder:
		c.decs, c.size = b, 16
	case *array.StringBuilder:
		c.texts, c.size = b.BinaryBuilder, 4
	case *array.BinaryBuilder:
		c.texts, c.size = b, 4
	case *array.Date32Builder:
		c.dates, c.size = b, 4
	case *array.TimestampBuilder:
		c.stamps, c.size = b, 8
	case *array.ListBuilder:
		c.lists, c.size = b, 4
	case *array.MapBuilder:
		c.maps, c.size = b, 4
	case *array.StructBuilder:
		c.structs, c.size = b, 1
	default:
		return nil, fmt.Errorf("column %s: no text form of type %s", path, f.Type)
	}
	switch c.kind {
	case hivetype.TinyInt, hivetype.SmallInt, hivetype.Int, hivetype.BigInt:
		c.width = uint(c.size) * 8
	case hivetype.Date, hivetype.Timestamp:
		c.nullBad = o.NullOnBadTime[path]
	}
	return c, c.descend(o)
}

// descend makes the columns below.
func (c *column) descend(o *Options) error {
	add := func(name string, f hivetype.Field, b array.Builder) error {
		sub, err := newColumn(c.path+"."+name, f, b, o)
		if err != nil {
			return err
		}
		c.fields = append(c.fields, sub)
		c.strict = c.strict || sub.strict
		return nil
	}
	switch c.kind {
	case hivetype.Array:
		return add("element", hivetype.Field{Type: c.typ.Elem}, c.lists.ValueBuilder())
	case hivetype.Map:
		switch c.typ.Key.Kind {
		case hivetype.Array, hivetype.Map, hivetype.Struct:
			return fmt.Errorf("column %s: a key of type %s has no text form", c.path, c.typ.Key)
		}
		if err := add("key", hivetype.Field{Type: c.typ.Key}, c.maps.KeyBuilder()); err != nil {
			return err
		}
		return add("value", hivetype.Field{Type: c.typ.Elem}, c.maps.ItemBuilder())
	case hivetype.Struct:
		for i, f := range c.typ.Fields {
			if err := add(f.Name, f, c.structs.FieldBuilder(i)); err != nil {
				return err
			}
		}
		c.names = newNames(c.typ.Fields)
	}
	return nil
}

// room makes room for as many values as the last batch had, and at least n.
func (c *column) room(n int, b array.Builder) {
	b.Reserve(max(n, c.rows-b.Len()))
	if c.texts != nil && c.last > c.texts.DataLen() {
		c.texts.ReserveData(c.last - c.texts.DataLen())
	}
}

// remember keeps the sizes of the batch that ends.
func (c *column) remember() {
	switch {
	case c.texts != nil:
		c.rows, c.last = c.texts.Len(), c.texts.DataLen()
	case c.lists != nil:
		c.rows = c.lists.Len()
	case c.maps != nil:
		c.rows = c.maps.Len()
	case c.structs != nil:
		c.rows = c.structs.Len()
	}
	for _, f := range c.fields {
		f.remember()
	}
}
