package avrorow

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/hivesink/hivesink/format"
	"github.com/hivesink/hivesink/format/text"
	"github.com/hivesink/hivesink/hivetype"
	"github.com/hivesink/hivesink/record"
)

// Options say what Avro leaves open.
type Options struct {
	// Timestamps is the unit of a long without a logical type in a timestamp
	// column: s, ms, us or ns; rfc3339 (the default): it is bad.
	Timestamps string
	// Zone is that of local timestamps and of text without an offset; nil is
	// UTC.
	Zone *time.Location
	// NullOnBadTime names the date and timestamp columns whose value is null
	// when it cannot be read.
	NullOnBadTime map[string]bool
}

// Decoder decodes records. It serves one goroutine.
type Decoder struct {
	rows    *textval.Rows
	columns []hivetype.Field
	zone    *time.Location
	scratch []byte
	numbers numbers
	depth   int
	free    int64 // how many more slots may take no bytes
}

// New returns a decoder of records into the schema's columns.
func New(s *record.Schema, o Options) (*Decoder, error) {
	rows, err := textval.NewRows(s, textval.Options(o))
	if err != nil {
		return nil, fmt.Errorf("decoding Avro: %w", err)
	}
	d := &Decoder{rows: rows, columns: s.Columns, zone: o.Zone}
	if d.zone == nil {
		d.zone = time.UTC
	}
	return d, nil
}

func (d *Decoder) index(name string) int {
	for i, f := range d.columns {
		if strings.EqualFold(f.Name, name) {
			return i
		}
	}
	return -1
}

// Len, Size, UnknownKeys, NewBatch and Release are those of format.RowDecoder.
func (d *Decoder) Len() int                    { return d.rows.Len() }
func (d *Decoder) Size() int64                 { return d.rows.Size() }
func (d *Decoder) UnknownKeys() int64          { return d.rows.UnknownKeys() }
func (d *Decoder) NewBatch() arrow.RecordBatch { return d.rows.NewBatch() }
func (d *Decoder) Release()                    { d.rows.Release() }

const (
	// maxDepth bounds how deep values lie in one another.
	maxDepth = 64
	// maxFree bounds how many values of arrays, with the fields of their
	// structs, may take no bytes in one record (null).
	maxFree = 1 << 16
)

var (
	errShort = &format.Error{Class: record.ClassSyntax, Reason: "not Avro of its schema: it ends too soon"}
	errLong  = &format.Error{Class: record.ClassSyntax, Reason: "not Avro of its schema: bytes are left over"}
	errValue = &format.Error{Class: record.ClassSyntax, Reason: "not Avro of its schema: a number, length or branch is out of range"}
	errDeep  = &format.Error{Class: record.ClassSyntax, Reason: "not Avro of its schema: at most 64 levels"}
	errFree  = &format.Error{Class: record.ClassSyntax, Reason: "arrays have more than 65536 items, or fields of items, that take no bytes"}
)

// Append decodes one record that was written with a schema. An error is a
// *format.Error (V1).
func (d *Decoder) Append(s *Schema, rec []byte) error {
	d.rows.Begin()
	d.scratch, d.depth, d.free = d.scratch[:0], 0, maxFree
	b := rec
	var err *format.Error
	for i, n := range s.root.below {
		if s.column[i] < 0 {
			b, err = d.skip(n, b)
		} else {
			b, err = d.value(n, b, s.column[i])
		}
		if err != nil {
			return err
		}
	}
	if len(b) > 0 {
		return errLong
	}
	d.rows.Ignore(s.ignore)
	return d.rows.Commit()
}

// long reads a zigzag number.
func long(b []byte) (int64, []byte, *format.Error) {
	u, n := binary.Uvarint(b)
	if n == 0 {
		return 0, nil, errShort
	}
	if n < 0 {
		return 0, nil, errValue
	}
	return int64(u>>1) ^ -int64(u&1), b[n:], nil
}

// take reads n bytes.
func take(b []byte, n int64) (v, rest []byte, err *format.Error) {
	if n < 0 {
		return nil, nil, errValue
	}
	if n > int64(len(b)) {
		return nil, nil, errShort
	}
	return b[:n:n], b[n:], nil
}

// value reads a value into a slot.
func (d *Decoder) value(n *node, b []byte, at int32) (rest []byte, err *format.Error) {
	if n.op == opUnion {
		i, rest, err := long(b)
		if err != nil {
			return nil, err
		}
		if i < 0 || i >= int64(len(n.below)) {
			return nil, errValue
		}
		n, b = n.below[i], rest // a union has no union right below it
	}
	switch n.op {
	case opNull:
		d.rows.Null(at)
		return b, nil
	case opBad:
		if rest, err = d.skip(n, b); err == nil {
			d.rows.Bad(n.col, at, false, fmt.Appendf(nil, "Avro %s", n.name))
		}
		return rest, err
	case opArray, opMap:
		return d.blocks(n, b, at)
	case opRecord:
		return d.record(n, b, at)
	}
	switch n.kind {
	case kBool:
		v, rest, err := take(b, 1)
		if err == nil && v[0] > 1 {
			err = errValue
		}
		if err == nil {
			d.rows.Int(n.col, at, int64(v[0]))
		}
		return rest, err
	case kLong:
		v, rest, err := long(b)
		if err == nil {
			err = d.integer(n, at, v)
		}
		return rest, err
	case kFloat:
		v, rest, err := take(b, 4)
		if err == nil {
			d.rows.Double(n.col, at, float64(math.Float32frombits(binary.LittleEndian.Uint32(v))))
		}
		return rest, err
	case kDouble:
		v, rest, err := take(b, 8)
		if err == nil {
			d.rows.Double(n.col, at, math.Float64frombits(binary.LittleEndian.Uint64(v)))
		}
		return rest, err
	case kBytes:
		length, rest, err := long(b)
		if err != nil {
			return nil, err
		}
		v, rest, err := take(rest, length)
		if err == nil {
			d.bytes(n, at, v)
		}
		return rest, err
	default: // kFixed
		v, rest, err := take(b, int64(n.size))
		if err == nil {
			d.bytes(n, at, v)
		}
		return rest, err
	}
}

