package metastoretest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/layout"
	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/metastore"
)

// Fixture is an empty catalogue of one table. The table's partition columns,
// where it has any, are dt and country.
type Fixture struct {
	Catalog                  metastore.Catalog
	Database, Name, Location string
	// Done is told of the facts after Catalog.Announce, as the ledger is.
	Done func([]ledger.Announced)
	// Clock is told the wall clock (microseconds) before each announcement.
	Clock func(now int64)
}

// Run runs the suite. open makes a catalogue of its own for each test; of a
// table without partition columns when partitioned is false.
func Run(t *testing.T, open func(t *testing.T, partitioned bool) Fixture) {
	for _, c := range []struct {
		name        string
		partitioned bool
		test        func(t *testing.T, b *bench)
	}{
		{"Empty", true, testEmpty},
		{"Announce", true, testAnnounce},
		{"AnnounceAgain", true, testAnnounceAgain},
		{"Register", true, testRegister},
		{"Values", true, testValues},
		{"SideTables", true, testSideTables},
		{"Unpartitioned", false, testUnpartitioned},
		{"Filter", true, testFilter},
		{"Many", true, testMany},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := &bench{t: t, f: open(t, c.partitioned), now: 1_700_000_000_000_000}
			if b.f.Catalog.Name() != metastore.PolicyName {
				t.Errorf("the catalogue is called %q, want %q", b.f.Catalog.Name(), metastore.PolicyName)
			}
			c.test(t, b)
		})
	}
}

type bench struct {
	t   *testing.T
	f   Fixture
	now int64
}

// partition is an announcement of a partition with these values.
func partition(number int64, values ...string) ledger.Announcement {
	path := layout.PartitionPath([]string{"dt", "country"}, values)
	_, unescaped, err := layout.ParsePath(path)
	if err != nil {
		panic(err) // the path was made a line above
	}
	return ledger.Announcement{Partition: path, Values: unescaped, Number: number, Cut: uint64(number),
		Files: 2 * number, Rows: 20 * number, Bytes: 200 * number}
}

// announce does what the committer does: announce, then note the facts.
func (b *bench) announce(as ...ledger.Announcement) {
	b.t.Helper()
	b.now += 1_000_000
	if b.f.Clock != nil {
		b.f.Clock(b.now)
	}
	if err := b.f.Catalog.Announce(context.Background(), as); err != nil {
		b.t.Fatalf("announce: %v", err)
	}
	var facts []ledger.Announced
	for i := range as {
		facts = append(facts, as[i].Fact(b.now))
	}
	if b.f.Done != nil {
		b.f.Done(facts)
	}
}

// entry is what the catalogue is to say after a was the last announcement, at
// time at.
func (b *bench) entry(a ledger.Announcement, at int64) metastore.Entry {
	e := metastore.Entry{Database: b.f.Database, Table: metastore.SideName(b.f.Name, a.Table), Partition: a.Partition, Values: a.Values,
		Location: metastore.SideName(b.f.Location, a.Table), NumFiles: a.Files, NumRows: a.Rows, TotalSize: a.Bytes, Number: a.Number, AnnouncedAt: at}
	if a.Partition != "" {
		e.Location += "/" + a.Partition
	}
	return e
}

func (b *bench) list(table, filter string) []metastore.Entry {
	b.t.Helper()
	list, err := b.f.Catalog.Partitions(context.Background(), table, filter)
	if err != nil {
		b.t.Fatalf("list %q %q: %v", table, filter, err)
	}
	return list
}

// want holds a listing and each of its partitions against entries.
func (b *bench) want(table, filter string, entries ...metastore.Entry) {
	b.t.Helper()
	got := b.list(table, filter)
	if len(got) != len(entries) {
		b.t.Fatalf("list %q %q: %d partitions, want %d: %+v", table, filter, len(got), len(entries), got)
	}
	for i, e := range entries {
		if !reflect.DeepEqual(got[i], e) {
			b.t.Errorf("list %q %q, number %d:\n got %+v\nwant %+v", table, filter, i, got[i], e)
		}
		one, err := b.f.Catalog.Get(context.Background(), table, e.Partition)
		if err != nil || !reflect.DeepEqual(one, e) {
			b.t.Errorf("get %q: %+v, %v\nwant %+v", e.Partition, one, err, e)
		}
	}
}

