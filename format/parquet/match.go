package parquetfile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/hivesink/hivesink/hivetype"
)

// source says where the values of a leaf come from in a file.
type source struct {
	column *parquet.Column // nil: the file does not have it
	phys   physical        // in the file
	width  int             // of physFixed
	int96  bool            // physFixed is INT96
	// ours translates the file's definition levels; badLevel marks those that
	// cannot be.
	ours []uint8
	// When the file lacks a field of a struct that it has: like is another
	// leaf of the struct, whose levels say where the struct is there;
	// likeDef and likeRep are the struct's own.
	like             int
	likeDef, likeRep uint8
}

const badLevel = 0xff

// sources matches the leaves with the columns of a file by name (F3).
func (s *Schema) sources(f *File) ([]source, error) {
	out := make([]source, len(s.leaves))
	for i := range s.leaves {
		l := &s.leaves[i]
		if f.typ.lacks(l.path[0]) {
			out[i] = source{like: -1} // null in every row
			continue
		}
		src, err := l.source(f.typ.root)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", strings.Join(s.leaves[i].path, "."), err)
		}
		if src.column != nil && f.typ.strange[f.typ.at[src.column.Index()]] {
			return nil, fmt.Errorf("column %s: the file has a type that is not known here", strings.Join(s.leaves[i].path, "."))
		}
		out[i] = src
	}
	for i := range out {
		if out[i].column == nil && !f.typ.lacks(s.leaves[i].path[0]) {
			if err := s.matchMissing(out, i, f.typ.root); err != nil {
				return nil, fmt.Errorf("column %s: %w", strings.Join(s.leaves[i].path, "."), err)
			}
		}
	}
	return out, nil
}

// source finds a leaf's column and translates its levels. A name that is
// missing leaves column nil.
func (l *leafType) source(root *parquet.Column) (source, error) {
	src := source{like: -1}
	col, def := root, uint8(0)
	for depth, name := range l.path {
		if col = col.Column(name); col == nil {
			return src, nil
		}
		step := l.steps[depth]
		if col.Repeated() != (step == stepRepeated) {
			return src, fmt.Errorf("the file nests %s otherwise", strings.Join(l.path[:depth+1], "."))
		}
		if !col.Required() { // one more level in the file: absent here is our level before
			if step == stepRequired {
				src.ours = append(src.ours, badLevel)
			} else {
				src.ours = append(src.ours, def)
			}
		}
		if step != stepRequired {
			def++
		}
	}
	src.ours = append(src.ours, def)
	if !col.Leaf() {
		return src, fmt.Errorf("the file has a group of columns")
	}
	if err := l.matchType(col, &src); err != nil {
		return src, err
	}
	src.column = col
	return src, nil
}

// matchMissing settles what is missing below a column that is there: a field of
// a struct is null where the struct is. A whole column that is missing is null.
func (s *Schema) matchMissing(out []source, i int, root *parquet.Column) error {
	path := s.leaves[i].path
	depth, col := 0, root
	for next := col.Column(path[depth]); next != nil; next = col.Column(path[depth]) {
		depth, col = depth+1, next
	}
	if s.leaves[i].steps[depth] == stepRequired {
		return fmt.Errorf("the file has %s without keys", strings.Join(path[:depth], "."))
	}
	for k := range s.leaves {
		other := s.leaves[k].path
		if out[k].column == nil || len(other) <= depth || !slices.Equal(other[:depth], path[:depth]) {
			continue
		}
		if strings.HasPrefix(col.Type().String(), "LIST") || strings.HasPrefix(col.Type().String(), "MAP") {
			break
		}
		out[i].like = k
		for _, step := range s.leaves[i].steps[:depth] {
			if step != stepRequired {
				out[i].likeDef++
			}
			if step == stepRepeated {
				out[i].likeRep++
			}
		}
		return nil
	}
	return fmt.Errorf("the file has %s with nothing in common below it", strings.Join(path[:depth], "."))
}

// matchType checks that the file's values can become ours without loss: the
// same type, or a narrower number (F3).
func (l *leafType) matchType(col *parquet.Column, src *source) error {
	var err error
	if src.phys, src.width, err = physicalOfColumn(col); err != nil {
		return err
	}
	typ := col.Type()
	src.int96 = typ.Kind() == parquet.Int96
	var logical format.LogicalTypeValue
	if lt := typ.LogicalType(); lt != nil {
		logical = lt.Value
	}
	if !l.accepts(src, logical) {
		return fmt.Errorf("the file has type %s, the table %s", typ, l.typ)
	}
	return nil
}

// int96Width is the width of the deprecated type of old timestamps, which moves
// from file to file like any other fixed width.
const int96Width = 12

// physicalOfColumn is how a file has a leaf's values.
func physicalOfColumn(col *parquet.Column) (physical, int, error) {
	switch typ := col.Type(); typ.Kind() {
	case parquet.Boolean:
		return physBool, 0, nil
	case parquet.Int32:
		return physInt32, 0, nil
	case parquet.Int64:
		return physInt64, 0, nil
	case parquet.Float:
		return physFloat, 0, nil
	case parquet.Double:
		return physDouble, 0, nil
	case parquet.ByteArray:
		return physBytes, 0, nil
	case parquet.FixedLenByteArray:
		return physFixed, typ.Length(), nil
	case parquet.Int96:
		return physFixed, int96Width, nil
	default:
		return 0, 0, fmt.Errorf("the file has physical type %s", typ.Kind())
	}
}

// accepts says whether a file's type is the column's or widens to it.
func (l *leafType) accepts(src *source, logical format.LogicalTypeValue) bool {
	switch l.typ.Kind {
	case hivetype.TinyInt, hivetype.SmallInt, hivetype.Int, hivetype.BigInt:
		bits := map[physical]int{physInt32: 32, physInt64: 64}[src.phys]
		if lt, ok := logical.(*format.IntType); ok && lt.IsSigned {
			bits = int(lt.BitWidth)
		} else if logical != nil {
			return false
		}
		return bits > 0 && bits <= map[hivetype.Kind]int{hivetype.TinyInt: 8, hivetype.SmallInt: 16, hivetype.Int: 32, hivetype.BigInt: 64}[l.typ.Kind]
	case hivetype.Decimal:
		lt, ok := logical.(*format.DecimalType)
		return ok && int(lt.Scale) == l.typ.Scale && int(lt.Precision) <= l.typ.Precision &&
			(src.phys == physInt32 || src.phys == physInt64 || src.phys == physFixed && src.width > 0)
	case hivetype.String, hivetype.Varchar, hivetype.Char:
		_, ok := logical.(*format.StringType)
		return ok && src.phys == physBytes
	case hivetype.Date:
		_, ok := logical.(*format.DateType)
		return ok && src.phys == physInt32
	case hivetype.Timestamp:
		if src.int96 {
			return true
		}
		lt, ok := logical.(*format.TimestampType)
		if !ok || !lt.IsAdjustedToUTC || src.phys != physInt64 {
			return false
		}
		_, ok = lt.Unit.Value.(*format.MicroSeconds)
		return ok
	case hivetype.Double:
		return logical == nil && (src.phys == physDouble || src.phys == physFloat)
	case hivetype.Binary:
		_, text := logical.(*format.StringType)
		return src.phys == physBytes && (logical == nil || text)
	}
	return logical == nil && src.phys == l.phys
}
