package layout

import (
	"encoding/binary"
	"testing"
	"time"
)

// ruleZone is a zone of the kind that the database of the binary has: it has
// offset before until changed, and follows a yearly rule from then on.
func ruleZone(t *testing.T, before, after time.Duration, changed time.Time, rule string) *time.Location {
	t.Helper()
	header := func(counts ...uint32) []byte { // of isutc, isstd, leap, time, type, char
		b := append([]byte("TZif2"), make([]byte, 15)...)
		for _, n := range counts {
			b = binary.BigEndian.AppendUint32(b, n)
		}
		return b
	}
	data := header(0, 0, 0, 0, 0, 0)
	data = append(data, header(0, 0, 0, 1, 2, 4)...)
	data = binary.BigEndian.AppendUint64(data, uint64(changed.Unix()))
	data = append(data, 1)
	for _, offset := range []time.Duration{before, after} {
		data = binary.BigEndian.AppendUint32(data, uint32(int32(offset/time.Second)))
		data = append(data, 0, 0)
	}
	data = append(data, "ABC\x00\n"+rule+"\n"...)
	loc, err := time.LoadLocationFromTZData("rule", data)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

// L5, L6: what the library says of a zone that follows a rule is wrong on the
// last day of a leap year and in the year the rule begins. Every interval holds
// its instant and has one offset all the same, whatever was asked before.
func TestZoneThatFollowsARule(t *testing.T) {
	changed := time.Date(2022, 11, 30, 6, 0, 0, 0, time.UTC)
	loc := ruleZone(t, -6*time.Hour, -7*time.Hour, changed, "MST7MDT,M3.2.0,M11.1.0")
	spec := []Transform{{Name: "dt", Func: Date, Column: "ts"}, {Name: "hr", Func: Hour, Column: "ts"}}
	z := NewZone(loc)
	// Backwards, because a wrong interval reaches back.
	for at := time.Date(2025, 1, 3, 0, 30, 0, 0, time.UTC); at.Year() > 2021; at = at.Add(-3 * time.Hour) {
		micros := at.UnixMicro()
		_, want := at.In(loc).Zone()
		from, to, offset := z.Span(micros)
		if from > micros || to <= micros || offset != int64(want)*microsPerSecond {
			t.Fatalf("%s: [%d %d), offset %d, want %d s", at, from, to, offset, want)
		}
		values := []string{string(spec[0].AppendTime(nil, micros+offset)), string(spec[1].AppendTime(nil, micros+offset))}
		if start, end, ok := Period(spec, values, loc); !ok || micros < start || micros >= end {
			t.Fatalf("%s: period [%d %d) of %v, %v", at, start, end, values, ok)
		}
	}
}
