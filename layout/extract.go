package layout

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// TimeExtractor takes a partition's time from the text of its values, for
// partitions whose columns do not say what they mean (identity columns, or a
// layout of another program).
type TimeExtractor struct {
	// Pattern is the text to parse, with $name for the value of a partition
	// column: "$dt $hr:00:00". Empty: the first value.
	Pattern string
	// Formatter is the layout of that text: yyyy MM dd HH mm ss, one letter
	// for a number without leading zeros, S for digits of the fraction.
	// Empty: yyyy-MM-dd, or that with HH:mm:ss and a fraction, where numbers
	// may be short and roll over (hour 24 is the next day).
	Formatter string
}

// Check says what is wrong with the extractor for these partition columns.
func (x *TimeExtractor) Check(names []string) error {
	if len(names) == 0 {
		return fmt.Errorf("the table has no partition columns to take a time from")
	}
	for i := strings.IndexByte(x.Pattern, '$'); i >= 0; {
		if longestName(names, x.Pattern[i+1:]) < 0 {
			return fmt.Errorf("pattern %q: there is no partition column called as the text after the $ at position %d; there are %s",
				x.Pattern, i+1, strings.Join(names, ", "))
		}
		next := strings.IndexByte(x.Pattern[i+1:], '$')
		if next < 0 {
			break
		}
		i += 1 + next
	}
	if x.Formatter == "" {
		return nil
	}
	tokens, err := x.tokens()
	if err != nil {
		return err
	}
	for field, letter := range "yMd" {
		if !slices.ContainsFunc(tokens, func(k token) bool { return rune(k.field) == letter }) {
			return fmt.Errorf("formatter %q has no %s: a time needs year, month and day", x.Formatter, [...]string{"yyyy", "MM", "dd"}[field])
		}
	}
	return nil
}

// Uses says of which partition columns the text is made.
func (x *TimeExtractor) Uses(names []string) []bool {
	used := make([]bool, len(names))
	if x.Pattern == "" && len(names) > 0 {
		used[0] = true
	}
	for _, rest, found := strings.Cut(x.Pattern, "$"); found; _, rest, found = strings.Cut(rest, "$") {
		if i := longestName(names, rest); i >= 0 {
			used[i] = true
		}
	}
	return used
}

// Extract is the time the values name, as an instant in microseconds: the
// later one where local time repeats.
func (x *TimeExtractor) Extract(names, values []string, zone *time.Location) (micros int64, err error) {
	text := x.text(names, values)
	var s stamp
	if x.Formatter == "" {
		local, err := lenientTime(text)
		if err != nil {
			return 0, err
		}
		return instant(local, zone), nil
	}
	tokens, err := x.tokens()
	if err != nil {
		return 0, err
	}
	rest, err := s.parse(tokens, text)
	if err == nil && rest != "" {
		err = fmt.Errorf("%q is left over", rest)
	}
	if err == nil {
		// What is not there is midnight.
		for f := hourField; f <= milliField; f++ {
			s.known[f] = true
		}
		if local, _, ok := s.local(); ok {
			return instant(local, zone), nil
		}
		err = fmt.Errorf("there is no such date")
	}
	return 0, fmt.Errorf("time of partition: %q does not fit %q: %w", text, x.Formatter, err)
}

// text puts the values into the pattern, in one pass: what a value holds is
// never taken for a name, and $day is not $d followed by "ay".
func (x *TimeExtractor) text(names, values []string) string {
	if x.Pattern == "" {
		if len(values) == 0 {
			return ""
		}
		return values[0]
	}
	var b strings.Builder
	for rest := x.Pattern; ; {
		before, after, found := strings.Cut(rest, "$")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		if i := longestName(names, after); i >= 0 && i < len(values) {
			b.WriteString(values[i])
			after = after[len(names[i]):]
		} else {
			b.WriteByte('$')
		}
		rest = after
	}
}

