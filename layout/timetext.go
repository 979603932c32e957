package layout

import (
	"fmt"
	"strings"
	"time"
)

// Lengths of time in microseconds.
const (
	microsPerMilli  = 1000
	microsPerSecond = 1_000_000
	microsPerMinute = 60 * microsPerSecond
	microsPerHour   = 60 * microsPerMinute
	microsPerDay    = 24 * microsPerHour
)

// Zone turns instants into local time. It remembers the last interval between
// two changes of the zone's offset, so that only the rows around a change cost
// more than an addition. Not safe for use by several goroutines.
type Zone struct {
	loc      *time.Location
	from, to int64 // instants for which offset holds: from <= t < to
	offset   int64 // microseconds to add
}

// NewZone makes a Zone; nil is UTC.
func NewZone(loc *time.Location) Zone {
	if loc == nil {
		loc = time.UTC
	}
	z := Zone{loc: loc}
	z.seek(0)
	return z
}

// Local is the local time of an instant: microseconds since 1970-01-01 00:00
// on the wall clock of the zone.
func (z *Zone) Local(micros int64) int64 {
	if micros < z.from || micros >= z.to {
		z.seek(micros)
	}
	return micros + z.offset
}

// Span is an interval of instants around micros that have the same offset, and
// that offset: from <= micros < to. The one before or behind it may have the same.
// The last instant of all belongs to the last interval.
func (z *Zone) Span(micros int64) (from, to, offset int64) {
	if micros < z.from || micros >= z.to {
		z.seek(micros)
	}
	return z.from, z.to, z.offset
}

func (z *Zone) seek(micros int64) {
	t := time.UnixMicro(micros).In(z.loc)
	_, seconds := t.Zone()
	z.offset = int64(seconds) * microsPerSecond
	z.from, z.to = -1<<63, 1<<63-1
	start, end := t.ZoneBounds()
	if !start.IsZero() {
		z.from = start.UnixMicro()
		if _, then := start.Zone(); then != seconds {
			// In the year in which a zone begins to follow a yearly rule, the
			// library's interval reaches back to before that.
			z.from = micros
		}
	}
	if !end.IsZero() {
		z.to = end.UnixMicro()
	}
	if z.to <= micros {
		// Where a zone follows a yearly rule, the library ends the year after 365
		// days: the last day of a leap year begins at its own end, and who goes
		// from interval to interval would stay there for ever. Its offset holds
		// until the year is over, which is when that day is, in UTC.
		z.to = (floorDiv(micros, microsPerDay) + 1) * microsPerDay
	}
}

// floorDiv is a / b, rounded down (L5); b > 0.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

func floorMod(a, b int64) int64 { return a - floorDiv(a, b)*b }

// civil is a day number (0 is 1970-01-01) as year, month and day of the
// proleptic Gregorian calendar. It counts in eras of 400 years that start on
// March 1st, so that the leap day is the last of its year.
func civil(days int64) (year int64, month, day int) {
	days += 719468 // from 0000-03-01
	era := floorDiv(days, 146097)
	doe := days - era*146097
	yoe := (doe - doe/1460 + doe/36524 - doe/146096) / 365
	doy := doe - (365*yoe + yoe/4 - yoe/100)
	mp := (5*doy + 2) / 153
	day = int(doy-(153*mp+2)/5) + 1
	month = int(mp) + 3
	if month > 12 {
		month -= 12
	}
	year = yoe + era*400
	if month <= 2 {
		year++
	}
	return year, month, day
}

// dayNumber is the inverse of civil. Months beyond 1-12 and days beyond the
// month roll over.
func dayNumber(year, month, day int64) int64 {
	year += floorDiv(month-1, 12)
	month = floorMod(month-1, 12) + 1
	if month <= 2 {
		year--
	}
	era := floorDiv(year, 400)
	yoe := year - era*400
	mp := (month + 9) % 12
	doy := (153*mp + 2) / 5
	doe := yoe*365 + yoe/4 - yoe/100 + doy
	return era*146097 + doe - 719468 + day - 1
}

// DateOf is the day number of a local time.
func DateOf(local int64) int64 { return floorDiv(local, microsPerDay) }

// AppendDate writes a day number as 2026-01-31.
func AppendDate(dst []byte, days int64) []byte {
	y, m, d := civil(days)
	dst = appendYear(dst, y)
	dst = append(dst, '-')
	dst = appendDigits(dst, int64(m), 2)
	dst = append(dst, '-')
	return appendDigits(dst, int64(d), 2)
}

// AppendTimestamp writes a local time as Hive prints a timestamp: 2026-01-31
// 12:00:00, with a fraction when there is one, without zeros at its end.
func AppendTimestamp(dst []byte, local int64) []byte {
	dst = AppendDate(dst, DateOf(local))
	rest := floorMod(local, microsPerDay)
	dst = append(dst, ' ')
	dst = appendDigits(dst, rest/microsPerHour, 2)
	dst = append(dst, ':')
	dst = appendDigits(dst, rest/microsPerMinute%60, 2)
	dst = append(dst, ':')
	dst = appendDigits(dst, rest/microsPerSecond%60, 2)
	if micros := rest % microsPerSecond; micros != 0 {
		dst = append(dst, '.')
		dst = appendDigits(dst, micros, 6)
		for dst[len(dst)-1] == '0' {
			dst = dst[:len(dst)-1]
		}
	}
	return dst
}

func appendYear(dst []byte, y int64) []byte {
	if y < 0 {
		dst = append(dst, '-')
		y = -y
	}
	return appendDigits(dst, y, 4)
}

