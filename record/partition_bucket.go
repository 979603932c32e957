package record

import (
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/hivesink/hivesink/hivetype"
)

// bucketFill computes Iceberg's bucket numbers (32-bit murmur3, seed 0); nil
// for kinds that Iceberg does not bucket. What null rows get does not matter.
func bucketFill(k hivetype.Kind, n int64) fillFunc {
	bucket := func(h uint32) int64 { return int64(h&math.MaxInt32) % n }
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
				keys[i] = bucket(hash(a.Value(i)))
			}
		}
	case hivetype.Binary:
		return func(arr arrow.Array, keys []int64) {
			a := arr.(*array.Binary)
			for i := range keys {
				keys[i] = bucket(hash(a.Value(i)))
			}
		}
	}
	return nil
}

// The 32-bit murmur3 hash of x86, seed 0. It is written out here because the
// library at hand walks its input by pointer arithmetic the runtime refuses to
// check (and a moving stack could break), and because a number or a text need
// not become a slice first.
const (
	murmurC1 = 0xcc9e2d51
	murmurC2 = 0x1b873593
)

func murmurMix(h, block uint32) uint32 {
	h ^= murmurScramble(block)
	return bits.RotateLeft32(h, 13)*5 + 0xe6546b64
}

func murmurScramble(block uint32) uint32 {
	return bits.RotateLeft32(block*murmurC1, 15) * murmurC2
}

func murmurEnd(h uint32, length int) uint32 {
	h ^= uint32(length)
	h ^= h >> 16
	h *= 0x85ebca6b
	h ^= h >> 13
	h *= 0xc2b2ae35
	return h ^ h>>16
}

// hashLong hashes the eight bytes of v, little-endian.
func hashLong(v int64) uint32 {
	return murmurEnd(murmurMix(murmurMix(0, uint32(v)), uint32(uint64(v)>>32)), 8)
}

func hash[T string | []byte](data T) uint32 {
	h, n := uint32(0), len(data)
	i := 0
	for ; i+4 <= n; i += 4 {
		h = murmurMix(h, uint32(data[i])|uint32(data[i+1])<<8|uint32(data[i+2])<<16|uint32(data[i+3])<<24)
	}
	tail := uint32(0)
	for j := n - 1; j >= i; j-- {
		tail = tail<<8 | uint32(data[j])
	}
	if i < n {
		h ^= murmurScramble(tail)
	}
	return murmurEnd(h, n)
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
	return hash(least)
}
