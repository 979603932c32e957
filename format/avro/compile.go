package avrorow

import (
	"fmt"
	"strings"

	"github.com/twmb/avro"

	"github.com/hivesink/hivesink/format/text"
	"github.com/hivesink/hivesink/hivetype"
)

// op says what to do with the next value.
type op uint8

const (
	opSkip op = iota // no column wants it
	opBad            // the column cannot take it
	opNull
	opBool
	opLong    // int and long into integers
	opDate    // days
	opTime    // int or long into a timestamp
	opLocal   // the same, on the clock of a zone
	opFloat   // float into float or double
	opDouble  // double
	opToFloat // int and long into float or double
	opDecimal // bytes or fixed
	opToDec   // int and long into decimal
	opText    // string and bytes
	opBinary
	opFixed
	opSymbol // enum
	opUUID   // fixed(16) into text
	opNumber // int and long into text
	opArray
	opMap
	opRecord
	opUnion
)

// kind is how a value is encoded.
type kind uint8

const (
	kNull kind = iota
	kBool
	kLong // int, long and the index of an enum
	kFloat
	kDouble
	kBytes // string, bytes
	kFixed
	kArray
	kMap
	kRecord
	kUnion
)

// node is a type of the writer's schema, and what its values become.
type node struct {
	op      op
	kind    kind
	col     textval.Column
	name    string   // of the writer's type
	size    int      // fixed
	unit    int64    // opTime: units in a second
	scaling *scaling // opDecimal, opToDec
	below   []*node
	empty   bool // its values take no bytes
	settled settled
	target  []int32 // opRecord: the slot of each field, from that of the first; -1: skipped
	ignore  int     // opRecord: fields without a column
	symbol  [][]byte
}

// Schema is a writer's schema compiled against the columns of a table.
type Schema struct {
	root   *node
	column []int32 // of each field
	ignore int
}

// compiler turns types into nodes.
type compiler struct {
	named map[string]*avro.SchemaNode
	skips map[string]*node // by full name, so that what refers to itself ends
	known map[place]*node  // records, so that what is there in many ways is compiled once
	err   error
}

// place is a record of the writer's in a column.
type place struct {
	name string
	col  textval.Column
}

// Compile reads a writer's schema, a record; others are the schemas it refers
// to, by the order in which they need each other.
func (d *Decoder) Compile(text string, others ...string) (*Schema, error) {
	cache := new(avro.SchemaCache)
	c := &compiler{named: make(map[string]*avro.SchemaNode), skips: make(map[string]*node), known: make(map[place]*node)}
	for _, o := range others {
		s, err := cache.Parse(o)
		if err != nil {
			return nil, fmt.Errorf("a schema that is referred to: %w", err)
		}
		c.collect(s.Root(), "")
	}
	s, err := cache.Parse(text)
	if err != nil {
		return nil, err
	}
	root := s.Root()
	c.collect(root, "")
	root = c.resolve(root)
	if root.Type != "record" {
		return nil, fmt.Errorf("the schema is a %s, not a record", root.Type)
	}
	out := &Schema{root: &node{op: opRecord, kind: kRecord, name: root.Name}}
	for i := range root.Fields {
		f := &root.Fields[i]
		at := int32(d.index(f.Name))
		if at < 0 {
			out.root.below = append(out.root.below, c.skip(&f.Type))
			out.ignore++
		} else {
			out.root.below = append(out.root.below, c.node(&f.Type, d.rows.At(int(at))))
		}
		out.column = append(out.column, at)
	}
	if c.err != nil {
		return nil, c.err
	}
	if err := settle(out.root); err != nil {
		return nil, err
	}
	return out, nil
}

func fullName(n *avro.SchemaNode) string {
	if n.Namespace == "" || strings.Contains(n.Name, ".") {
		return n.Name
	}
	return n.Namespace + "." + n.Name
}

