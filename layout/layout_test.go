package layout

import (
	"testing"
	"time"
)

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

// L6: TZ-02, the hour that comes twice.
func TestPeriodOfRepeatedHour(t *testing.T) {
	spec := []Transform{mustTransform(t, "day", "date(ts)"), mustTransform(t, "hour", "hour(ts)")}
	start, end, ok := Period(spec, []string{"2024-11-03", "01"}, zone(t, "America/New_York"))
	if !ok || start != micros(t, "2024-11-03T05:00:00Z") || end != micros(t, "2024-11-03T07:00:00Z") {
		t.Fatalf("got %v to %v, %v", time.UnixMicro(start).UTC(), time.UnixMicro(end).UTC(), ok)
	}
}
