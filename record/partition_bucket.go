package record

import (
	"encoding/binary"
	"math"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/spaolacci/murmur3"

	"github.com/hivesink/hivesink/hivetype"
)

// bucketFill computes Iceberg's bucket numbers (32-bit murmur3, seed 0); nil
// for kinds that Iceberg does not bucket. What null rows get does not matter.
func bucketFill(k hivetype.Kind, n int64) fillFunc {
	bucket := func(hash uint32) int64 { return int64(hash&math.MaxInt32) % n }
	numbers := func(fill fillFunc) fillFunc {
		return func(arr arrow.Array, keys []int64) {
			fill(arr, keys)
			for i, v := range keys {
				keys[i] = bucket(hashLong(v))
			}
		}
	}
	switch k {
	case hivetype.TinyInt, hivetype.SmallInt, hivetype.Int, hivetype.BigInt:
		return numbers(integerKeys(k)) // an int hashes as the long it would be
	case hivetype.Date:
		return numbers(dateKeys)
	case hivetype.Timestamp:
		return numbers(timestampKeys)
	case hivetype.Decimal:
		return func(arr arrow.Array, keys []int64) {
			for i, v := range arr.(*array.Decimal128).Values() {
				keys[i] = bucket(hashDecimal(v))
			}
		}
	case hivetype.String, hivetype.Varchar, hivetype.Char:
		return func(arr arrow.Array, keys []int64) {
			a := arr.(*array.String)
			for i := range keys {
				keys[i] = bucket(hashText(a.Value(i)))
			}
		}
	case hivetype.Binary:
		return func(arr arrow.Array, keys []int64) {
			a := arr.(*array.Binary)
			for i := range keys {
				keys[i] = bucket(murmur3.Sum32(a.Value(i)))
			}
		}
	}
	return nil
}

func hashLong(v int64) uint32 {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], uint64(v))
	return murmur3.Sum32(b[:])
}

// hashText hashes the bytes of s without copying them.
func hashText(s string) uint32 {
	return murmur3.Sum32(unsafe.Slice(unsafe.StringData(s), len(s)))
}

// hashDecimal hashes the unscaled value in the fewest bytes of big-endian two's
// complement.
func hashDecimal(n decimal128.Num) uint32 {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], uint64(n.HighBits()))
	binary.BigEndian.PutUint64(b[8:], n.LowBits())
	least := b[:]
	for len(least) > 1 && (least[0] == 0 && least[1] < 0x80 || least[0] == 0xff && least[1] >= 0x80) {
		least = least[1:]
	}
	return murmur3.Sum32(least)
}
