//go:build integration

package metastore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/layout"
	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/metastore/hive"
	"github.com/hivesink/hivesink/test/services"
)

func announcement(number int64, names []string, values ...string) ledger.Announcement {
	return ledger.Announcement{Partition: layout.PartitionPath(names, values), Values: values, Number: number, Cut: uint64(number),
		Files: number, Rows: 10 * number, Bytes: 100 * number}
}

func open(t *testing.T, o hive.Options) *hive.Catalog {
	t.Helper()
	c := hive.New(o)
	t.Cleanup(func() { c.Close() })
	return c
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// want holds a partition's counts against an announcement.
func want(t *testing.T, c *hive.Catalog, a ledger.Announcement) {
	t.Helper()
	e, err := c.Get(t.Context(), ledger.MainTable, a.Partition)
	if err != nil || e.NumFiles != a.Files || e.NumRows != a.Rows || e.TotalSize != a.Bytes || e.Number != a.Number {
		t.Errorf("%s: %+v, %v; want %+v", a.Partition, e, err, a)
	}
}

// TestRace: MS-01, R13, R14. Several jobs announce the same new partitions at
// once: all succeed, each partition is there once.
func TestRace(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s server) {
		w := newWarehouse(t, s)
		o := w.options(t, "t", columns(t, "id bigint"), columns(t, "dt string"))
		must(t, open(t, o).Check(t.Context()))
		var as []ledger.Announcement
		for i := range 40 {
			as = append(as, announcement(1, []string{"dt"}, fmt.Sprintf("2026-01-%02d", i)))
		}
		start, errs := make(chan struct{}), make([]error, 4)
		var wg sync.WaitGroup
		for i := range errs {
			c := open(t, o)
			wg.Go(func() {
				<-start
				errs[i] = c.Announce(t.Context(), as)
			})
		}
		close(start)
		wg.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		got, err := open(t, o).Partitions(t.Context(), ledger.MainTable, "")
		if err != nil || len(got) != len(as) {
			t.Fatalf("%d partitions, %v; want %d", len(got), err, len(as))
		}
	})
}

// TestOtherLocation: MS-01. A partition that somebody else put elsewhere is an
// error with both locations, and the others are announced (HM4). The same one
// twice in a request is none.
func TestOtherLocation(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s server) {
		w := newWarehouse(t, s)
		o := w.options(t, "t", columns(t, "id bigint"), columns(t, "dt string"))
		c := open(t, o)
		must(t, c.Check(t.Context()))
		foreign := announcement(1, []string{"dt"}, "b")
		foreign.Partition = "elsewhere/b"
		must(t, c.Announce(t.Context(), []ledger.Announcement{foreign}))
		a, b, d := announcement(1, []string{"dt"}, "a"), announcement(1, []string{"dt"}, "b"), announcement(1, []string{"dt"}, "d")
		err := c.Announce(t.Context(), []ledger.Announcement{a, b, d, a})
		if err == nil || !strings.Contains(err.Error(), "elsewhere/b") || !strings.Contains(err.Error(), "/t/dt=b") || fault.ClassOf(err) != fault.Retry {
			t.Fatalf("class %s: %v", fault.ClassOf(err), err)
		}
		var some interface{ FailedAt(int) error }
		if !errors.As(err, &some) || some.FailedAt(0) != nil || some.FailedAt(1) == nil || some.FailedAt(2) != nil || some.FailedAt(3) != nil {
			t.Fatalf("which failed? %v", err)
		}
		want(t, c, a)
		want(t, c, d)
	})
}

// TestLostConnections: MS-03. A connection that is dead, cut while the answer
// is under way, or of a server that was restarted is replaced; nothing is done
// twice.
func TestLostConnections(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s server) {
		w := newWarehouse(t, s)
		p := newProxy(t, s.address)
		o := w.options(t, "t", columns(t, "id bigint"), columns(t, "dt string"))
		o.Addresses = []string{p.address()}
		c := open(t, o)
		must(t, c.Check(t.Context()))
		first := announcement(1, []string{"dt"}, "2026-01-01")
		p.cut()
		must(t, c.Announce(t.Context(), []ledger.Announcement{first})) // idle: once more
		for lost := 1; lost <= 4; lost++ {                             // get table, look, add, read back
			a := announcement(1, []string{"dt"}, fmt.Sprintf("2026-02-%02d", lost))
			before := p.cuts
			p.lose(lost)
			err := c.Announce(t.Context(), []ledger.Announcement{a})
			for tries := 0; err != nil; tries++ {
				if fault.ClassOf(err) != fault.Retry || tries == 5 {
					t.Fatalf("class %s: %v", fault.ClassOf(err), err)
				}
				err = c.Announce(t.Context(), []ledger.Announcement{a})
			}
			if p.cuts != before+lost {
				t.Fatalf("%d of %d answers were lost", p.cuts-before, lost)
			}
			want(t, c, a)
		}
		got, err := c.Partitions(t.Context(), ledger.MainTable, "")
		if err != nil || len(got) != 5 {
			t.Fatalf("%d partitions, %v; want 5", len(got), err)
		}
	})
}

