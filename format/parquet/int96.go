package parquetfile

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/hivesink/hivesink/hivetype"
)

// An INT96 timestamp is the nanosecond of the day and the Julian day, both
// little endian. Here it is a physFixed of twelve bytes.
const (
	julianEpoch  = 2440588 // Julian day of 1970-01-01
	microsPerDay = 24 * 60 * 60 * 1_000_000
)

// timestamp appends an instant, microseconds since 1970.
func (l *leaf) timestamp(us int64) {
	if l.phys != physFixed {
		l.i64 = append(l.i64, us)
		return
	}
	day := us / microsPerDay
	if us%microsPerDay < 0 {
		day--
	}
	l.bytes = binary.LittleEndian.AppendUint64(l.bytes, uint64(us-day*microsPerDay)*1000)
	l.bytes = binary.LittleEndian.AppendUint32(l.bytes, uint32(int32(day+julianEpoch)))
}

// int96 appends an INT96 to a leaf of microseconds. What would be lost is an
// error (F3). Arrow writes times before 1970 with a negative time of day.
func (l *leaf) int96(v []byte) error {
	nanos, day := int64(binary.LittleEndian.Uint64(v)), int64(int32(binary.LittleEndian.Uint32(v[8:])))-julianEpoch
	if nanos%1000 != 0 {
		return fmt.Errorf("the file has nanoseconds, the table microseconds")
	}
	us, rest := day*microsPerDay, nanos/1000
	if most := int64(math.MaxInt64/microsPerDay - 1); day < -most || day > most || us > 0 && rest > math.MaxInt64-us || us < 0 && rest < math.MinInt64-us {
		return fmt.Errorf("the file has a time that is out of the range of the table's: day %d of 1970", day)
	}
	l.i64 = append(l.i64, us+rest)
	return nil
}

// shortened appends a big-endian two's complement number to a leaf that may be
// narrower: writers take more bytes than the digits need. What would be cut off
// of a number that has more digits than its column says is an error (F3).
func (l *leaf) shortened(v []byte) error {
	width := l.width
	switch l.phys {
	case physInt32:
		width = 4
	case physInt64:
		width = 8
	}
	for ; len(v) > width; v = v[1:] {
		if v[0] != byte(int8(v[1])>>7) {
			return fmt.Errorf("the file has a decimal with more digits than its column says: %x", v)
		}
	}
	if l.phys == physFixed {
		l.bytes = append(l.bytes, v...)
		return nil
	}
	n := int64(int8(v[0]))
	for _, b := range v[1:] {
		n = n<<8 | int64(b)
	}
	if l.phys == physInt32 {
		l.i32 = append(l.i32, int32(n))
	} else {
		l.i64 = append(l.i64, n)
	}
	return nil
}

// isTime says whether the leaf is a timestamp; the leaves of a file that was
// opened for its own schema have no type.
func (l *leafType) isTime() bool { return l.typ != nil && l.typ.Kind == hivetype.Timestamp }
