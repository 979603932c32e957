package parquetfile

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/hivesink/hivesink/hivetype"
	"github.com/hivesink/hivesink/record"
)

// Schema is the schema of a table's data files.
type Schema struct {
	record *record.Schema
	pq     *parquet.Schema
	leaves []leafType
	cols   []column // one for each data column
	dates  bool     // there are dates in it

	// As footers have it.
	elements    []format.SchemaElement
	orders      []format.ColumnOrder
	parquetType []format.Type // of each leaf

	benches sync.Map // WriterOptions → *sync.Pool of *bench: of rewrites, idle
}

// physical is how a leaf's values are kept in memory.
type physical uint8

const (
	physBool physical = iota
	physInt32
	physInt64
	physFloat
	physDouble
	physBytes
	physFixed // fixed width, in one buffer
)

// step is what an element of a leaf's path adds to the levels.
type step uint8

const (
	stepOptional step = iota // a definition level
	stepRepeated             // a definition and a repetition level
	stepRequired             // nothing: the key of a map
)

type leafType struct {
	typ    *hivetype.Type
	path   []string
	steps  []step // one for each element of path
	phys   physical
	width  int  // of physFixed
	text   bool // physBytes that are UTF-8
	order  order
	maxDef uint8
	maxRep uint8
}

// order is how a column's values compare (F8).
type order uint8

const (
	orderNatural  order = iota // signed numbers, bytes by byte, physFixed as two's complement
	orderUnsigned              // numbers without sign, physFixed byte by byte
	orderNone                  // not defined, or not known here: no bounds are written
)

// column is a data column as a tree whose leaves are numbered.
type column struct {
	typ      *hivetype.Type
	leaf     int   // number of the first leaf below
	def      uint8 // definition level when present
	rep      uint8
	children []column
}

// NewSchema compiles the data columns of a table.
func NewSchema(s *record.Schema) (*Schema, error) {
	out := &Schema{record: s}
	fields := make([]parquet.Field, len(s.Data))
	for i, c := range s.Data {
		n, err := out.node(c.Type)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", c.Name, err)
		}
		fields[i] = field{parquet.Optional(n), c.Name}
		col, err := out.compile(c.Type, place{[]string{c.Name}, []step{stepOptional}}, 1, 0)
		if err != nil {
			return nil, err
		}
		out.cols = append(out.cols, col)
	}
	out.pq = parquet.NewSchema("hive_schema", group{fields: fields})
	return out, out.describe()
}

// ID is the id of the columns, record.Schema.ID.
func (s *Schema) ID() string { return s.record.ID }

// NumLeaves is how many column chunks a row group has.
func (s *Schema) NumLeaves() int { return len(s.leaves) }

// said is the key/value metadata of a file: what it is asked to say, and that its
// dates are of the proleptic Gregorian calendar. Without that word Hive 4 takes
// those before 1582-10-15 for Julian and shows others.
func (s *Schema) said(meta map[string]string) map[string]string {
	if !s.dates {
		return meta
	}
	out := map[string]string{"writer.date.proleptic": "true"}
	maps.Copy(out, meta)
	return out
}

// describe has the library render the schema as footers have it: in an empty
// file. The library tells a length of every type, in bits; Hive (3.1.3, 4.0.1) then
// takes a column of the file and the same column of its table for different ones,
// and reads nothing. It is said of FIXED_LEN_BYTE_ARRAY only.
func (s *Schema) describe() error {
	var empty bytes.Buffer
	if err := parquet.NewGenericWriter[any](&empty, s.pq).Close(); err != nil {
		return fmt.Errorf("render the Parquet schema: %w", err)
	}
	f, err := parquet.OpenFile(bytes.NewReader(empty.Bytes()), int64(empty.Len()))
	if err != nil {
		return fmt.Errorf("render the Parquet schema: %w", err)
	}
	s.elements, s.orders = f.Metadata().Schema, f.Metadata().ColumnOrders
	for i := range s.elements {
		e := &s.elements[i]
		if e.Type.Valid {
			s.parquetType = append(s.parquetType, e.Type.V)
		}
		if e.Type.V != format.FixedLenByteArray {
			e.TypeLength = thrift.Null[int32]{}
		}
	}
	return nil
}

// place is where in the schema a node is.
type place struct {
	path  []string
	steps []step
}

func (p place) below(name string, s step) place {
	return place{append(slices.Clip(p.path), name), append(slices.Clip(p.steps), s)}
}

