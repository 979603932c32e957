package parquetfile

import (
	"encoding/binary"
	"errors"
)

// Types of Thrift's compact protocol.
const (
	thriftTrue   = 1
	thriftFalse  = 2
	thriftByte   = 3
	thriftI16    = 4
	thriftI32    = 5
	thriftI64    = 6
	thriftDouble = 7
	thriftBinary = 8
	thriftList   = 9
	thriftSet    = 10
	thriftMap    = 11
	thriftStruct = 12
)

var errThrift = errors.New("its footer is damaged: a field runs over its end")

// walker steps through structs of Thrift's compact protocol without building
// them. What is moved from footer to footer is copied field by field as it is,
// so that nothing is lost that this program, or its library, does not know, and
// what was absent stays absent (a count of nulls is not zero because nobody
// counted). After damage bad is set, every number is 0 and every struct ends.
type walker struct {
	b   []byte
	at  int
	bad bool
}

func (w *walker) fail() { w.bad, w.at = true, len(w.b) }

func (w *walker) uvarint() uint64 {
	v, n := binary.Uvarint(w.b[w.at:])
	if n <= 0 {
		w.fail()
		return 0
	}
	w.at += n
	return v
}

// int reads a number of any width.
func (w *walker) int() int64 {
	v := w.uvarint()
	return int64(v>>1) ^ -int64(v&1)
}

// size reads the length of what has so many bytes, at least.
func (w *walker) size() int {
	n := w.uvarint()
	if n > uint64(len(w.b)-w.at) {
		w.fail()
		return 0
	}
	return int(n)
}

func (w *walker) bytes() []byte {
	n := w.size()
	b := w.b[w.at : w.at+n]
	w.at += n
	return b
}

// next reads a field's header; false at the end of the struct. last is the
// field before, 0 at first.
func (w *walker) next(last *int16) (typ byte, ok bool) {
	if w.at >= len(w.b) {
		w.fail()
		return 0, false
	}
	h := w.b[w.at]
	w.at++
	if h == 0 {
		return 0, false
	}
	if d := h >> 4; d != 0 {
		*last += int16(d)
	} else {
		*last = int16(w.int())
	}
	return h & 15, !w.bad
}

// fields goes through a struct: the number and type of each field. Whoever
// ranges over it takes the field's value. Nothing has no fields.
func (w *walker) fields(yield func(id int16, typ byte) bool) {
	if len(w.b) == 0 {
		return
	}
	for id := int16(0); ; {
		typ, ok := w.next(&id)
		if !ok || !yield(id, typ) {
			return
		}
	}
}

// list reads the header of a list or set.
func (w *walker) list() (elem byte, n int) {
	if w.at >= len(w.b) {
		w.fail()
		return 0, 0
	}
	h := w.b[w.at]
	w.at++
	if n = int(h >> 4); n == 15 {
		return h & 15, w.size() // an element has one byte or more
	}
	return h & 15, n
}

// skipDepth is how deep a value may nest: Parquet's own nest six deep.
const skipDepth = 16

// skip passes over a value and returns its bytes. inList: true and false take
// a byte there.
func (w *walker) skip(typ byte) []byte {
	from := w.at
	w.pass(typ, false, skipDepth)
	if w.bad {
		return nil
	}
	return w.b[from:w.at]
}

func (w *walker) pass(typ byte, inList bool, depth int) {
	if depth == 0 {
		w.fail()
		return
	}
	switch typ {
	case thriftTrue, thriftFalse:
		if inList {
			w.move(1)
		}
	case thriftByte:
		w.move(1)
	case thriftI16, thriftI32, thriftI64:
		w.uvarint()
	case thriftDouble:
		w.move(8)
	case thriftBinary:
		w.bytes()
	case thriftList, thriftSet:
		elem, n := w.list()
		for i := 0; i < n && !w.bad; i++ {
			w.pass(elem, true, depth-1)
		}
	case thriftMap:
		n := w.size()
		if n > 0 && w.at < len(w.b) {
			kv := w.b[w.at]
			w.at++
			for i := 0; i < n && !w.bad; i++ {
				w.pass(kv>>4, true, depth-1)
				w.pass(kv&15, true, depth-1)
			}
		}
	case thriftStruct:
		last := int16(0)
		for {
			t, ok := w.next(&last)
			if !ok {
				return
			}
			w.pass(t, false, depth-1)
		}
	default:
		w.fail()
	}
}

func (w *walker) move(n int) {
	if n > len(w.b)-w.at {
		w.fail()
		return
	}
	w.at += n
}

// thriftStructOf appends the fields of a struct to dst.
type thriftStructOf struct {
	dst  []byte
	last int16
}

func (s *thriftStructOf) header(id int16, typ byte) {
	if d := id - s.last; d > 0 && d < 16 {
		s.dst = append(s.dst, byte(d)<<4|typ)
	} else {
		s.dst = appendZigzag(append(s.dst, typ), int64(id))
	}
	s.last = id
}

// raw appends a field whose value is encoded already.
func (s *thriftStructOf) raw(id int16, typ byte, value []byte) {
	s.header(id, typ)
	s.dst = append(s.dst, value...)
}

func (s *thriftStructOf) int(id int16, typ byte, v int64) {
	s.header(id, typ)
	s.dst = appendZigzag(s.dst, v)
}

func (s *thriftStructOf) text(id int16, v string) {
	s.header(id, thriftBinary)
	s.dst = appendThriftText(s.dst, v)
}

func (s *thriftStructOf) end() []byte { return append(s.dst, 0) }

func appendZigzag(dst []byte, v int64) []byte {
	return binary.AppendUvarint(dst, uint64(v<<1)^uint64(v>>63))
}

func appendThriftText(dst []byte, v string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(v))), v...)
}

func appendListHeader(dst []byte, elem byte, n int) []byte {
	if n < 15 {
		return append(dst, byte(n)<<4|elem)
	}
	return binary.AppendUvarint(append(dst, 0xf0|elem), uint64(n))
}
