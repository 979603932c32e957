package record

import (
	"fmt"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/hivesink/hivesink/hivetype"
)

// checkValues refuses what Arrow's types can hold and the table's cannot: text
// that is not UTF-8, which makes whole files unreadable for others, text longer
// than its column, and decimals of more digits, of which a file of narrower
// numbers would keep the low ones only.
func checkValues(s *Schema, rec arrow.RecordBatch) error {
	for i, c := range s.Columns {
		arr := rec.Column(i)
		if !bounded(c.Type) || allText(c.Type, arr) {
			continue
		}
		if row, bad := checkRange(c.Type, arr, 0, arr.Len()); bad != nil {
			return fmt.Errorf("row %d of the batch: column %q: %s", row, c.Name+bad.path, bad.reason)
		}
	}
	return nil
}

// badValue is what is wrong with a value, and where in its column.
type badValue struct{ path, reason string }

// bounded says whether a type, or one below it, has values that Arrow's does not
// rule out.
func bounded(t *hivetype.Type) bool {
	switch t.Kind {
	case hivetype.Decimal, hivetype.String, hivetype.Varchar, hivetype.Char:
		return true
	case hivetype.Array:
		return bounded(t.Elem)
	case hivetype.Map:
		return bounded(t.Key) || bounded(t.Elem)
	case hivetype.Struct:
		for _, f := range t.Fields {
			if bounded(f.Type) {
				return true
			}
		}
	}
	return false
}

// allText says that a column of plain text is UTF-8, without a look at each
// value: all of it is, and no value begins inside a character. That it cannot
// say so means nothing: null values may have any bytes.
func allText(t *hivetype.Type, arr arrow.Array) bool {
	a, ok := arr.(*array.String)
	if !ok || t.Kind != hivetype.String {
		return false
	}
	if a.Len() == 0 {
		return true
	}
	data, first := a.ValueBytes(), a.ValueOffset(0)
	if !utf8.Valid(data) {
		return false
	}
	for i := range a.Len() {
		if at := a.ValueOffset(i) - first; at < len(data) && !utf8.RuneStart(data[at]) {
			return false
		}
	}
	return true
}

// checkRange checks the values [from, to) of an array, save for those that are
// null or below one. row is the first bad one. It allocates for a bad one only.
func checkRange(t *hivetype.Type, arr arrow.Array, from, to int) (row int, bad *badValue) {
	for i := from; i < to; i++ {
		if arr.IsNull(i) {
			continue
		}
		if bad := checkValue(t, arr, i); bad != nil {
			return i, bad
		}
	}
	return 0, nil
}

func checkValue(t *hivetype.Type, arr arrow.Array, i int) *badValue {
	switch a := arr.(type) {
	case *array.String:
		return checkText(t, a.Value(i))
	case *array.Decimal128:
		// The smallest number of 128 bits is its own absolute value.
		if v := a.Value(i); v.Abs().Sign() < 0 || !v.FitsInPrecision(int32(t.Precision)) {
			return &badValue{reason: fmt.Sprintf("%s has more digits than %s", v.ToString(int32(t.Scale)), t)}
		}
	case *array.Map:
		from, to := a.ValueOffsets(i)
		if bad := checkBelow("key", t.Key, a.Keys(), int(from), int(to)); bad != nil {
			return bad
		}
		return checkBelow("value", t.Elem, a.Items(), int(from), int(to))
	case *array.List:
		from, to := a.ValueOffsets(i)
		return checkBelow("element", t.Elem, a.ListValues(), int(from), int(to))
	case *array.Struct:
		for k, f := range t.Fields {
			if bad := checkBelow(f.Name, f.Type, a.Field(k), i, i+1); bad != nil {
				return bad
			}
		}
	}
	return nil
}

func checkBelow(name string, t *hivetype.Type, arr arrow.Array, from, to int) *badValue {
	if !bounded(t) {
		return nil
	}
	_, bad := checkRange(t, arr, from, to)
	if bad != nil {
		bad.path = "." + name + bad.path
	}
	return bad
}

// checkText is the rule of the text formats, which take a char(n) without the
// spaces at its end.
func checkText(t *hivetype.Type, text string) *badValue {
	if !utf8.ValidString(text) {
		return &badValue{reason: fmt.Sprintf("%.64q is not UTF-8 text", text)}
	}
	if t.Kind == hivetype.String || len(text) <= t.Length {
		return nil
	}
	n := utf8.RuneCountInString(text)
	for i := len(text); t.Kind == hivetype.Char && i > 0 && text[i-1] == ' '; i-- {
		n--
	}
	if n > t.Length {
		return &badValue{reason: fmt.Sprintf("%.64q is longer than %s", text, t)}
	}
	return nil
}