// compile numbers the leaves below a present value at level def.
func (s *Schema) compile(t *hivetype.Type, at place, def, rep uint8) (column, error) {
	c := column{typ: t, leaf: len(s.leaves), def: def, rep: rep}
	sub := func(t *hivetype.Type, at place, def, rep uint8) error {
		child, err := s.compile(t, at, def, rep)
		c.children = append(c.children, child)
		return err
	}
	var err error
	switch t.Kind {
	case hivetype.Array:
		err = sub(t.Elem, at.below("list", stepRepeated).below("element", stepOptional), def+2, rep+1)
	case hivetype.Map:
		entry := at.below("key_value", stepRepeated)
		if err = sub(t.Key, entry.below("key", stepRequired), def+1, rep+1); err == nil {
			err = sub(t.Elem, entry.below("value", stepOptional), def+2, rep+1)
		}
	case hivetype.Struct:
		for _, f := range t.Fields {
			if err = sub(f.Type, at.below(f.Name, stepOptional), def+1, rep); err != nil {
				break
			}
		}
	default:
		phys, width := s.physicalOf(t)
		s.leaves = append(s.leaves, leafType{typ: t, path: at.path, steps: at.steps, phys: phys, width: width,
			maxDef: def, maxRep: rep, text: phys == physBytes && t.Kind != hivetype.Binary})
		s.dates = s.dates || t.Kind == hivetype.Date
		if t.Kind == hivetype.Timestamp && phys == physFixed {
			s.leaves[len(s.leaves)-1].order = orderNone // the format gives INT96 none
		}
	}
	return c, err
}

func (s *Schema) physicalOf(t *hivetype.Type) (physical, int) {
	switch t.Kind {
	case hivetype.Boolean:
		return physBool, 0
	case hivetype.TinyInt, hivetype.SmallInt, hivetype.Int, hivetype.Date:
		return physInt32, 0
	case hivetype.BigInt:
		return physInt64, 0
	case hivetype.Timestamp:
		if s.record.Old.Int96 {
			return physFixed, int96Width
		}
		return physInt64, 0
	case hivetype.Float:
		return physFloat, 0
	case hivetype.Double:
		return physDouble, 0
	case hivetype.Decimal:
		switch {
		case s.record.Old.FixedDecimals:
		case t.Precision <= 9:
			return physInt32, 0
		case t.Precision <= 18:
			return physInt64, 0
		}
		return physFixed, decimalWidth(t.Precision)
	}
	return physBytes, 0
}

// decimalWidth is the number of bytes that hold every decimal of a precision.
func decimalWidth(precision int) int {
	// 10^p - 1 needs floor(p * log2(10)) + 1 bits and a sign.
	bits := precision*217706/65536 + 2
	return (bits + 7) / 8
}

// node is the Parquet node of a present value (F4).
func (s *Schema) node(t *hivetype.Type) (parquet.Node, error) {
	switch t.Kind {
	case hivetype.Array:
		e, err := s.node(t.Elem)
		if err != nil {
			return nil, err
		}
		return parquet.List(parquet.Optional(e)), nil
	case hivetype.Map:
		k, err := s.node(t.Key)
		if err != nil {
			return nil, err
		}
		v, err := s.node(t.Elem)
		if err != nil {
			return nil, err
		}
		return parquet.Map(k, parquet.Optional(v)), nil
	case hivetype.Struct:
		fields := make([]parquet.Field, len(t.Fields))
		for i, f := range t.Fields {
			n, err := s.node(f.Type)
			if err != nil {
				return nil, err
			}
			fields[i] = field{parquet.Optional(n), f.Name}
		}
		return group{fields: fields}, nil
	}
	return s.leafNode(t)
}

func (s *Schema) leafNode(t *hivetype.Type) (parquet.Node, error) {
	switch t.Kind {
	case hivetype.Boolean:
		return parquet.Leaf(parquet.BooleanType), nil
	case hivetype.TinyInt:
		return parquet.Int(8), nil
	case hivetype.SmallInt:
		return parquet.Int(16), nil
	case hivetype.Int:
		return parquet.Int(32), nil
	case hivetype.BigInt:
		return parquet.Int(64), nil
	case hivetype.Float:
		return parquet.Leaf(parquet.FloatType), nil
	case hivetype.Double:
		return parquet.Leaf(parquet.DoubleType), nil
	case hivetype.Decimal:
		phys, width := s.physicalOf(t)
		base := parquet.Int32Type
		switch phys {
		case physInt64:
			base = parquet.Int64Type
		case physFixed:
			base = parquet.FixedLenByteArrayType(width)
		}
		return parquet.Decimal(t.Scale, t.Precision, base), nil
	case hivetype.String, hivetype.Varchar, hivetype.Char:
		return parquet.String(), nil
	case hivetype.Binary:
		return parquet.Leaf(parquet.ByteArrayType), nil
	case hivetype.Date:
		return parquet.Date(), nil
	case hivetype.Timestamp:
		if s.record.Old.Int96 {
			return parquet.Leaf(parquet.Int96Type), nil
		}
		return parquet.Timestamp(parquet.Microsecond), nil
	}
	return nil, fmt.Errorf("type %s has no Parquet type", t)
}

// group is a struct whose fields keep their order (the library's Group sorts
// them by name).
type group struct {
	parquet.Group
	fields []parquet.Field
}

func (g group) Fields() []parquet.Field     { return g.fields }
func (g group) Encoding() encoding.Encoding { return nil }

func (g group) GoType() reflect.Type {
	m := make(parquet.Group, len(g.fields))
	for _, f := range g.fields {
		m[f.Name()] = f
	}
	return m.GoType()
}

type field struct {
	parquet.Node
	name string
}

func (f field) Name() string { return f.name }

func (f field) Value(base reflect.Value) reflect.Value { return base.FieldByName(f.name) }