// TestHungServer: a call to a server that hangs ends with its time limit, or
// with its context; the next one, after it goes on, is answered (HM1, HM2).
func TestHungServer(t *testing.T) {
	h, err := services.DefaultHome()
	must(t, err)
	each(t, func(t *testing.T, s server) {
		w := newWarehouse(t, s)
		o := w.options(t, "t", columns(t, "id bigint"), columns(t, "dt string"))
		c := open(t, o)
		must(t, c.Check(t.Context()))
		o.Timeout = time.Second
		impatient := open(t, o)
		a := announcement(1, []string{"dt"}, "a")
		if !h.Running(s.name) {
			t.Fatalf("%s is none of test/services' daemons here: it cannot be paused", s.name)
		}
		must(t, h.Pause(s.name))
		defer h.Resume(s.name) //nolint:errcheck // done below
		err := impatient.Announce(t.Context(), []ledger.Announcement{a})
		if fault.ClassOf(err) != fault.Retry || !strings.Contains(fmt.Sprint(err), "metastore.timeout") {
			t.Fatalf("class %s: %v", fault.ClassOf(err), err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		stopped := make(chan error, 1)
		go func() { stopped <- c.Announce(ctx, []ledger.Announcement{a}) }()
		cancel()
		select {
		case err := <-stopped:
			if !errors.Is(err, context.Canceled) {
				t.Fatalf("got %v", err)
			}
		case <-time.After(time.Minute):
			t.Fatal("the end of its context does not end a call")
		}
		must(t, h.Resume(s.name))
		must(t, c.Announce(t.Context(), []ledger.Announcement{a}))
		must(t, impatientUntil(t, impatient, a))
		want(t, c, a)
	})
}

// impatientUntil tries until a server that has just woken up is as fast as the
// time limit wants.
func impatientUntil(t *testing.T, c *hive.Catalog, a ledger.Announcement) error {
	return services.Until(3*time.Minute, func() error { return c.Announce(t.Context(), []ledger.Announcement{a}) })
}

// TestSecondAddress: addresses are tried in turn.
func TestSecondAddress(t *testing.T) {
	each(t, func(t *testing.T, s server) {
		w := newWarehouse(t, s)
		o := w.options(t, "t", columns(t, "id bigint"), columns(t, "dt string"))
		o.Addresses = []string{"127.0.0.1:1", s.address}
		must(t, open(t, o).Check(t.Context()))
		o.Addresses = []string{"127.0.0.1:1", "127.0.0.1:2"}
		err := open(t, o).Check(t.Context())
		if !hive.Unreachable(err) || !strings.Contains(err.Error(), "127.0.0.1:1") || !strings.Contains(err.Error(), "127.0.0.1:2") || !strings.Contains(err.Error(), "metastore.uri") {
			t.Fatalf("got %v", err)
		}
	})
}

// TestCanonicalValues: HM7. The metastore takes any text for an int; hivesink
// gives it what readers compare with.
func TestCanonicalValues(t *testing.T) {
	each(t, func(t *testing.T, s server) {
		w := newWarehouse(t, s)
		o := w.options(t, "t", columns(t, "id bigint"), columns(t, "dt date", "hr int"))
		c := open(t, o)
		must(t, c.Check(t.Context()))
		keys := []string{"dt", "hr"}
		nine, null := announcement(1, keys, "2026-01-31", "09"), announcement(1, keys, "2026-01-31", layout.DefaultPartition)
		bad := announcement(1, keys, "2026-01-31", "abc")
		err := c.Announce(t.Context(), []ledger.Announcement{nine, bad, null})
		var some interface{ FailedAt(int) error }
		if !errors.As(err, &some) || some.FailedAt(0) != nil || some.FailedAt(1) == nil || some.FailedAt(2) != nil {
			t.Fatalf("got %v", err)
		}
		e, err := c.Get(t.Context(), ledger.MainTable, nine.Partition)
		if err != nil || e.Values[1] != "9" || !strings.HasSuffix(e.Location, "/hr=09") || e.Partition != nine.Partition {
			t.Fatalf("%+v, %v", e, err)
		}
	})
}

// TestFencedAnnouncer: HM6. Nothing is changed once another process owns the
// table.
func TestFencedAnnouncer(t *testing.T) {
	each(t, func(t *testing.T, s server) {
		w := newWarehouse(t, s)
		o := w.options(t, "t", columns(t, "id bigint"), columns(t, "dt string"))
		fenced := false
		o.Owner = func() error {
			if fenced {
				return fault.New(fault.Fenced, "", "epoch 9 owns it")
			}
			return nil
		}
		c := open(t, o)
		must(t, c.Check(t.Context()))
		a := announcement(1, []string{"dt"}, "a")
		must(t, c.Announce(t.Context(), []ledger.Announcement{a}))
		fenced = true
		err := c.Announce(t.Context(), []ledger.Announcement{announcement(2, []string{"dt"}, "a"), announcement(1, []string{"dt"}, "b")})
		if fault.ClassOf(err) != fault.Fenced {
			t.Fatalf("class %s: %v", fault.ClassOf(err), err)
		}
		want(t, c, a)
		if got, err := c.Partitions(t.Context(), ledger.MainTable, ""); err != nil || len(got) != 1 {
			t.Fatalf("%v, %v", got, err)
		}
	})
}