// collect notes the definitions of named types, and gives those that are used
// again their full names. space is the namespace around n.
func (c *compiler) collect(n *avro.SchemaNode, space string) {
	switch n.Type {
	case "record", "error", "enum", "fixed":
		name := fullName(n)
		if _, seen := c.named[name]; seen {
			return // resolve takes the one that is noted
		}
		c.named[name] = n
		space = name[:max(0, strings.LastIndexByte(name, '.'))]
		for i := range n.Fields {
			c.collect(&n.Fields[i].Type, space)
		}
	case "array":
		c.collect(n.Items, space)
	case "map":
		c.collect(n.Values, space)
	case "union":
		for i := range n.Branches {
			c.collect(&n.Branches[i], space)
		}
	default:
		// A name without a namespace is of the one around it; where that has none
		// such, of none, as Avro for Java reads it.
		if _, simple := kinds[n.Type]; simple || space == "" || strings.Contains(n.Type, ".") {
			return
		}
		if _, near := c.named[space+"."+n.Type]; near {
			n.Type = space + "." + n.Type
		}
	}
}

// resolve follows a reference to a named type.
func (c *compiler) resolve(n *avro.SchemaNode) *avro.SchemaNode {
	switch n.Type {
	case "record", "error", "enum", "fixed":
		if t, ok := c.named[fullName(n)]; ok {
			n = t // the same, whose references have their full names
		}
	default:
		if t, ok := c.named[n.Type]; ok {
			n = t
		}
	}
	if n.Type == "error" {
		e := *n
		e.Type = "record"
		return &e
	}
	return n
}

var kinds = map[string]kind{"null": kNull, "boolean": kBool, "int": kLong, "long": kLong, "enum": kLong, "float": kFloat, "double": kDouble,
	"string": kBytes, "bytes": kBytes, "fixed": kFixed, "array": kArray, "map": kMap, "record": kRecord, "union": kUnion}

// skip passes over values of a type.
func (c *compiler) skip(n *avro.SchemaNode) *node {
	n = c.resolve(n)
	full := fullName(n)
	if n.Type == "record" {
		if done := c.skips[full]; done != nil {
			return done
		}
	}
	k, ok := kinds[n.Type]
	if !ok && c.err == nil {
		c.err = fmt.Errorf("the schema uses the type %q and does not define it", n.Type)
	}
	out := &node{op: opSkip, kind: k, name: n.Name, size: n.Size}
	if n.Type == "record" {
		c.skips[full] = out
	}
	switch n.Type {
	case "array":
		out.below = []*node{c.skip(n.Items)}
	case "map":
		out.below = []*node{c.skip(n.Values)}
	case "record":
		for i := range n.Fields {
			out.below = append(out.below, c.skip(&n.Fields[i].Type))
		}
	case "union":
		for i := range n.Branches {
			out.below = append(out.below, c.skip(&n.Branches[i]))
		}
	}
	return out
}

// node reads values of a type into a column.
func (c *compiler) node(n *avro.SchemaNode, col textval.Column) *node {
	n = c.resolve(n)
	t := col.Type()
	bad := c.skip(n)
	switch {
	case n.Type == "union":
		out := &node{op: opUnion, kind: kUnion, col: col}
		for i := range n.Branches {
			out.below = append(out.below, c.node(&n.Branches[i], col))
		}
		return out
	case n.Type == "null":
		return &node{op: opNull, kind: kNull, col: col}
	case n.Type == "array" && t.Kind == hivetype.Array:
		return &node{op: opArray, kind: kArray, col: col, below: []*node{c.node(n.Items, col.Below(0))}}
	case n.Type == "map" && t.Kind == hivetype.Map:
		return &node{op: opMap, kind: kMap, col: col, below: []*node{c.node(n.Values, col.Below(1))}}
	case n.Type == "record" && t.Kind == hivetype.Struct:
		return c.record(n, col)
	}
	if o, unit := scalar(n, col); o != opBad {
		out := &node{op: o, kind: kinds[n.Type], col: col, name: n.Type, size: n.Size, unit: unit}
		if o == opDecimal || o == opToDec {
			out.scaling = newScaling(n.Scale, t.Precision, t.Scale)
		}
		for _, s := range n.Symbols {
			out.symbol = append(out.symbol, []byte(s))
		}
		return out
	}
	cannot := *bad
	cannot.op, cannot.col, cannot.name = opBad, col, n.Type
	switch {
	case n.LogicalType == "decimal" && n.Scale > maxScale:
		cannot.name += fmt.Sprintf(" (decimal of scale %d)", n.Scale)
	case n.LogicalType != "":
		cannot.name += " (" + n.LogicalType + ")"
	}
	return &cannot
}

