package record

import (
	"strings"
	"testing"

	"github.com/hivesink/hivesink/layout"
)

// TestLimit: a row whose partition the storage could not have is a bad row, also
// when each of its values is fine (P3).
func TestLimit(t *testing.T) {
	s := testSchema(t, "a string", "b string", "c string")
	rec := testBatch(t, s,
		[]string{"x", "y", "z"},
		[]string{"x", "y", strings.Repeat("z", 40)},
		[]string{"x", "a\uffffb", "z"},
		[]string{strings.Repeat("x", 40), "y", "z"},
		[]string{"x", "y", "z"},
		[]string{"x", "y", strings.Repeat("z", 33)}, // just short enough
		[]string{"x", "a\ufffdb", "z"})
	for _, c := range []struct {
		limits layout.Limits
		bad    map[int]string
	}{
		{layout.Limits{}, nil},
		{layout.Limits{XML: true}, map[int]string{2: ClassType}},
		{layout.Limits{Path: 43}, map[int]string{1: ClassPartition, 3: ClassPartition}},
		{layout.Limits{Path: 43, XML: true}, map[int]string{1: ClassPartition, 2: ClassType, 3: ClassPartition}},
	} {
		p := newPartitioner(t, s, nil, "a", "b", "c")
		p.Limit(c.limits)
		for range 2 { // the second time the values are known
			out := make([]int32, rec.NumRows())
			last := -1
			bad := p.Assign(rec, out)
			for _, e := range bad {
				if e.Row <= last || c.bad[e.Row] != e.Class || out[e.Row] != -1 || e.Reason == "" {
					t.Errorf("%+v: %+v, number %d", c.limits, e, out[e.Row])
				}
				last = e.Row
			}
			if len(bad) != len(c.bad) || p.Len() != 6-len(c.bad) {
				t.Errorf("%+v: %d bad rows, %d partitions", c.limits, len(bad), p.Len())
			}
			for i, n := range out {
				if n >= 0 && len(p.Partition(n).Path) > 43 && c.limits.Path > 0 {
					t.Errorf("%+v: row %d has %s", c.limits, i, p.Partition(n).Path)
				}
			}
		}
	}
}