// integer stores an int, long or the index of an enum.
func (d *Decoder) integer(n *node, at int32, v int64) *format.Error {
	switch n.op {
	case opLong:
		d.rows.Int(n.col, at, v)
	case opDate:
		if v < math.MinInt32 || v > math.MaxInt32 {
			d.rows.Bad(n.col, at, true, strconv.AppendInt(nil, v, 10))
			return nil
		}
		d.rows.Int(n.col, at, v)
	case opTime, opLocal:
		d.time(n, at, v)
	case opToFloat:
		d.rows.Double(n.col, at, float64(v))
	case opToDec:
		d.number(n, at, v)
	case opNumber:
		from := len(d.scratch)
		d.scratch = strconv.AppendInt(d.scratch, v, 10)
		d.rows.Text(n.col, at, d.scratch[from:len(d.scratch):len(d.scratch)])
	case opSymbol:
		if v < 0 || v >= int64(len(n.symbol)) {
			return errValue
		}
		d.rows.Text(n.col, at, n.symbol[v])
	}
	return nil
}

// time stores an instant, cut to the microsecond.
func (d *Decoder) time(n *node, at int32, v int64) {
	micros := v
	switch {
	case n.unit > 1e6:
		by := n.unit / 1e6
		micros = v / by
		if v%by < 0 {
			micros--
		}
	case n.unit < 1e6:
		by := 1e6 / n.unit
		if v > math.MaxInt64/by || v < math.MinInt64/by {
			d.rows.Bad(n.col, at, true, strconv.AppendInt(nil, v, 10))
			return
		}
		micros = v * by
	}
	if n.op == opLocal && d.zone != time.UTC {
		clock := time.UnixMicro(micros).UTC()
		micros = time.Date(clock.Year(), clock.Month(), clock.Day(), clock.Hour(), clock.Minute(), clock.Second(), clock.Nanosecond(), d.zone).UnixMicro()
	}
	d.rows.Int(n.col, at, micros)
}

// bytes stores a string, bytes or a fixed.
func (d *Decoder) bytes(n *node, at int32, v []byte) {
	switch n.op {
	case opText:
		d.rows.Text(n.col, at, v)
	case opUUID:
		from := len(d.scratch)
		for i, part := range [][]byte{v[:4], v[4:6], v[6:8], v[8:10], v[10:]} {
			if i > 0 {
				d.scratch = append(d.scratch, '-')
			}
			d.scratch = hex.AppendEncode(d.scratch, part)
		}
		d.rows.Text(n.col, at, d.scratch[from:len(d.scratch):len(d.scratch)])
	case opDecimal:
		d.decimal(n, at, v)
	default:
		d.rows.Binary(at, v)
	}
}

// record reads a record into a struct.
func (d *Decoder) record(n *node, b []byte, at int32) (rest []byte, err *format.Error) {
	if d.depth++; d.depth > maxDepth {
		return nil, errDeep
	}
	if n.empty {
		if err := d.spend(int64(len(n.col.Type().Fields))); err != nil {
			return nil, err
		}
	}
	base := d.rows.Struct(n.col, at)
	for i, f := range n.below {
		if n.target[i] < 0 {
			b, err = d.skip(f, b)
		} else {
			b, err = d.value(f, b, base+n.target[i])
		}
		if err != nil {
			return nil, err
		}
	}
	d.rows.Ignore(n.ignore)
	d.depth--
	return b, nil
}

// blocks reads an array or map: blocks of items, each with its count, or the
// negative of it and its size in bytes.
func (d *Decoder) blocks(n *node, b []byte, at int32) (rest []byte, err *format.Error) {
	if d.depth++; d.depth > maxDepth {
		return nil, errDeep
	}
	d.rows.List(at)
	last, entries := int32(-1), 0
	for {
		count, b2, err := blockHead(b)
		if err != nil {
			return nil, err
		}
		b = b2
		if count == 0 {
			break
		}
		if n.op == opArray && n.below[0].empty {
			if err := d.spend(count); err != nil {
				return nil, err
			}
		} else if count > int64(len(b)) { // V4: an item takes a byte
			return nil, errShort
		}
		entries += int(count)
		for range count {
			if n.op == opArray {
				last = d.rows.Element(at, last)
				b, err = d.value(n.below[0], b, last)
			} else {
				last = d.rows.Entry(at, last)
				var length int64
				var key []byte
				if length, b, err = long(b); err == nil {
					if key, b, err = take(b, length); err == nil {
						d.rows.Text(n.col.Below(0), last, key)
						b, err = d.value(n.below[0], b, last+1)
					}
				}
			}
			if err != nil {
				return nil, err
			}
		}
	}
	if n.op == opMap && entries > 0 {
		d.rows.Unique(n.col, at, entries)
	}
	d.depth--
	return b, nil
}

// spend counts slots that take no bytes. Without a bound a record of some bytes
// could have any number of them (V4).
func (d *Decoder) spend(n int64) *format.Error {
	if n > d.free {
		return errFree
	}
	d.free -= n
	return nil
}

func blockHead(b []byte) (count int64, rest []byte, err *format.Error) {
	if count, rest, err = long(b); err != nil || count >= 0 {
		return count, rest, err
	}
	if count == math.MinInt64 {
		return 0, nil, errValue
	}
	_, rest, err = long(rest)
	return -count, rest, err
}
