package source

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/hivesink/hivesink/hivetype"
)

// keyAdder appends key i of a map, 0 ≤ i < maxKeys. Keys of one map differ;
// they are small, so that maps of different rows have keys in common.
func keyAdder(name string, t *hivetype.Type, b array.Builder) func(i int) {
	switch b := b.(type) {
	case *array.BooleanBuilder:
		return func(i int) { b.Append(i == 1) }
	case *array.Int8Builder:
		return func(i int) { b.Append(int8(i)) }
	case *array.Int16Builder:
		return func(i int) { b.Append(int16(i)) }
	case *array.Int32Builder:
		return func(i int) { b.Append(int32(i)) }
	case *array.Int64Builder:
		return func(i int) { b.Append(int64(i)) }
	case *array.Float32Builder:
		return func(i int) { b.Append(float32(i)) }
	case *array.Float64Builder:
		return func(i int) { b.Append(float64(i)) }
	case *array.Decimal128Builder:
		return func(i int) { b.Append(decimal128.FromI64(int64(i))) }
	case *array.Date32Builder:
		first := firstTime.UnixMicro() / day
		return func(i int) { b.Append(arrow.Date32(first + int64(i))) }
	case *array.TimestampBuilder:
		return func(i int) { b.Append(arrow.Timestamp(firstTime.UnixMicro() + int64(i)*day)) }
	case *array.StringBuilder:
		return textKeys(name, t.Length, b.BinaryBuilder)
	case *array.BinaryBuilder:
		return textKeys(name, 0, b)
	}
	panic("source: datagen has no map keys for " + t.String())
}

func textKeys(name string, length int, b *array.BinaryBuilder) func(i int) {
	var keys [maxElements][]byte
	for i := range keys {
		keys[i] = appendText(nil, name, int64(i), length)
	}
	return func(i int) { b.Append(keys[i]) }
}

// maxKeys is how many keys of a type there are to choose from.
func maxKeys(t *hivetype.Type) int {
	if t.Kind == hivetype.Boolean {
		return 2
	}
	return maxElements
}
