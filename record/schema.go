package record

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/hivesink/hivesink/hivetype"
)

// Schema is the schema of a table's records.
type Schema struct {
	Columns   []hivetype.Field // all columns of the table, in order
	Data      []hivetype.Field // the columns of its data files: Columns less identity partition columns
	DataIndex []int            // Data[i] is Columns[DataIndex[i]]
	Arrow     *arrow.Schema    // of Batch.Record: one field for each of Columns
	ID        string           // 16 hex digits: the same columns have the same id
	Old       OldTypes         // set by Typed
}

// OldTypes are physical types of data files for readers that do not know the
// others: Hive before 4, Impala.
type OldTypes struct {
	Int96         bool // timestamps: INT96, not INT64
	FixedDecimals bool // decimals: FIXED_LEN_BYTE_ARRAY, not INT32 and INT64
}

// Typed is s with other physical types, and so with another id: what was
// written with one is converted before it is merged with the other.
func (s *Schema) Typed(old OldTypes) *Schema {
	if old == (OldTypes{}) {
		return s
	}
	out := *s
	out.Old = old
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %v", s.ID, old))
	out.ID = hex.EncodeToString(sum[:8])
	return &out
}

// NewSchema builds the schema of a table whose identity partition columns are
// those named (lower case).
func NewSchema(columns []hivetype.Field, identity []string) (*Schema, error) {
	s := &Schema{Columns: columns}
	part := make(map[string]bool, len(identity))
	for _, n := range identity {
		part[n] = true
	}
	seen := make(map[string]bool, len(columns))
	fields := make([]arrow.Field, len(columns))
	text := ""
	for i, c := range columns {
		if seen[c.Name] {
			return nil, fmt.Errorf("column %q is listed twice (Hive does not tell upper from lower case)", c.Name)
		}
		seen[c.Name] = true
		fields[i] = arrow.Field{Name: c.Name, Type: ArrowType(c.Type), Nullable: !c.NotNull}
		if part[c.Name] {
			continue
		}
		s.Data = append(s.Data, c)
		s.DataIndex = append(s.DataIndex, i)
		text += c.Name + " " + c.Type.String()
		if c.NotNull {
			text += " not null"
		}
		text += "\n"
	}
	for _, n := range identity {
		if !seen[n] {
			return nil, fmt.Errorf("partition column %q is not among the columns", n)
		}
	}
	if len(s.Data) == 0 {
		return nil, fmt.Errorf("every column is a partition column: data files would have no columns")
	}
	s.Arrow = arrow.NewSchema(fields, nil)
	sum := sha256.Sum256([]byte(text))
	s.ID = hex.EncodeToString(sum[:8])
	return s, nil
}

// ArrowType is the Arrow type a Hive type has in memory.
func ArrowType(t *hivetype.Type) arrow.DataType {
	switch t.Kind {
	case hivetype.Boolean:
		return arrow.FixedWidthTypes.Boolean
	case hivetype.TinyInt:
		return arrow.PrimitiveTypes.Int8
	case hivetype.SmallInt:
		return arrow.PrimitiveTypes.Int16
	case hivetype.Int:
		return arrow.PrimitiveTypes.Int32
	case hivetype.BigInt:
		return arrow.PrimitiveTypes.Int64
	case hivetype.Float:
		return arrow.PrimitiveTypes.Float32
	case hivetype.Double:
		return arrow.PrimitiveTypes.Float64
	case hivetype.Decimal:
		return &arrow.Decimal128Type{Precision: int32(t.Precision), Scale: int32(t.Scale)}
	case hivetype.String, hivetype.Varchar, hivetype.Char:
		return arrow.BinaryTypes.String
	case hivetype.Binary:
		return arrow.BinaryTypes.Binary
	case hivetype.Date:
		return arrow.FixedWidthTypes.Date32
	case hivetype.Timestamp:
		return arrow.FixedWidthTypes.Timestamp_us
	case hivetype.Array:
		return arrow.ListOfField(arrow.Field{Name: "element", Type: ArrowType(t.Elem), Nullable: true})
	case hivetype.Map:
		return arrow.MapOf(ArrowType(t.Key), ArrowType(t.Elem))
	case hivetype.Struct:
		fields := make([]arrow.Field, len(t.Fields))
		for i, f := range t.Fields {
			fields[i] = arrow.Field{Name: f.Name, Type: ArrowType(f.Type), Nullable: !f.NotNull}
		}
		return arrow.StructOf(fields...)
	}
	panic(fmt.Sprintf("record: no Arrow type for Hive type kind %d", t.Kind))
}
