package parquetfile

import (
	"fmt"
	"slices"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/format"
)

// fileSchema is the schema of a file, whoever wrote it and whatever types it has:
// what a merge of such files writes again. It has no record schema: its rows
// never become batches.
func fileSchema(f *File) (s *Schema, err error) {
	defer func() { // the library panics at a column annotated as a group (F7)
		if p := recover(); p != nil {
			s, err = nil, fmt.Errorf("its footer is damaged: %v", p)
		}
	}()
	all := f.typ.elements
	s = &Schema{elements: all}
	for _, i := range f.typ.at {
		s.parquetType = append(s.parquetType, all[i].Type.V)
	}
	if err := s.addLeaves(f.typ.root, place{}, 0, 0); err != nil {
		return nil, err
	}
	if len(s.leaves) != len(f.typ.at) {
		return nil, fmt.Errorf("its footer is damaged: %d columns, %d of them with a type", len(s.leaves), len(f.typ.at))
	}
	for i := range s.leaves {
		s.leaves[i].order = f.typ.orders[i]
		s.leaves[i].text = s.leaves[i].phys == physBytes && isText(&all[f.typ.at[i]])
	}
	return s, nil
}

// addLeaves adds the leaves below a column of a file.
func (s *Schema) addLeaves(col *parquet.Column, at place, def, rep uint8) error {
	if col.Leaf() {
		phys, width, err := physicalOfColumn(col)
		if err != nil {
			return fmt.Errorf("column %v: %w", at.path, err)
		}
		s.leaves = append(s.leaves, leafType{path: at.path, steps: at.steps, phys: phys, width: width, maxDef: def, maxRep: rep})
		return nil
	}
	for _, c := range col.Columns() {
		step, d, r := stepRequired, def, rep
		switch {
		case c.Repeated():
			step, d, r = stepRepeated, def+1, rep+1
		case !c.Required():
			step, d = stepOptional, def+1
		}
		if err := s.addLeaves(c, at.below(c.Name(), step), d, r); err != nil {
			return err
		}
	}
	return nil
}

// orderOf is the order that the format's specification gives to the type of an
// element.
func (t *fileType) orderOf(i int) order {
	e := &t.elements[i]
	converted, has := deprecated.ConvertedType(-1), e.ConvertedType.Valid
	if has {
		converted = e.ConvertedType.V
	}
	unsigned := slices.Contains([]deprecated.ConvertedType{deprecated.Uint8, deprecated.Uint16, deprecated.Uint32, deprecated.Uint64}, converted)
	decimal := converted == deprecated.Decimal
	known := !t.strange[i]
	switch lt := e.LogicalType.Value.(type) {
	case nil:
	case *format.IntType:
		unsigned = !lt.IsSigned
	case *format.DecimalType:
		decimal = true
	case *format.StringType, *format.EnumType, *format.JsonType, *format.BsonType, *format.UUIDType,
		*format.DateType, *format.TimeType, *format.TimestampType:
	default:
		known = false
	}
	switch {
	case !known, converted == deprecated.Interval, e.Type.V == format.Int96:
		return orderNone
	case unsigned:
		return orderUnsigned
	case e.Type.V == format.ByteArray && decimal:
		return orderNone // numbers of different lengths
	case e.Type.V == format.FixedLenByteArray && !decimal:
		return orderUnsigned
	}
	return orderNatural
}

// isText says whether bytes are UTF-8.
func isText(e *format.SchemaElement) bool {
	switch e.LogicalType.Value.(type) {
	case *format.StringType, *format.EnumType, *format.JsonType:
		return true
	}
	return e.ConvertedType.Valid && (e.ConvertedType.V == deprecated.UTF8 || e.ConvertedType.V == deprecated.Enum || e.ConvertedType.V == deprecated.Json)
}
