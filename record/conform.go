package record

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Conform lays a batch out as s.Arrow: columns are matched by name, a missing
// nullable column is null, each has as many values as the batch has rows, and
// every value is one of its type. Of s.Arrow's types only what does not matter may
// differ (sameType). The error names the column. The caller releases the result.
func Conform(s *Schema, rec arrow.RecordBatch) (arrow.RecordBatch, error) {
	if rec.Schema() == s.Arrow && !long(rec) {
		if err := check(s, rec); err != nil {
			return nil, err
		}
		rec.Retain()
		return rec, nil
	}
	fields, cols := s.Arrow.Fields(), make([]arrow.Array, len(s.Columns))
	taken := 0
	for i, f := range fields {
		at := rec.Schema().FieldIndices(f.Name)
		switch {
		case len(at) > 1:
			return nil, fmt.Errorf("column %q is in the batch %d times", f.Name, len(at))
		case len(at) == 0 && !f.Nullable && rec.NumRows() > 0:
			return nil, fmt.Errorf("column %q is not null, and not in the batch", f.Name)
		case len(at) == 0:
			cols[i] = array.MakeArrayOfNull(memory.DefaultAllocator, f.Type, int(rec.NumRows()))
			defer cols[i].Release()
			continue
		}
		col := rec.Column(at[0])
		if !sameType(col.DataType(), f.Type) {
			return nil, fmt.Errorf("column %q has Arrow type %s, the table's %s wants %s", f.Name, col.DataType(), s.Columns[i].Type, f.Type)
		}
		cols[i], fields[i].Type = col, col.DataType()
		if int64(col.Len()) > rec.NumRows() {
			cols[i] = array.NewSlice(col, 0, rec.NumRows())
			defer cols[i].Release()
		}
		taken++
	}
	if taken != int(rec.NumCols()) {
		for _, f := range rec.Schema().Fields() {
			if len(s.Arrow.FieldIndices(f.Name)) == 0 {
				return nil, fmt.Errorf("the batch has a column %q, which the table has not", f.Name)
			}
		}
	}
	out := array.NewRecordBatch(arrow.NewSchema(fields, nil), cols, rec.NumRows())
	if err := check(s, out); err != nil {
		out.Release()
		return nil, err
	}
	return out, nil
}

// long says whether a column has values behind the batch's last row.
func long(rec arrow.RecordBatch) bool {
	for _, col := range rec.Columns() {
		if int64(col.Len()) > rec.NumRows() {
			return true
		}
	}
	return false
}

// sameType compares types by structure: names of list elements and nullability
// of nested fields do not matter.
func sameType(a, b arrow.DataType) bool {
	if a.ID() != b.ID() {
		return false
	}
	switch a := a.(type) {
	case *arrow.TimestampType:
		// Microseconds since 1970 mean the same in every zone; without a zone
		// they are not an instant.
		return a.Unit == arrow.Microsecond && a.TimeZone != ""
	case *arrow.Decimal128Type:
		o := b.(*arrow.Decimal128Type)
		return a.Precision == o.Precision && a.Scale == o.Scale
	case *arrow.ListType:
		return sameType(a.Elem(), b.(*arrow.ListType).Elem())
	case *arrow.MapType:
		o := b.(*arrow.MapType)
		return sameType(a.KeyType(), o.KeyType()) && sameType(a.ItemType(), o.ItemType())
	case *arrow.StructType:
		o := b.(*arrow.StructType)
		if a.NumFields() != o.NumFields() {
			return false
		}
		for i := range a.Fields() {
			if a.Field(i).Name != o.Field(i).Name || !sameType(a.Field(i).Type, o.Field(i).Type) {
				return false
			}
		}
	}
	return true
}

// check refuses values that the table's columns cannot have.
func check(s *Schema, rec arrow.RecordBatch) error {
	if err := notNull(s, rec); err != nil {
		return err
	}
	return checkValues(s, rec)
}

func notNull(s *Schema, rec arrow.RecordBatch) error {
	for i, c := range s.Columns {
		if c.NotNull && rec.Column(i).NullN() > 0 {
			return fmt.Errorf("column %q is not null, and null in %d rows of the batch", c.Name, rec.Column(i).NullN())
		}
	}
	return nil
}