// appendDigits writes n >= 0 with at least width digits.
func appendDigits(dst []byte, n int64, width int) []byte {
	var b [20]byte
	i := len(b)
	for n > 0 || width > 0 {
		i--
		b[i] = byte('0' + n%10)
		n /= 10
		width--
	}
	return append(dst, b[i:]...)
}

// Unit is the length of time, in microseconds, within which the values of a
// temporal transform are the same: a day, an hour, or what the smallest letter
// of Layout asks for. Every value is the same for all local times t with the
// same t / Unit, rounded down.
func (t Transform) Unit() int64 {
	switch t.Func {
	case Hour:
		return microsPerHour
	case Format:
		tokens, err := parseLayout(t.Layout)
		if err != nil {
			return 1
		}
		unit := int64(microsPerDay)
		for _, k := range tokens {
			unit = min(unit, k.unit())
		}
		return unit
	}
	return microsPerDay
}

// AppendTime writes the value a temporal transform gives to a local time.
func (t Transform) AppendTime(dst []byte, local int64) []byte {
	switch t.Func {
	case Date:
		return AppendDate(dst, DateOf(local))
	case Hour:
		return appendDigits(dst, floorMod(local, microsPerDay)/microsPerHour, 2)
	case Format:
		return appendLayout(dst, t.Layout, local)
	}
	y, m, d := civil(DateOf(local))
	switch t.Func {
	case Year:
		return appendYear(dst, y)
	case Month:
		return appendDigits(dst, int64(m), 2)
	case Day:
		return appendDigits(dst, int64(d), 2)
	}
	panic("layout: " + t.String() + " is not a transform of time")
}

// token is one piece of a layout: a field of the time, or literal text.
type token struct {
	field byte // one of y M d H m s S; 0: text
	width int  // how often the letter stands there
	text  string
}

func (k token) unit() int64 {
	switch k.field {
	case 'H':
		return microsPerHour
	case 'm':
		return microsPerMinute
	case 's':
		return microsPerSecond
	case 'S':
		return microsPerMilli
	}
	return microsPerDay
}

const layoutLetters = "yyyy MM dd HH mm ss SSS, 'quoted text' and punctuation"

// parseLayout takes a layout of the format transform apart.
func parseLayout(layout string) ([]token, error) {
	return parseTokens(layout, func(letter byte, width int) bool {
		switch letter {
		case 'y':
			return width == 4
		case 'M', 'd', 'H', 'm', 's':
			return width == 2
		case 'S':
			return width == 3
		}
		return false
	})
}

// parseTokens takes a layout apart; known says which runs of a letter are
// fields.
func parseTokens(layout string, known func(letter byte, width int) bool) ([]token, error) {
	var out []token
	fields := 0
	text := func(s string) {
		if n := len(out); n > 0 && out[n-1].field == 0 {
			out[n-1].text += s
			return
		}
		out = append(out, token{text: s})
	}
	for i := 0; i < len(layout); {
		c := layout[i]
		switch {
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
			n := 1
			for i+n < len(layout) && layout[i+n] == c {
				n++
			}
			if !known(c, n) {
				return nil, fmt.Errorf("layout %q: %q at position %d is not known; there are %s", layout, layout[i:i+n], i+1, layoutLetters)
			}
			out = append(out, token{field: c, width: n})
			fields++
			i += n
		case c == '\'':
			s, n, ok := quotedText(layout[i:])
			if !ok {
				return nil, fmt.Errorf("layout %q: the quote at position %d is not closed", layout, i+1)
			}
			text(s)
			i += n
		case c < ' ' || c >= 0x7f || strings.IndexByte("[]{}#", c) >= 0:
			return nil, fmt.Errorf("layout %q: %q at position %d must be in single quotes; there are %s", layout, layout[i:i+1], i+1, layoutLetters)
		default:
			text(layout[i : i+1])
			i++
		}
	}
	if fields == 0 {
		return nil, fmt.Errorf("layout %q names no part of the time; there are %s", layout, layoutLetters)
	}
	return out, nil
}

// quotedText reads 'text' at the start of s and how long it is there. A
// doubled quote is a quote, inside and by itself.
func quotedText(s string) (text string, n int, ok bool) {
	if strings.HasPrefix(s, "''") {
		return "'", 2, true
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] != '\'':
			b.WriteByte(s[i])
		case i+1 < len(s) && s[i+1] == '\'':
			b.WriteByte('\'')
			i++
		default:
			return b.String(), i + 1, true
		}
	}
	return "", 0, false
}

func appendLayout(dst []byte, layout string, local int64) []byte {
	tokens, err := parseLayout(layout)
	if err != nil {
		panic("layout: " + err.Error()) // ParseTransform has refused it
	}
	y, m, d := civil(DateOf(local))
	rest := floorMod(local, microsPerDay)
	for _, k := range tokens {
		switch k.field {
		case 0:
			dst = append(dst, k.text...)
		case 'y':
			dst = appendYear(dst, y)
		case 'M':
			dst = appendDigits(dst, int64(m), 2)
		case 'd':
			dst = appendDigits(dst, int64(d), 2)
		case 'H':
			dst = appendDigits(dst, rest/microsPerHour, 2)
		case 'm':
			dst = appendDigits(dst, rest/microsPerMinute%60, 2)
		case 's':
			dst = appendDigits(dst, rest/microsPerSecond%60, 2)
		case 'S':
			dst = appendDigits(dst, rest/microsPerMilli%1000, 3)
		}
	}
	return dst
}
