package layout

import (
	"testing"
	"time"
)

// L5: the calendar against the standard library, over 8,000 years.
func TestCivil(t *testing.T) {
	at := time.Date(-4000, 1, 1, 0, 0, 0, 0, time.UTC)
	for at.Year() < 4000 {
		days := floorDiv(at.Unix(), 86400)
		y, m, d := civil(days)
		if int(y) != at.Year() || m != int(at.Month()) || d != at.Day() {
			t.Fatalf("day %d is %d-%d-%d, want %v", days, y, m, d, at)
		}
		if back := dayNumber(y, int64(m), int64(d)); back != days {
			t.Fatalf("%v is day %d, want %d", at, back, days)
		}
		at = at.AddDate(0, 0, 13)
	}
	// Months and days roll over.
	for _, c := range [][4]int64{{2024, 13, 1, dayNumber(2025, 1, 1)}, {2024, 0, 1, dayNumber(2023, 12, 1)}, {2023, 2, 29, dayNumber(2023, 3, 1)}, {2024, -11, 1, dayNumber(2023, 1, 1)}} {
		if got := dayNumber(c[0], c[1], c[2]); got != c[3] {
			t.Errorf("%v is day %d", c[:3], got)
		}
	}
}

// L5: text of instants; OD-01, OD-02.
func TestTimeText(t *testing.T) {
	for _, c := range []struct{ at, zone, expr, want string }{
		{"1969-12-31T23:59:59.500000Z", "UTC", "date(ts)", "1969-12-31"},
		{"1969-12-31T23:59:59.999999Z", "UTC", "hour(ts)", "23"},
		{"1965-07-04T00:00:00.250000Z", "UTC", `format(ts, "yyyyMMdd HH:mm:ss.SSS")`, "19650704 00:00:00.250"},
		{"1000-02-28T23:59:59Z", "UTC", "date(ts)", "1000-02-28"},
		{"0001-01-01T00:00:00Z", "UTC", "date(ts)", "0001-01-01"},
		{"9999-12-31T23:59:59Z", "UTC", "date(ts)", "9999-12-31"},
		{"9999-12-31T23:59:59Z", "Asia/Tokyo", "date(ts)", "10000-01-01"},
		{"0000-01-01T00:00:00Z", "America/New_York", "date(ts)", "-0001-12-31"},
		{"2024-02-29T12:00:00Z", "UTC", "year(ts)", "2024"},
		{"2024-02-29T12:00:00Z", "UTC", "month(ts)", "02"},
		{"2024-02-29T12:00:00Z", "UTC", "day(ts)", "29"},
		{"2024-01-01T00:00:00Z", "America/New_York", "year(ts)", "2023"},
		{"2024-01-01T18:20:00Z", "Asia/Kathmandu", "hour(ts)", "00"},
		{"1883-11-18T12:00:00Z", "America/New_York", `format(ts, "HH:mm:ss")`, "07:03:58"}, // local mean time
		{"2024-01-01T18:20:00Z", "UTC", `format(ts, "'yyyy' yyyy")`, "yyyy 2024"},
	} {
		z := NewZone(zone(t, c.zone))
		tr := mustTransform(t, "p", c.expr)
		if got := string(tr.AppendTime(nil, z.Local(micros(t, c.at)))); got != c.want {
			t.Errorf("%s of %s in %s is %q, want %q", c.expr, c.at, c.zone, got, c.want)
		}
	}
	for _, c := range [][2]string{
		{"2024-01-01T18:20:00Z", "2024-01-01 18:20:00"}, {"2024-01-01T18:20:00.5Z", "2024-01-01 18:20:00.5"},
		{"1969-12-31T23:59:59.999990Z", "1969-12-31 23:59:59.99999"}, {"2024-01-01T18:20:00.000001Z", "2024-01-01 18:20:00.000001"},
	} {
		if got := string(AppendTimestamp(nil, micros(t, c[0]))); got != c[1] {
			t.Errorf("timestamp %s is %q", c[0], got)
		}
	}
}

