package layout

import (
	"math"
	"strconv"
	"time"
)

// stamp is the fields of a local time, as far as they are known.
type stamp struct {
	value [7]int64 // year month day hour minute second millisecond
	known [7]bool
}

const (
	yearField = iota
	monthField
	dayField
	hourField
	minuteField
	secondField
	milliField
)

// fieldOf is the field of a layout's letter.
func fieldOf(letter byte) int {
	switch letter {
	case 'M':
		return monthField
	case 'd':
		return dayField
	case 'H':
		return hourField
	case 'm':
		return minuteField
	case 's':
		return secondField
	case 'S':
		return milliField
	}
	return yearField
}

// set notes a field; it says no when another column has said otherwise or the
// value cannot be.
func (s *stamp) set(field int, v int64) bool {
	if s.known[field] && s.value[field] != v {
		return false
	}
	switch field {
	case monthField:
		if v < 1 || v > 12 {
			return false
		}
	case dayField:
		if v < 1 || v > 31 {
			return false
		}
	case hourField:
		if v > 23 {
			return false
		}
	case minuteField, secondField:
		if v > 59 {
			return false
		}
	}
	s.value[field], s.known[field] = v, true
	return true
}

// local is the stretch of local time the known fields name: as fine as they go
// without a gap from the year down.
func (s *stamp) local() (start, end int64, ok bool) {
	n := 0
	for n < len(s.known) && s.known[n] {
		n++
	}
	if n == 0 || s.value[yearField] > maxYear || s.value[yearField] < -maxYear {
		return 0, 0, false
	}
	f := [7]int64{s.value[yearField], 1, 1}
	copy(f[:n], s.value[:n])
	days := dayNumber(f[yearField], f[monthField], f[dayField])
	if y, m, d := civil(days); y != f[yearField] || int64(m) != f[monthField] || int64(d) != f[dayField] {
		return 0, 0, false // February 30
	}
	start = days*microsPerDay + f[hourField]*microsPerHour + f[minuteField]*microsPerMinute +
		f[secondField]*microsPerSecond + f[milliField]*microsPerMilli
	switch n - 1 {
	case yearField:
		end = dayNumber(f[yearField]+1, 1, 1) * microsPerDay
	case monthField:
		end = dayNumber(f[yearField], f[monthField]+1, 1) * microsPerDay
	default:
		end = start + [...]int64{dayField: microsPerDay, hourField: microsPerHour, minuteField: microsPerMinute,
			secondField: microsPerSecond, milliField: microsPerMilli}[n-1]
	}
	return start, end, true
}

// maxYear keeps local times of a period inside 64 bits.
const maxYear = 290_000

// Period is the period of time the values of a partition's temporal columns
// name: instants [startMicros, endMicros) in microseconds. Columns that come
// from one source column count together (date and hour; year, month, day and
// hour), as fine as they go without a gap from the year down; of several
// source columns the first that names a period counts.
//
// Where local time repeats, the end is the later instant (L6); a local hour
// that was skipped is an empty period at the change. ok is false when no
// column names a period (none is temporal, the value is DefaultPartition, an
// hour without its day) or the values contradict each other.
func Period(transforms []Transform, values []string, zone *time.Location) (startMicros, endMicros int64, ok bool) {
	for i, t := range transforms {
		if !t.Temporal() || i > 0 && columnBefore(transforms[:i], t.Column) {
			continue
		}
		var s stamp
		valid := true
		for j, u := range transforms {
			if u.Temporal() && u.Column == t.Column {
				valid = valid && j < len(values) && s.read(u, values[j])
			}
		}
		if start, end, ok := s.local(); valid && ok {
			startMicros, endMicros = instants(start, end, zone)
			return startMicros, endMicros, true
		}
	}
	return 0, 0, false
}

// NamesPeriod says whether the values of these transforms name a period, null
// and what cannot be a value aside.
func NamesPeriod(transforms []Transform) bool {
	_, _, ok := Period(transforms, Samples(transforms), time.UTC)
	return ok
}

// Samples are values of one moment, as the transforms have them: "" for those
// that do not come from a moment.
func Samples(transforms []Transform) []string {
	const moment = (20_484*24+10)*microsPerHour + 20*microsPerMinute + 30*microsPerSecond // in January 2026
	values := make([]string, len(transforms))
	for i, t := range transforms {
		if t.Temporal() {
			values[i] = string(t.AppendTime(nil, moment))
		}
	}
	return values
}

func columnBefore(transforms []Transform, column string) bool {
	for _, t := range transforms {
		if t.Temporal() && t.Column == column {
			return true
		}
	}
	return false
}

// read takes the fields of one value.
func (s *stamp) read(t Transform, value string) bool {
	layout := t.Layout
	switch t.Func {
	case Date:
		layout = "yyyy-MM-dd"
	case Year:
		layout = "yyyy"
	case Month:
		layout = "MM"
	case Day:
		layout = "dd"
	case Hour:
		layout = "HH"
	}
	tokens, err := parseLayout(layout)
	if err != nil {
		return false
	}
	rest, err := s.parse(tokens, value)
	return err == nil && rest == ""
}

// instants are the first and the last instant (exclusive) whose local time
// lies in [start, end).
func instants(start, end int64, loc *time.Location) (from, to int64) {
	// No zone was ever further than a day from UTC.
	const reach = microsPerDay
	z := NewZone(loc)
	from, to = math.MaxInt64, math.MinInt64
	for at := start - reach; at <= end+reach; {
		a, b, offset := z.Span(at)
		if lo, hi := max(a, start-offset), min(b, end-offset); lo < hi {
			from, to = min(from, lo), max(to, hi)
		}
		if b == math.MaxInt64 {
			break
		}
		at = b
	}
	if from > to {
		from = instant(start, loc)
		return from, from
	}
	return from, to
}

// instant is the instant of a local time: the later one where it comes twice,
// so that nothing is taken for complete after its first pass; where it was
// skipped, the moment of the change plus how far into the gap it lies.
func instant(local int64, loc *time.Location) int64 {
	const reach = microsPerDay
	z := NewZone(loc)
	found, result, before := false, int64(0), int64(0)
	for at := local - reach; at <= local+reach; {
		a, b, offset := z.Span(at)
		switch t := local - offset; {
		case t >= b:
			before = offset
		case t >= a:
			found, result = true, t
		}
		if b == math.MaxInt64 {
			break
		}
		at = b
	}
	if !found {
		return local - before
	}
	return result
}

// parseDigits reads least to most digits at the start of s.
func parseDigits(s string, least, most int) (v int64, rest string, ok bool) {
	n := 0
	for n < len(s) && n < most && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	if n < least {
		return 0, s, false
	}
	v, err := strconv.ParseInt(s[:n], 10, 64)
	return v, s[n:], err == nil
}