// longestName is the index of the longest name that s starts with, or -1.
func longestName(names []string, s string) int {
	best := -1
	for i, n := range names {
		if n != "" && len(s) >= len(n) && strings.EqualFold(s[:len(n)], n) && (best < 0 || len(n) > len(names[best])) {
			best = i
		}
	}
	return best
}

func (x *TimeExtractor) tokens() ([]token, error) {
	return parseTokens(x.Formatter, func(letter byte, width int) bool {
		switch letter {
		case 'y':
			return width == 4 || width == 1
		case 'M', 'd', 'H', 'm', 's':
			return width <= 2
		case 'S':
			return width <= 9
		}
		return false
	})
}

// parse reads text by its layout and returns what is left of it.
func (s *stamp) parse(tokens []token, text string) (rest string, err error) {
	for i, k := range tokens {
		if k.field == 0 {
			after, ok := strings.CutPrefix(text, k.text)
			if !ok {
				return text, fmt.Errorf("%q does not start with %q", text, k.text)
			}
			text = after
			continue
		}
		v, after, ok := parseField(k, text, i+1 < len(tokens) && tokens[i+1].field != 0)
		if !ok {
			return text, fmt.Errorf("%q does not start with %d digits", text, k.width)
		}
		if !s.set(fieldOf(k.field), v) {
			return text, fmt.Errorf("%d is out of range, or another column says otherwise", v)
		}
		text = after
	}
	return text, nil
}

// parseField reads a number. A field of one letter has as many digits as there
// are; a year may have more than four, or a minus, unless another field
// follows it without anything between.
func parseField(k token, text string, adjacent bool) (v int64, rest string, ok bool) {
	if k.field == 'S' {
		v, rest, ok = parseDigits(text, k.width, k.width)
		for n := k.width; n < 3; n++ {
			v *= 10
		}
		for n := k.width; n > 3; n-- {
			v /= 10
		}
		return v, rest, ok
	}
	if k.field != 'y' {
		if k.width == 1 {
			return parseDigits(text, 1, 2)
		}
		return parseDigits(text, k.width, k.width)
	}
	digits, negative := strings.CutPrefix(text, "-")
	most := 10
	if adjacent {
		most = 4
	}
	v, rest, ok = parseDigits(digits, k.width, most)
	if negative {
		v = -v
	}
	return v, rest, ok
}

// lenientTime reads yyyy-MM-dd[ HH:mm:ss[.fraction]] with short numbers; what
// is out of range rolls over.
func lenientTime(text string) (local int64, err error) {
	fail := func() (int64, error) {
		return 0, fmt.Errorf("time of partition: %q is not yyyy-MM-dd or yyyy-MM-dd HH:mm:ss; set the extractor's pattern or formatter", text)
	}
	var f [6]int64
	rest, negative := strings.CutPrefix(text, "-")
	for i := range f {
		most := 2
		if i == yearField {
			most = 10
		} else {
			after, ok := strings.CutPrefix(rest, [...]string{"", "-", "-", " ", ":", ":"}[i])
			if !ok {
				return fail()
			}
			rest = after
		}
		var ok bool
		if f[i], rest, ok = parseDigits(rest, 1, most); !ok {
			return fail()
		}
		if i == dayField && rest == "" {
			break
		}
	}
	micros := int64(0)
	if fraction, ok := strings.CutPrefix(rest, "."); ok {
		n := len(fraction)
		if micros, rest, ok = parseDigits(fraction, 1, 9); !ok || rest != "" {
			return fail()
		}
		for ; n < 6; n++ {
			micros *= 10
		}
		for ; n > 6; n-- {
			micros /= 10
		}
	}
	if negative {
		f[yearField] = -f[yearField]
	}
	if rest != "" || f[yearField] > maxYear || f[yearField] < -maxYear {
		return fail()
	}
	return dayNumber(f[yearField], f[monthField], f[dayField])*microsPerDay + f[hourField]*microsPerHour +
		f[minuteField]*microsPerMinute + f[secondField]*microsPerSecond + micros, nil
}