func TestPeriod(t *testing.T) {
	type value struct{ spec, value string }
	for _, c := range []struct {
		zone       string
		values     []value
		start, end string // "": none
	}{
		{"UTC", []value{{"date(ts)", "2024-02-28"}}, "2024-02-28T00:00:00Z", "2024-02-29T00:00:00Z"},
		{"UTC", []value{{"date(ts)", "1969-12-31"}}, "1969-12-31T00:00:00Z", "1970-01-01T00:00:00Z"},
		{"UTC", []value{{"year(ts)", "2024"}}, "2024-01-01T00:00:00Z", "2025-01-01T00:00:00Z"},
		{"UTC", []value{{"year(ts)", "2024"}, {"month(ts)", "12"}}, "2024-12-01T00:00:00Z", "2025-01-01T00:00:00Z"},
		{"UTC", []value{{"hour(ts)", "23"}, {"day(ts)", "29"}, {"month(ts)", "02"}, {"year(ts)", "2024"}}, "2024-02-29T23:00:00Z", "2024-03-01T00:00:00Z"},
		{"UTC", []value{{"date(ts)", "2024-02-28"}, {"hour(ts)", "07"}}, "2024-02-28T07:00:00Z", "2024-02-28T08:00:00Z"},
		{"UTC", []value{{`format(ts, "yyyyMMdd")`, "20240228"}}, "2024-02-28T00:00:00Z", "2024-02-29T00:00:00Z"},
		{"UTC", []value{{`format(ts, "yyyyMMdd-HHmm")`, "20240228-0705"}}, "2024-02-28T07:05:00Z", "2024-02-28T07:06:00Z"},
		{"UTC", []value{{`format(ts, "ss.SSS")`, "07.250"}, {`format(ts, "yyyy-MM-dd HH:mm")`, "2024-02-28 01:02"}}, "2024-02-28T01:02:07.25Z", "2024-02-28T01:02:07.251Z"},
		{"UTC", []value{{"", "de"}, {"date(ts)", "2024-02-28"}}, "2024-02-28T00:00:00Z", "2024-02-29T00:00:00Z"},
		{"UTC", []value{{"date(ts)", "0001-01-01"}}, "0001-01-01T00:00:00Z", "0001-01-02T00:00:00Z"},
		// Gaps: as fine as the fields go without one.
		{"UTC", []value{{"year(ts)", "2024"}, {"day(ts)", "07"}}, "2024-01-01T00:00:00Z", "2025-01-01T00:00:00Z"},
		{"UTC", []value{{"hour(ts)", "07"}}, "", ""},
		{"UTC", []value{{"month(ts)", "07"}}, "", ""},
		{"UTC", []value{{"", "2024-02-28"}}, "", ""},
		// Two source columns: an hour of the one is no hour of the other.
		{"UTC", []value{{"hour(received)", "07"}, {"date(ts)", "2024-02-28"}}, "2024-02-28T00:00:00Z", "2024-02-29T00:00:00Z"},
		{"UTC", []value{{"date(received)", DefaultPartition}, {"date(ts)", "2024-02-28"}}, "2024-02-28T00:00:00Z", "2024-02-29T00:00:00Z"},
		// Not a period.
		{"UTC", []value{{"date(ts)", DefaultPartition}}, "", ""},
		{"UTC", []value{{"date(ts)", "2024-02-28"}, {"hour(ts)", DefaultPartition}}, "", ""},
		{"UTC", []value{{"date(ts)", "2023-02-29"}}, "", ""},
		{"UTC", []value{{"date(ts)", "2023-13-01"}}, "", ""},
		{"UTC", []value{{"date(ts)", "2023-01-01x"}}, "", ""},
		{"UTC", []value{{"date(ts)", "2023-01-01"}, {"hour(ts)", "24"}}, "", ""},
		{"UTC", []value{{"date(ts)", "2023-01-01"}, {"year(ts)", "2024"}}, "", ""},
		{"UTC", []value{{"year(ts)", "999999999"}}, "", ""},
		// L6: local time repeats.
		{"America/New_York", []value{{"date(ts)", "2024-11-03"}, {"hour(ts)", "00"}}, "2024-11-03T04:00:00Z", "2024-11-03T05:00:00Z"},
		{"America/New_York", []value{{"date(ts)", "2024-11-03"}, {"hour(ts)", "01"}}, "2024-11-03T05:00:00Z", "2024-11-03T07:00:00Z"},
		{"America/New_York", []value{{"date(ts)", "2024-11-03"}, {"hour(ts)", "02"}}, "2024-11-03T07:00:00Z", "2024-11-03T08:00:00Z"},
		{"America/New_York", []value{{"date(ts)", "2024-11-03"}}, "2024-11-03T04:00:00Z", "2024-11-04T05:00:00Z"},
		{"Australia/Lord_Howe", []value{{"date(ts)", "2024-04-07"}, {"hour(ts)", "01"}}, "2024-04-06T14:00:00Z", "2024-04-06T15:30:00Z"}, // by half an hour
		{"America/Santiago", []value{{"date(ts)", "2024-04-06"}, {"hour(ts)", "23"}}, "2024-04-07T02:00:00Z", "2024-04-07T04:00:00Z"},
		{"America/Santiago", []value{{"date(ts)", "2024-04-06"}}, "2024-04-06T03:00:00Z", "2024-04-07T04:00:00Z"}, // midnight itself repeats
		{"America/Santiago", []value{{"date(ts)", "2024-04-07"}}, "2024-04-07T04:00:00Z", "2024-04-08T04:00:00Z"},
		// Local time is skipped.
		{"America/New_York", []value{{"date(ts)", "2024-03-10"}, {"hour(ts)", "01"}}, "2024-03-10T06:00:00Z", "2024-03-10T07:00:00Z"},
		{"America/New_York", []value{{"date(ts)", "2024-03-10"}, {"hour(ts)", "02"}}, "2024-03-10T07:00:00Z", "2024-03-10T07:00:00Z"},
		{"America/New_York", []value{{"date(ts)", "2024-03-10"}, {"hour(ts)", "03"}}, "2024-03-10T07:00:00Z", "2024-03-10T08:00:00Z"},
		{"America/Santiago", []value{{"date(ts)", "2024-09-08"}}, "2024-09-08T04:00:00Z", "2024-09-09T03:00:00Z"}, // starts at 01:00
		{"America/Santiago", []value{{"date(ts)", "2024-09-08"}, {"hour(ts)", "00"}}, "2024-09-08T04:00:00Z", "2024-09-08T04:00:00Z"},
		{"Pacific/Apia", []value{{"date(ts)", "2011-12-30"}}, "2011-12-30T10:00:00Z", "2011-12-30T10:00:00Z"}, // a day that never was
	} {
		var spec []Transform
		var values []string
		for i, v := range c.values {
			spec = append(spec, mustTransform(t, string(rune('a'+i)), v.spec))
			values = append(values, v.value)
		}
		start, end, ok := Period(spec, values, zone(t, c.zone))
		if c.start == "" {
			if ok {
				t.Errorf("%s %v: %v to %v, want none", c.zone, c.values, time.UnixMicro(start).UTC(), time.UnixMicro(end).UTC())
			}
			continue
		}
		if !ok || start != micros(t, c.start) || end != micros(t, c.end) {
			t.Errorf("%s %v: %v to %v (%v), want %s to %s", c.zone, c.values, time.UnixMicro(start).UTC(), time.UnixMicro(end).UTC(), ok, c.start, c.end)
		}
	}
}

