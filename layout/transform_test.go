package layout

import (
	"strings"
	"testing"
)

func TestParseTransform(t *testing.T) {
	for _, c := range []struct {
		name, expr string
		want       Transform
	}{
		{"country", "", Transform{Name: "country", Func: Identity, Column: "country"}},
		{"Country", " ", Transform{Name: "country", Func: Identity, Column: "country"}},
		{"dt", "date(ts)", Transform{Name: "dt", Func: Date, Column: "ts"}},
		{"dt", " DATE ( `Ts` ) ", Transform{Name: "dt", Func: Date, Column: "ts"}},
		{"y", "year(ts)", Transform{Name: "y", Func: Year, Column: "ts"}},
		{"m", "month(ts)", Transform{Name: "m", Func: Month, Column: "ts"}},
		{"d", "day(ts)", Transform{Name: "d", Func: Day, Column: "ts"}},
		{"hr", "hour(ts)", Transform{Name: "hr", Func: Hour, Column: "ts"}},
		{"dt", `format(ts, "yyyyMMdd")`, Transform{Name: "dt", Func: Format, Column: "ts", Layout: "yyyyMMdd"}},
		{"dt", `format(ts,"yyyy-MM, 'it''s (' dd")`, Transform{Name: "dt", Func: Format, Column: "ts", Layout: "yyyy-MM, 'it''s (' dd"}},
		{"b", "bucket(16, id)", Transform{Name: "b", Func: Bucket, Column: "id", N: 16}},
		{"c", "truncate(4,code)", Transform{Name: "c", Func: Truncate, Column: "code", N: 4}},
		{"c", "other", Transform{Name: "c", Func: Identity, Column: "other"}},
	} {
		got, err := ParseTransform(c.name, c.expr)
		if err != nil || got != c.want {
			t.Errorf("%s: %s = %+v, %v", c.name, c.expr, got, err)
			continue
		}
		if back, err := ParseTransform(got.Name, got.String()); err != nil || back != got {
			t.Errorf("%s printed as %s, read as %+v, %v", c.expr, got, back, err)
		}
	}
}

// Errors say what was expected.
func TestParseTransformErrors(t *testing.T) {
	for _, c := range [][2]string{
		{"date(", "parenthesis"}, {"date)", "not a transform"}, {"date()", "expected date(c)"}, {"date(a, b)", "expected date(c)"},
		{"minute(ts)", "date(c), year(c)"}, {"bucket(id)", "two, as in bucket(16, c)"}, {"bucket(0, id)", "1 to 2147483647"},
		{"bucket(-1, id)", "1 to 2147483647"}, {"bucket(2147483648, id)", "1 to 2147483647"}, {"bucket(x, id)", "\"x\""}, {"bucket(4, )", "expected bucket(16, c)"},
		{"truncate(4)", "truncate(16, c)"}, {"format(ts)", `format(c, "yyyyMMdd")`}, {"format(ts, yyyyMMdd)", "double quotes"},
		{`format(ts, "yyyyMMdd" x)`, "not one quoted text"}, {`format(ts, "yy")`, `"yy" at position 1`}, {`format(ts, "yyyyMMddhh")`, `"hh" at position 9`},
		{`format(ts, "yyyy-M")`, `"M" at position 6`}, {`format(ts, "yyyy'T")`, "not closed"}, {`format(ts, "-")`, "no part of the time"},
		{`format(ts, "")`, "no part of the time"}, {`format(ts, "'yyyy'")`, "no part of the time"}, {`format(ts, "yyyy年")`, "single quotes"},
		{`format(ts, "yyyy[MM]")`, "single quotes"}, {`format(, "yyyy")`, "not the name of a column"}, {"a b", "not a transform"}, {"date(ts) x", "parenthesis"},
	} {
		if got, err := ParseTransform("p", c[0]); err == nil || !strings.Contains(err.Error(), c[1]) || !strings.Contains(err.Error(), "column p") {
			t.Errorf("%s = %+v, %v, want an error that says %q", c[0], got, err, c[1])
		}
	}
	if _, err := ParseTransform(" ", "date(ts)"); err == nil {
		t.Error("no name was needed")
	}
}

func FuzzParseTransform(f *testing.F) {
	for _, s := range []string{"", "date(ts)", "bucket(16, c)", `format(ts, "yyyyMMdd 'x'")`, "truncate(4, `c`)", "date(", "x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, expr string) {
		got, err := ParseTransform("p", expr)
		if err != nil {
			return
		}
		back, err := ParseTransform("p", got.String())
		if err != nil || back != got {
			t.Errorf("%q is %+v, printed as %s, read as %+v, %v", expr, got, got, back, err)
		}
		if got.Temporal() {
			for _, local := range []int64{0, -1, 1 << 60, -1 << 60} {
				if a, b := got.AppendTime(nil, local), got.AppendTime(nil, floorDiv(local, got.Unit())*got.Unit()); string(a) != string(b) {
					t.Errorf("%s: within one unit there are %s and %s", got, a, b)
				}
			}
		}
	})
}
