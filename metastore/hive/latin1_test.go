package hive_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/layout"
	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/metastore/hivetest"
)

// TestNamesThatAreNotKept: PE-07. A server whose database has no such letters
// keeps question marks, so that two values become one partition. Neither counts
// as announced, and the error has both names; the others are announced.
func TestNamesThatAreNotKept(t *testing.T) {
	s := hivetest.New(t)
	s.Latin1()
	c := open(t, options(t, s))
	var as []ledger.Announcement
	for _, v := range []string{"東京", "大阪", "café", "Z"} {
		as = append(as, ledger.Announcement{Partition: layout.PartitionPath([]string{"dt"}, []string{v}), Values: []string{v},
			Number: 1, Cut: 1, Files: 1, Rows: 10, Bytes: 100})
	}
	for range 2 { // also when it is tried again
		err := c.Announce(t.Context(), as)
		var some interface{ FailedAt(int) error }
		if !errors.As(err, &some) || fault.ClassOf(err) != fault.Retry {
			t.Fatalf("class %s: %v", fault.ClassOf(err), err)
		}
		for i, a := range as {
			err := some.FailedAt(i)
			if kept := i >= 2; kept != (err == nil) {
				t.Errorf("%s: %v", a.Partition, err)
			}
			if err != nil && (!strings.Contains(err.Error(), a.Partition) || !strings.Contains(err.Error(), "dt=%3F%3F")) {
				t.Errorf("%s: the error does not have both names: %v", a.Partition, err)
			}
		}
	}
	// And on its own.
	if err := c.Announce(t.Context(), as[:1]); fault.ClassOf(err) != fault.Retry || !strings.Contains(err.Error(), "dt=%3F%3F") {
		t.Errorf("class %s: %v", fault.ClassOf(err), err)
	}
	if got := s.Partitions("web.t"); !slices.Equal(got, []string{"dt=??", "dt=Z", "dt=café"}) {
		t.Errorf("partitions %q", got)
	}
}