// L6: over years, in zones with odd rules, every instant lies in the period of
// its own values, and the instant of the end does not.
func TestPeriodHoldsItsInstants(t *testing.T) {
	spec := []Transform{mustTransform(t, "dt", "date(ts)"), mustTransform(t, "hr", "hour(ts)")}
	for _, name := range []string{"America/New_York", "Australia/Lord_Howe", "America/Santiago", "Asia/Kathmandu", "Pacific/Apia"} {
		loc := zone(t, name)
		z := NewZone(loc)
		from, to := micros(t, "2011-09-01T00:00:00Z"), micros(t, "2012-12-01T00:00:00Z")
		for at := from; at < to; at += 17*microsPerMinute + 1 {
			values := make([]string, 2)
			for i, tr := range spec {
				values[i] = string(tr.AppendTime(nil, z.Local(at)))
			}
			start, end, ok := Period(spec, values, loc)
			if !ok || at < start || at >= end {
				t.Fatalf("%s: %v is %v, whose period is %v to %v", name, time.UnixMicro(at).UTC(), values, time.UnixMicro(start).UTC(), time.UnixMicro(end).UTC())
			}
			if hour := string(spec[1].AppendTime(nil, z.Local(end))); hour == values[1] {
				t.Fatalf("%s: %v is over at %v, but its values are not", name, values, time.UnixMicro(end).UTC())
			}
		}
	}
}