func testEmpty(t *testing.T, b *bench) {
	b.want(ledger.MainTable, "")
	b.want(ledger.MainTable, "dt=2026-01-31")
	_, err := b.f.Catalog.Get(context.Background(), ledger.MainTable, "dt=2026-01-31/country=de")
	if !errors.Is(err, metastore.ErrNoPartition) || !strings.Contains(fmt.Sprint(err), "dt=2026-01-31/country=de") {
		t.Errorf("a partition that nobody announced: %v", err)
	}
	b.announce() // nothing
	b.want(ledger.MainTable, "")
}

// testAnnounce: what was announced is there, sorted by path (M1, M4).
func testAnnounce(_ *testing.T, b *bench) {
	second, first := partition(1, "2026-01-31", "fr"), partition(1, "2026-01-31", "de")
	b.announce(second, first)
	b.want(ledger.MainTable, "", b.entry(first, b.now), b.entry(second, b.now))
}

// testAnnounceAgain: an announcement may come twice and changes nothing then;
// the next number replaces the counts of that partition alone (M2, M3).
func testAnnounceAgain(t *testing.T, b *bench) {
	de, fr := partition(1, "2026-01-31", "de"), partition(1, "2026-01-31", "fr")
	if b.f.Clock != nil {
		b.f.Clock(b.now + 1_000_000) // as at the announcement that follows
	}
	for range 2 {
		if err := b.f.Catalog.Announce(context.Background(), []ledger.Announcement{de, fr}); err != nil {
			t.Fatalf("announce: %v", err)
		}
	}
	b.announce(de, fr)
	first := b.now
	b.want(ledger.MainTable, "", b.entry(de, first), b.entry(fr, first))
	again := partition(2, "2026-01-31", "fr")
	b.announce(again)
	b.want(ledger.MainTable, "", b.entry(de, first), b.entry(again, b.now))
}

// testRegister: a registered partition is listed, without counts, and becomes
// complete later.
func testRegister(t *testing.T, b *bench) {
	a := partition(1, "2026-01-31", "de")
	early := a
	early.Register, early.Number, early.Cut = true, 0, 0
	b.announce(early)
	got := b.list(ledger.MainTable, "")
	if len(got) != 1 || got[0].Partition != a.Partition || got[0].Number != 0 || got[0].Location != b.entry(a, 0).Location {
		t.Fatalf("registered: %+v", got)
	}
	b.announce(a)
	b.want(ledger.MainTable, "", b.entry(a, b.now))
}

// testValues: values survive whatever they are made of, and none is taken for
// another.
func testValues(t *testing.T, b *bench) {
	seen := map[string]bool{}
	for _, value := range []string{"", "a/b", "a%2Fb", "a:b", "a=b", "ä東京", "A", "a", " ", "a b", "100%", "#", "..", "2026-01-31 00:00:00"} {
		a := partition(1, "2026-01-31", value)
		b.announce(a)
		if seen[a.Partition] {
			t.Errorf("%q has the path of another value, %s", value, a.Partition)
		}
		seen[a.Partition] = true
		got, err := b.f.Catalog.Get(context.Background(), ledger.MainTable, a.Partition)
		if err != nil || len(got.Values) != 2 || got.Values[1] != layout.ValueOrDefault(value) {
			t.Errorf("%q came back as %q, %v", value, got.Values, err)
		}
	}
	if got := b.list(ledger.MainTable, ""); len(got) != len(seen) {
		t.Errorf("%d partitions, want %d", len(got), len(seen))
	}
}

