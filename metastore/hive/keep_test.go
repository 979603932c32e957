package hive_test

import (
	"fmt"
	"strings"
	"testing"

	hms "github.com/beltran/gohive/hive_metastore"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/metastore/hivetest"
)

// TestWhatIsNotOursIsKept: an announcement of a partition that is there changes
// its totals, and nothing that somebody else has put there; but statistics are
// not left marked as accurate (HM8).
func TestWhatIsNotOursIsKept(t *testing.T) {
	s := hivetest.New(t)
	c := open(t, options(t, s))
	as := days(2)
	must(t, c.Announce(t.Context(), as))
	s.Change("web.t", "dt=d0000", func(p *hms.Partition) {
		p.Parameters["owner"] = "ops"
		p.Parameters["COLUMN_STATS_ACCURATE"] = `{"BASIC_STATS":"true"}`
		p.Parameters["numRows"] = "7"
		p.Sd.SerdeInfo = &hms.SerDeInfo{SerializationLib: p.Sd.SerdeInfo.SerializationLib, Parameters: map[string]string{"odd": "yes"}}
	})
	for _, number := range []int64{1, 2} { // the same again, and a new one
		for i := range as {
			as[i].Number, as[i].Files, as[i].Rows = number, number, 10*number
		}
		must(t, c.Announce(t.Context(), as))
		p := s.Change("web.t", "dt=d0000", func(*hms.Partition) {})
		if p.Parameters["owner"] != "ops" || p.Sd.SerdeInfo.Parameters["odd"] != "yes" {
			t.Errorf("announcement %d: what was not ours is gone: %v, %v", number, p.Parameters, p.Sd.SerdeInfo)
		}
		if _, marked := p.Parameters["COLUMN_STATS_ACCURATE"]; marked || p.Parameters["numRows"] != fmt.Sprint(10*number) {
			t.Errorf("announcement %d: %v", number, p.Parameters)
		}
	}
}

// TestPartitionElsewhere: MS-01. A partition that somebody else has put elsewhere
// is an error with both places, and is not touched (HM4); the others are announced.
func TestPartitionElsewhere(t *testing.T) {
	s := hivetest.New(t)
	c := open(t, options(t, s))
	as := days(3)
	must(t, c.Announce(t.Context(), as[:2]))
	s.MovePartition("web.t", "dt=d0001", "file:/elsewhere")
	for i := range as {
		as[i].Number, as[i].Rows = 2, 20
	}
	err := c.Announce(t.Context(), as)
	if fault.ClassOf(err) != fault.Retry || !strings.Contains(fmt.Sprint(err), "file:/elsewhere") || !strings.Contains(fmt.Sprint(err), "/t/dt=d0001") {
		t.Fatalf("class %s: %v", fault.ClassOf(err), err)
	}
	p := s.Change("web.t", "dt=d0001", func(*hms.Partition) {})
	if p.Sd.Location != "file:/elsewhere" || p.Parameters["numRows"] != "10" {
		t.Errorf("it was changed: %s, %v", p.Sd.Location, p.Parameters)
	}
	for _, i := range []int{0, 2} {
		e, err := c.Get(t.Context(), ledger.MainTable, as[i].Partition)
		if err != nil || e.NumRows != 20 {
			t.Errorf("%s: %+v, %v", as[i].Partition, e, err)
		}
	}
}

// TestTwoJobsAddTheSame: MS-01. Another job adds the partition between the look
// and the call: whoever comes second finds it, and there is one.
func TestTwoJobsAddTheSame(t *testing.T) {
	s := hivetest.New(t)
	first, second := open(t, options(t, s)), open(t, options(t, s))
	must(t, first.Check(t.Context()))
	meet := make(chan struct{}) // both have looked, and found nothing
	arrived := make(chan struct{}, 2)
	s.Before(func(call string) error {
		if strings.HasPrefix(call, "add_partitions") {
			arrived <- struct{}{}
			<-meet
		}
		return nil
	})
	errs := make(chan error, 2)
	go func() { errs <- first.Announce(t.Context(), days(1)) }()
	go func() { errs <- second.Announce(t.Context(), days(1)) }()
	<-arrived
	<-arrived
	close(meet)
	for range 2 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if got := s.Partitions("web.t"); len(got) != 1 {
		t.Errorf("partitions %q", got)
	}
}
