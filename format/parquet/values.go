package parquetfile

import (
	"encoding/binary"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow/array"
)

// timestamps and dates see Arrow's named integers as plain ones.
func timestamps(a *array.Timestamp) []int64 {
	v := a.TimestampValues()
	return unsafe.Slice((*int64)(unsafe.Pointer(unsafe.SliceData(v))), len(v))
}

func dates(a *array.Date32) []int32 {
	v := a.Date32Values()
	return unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(v))), len(v))
}

// littleEndian: memory has numbers as Parquet has them.
var littleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// appendFixed appends numbers, little endian.
func appendFixed[T int32 | int64 | float32 | float64](dst []byte, v []T) []byte {
	if littleEndian {
		return append(dst, unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), len(v)*int(unsafe.Sizeof(*new(T))))...)
	}
	dst, _ = binary.Append(dst, binary.LittleEndian, v)
	return dst
}
