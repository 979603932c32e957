package pipeline

import (
	"maps"
	"slices"
	"testing"

	"github.com/hivesink/hivesink/config"
)

// A time that cannot be read is null where it partitions the table and may be
// null: dates as well as timestamps, by a transform or as they are.
func TestTimesThatMayBeUnreadable(t *testing.T) {
	cfg, err := config.Parse("times.yaml", []byte(`
pipeline: times
state_dir: ./state
source:
  stdin: {}
table:
  name: t
  location: ./t
  columns: [id bigint, a timestamp, b date, c date, d timestamp not null, e date, f timestamp, g string]
  partitioned_by: [{y: year(a)}, {m: month(b)}, c, {x: date(d)}, {n: "bucket(4, f)"}, g]
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	o, err := SourceOptions(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := slices.Sorted(maps.Keys(o.NullOnBadTime)); !slices.Equal(got, []string{"a", "b", "c", "f"}) {
		t.Errorf("null when unreadable: %q, want a, b, c and f", got)
	}
}