func (c *compiler) record(n *avro.SchemaNode, col textval.Column) *node {
	at := place{fullName(n), col}
	if done := c.known[at]; done != nil {
		return done
	}
	out := &node{op: opRecord, kind: kRecord, col: col, name: n.Name}
	c.known[at] = out
	fields := col.Type().Fields
	for i := range n.Fields {
		f := &n.Fields[i]
		at := int32(-1)
		for k := range fields {
			if strings.EqualFold(fields[k].Name, f.Name) {
				at = int32(k)
			}
		}
		out.target = append(out.target, at)
		if at < 0 {
			out.ignore++
			out.below = append(out.below, c.skip(&f.Type))
		} else {
			out.below = append(out.below, c.node(&f.Type, col.Below(int(at))))
		}
	}
	return out
}

// perSecond are the units of the logical types of time.
var perSecond = map[string]int64{"timestamp-millis": 1e3, "timestamp-micros": 1e6, "timestamp-nanos": 1e9,
	"local-timestamp-millis": 1e3, "local-timestamp-micros": 1e6, "local-timestamp-nanos": 1e9}

// scalar chooses how a simple type becomes a value of a column.
func scalar(n *avro.SchemaNode, col textval.Column) (op, int64) {
	k := col.Type().Kind
	isText := k == hivetype.String || k == hivetype.Varchar || k == hivetype.Char
	isInteger := k == hivetype.TinyInt || k == hivetype.SmallInt || k == hivetype.Int || k == hivetype.BigInt
	simple := k != hivetype.Array && k != hivetype.Map && k != hivetype.Struct
	switch n.Type {
	case "boolean":
		if k == hivetype.Boolean {
			return opBool, 0
		}
	case "int", "long":
		unit, timed := perSecond[n.LogicalType]
		switch {
		case timed && k == hivetype.Timestamp && strings.HasPrefix(n.LogicalType, "local"):
			return opLocal, unit
		case timed && k == hivetype.Timestamp:
			return opTime, unit
		case k == hivetype.Timestamp && n.LogicalType == "" && n.Type == "long" && col.Epoch() >= 0:
			return opTime, pow10(col.Epoch())
		case n.LogicalType == "date" && k == hivetype.Date:
			return opDate, 0
		case isInteger:
			return opLong, 0
		case k == hivetype.Double || k == hivetype.Float:
			return opToFloat, 0
		case k == hivetype.Decimal:
			return opToDec, 0
		case isText && n.LogicalType == "":
			return opNumber, 0
		}
	case "float":
		if k == hivetype.Float || k == hivetype.Double {
			return opFloat, 0
		}
	case "double":
		if k == hivetype.Float || k == hivetype.Double {
			return opDouble, 0
		}
	case "enum":
		if simple && k != hivetype.Binary {
			return opSymbol, 0
		}
	case "string":
		if k == hivetype.Binary {
			return opBinary, 0 // its bytes: text in Avro is no base64
		}
		if simple {
			return opText, 0
		}
	case "bytes", "fixed":
		switch {
		case n.LogicalType == "decimal" && k == hivetype.Decimal && n.Scale <= maxScale:
			return opDecimal, 0
		case n.LogicalType == "uuid" && n.Type == "fixed" && n.Size == 16 && isText:
			return opUUID, 0
		case n.LogicalType == "decimal":
		case k == hivetype.Binary && n.Type == "bytes":
			return opBinary, 0
		case k == hivetype.Binary:
			return opFixed, 0
		}
	}
	return opBad, 0
}

func pow10(n int) int64 {
	p := int64(1)
	for range n {
		p *= 10
	}
	return p
}
