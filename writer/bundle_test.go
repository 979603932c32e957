package writer

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hivesink/hivesink/layout"
	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/record"
	"github.com/hivesink/hivesink/storage/memfs"
)

// keysOf are n rows' partitions, round and round.
func keysOf(n, partitions int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("k%03d", i%partitions)
	}
	return keys
}

// TestBundle: the small buckets of a cut share a file; a bucket that has
// written a row group, and one that is alone of its kind, have their own. What
// is in a bundle are whole files, one behind the other, without a gap.
func TestBundle(t *testing.T) {
	fs := memfs.New()
	o := options(t, fs)
	o.RowGroupRows = 400
	l := lane(t, o)
	write(t, l, rows(o, 0, keysOf(200, 50), "x"))
	write(t, l, rows(o, 200, slices.Repeat([]string{"large"}, 500), "x"))
	b := rows(o, 700, []string{"k000"}, "x")
	b.Bad = []record.BadRecord{{Row: 701, Class: record.ClassSyntax, Reason: "not JSON"}}
	b.Count = 2
	write(t, l, b)
	_, parts := flush(t, l)

	var bundled []ledger.Part
	for _, p := range parts {
		if p.Bundle {
			bundled = append(bundled, p)
			if p.Full || p.Final || p.Table != ledger.MainTable || p.Partition == "k=large" {
				t.Errorf("a slice is %+v", p)
			}
			continue
		}
		if p.Table != ledger.DeadTable && p.Partition != "k=large" {
			t.Errorf("not bundled: %+v", p)
		}
		if p.Final != p.Full {
			t.Errorf("a part with a full row group has the table's encoding, no other: %+v", p)
		}
	}
	if len(bundled) != 50 || len(parts) != 52 {
		t.Fatalf("%d of %d parts are bundled, want 50 of 52", len(bundled), len(parts))
	}
	slices.SortFunc(bundled, func(a, b ledger.Part) int { return int(a.Offset - b.Offset) })
	end := int64(0)
	var got []int64
	for _, p := range bundled {
		if p.Name != bundled[0].Name || p.Offset != end {
			t.Fatalf("part %s is at byte %d of %s, want byte %d of %s", p.ID, p.Offset, p.Name, end, bundled[0].Name)
		}
		end += p.Bytes
		got = append(got, ids(t, fs, p)...)
	}
	slices.Sort(got)
	want := make([]int64, 200)
	for i := range want {
		want[i] = int64(i)
	}
	if want = append(want, 700); !slices.Equal(got, want) {
		t.Fatalf("bundled rows %v", got)
	}
	if info, err := fs.Stat(path.Join(staging, bundled[0].Name)); err != nil || info.Size != end {
		t.Fatalf("the bundle has %d bytes, its parts %d: %v", info.Size, end, err)
	}
	if n := hiddenFiles(t, fs); n != 3 {
		t.Fatalf("%d hidden files, want 3", n)
	}
	if used := o.Budget.Used(); used != 0 {
		t.Fatalf("%d bytes are charged after the cut", used)
	}
}

func hiddenFiles(t *testing.T, fs *memfs.FS) int {
	t.Helper()
	entries, err := fs.List(staging)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		_, part := layout.ParseStagedPart(e.Name)
		if _, bundle := layout.ParseStagedBundle(e.Name); !part && !bundle {
			t.Fatalf("%s in the staging directory", e.Name)
		}
	}
	return len(entries)
}

// TestBundleLimits: a bundle ends at a number of parts and at a number of
// bytes, and two encoders share what is enough for both.
func TestBundleLimits(t *testing.T) {
	o := options(t, memfs.New())
	l := lane(t, o)
	write(t, l, rows(o, 0, keysOf(1000, 1000), "x"))
	if alone, bundles := o.share(l.live, 2); len(alone) != 0 || len(bundles) != 2 || len(bundles[0]) != 500 {
		t.Fatalf("1000 small buckets, two encoders: %d alone, %d bundles", len(alone), len(bundles))
	}
	if _, bundles := o.share(l.live[:bundleShare+1], 8); len(bundles) != 1 || len(bundles[0]) != bundleShare {
		t.Fatalf("%d small buckets, eight encoders: %d bundles", bundleShare+1, len(bundles))
	}
	many := slices.Repeat(l.live, 5)
	if _, bundles := o.share(many, 1); len(bundles) != 2 || len(bundles[0]) != bundleSlices {
		t.Fatalf("5000 small buckets: %d bundles", len(bundles))
	}
	// Each takes a bit less than a slice may.
	l = lane(t, o)
	write(t, l, rows(o, 0, keysOf(160, 160), strings.Repeat("x", sliceBytes-1000)))
	_, bundles := o.share(l.live, 1)
	if len(bundles) != 3 {
		t.Fatalf("160 buckets of 1 MB: %d bundles", len(bundles))
	}
	for _, some := range bundles {
		bytes := int64(0)
		for _, b := range some {
			bytes += b.cols.Bytes()
		}
		if bytes > bundleBytes {
			t.Fatalf("a bundle of %d bytes", bytes)
		}
	}
	// Larger than a slice: alone. With compaction off: alone.
	l = lane(t, o)
	write(t, l, rows(o, 0, keysOf(4, 2), strings.Repeat("x", sliceBytes)))
	if alone, bundles := o.share(l.live, 1); len(alone) != 2 || len(bundles) != 0 {
		t.Fatalf("2 large buckets: %d alone, %d bundles", len(alone), len(bundles))
	}
	o.Final = true
	if alone, bundles := o.share(many, 1); len(alone) != 5000 || len(bundles) != 0 {
		t.Fatalf("compaction off: %d alone, %d bundles", len(alone), len(bundles))
	}
}

// TestPressureAndAgeBundle: when memory runs out over many small buckets, and
// when many have got too old at once, they go into few files, not one each.
func TestPressureAndAgeBundle(t *testing.T) {
	fs := memfs.New()
	o := options(t, fs)
	o.Budget = NewBudget(64<<10, 8)
	l := lane(t, o)
	for at := 0; at < 4000; at += 100 {
		write(t, l, rows(o, int64(at), keysOf(100, 100), "some text of a row"))
	}
	cut, parts := flush(t, l)
	if n := hiddenFiles(t, fs); len(parts) < 300 || n > len(parts)/50 || cut.Sources["src"].NextRow != 4000 {
		t.Fatalf("pressure: %d parts in %d files", len(parts), n)
	}
	total := 0
	for _, p := range parts {
		total += len(ids(t, fs, p))
	}
	if total != 4000 {
		t.Fatalf("%d rows of 4000", total)
	}

	fs = memfs.New()
	o = options(t, fs)
	now := int64(1_800_000_000_000_000)
	o.Now = func() int64 { return now }
	o.Rolling.Inactivity = time.Minute
	l = lane(t, o)
	write(t, l, rows(o, 0, keysOf(100, 100), "x"))
	now += time.Hour.Microseconds()
	if _, err := l.Tick(now); err != nil {
		t.Fatal(err)
	}
	if n := hiddenFiles(t, fs); n != 1 {
		t.Fatalf("age: %d files", n)
	}
	if _, parts := flush(t, l); len(parts) != 100 {
		t.Fatalf("age: %d parts", len(parts))
	}
}