// testSideTables: a side table is a table of its own.
func testSideTables(_ *testing.T, b *bench) {
	a, late := partition(1, "2026-01-31", "de"), partition(3, "2026-01-31", "de")
	late.Table = ledger.LateTable
	dead := ledger.Announcement{Table: ledger.DeadTable, Number: 1, Cut: 1, Files: 1, Rows: 7, Bytes: 70}
	late.Number = 1
	b.announce(a, dead, late)
	b.want(ledger.MainTable, "", b.entry(a, b.now))
	b.want(ledger.LateTable, "", b.entry(late, b.now))
	b.want(ledger.DeadTable, "", b.entry(dead, b.now))
}

// testUnpartitioned: a table without partition columns is one entry.
func testUnpartitioned(t *testing.T, b *bench) {
	a := ledger.Announcement{Number: 1, Cut: 1, Files: 3, Rows: 30, Bytes: 300}
	b.announce(a)
	b.want(ledger.MainTable, "", b.entry(a, b.now))
	a.Number, a.Files = 2, 4
	b.announce(a)
	b.want(ledger.MainTable, "", b.entry(a, b.now))
	_, err := b.f.Catalog.Partitions(context.Background(), ledger.MainTable, "dt=2026-01-31")
	if fault.ClassOf(err) != fault.Config {
		t.Errorf("a filter on a table without partition columns: %v", err)
	}
}

// testFilter: a filter compares values, in any order and spelling (M4).
func testFilter(t *testing.T, b *bench) {
	de, fr, next := partition(1, "2026-01-30", "de"), partition(1, "2026-01-30", "fr"), partition(1, "2026-01-31", "de")
	odd, null := partition(1, "2026-01-31", "a:b/c"), partition(1, "2026-01-31", "")
	b.announce(de, fr, next, odd, null)
	for filter, want := range map[string][]ledger.Announcement{
		"":                            {de, fr, null, odd, next},
		"dt=2026-01-30":               {de, fr},
		"dt=2026-01-30/":              {de, fr},
		"country=de":                  {de, next},
		"dt=2026-01-31/country=de":    {next},
		"country=de/dt=2026-01-31":    {next},
		"DT=2026-01-30/Country=fr":    {fr},
		"dt=2026-01-31/country=fr":    {},
		"country=d":                   {},
		"country=DE":                  {},
		"country=a%3Ab%2Fc":           {odd},
		"country=a:b%2Fc":             {odd},
		"country=":                    {null},
		"country=" + hiveNull:         {null},
		"dt=2026-01-31/dt=2026-01-30": {},
		"country=de/country=de":       {de, next},
		"dt=2026-01-30/country=de":    {de},
	} {
		var entries []metastore.Entry
		for _, a := range want {
			entries = append(entries, b.entry(a, b.now))
		}
		b.want(ledger.MainTable, filter, entries...)
	}
	for _, filter := range []string{"hr=00", "dt", "dt=2026-01-30/x", "=de", "dt=2026-01-30//country=de"} {
		_, err := b.f.Catalog.Partitions(context.Background(), ledger.MainTable, filter)
		if fault.ClassOf(err) != fault.Config {
			t.Errorf("filter %q: %v, want an error of class config", filter, err)
		}
	}
}

const hiveNull = layout.DefaultPartition

// testMany: more partitions in one batch than a server takes in one call.
func testMany(t *testing.T, b *bench) {
	const n = 2500
	var as []ledger.Announcement
	for i := range n {
		as = append(as, partition(1, fmt.Sprintf("v%04d", i), "de"))
	}
	b.announce(as...)
	got := b.list(ledger.MainTable, "")
	if len(got) != n || got[0].Values[0] != "v0000" || got[n-1].Values[0] != fmt.Sprintf("v%04d", n-1) {
		t.Errorf("%d partitions, want %d", len(got), n)
	}
	b.want(ledger.MainTable, "dt=v1234", b.entry(as[1234], b.now))
}