// L6: the last day of a leap year, in zones that follow a yearly rule: from 2038
// on in every zone database, from the zone's last change of rules on in the one
// that the binary brings along.
func TestLastDayOfLeapYear(t *testing.T) {
	spec := []Transform{{Name: "dt", Func: Date, Column: "ts"}, {Name: "hr", Func: Hour, Column: "ts"}}
	for _, name := range []string{"America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "America/Santiago", "Antarctica/Troll"} {
		loc, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, year := range []int{2040, 2041, 2096} {
			at := time.Date(year, 12, 29, 0, 30, 0, 0, time.UTC)
			for ; at.Before(time.Date(year+1, 1, 3, 0, 0, 0, 0, time.UTC)); at = at.Add(time.Hour) {
				micros := at.UnixMicro()
				z := NewZone(loc)
				from, to, offset := z.Span(micros)
				if _, want := at.In(loc).Zone(); from > micros || to <= micros || offset != int64(want)*microsPerSecond {
					t.Fatalf("%s at %s: [%d %d), offset %d, want %d s", name, at, from, to, offset, want)
				}
				local := z.Local(micros)
				values := []string{string(spec[0].AppendTime(nil, local)), string(spec[1].AppendTime(nil, local))}
				start, end, ok := Period(spec, values, loc)
				if !ok || end-start != microsPerHour || micros < start || micros >= end {
					t.Fatalf("%s at %s: period [%d %d) of %v, %v", name, at, start, end, values, ok)
				}
				if got := instant(local, loc); got != micros {
					t.Fatalf("%s at %s: instant %d, want %d", name, at, got, micros)
				}
			}
		}
	}
}

func TestExtract(t *testing.T) {
	for _, c := range []struct {
		pattern, formatter, zone string
		names, values            []string
		want                     string // "": an error
	}{
		{"", "", "UTC", []string{"dt", "hr"}, []string{"2024-05-06", "x"}, "2024-05-06T00:00:00Z"},
		{"", "", "UTC", []string{"dt"}, []string{"2024-05-06 07:08:09.25"}, "2024-05-06T07:08:09.25Z"},
		{"$dt $hr:00:00", "", "UTC", []string{"dt", "hr"}, []string{"2024-05-06", "7"}, "2024-05-06T07:00:00Z"},
		{"$DT $hr:00:00", "", "UTC", []string{"dt", "hr"}, []string{"2024-05-06", "24"}, "2024-05-07T00:00:00Z"}, // rolls over
		{"$y-$m-$d", "", "UTC", []string{"y", "m", "d"}, []string{"2024", "2", "30"}, "2024-03-01T00:00:00Z"},
		// Longest name first, literally, once.
		{"$day $d:00:00", "", "UTC", []string{"d", "day"}, []string{"7", "2024-05-06"}, "2024-05-06T07:00:00Z"},
		{"$a", "yyyy-MM-dd '$b'", "UTC", []string{"a", "b"}, []string{"2024-05-06 $b", "x"}, "2024-05-06T00:00:00Z"},
		{"$a", "yyyy-MM-dd\\", "UTC", []string{"a"}, []string{"2024-05-06\\"}, "2024-05-06T00:00:00Z"},
		{"$d $e:00:00", "MM-dd-yyyy HH:mm:ss", "UTC", []string{"d", "e"}, []string{"05-06-2024", "07"}, "2024-05-06T07:00:00Z"},
		{"$d", "yyyyMMdd", "UTC", []string{"d"}, []string{"20240506"}, "2024-05-06T00:00:00Z"},
		{"$d", "d/M/yyyy H", "UTC", []string{"d"}, []string{"6/5/2024 7"}, "2024-05-06T07:00:00Z"},
		{"$d", "yyyy-MM-dd HH:mm:ss.SSSSSS", "UTC", []string{"d"}, []string{"2024-05-06 07:08:09.250999"}, "2024-05-06T07:08:09.25Z"},
		{"$d $h:00:00", "", "Asia/Shanghai", []string{"d", "h"}, []string{"2024-05-06", "00"}, "2024-05-05T16:00:00Z"},
		// Twice there: the later one. Never there: as far after the change.
		{"$d $h:00:00", "", "America/New_York", []string{"d", "h"}, []string{"2024-11-03", "01"}, "2024-11-03T06:00:00Z"},
		{"$d $h:30:00", "", "America/New_York", []string{"d", "h"}, []string{"2024-03-10", "02"}, "2024-03-10T07:30:00Z"},
		{"", "", "UTC", []string{"dt"}, []string{DefaultPartition}, ""},
		{"", "", "UTC", []string{"dt"}, []string{"20240506"}, ""},
		{"", "", "UTC", []string{"dt"}, []string{"2024-05-06 07:08"}, ""},
		{"", "", "UTC", []string{"dt"}, []string{"2024-05-06 07:08:09."}, ""},
		{"", "", "UTC", []string{"dt"}, []string{"2024-05-06 07:08:09.1234567890"}, ""},
		{"", "", "UTC", []string{"dt"}, []string{"2024-05-06 "}, ""},
		{"", "", "UTC", []string{"dt"}, []string{"9999999999-05-06"}, ""},
		{"", "", "UTC", nil, nil, ""},
		{"$d", "yyyyMMdd", "UTC", []string{"d"}, []string{"20240230"}, ""},
		{"$d", "yyyyMMdd", "UTC", []string{"d"}, []string{"20241306"}, ""},
		{"$d", "yyyyMMdd", "UTC", []string{"d"}, []string{"2024-05-06"}, ""},
		{"$d", "yyyyMMdd", "UTC", []string{"d"}, []string{"202405061"}, ""},
		{"$d", "yyyyMMdd HH", "UTC", []string{"d"}, []string{"20240506 24"}, ""},
	} {
		x := &TimeExtractor{Pattern: c.pattern, Formatter: c.formatter}
		got, err := x.Extract(c.names, c.values, zone(t, c.zone))
		if c.want == "" {
			if err == nil {
				t.Errorf("%+v of %q is %v", *x, c.values, time.UnixMicro(got).UTC())
			}
			continue
		}
		if err != nil || got != micros(t, c.want) {
			t.Errorf("%+v of %q in %s is %v, %v, want %s", *x, c.values, c.zone, time.UnixMicro(got).UTC(), err, c.want)
		}
	}
}

