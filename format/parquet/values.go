package parquetfile

import (
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
