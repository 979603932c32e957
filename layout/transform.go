package layout

import (
	"fmt"
	"strconv"
	"strings"
)

// The functions of a Transform.
const (
	Identity = "identity" // the column's value
	Date     = "date"     // 2026-01-31
	Year     = "year"     // 2026
	Month    = "month"    // 01
	Day      = "day"      // 31
	Hour     = "hour"     // 00-23
	Format   = "format"   // by Layout
	Bucket   = "bucket"   // 0 … N-1, Iceberg's murmur3 rule
	Truncate = "truncate" // N code points, or down to a multiple of N
)

// Transform says how one partition column comes from a column of the table.
type Transform struct {
	Name   string // of the partition column, lower case
	Func   string // one of the constants above
	Column string // of the table, lower case
	N      int    // Bucket: how many buckets; Truncate: the width
	Layout string // Format: yyyy MM dd HH mm ss SSS, 'text', punctuation
}

// String is the transform as ParseTransform reads it: "date(ts)",
// "bucket(16, id)"; of an identity the column.
func (t Transform) String() string {
	switch t.Func {
	case Identity:
		return t.Column
	case Format:
		return fmt.Sprintf("format(%s, %s)", t.Column, strconv.Quote(t.Layout))
	case Bucket, Truncate:
		return fmt.Sprintf("%s(%d, %s)", t.Func, t.N, t.Column)
	}
	return t.Func + "(" + t.Column + ")"
}

// Temporal says whether the values come from a moment in time.
func (t Transform) Temporal() bool {
	switch t.Func {
	case Date, Year, Month, Day, Hour, Format:
		return true
	}
	return false
}

const transformList = "a column, date(c), year(c), month(c), day(c), hour(c), format(c, \"yyyyMMdd\"), bucket(16, c) or truncate(4, c)"

// ParseTransform reads the transform of partition column name: "" is the
// column of that name itself. Errors say what was expected.
func ParseTransform(name, expr string) (Transform, error) {
	t := Transform{Name: strings.ToLower(strings.TrimSpace(name))}
	if t.Name == "" {
		return Transform{}, fmt.Errorf("a partition column needs a name")
	}
	fail := func(format string, args ...any) (Transform, error) {
		return Transform{}, fmt.Errorf("partition column %s: %s", t.Name, fmt.Sprintf(format, args...))
	}
	expr = strings.TrimSpace(expr)
	if expr == "" {
		t.Func, t.Column = Identity, t.Name
		return t, nil
	}
	fn, rest, call := strings.Cut(expr, "(")
	if !call {
		column, ok := columnName(expr)
		if !ok {
			return fail("%q is not a transform; expected %s", expr, transformList)
		}
		t.Func, t.Column = Identity, column
		return t, nil
	}
	inner, ok := strings.CutSuffix(rest, ")")
	if !ok {
		return fail("%q has no closing parenthesis at its end", expr)
	}
	t.Func = strings.ToLower(strings.TrimSpace(fn))
	var err error
	switch t.Func {
	case Date, Year, Month, Day, Hour:
		err = t.parseColumn(inner, t.Func+"(c)")
	case Bucket, Truncate:
		err = t.parseNumbered(inner)
	case Format:
		err = t.parseFormat(inner)
	default:
		err = fmt.Errorf("no transform is called %q; expected %s", strings.TrimSpace(fn), transformList)
	}
	if err != nil {
		return fail("%s", err)
	}
	return t, nil
}

func (t *Transform) parseColumn(arg, form string) error {
	column, ok := columnName(arg)
	if !ok {
		return fmt.Errorf("%q is not the name of a column; expected %s", strings.TrimSpace(arg), form)
	}
	t.Column = column
	return nil
}

// parseNumbered reads the arguments of bucket(n, c) and truncate(n, c).
func (t *Transform) parseNumbered(args string) error {
	form := t.Func + "(16, c)"
	number, column, ok := strings.Cut(args, ",")
	if !ok {
		return fmt.Errorf("%s has one argument; expected two, as in %s", t.Func, form)
	}
	number = strings.TrimSpace(number)
	n, err := strconv.ParseInt(number, 10, 32)
	if err != nil || n < 1 {
		return fmt.Errorf("%q is not a whole number from 1 to 2147483647; expected %s", number, form)
	}
	t.N = int(n)
	return t.parseColumn(column, form)
}

// parseFormat reads the arguments of format(c, "layout").
func (t *Transform) parseFormat(args string) error {
	const form = "format(c, \"yyyyMMdd\")"
	column, quoted, ok := strings.Cut(args, ",")
	if !ok {
		return fmt.Errorf("format has one argument; expected two, as in %s", form)
	}
	quoted = strings.TrimSpace(quoted)
	if len(quoted) < 2 || quoted[0] != '"' {
		return fmt.Errorf("the layout %s is not in double quotes; expected %s", quoted, form)
	}
	text, err := strconv.Unquote(quoted)
	if err != nil {
		return fmt.Errorf("the layout %s is not one quoted text; expected %s", quoted, form)
	}
	if _, err := parseLayout(text); err != nil {
		return err
	}
	t.Layout = text
	return t.parseColumn(column, form)
}

// columnName is a column's name as Hive keeps it; backquotes may surround it.
func columnName(s string) (string, bool) {
	s = strings.TrimSpace(s)
	if n := len(s); n >= 2 && s[0] == '`' && s[n-1] == '`' {
		s = s[1 : n-1]
	}
	s = strings.ToLower(s)
	if s == "" || strings.ContainsAny(s, "(),\"'` \t\r\n") {
		return "", false
	}
	return s, true
}