func TestExtractorCheck(t *testing.T) {
	names := []string{"dt", "hr"}
	for _, c := range []struct {
		pattern, formatter string
		ok                 bool
	}{
		{"", "", true}, {"$dt $hr:00:00", "yyyy-MM-dd HH:mm:ss", true}, {"$dt", "d.M.yyyy", true}, {"$DT", "", true},
		{"$day", "", false}, {"$dt $x", "", false}, {"$", "", false},
		{"$dt", "yyyy-MM", false}, {"$dt", "yy-MM-dd", false}, {"$dt", "yyyy-MM-dd'", false}, {"$dt", "yyyy-MM-dd a", false},
	} {
		if err := (&TimeExtractor{Pattern: c.pattern, Formatter: c.formatter}).Check(names); (err == nil) != c.ok {
			t.Errorf("pattern %q, formatter %q: %v", c.pattern, c.formatter, err)
		}
	}
	if (&TimeExtractor{}).Check(nil) == nil {
		t.Error("no columns are no problem")
	}
}

// Whatever the text is, Extract returns, and no time wraps around.
func FuzzExtract(f *testing.F) {
	f.Add("$dt", "yyyyMMdd", "20240506")
	f.Add("", "", "2024-05-06 07:08:09.5")
	f.Fuzz(func(t *testing.T, pattern, formatter, value string) {
		x := &TimeExtractor{Pattern: pattern, Formatter: formatter}
		at, err := x.Extract([]string{"dt"}, []string{value}, time.UTC)
		if y, _, _ := civil(DateOf(at)); err == nil && (y > maxYear+10 || y < -maxYear-10) {
			t.Errorf("%q is in the year %d", value, y)
		}
	})
}

func zone(t *testing.T, name string) *time.Location {
	t.Helper()
	loc, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

func micros(t *testing.T, text string) int64 {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t.Fatal(err)
	}
	return at.UnixMicro()
}

func mustTransform(t *testing.T, name, expr string) Transform {
	t.Helper()
	tr, err := ParseTransform(name, expr)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}
