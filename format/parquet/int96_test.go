package parquetfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"github.com/hivesink/hivesink/hivetype"
)

// TestInt96 holds known instants against their INT96, and takes them back (F3).
func TestInt96(t *testing.T) {
	typ := leafType{typ: &hivetype.Type{Kind: hivetype.Timestamp}}
	for us, want := range map[int64]struct {
		day   uint32
		nanos uint64
	}{
		0:                       {2440588, 0},
		-1:                      {2440587, 86399999999000},
		1_767_225_600_123_456:   {2461042, 123456000}, // 2026-01-01
		-62_135_596_800_000_000: {1721426, 0},         // 0001-01-01
	} {
		l := &leaf{leafType: typ}
		l.phys, l.width = physFixed, int96Width
		l.timestamp(us)
		if got := binary.LittleEndian.Uint64(l.bytes); got != want.nanos || binary.LittleEndian.Uint32(l.bytes[8:]) != want.day {
			t.Errorf("%d: day %d, %d ns, want %+v", us, binary.LittleEndian.Uint32(l.bytes[8:]), got, want)
		}
		back := &leaf{leafType: typ}
		back.phys = physInt64
		if err := back.int96(l.bytes); err != nil || !slices.Equal(back.i64, []int64{us}) {
			t.Errorf("%d came back as %v, %v", us, back.i64, err)
		}
	}
	l := &leaf{leafType: typ}
	l.phys = physInt64
	if err := l.int96([]byte{1, 0, 0, 0, 0, 0, 0, 0, 0x8c, 0x3d, 0x25, 0}); err == nil {
		t.Error("a nanosecond was lost without an error")
	}
}

// TestFixedDecimals: a decimal of fixed width is the same number again.
func TestFixedDecimals(t *testing.T) {
	for _, n := range []int64{0, 1, -1, 123456789, -123456789, math.MaxInt32, math.MinInt32} {
		l := &leaf{}
		l.phys, l.width = physFixed, decimalWidth(9)
		l.width = max(l.width, 5)
		l.decimal(decimal128.FromI64(n))
		if len(l.bytes) != l.width {
			t.Fatalf("%d bytes, want %d", len(l.bytes), l.width)
		}
		narrow, wide := &leaf{}, &leaf{}
		narrow.phys, wide.phys = physInt32, physInt64
		if err := errors.Join(narrow.shortened(l.bytes), wide.shortened(l.bytes)); err != nil {
			t.Fatal(err)
		}
		if int64(narrow.i32[0]) != n || wide.i64[0] != n {
			t.Errorf("%d came back as %d and %d", n, narrow.i32[0], wide.i64[0])
		}
		again := &leaf{}
		again.phys, again.width = physFixed, l.width
		again.extend(l.bytes)
		if !bytes.Equal(again.bytes, l.bytes) {
			t.Errorf("%x became %x", l.bytes, again.bytes)
		}
	}
}

// TestInt96OfOthers: the time of day may be negative, and no day may wrap.
func TestInt96OfOthers(t *testing.T) {
	of := func(day int32, nanos int64) []byte {
		return binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint64(nil, uint64(nanos)), uint32(day))
	}
	for _, c := range []struct {
		day   int32
		nanos int64
		want  int64
		says  string
	}{
		{julianEpoch, -5_000_000, -5000, ""},
		{julianEpoch - 1, microsPerDay*1000 - 1000, -1, ""},
		{julianEpoch - 2, -1000, -2*microsPerDay - 1, ""},
		{julianEpoch, -616, 0, "nanoseconds"},
		{math.MaxInt32, 0, 0, "out of the range"},
		{math.MinInt32, 0, 0, "out of the range"},
		{julianEpoch + 106_751_990, math.MaxInt64 / 1000 * 1000, 0, "out of the range"},
		{julianEpoch + 106_751_989, 0, 106_751_989 * microsPerDay, ""},
	} {
		l := &leaf{}
		err := l.int96(of(c.day, c.nanos))
		if c.says != "" {
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%+v: %v", c, err)
			}
		} else if err != nil || l.i64[0] != c.want {
			t.Errorf("%+v: %v %v", c, l.i64, err)
		}
	}
}
