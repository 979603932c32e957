package engines

import "testing"

// TestDiffers: whatever one engine sees otherwise is found.
func TestDiffers(t *testing.T) {
	found := func(change func(*Found)) *Found {
		f := &Found{Rows: 3, Digest: "ab", Columns: map[string]Column{"id": {"bigint", 0}, "name": {"string", 1}},
			Partitions: map[string]int{"dt=2026-01-01": 3}}
		change(f)
		return f
	}
	same := func(*Found) {}
	if err := found(same).differs(found(same)); err != nil {
		t.Fatal(err)
	}
	for name, other := range map[string]*Found{
		"nothing":   nil,
		"rows":      found(func(f *Found) { f.Rows++ }),
		"type":      found(func(f *Found) { f.Columns["id"] = Column{"int", 0} }),
		"nulls":     found(func(f *Found) { f.Columns["name"] = Column{"string", 2} }),
		"column":    found(func(f *Found) { delete(f.Columns, "name") }),
		"partition": found(func(f *Found) { f.Partitions = map[string]int{"dt=__HIVE_DEFAULT_PARTITION__": 3} }),
		"values":    found(func(f *Found) { f.Digest = "ac" }),
	} {
		if err := found(same).differs(other); err == nil {
			t.Errorf("%s: another answer was not noticed", name)
		}
	}
}
