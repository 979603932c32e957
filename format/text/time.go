package textval

import "time"

// Timestamps are microseconds since 1970 in the years 0001 to 9999.
const (
	minMicros = -62135596800 * 1_000_000
	maxMicros = 253402300799*1_000_000 + 999_999
)

var monthDays = [13]int{0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}

// two reads two digits; below zero: they are not.
func two(b []byte, i int) int {
	hi, lo := int(b[i])-'0', int(b[i+1])-'0'
	if uint(hi) > 9 || uint(lo) > 9 {
		return -1
	}
	return hi*10 + lo
}

// civil is a date of the proleptic Gregorian calendar.
type civil struct{ year, month, day int }

// parseDate reads YYYY-MM-DD at the start of b.
func parseDate(b []byte) (d civil, st state) {
	if len(b) < 10 || b[4] != '-' || b[7] != '-' {
		return d, badType
	}
	century, year, month, day := two(b, 0), two(b, 2), two(b, 5), two(b, 8)
	if century|year|month|day < 0 {
		return d, badType
	}
	d = civil{century*100 + year, month, day}
	if d.year == 0 || month == 0 || month > 12 || day == 0 {
		return d, badRange
	}
	if day > monthDays[month] && (month != 2 || day != 29 || !leap(d.year)) {
		return d, badRange
	}
	return d, good
}

func leap(y int) bool { return y%4 == 0 && (y%100 != 0 || y%400 == 0) }

// days since 1970-01-01. The year starts in March here, so that the leap day
// is its last.
func (d civil) days() int64 {
	y, m := d.year, d.month-3
	if m < 0 {
		y, m = y-1, m+12
	}
	era := y / 400
	of := y - era*400
	return int64(era*146097+of*365+of/4-of/100+(m*153+2)/5+d.day-1) - 719468
}

// parseTimestamp reads a time as RFC 3339 writes it, with a 'T', 't' or a
// space; without an offset it is of the zone, without a time it is midnight.
func parseTimestamp(b []byte, zone *time.Location) (micros int64, st state) {
	d, st := parseDate(b)
	if st == badType {
		return 0, badType
	}
	if len(b) == 10 {
		if st != good {
			return 0, st
		}
		return inZone(d, 0, 0, zone)
	}
	if len(b) < 19 || b[10]|0x20 != 't' && b[10] != ' ' || b[13] != ':' || b[16] != ':' {
		return 0, badType
	}
	hour, minute, second := two(b, 11), two(b, 14), two(b, 17)
	if hour|minute|second < 0 {
		return 0, badType
	}
	if hour > 23 || minute > 59 || second > 59 {
		st = badRange
	}
	p, frac := 19, 0
	if p < len(b) && b[p] == '.' {
		unit := 100_000
		for p++; p < len(b) && b[p]-'0' <= 9; p++ {
			// Digits after the sixth add nothing, which is the floor.
			frac += int(b[p]-'0') * unit
			unit /= 10
		}
		if p == 20 {
			return 0, badType
		}
	}
	clock := hour*3600 + minute*60 + second
	if p == len(b) {
		if st != good {
			return 0, st
		}
		return inZone(d, clock, frac, zone)
	}
	offset, ost := parseOffset(b[p:])
	if ost == badType {
		return 0, badType
	}
	if st != good || ost != good {
		return 0, badRange
	}
	return within((d.days()*86400+int64(clock-offset))*1_000_000 + int64(frac))
}

// parseOffset reads Z or ±HH:MM, in seconds east.
func parseOffset(b []byte) (int, state) {
	if len(b) == 1 && b[0]|0x20 == 'z' {
		return 0, good
	}
	if len(b) != 6 || b[0] != '+' && b[0] != '-' || b[3] != ':' {
		return 0, badType
	}
	hour, minute := two(b, 1), two(b, 4)
	if hour|minute < 0 {
		return 0, badType
	}
	if hour > 23 || minute > 59 {
		return 0, badRange
	}
	if b[0] == '-' {
		return -hour*3600 - minute*60, good
	}
	return hour*3600 + minute*60, good
}

// inZone is the instant of a local time. Of one that comes twice it is the
// first; one that a clock put forward skips is as much later as the clock was
// put forward, because both take the offset from before the change.
func inZone(d civil, clock, frac int, zone *time.Location) (int64, state) {
	local := d.days()*86400 + int64(clock)
	if zone == time.UTC {
		return local*1_000_000 + int64(frac), good
	}
	before := local - offsetAt(local-86400, zone)
	if after := local - offsetAt(local+86400, zone); after != before &&
		offsetAt(before, zone) != local-before && offsetAt(after, zone) == local-after {
		before = after
	}
	return within(before*1_000_000 + int64(frac))
}

// offsetAt is the offset of the zone in seconds east at seconds since 1970.
func offsetAt(at int64, zone *time.Location) int64 {
	_, offset := time.Unix(at, 0).In(zone).Zone()
	return int64(offset)
}

func within(micros int64) (int64, state) {
	if micros < minMicros || micros > maxMicros {
		return 0, badRange
	}
	return micros, good
}

// epoch is the number of units of 10^-unit seconds as microseconds, cut down.
func (n number) epoch(text []byte, unit int) (int64, state) {
	_, lo, cut, ok := uint64(0), n.mant, false, true
	if n.exp == 0 && !n.big && unit == 6 {
		if lo > maxMicros {
			return 0, badRange
		}
	} else if n.exp == 0 && !n.big && unit == 3 && lo <= maxMicros/1000 {
		lo *= 1000
	} else {
		_, lo, cut, ok = significant(text).scaled(6-unit, 18)
		if !ok {
			return 0, badRange
		}
	}
	v := int64(lo)
	if n.neg {
		v = -v
		if cut {
			v--
		}
	}
	return within(v)
}
