package writer

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/parquet-go/parquet-go"

	"github.com/hivesink/hivesink/format/parquet"
	"github.com/hivesink/hivesink/hivetype"
	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/layout"
	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/record"
	"github.com/hivesink/hivesink/rolling"
	"github.com/hivesink/hivesink/storage"
	"github.com/hivesink/hivesink/storage/faultfs"
	"github.com/hivesink/hivesink/storage/memfs"
)

const staging = "/staging"

func options(t testing.TB, fs storage.FS) *Options {
	t.Helper()
	var columns []hivetype.Field
	for _, c := range []string{"id bigint", "k string", "ts timestamp", "text string"} {
		f, err := hivetype.ParseColumn(c)
		if err != nil {
			t.Fatal(err)
		}
		columns = append(columns, f)
	}
	schema, err := record.NewSchema(columns, []string{"k"})
	if err != nil {
		t.Fatal(err)
	}
	if err := fs.Mkdir(staging); err != nil {
		t.Fatal(err)
	}
	if err := fs.SyncDir("/"); err != nil {
		t.Fatal(err)
	}
	var bits atomic.Uint64 // Flush draws from several goroutines
	o := &Options{
		FS: fs, Staging: staging, Epoch: 1, Pipeline: "p", TableID: "t", Schema: schema,
		Transform: []layout.Transform{{Name: "k", Func: layout.Identity, Column: "k"}}, Zone: time.UTC,
		Codec: "zstd", HiddenCodec: "snappy", Budget: NewBudget(1<<30, 256), EventTime: 2, LateDelay: -1,
		Rolling: rolling.Policy{Bytes: 128 << 20, Age: time.Hour, Inactivity: time.Hour},
		Bad:     &BadPolicy{Policy: BadDeadLetter, Limit: 3},
		Random:  func() uint64 { return bits.Add(1) },
		Now:     func() int64 { return 1_800_000_000_000_000 },
	}
	if err := o.Init(); err != nil {
		t.Fatal(err)
	}
	return o
}

// rows is a batch of ids [from, from+n) with the partition values given.
func rows(o *Options, from int64, keys []string, text string) *record.Batch {
	b := array.NewRecordBuilder(memory.DefaultAllocator, o.Schema.Arrow)
	defer b.Release()
	for i, k := range keys {
		b.Field(0).(*array.Int64Builder).Append(from + int64(i))
		b.Field(1).(*array.StringBuilder).Append(k)
		b.Field(2).(*array.TimestampBuilder).Append(arrow.Timestamp(1_700_000_000_000_000 + from + int64(i)))
		b.Field(3).(*array.StringBuilder).Append(text)
	}
	return &record.Batch{Record: b.NewRecordBatch(), FirstRow: from, Count: int64(len(keys)), Position: fmt.Sprint(from + int64(len(keys)))}
}

func lane(t testing.TB, o *Options) *Lane {
	t.Helper()
	l, err := o.NewLane()
	if err != nil {
		t.Fatal(err)
	}
	l.Adopt("src", ledger.Source{Watermark: ledger.NoWatermark})
	return l
}

func write(t testing.TB, l *Lane, b *record.Batch) Outcome {
	t.Helper()
	out, err := l.Write(context.Background(), "src", b)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func flush(t testing.TB, l *Lane) (*Cut, []ledger.Part) {
	t.Helper()
	c, err := l.Cut()
	if err != nil {
		t.Fatal(err)
	}
	parts, err := Flush(context.Background(), []*Cut{c}, 2)
	if err != nil {
		t.Fatal(err)
	}
	return c, parts
}

// ids reads a part back; it must be whole and say in its footer what it holds
// (W4).
func ids(t testing.TB, fs storage.FS, p ledger.Part) []int64 {
	t.Helper()
	data, err := fs.ReadFile(path.Join(staging, p.Name))
	if err != nil {
		t.Fatal(err)
	}
	if p.Bundle {
		data = data[p.Offset : p.Offset+p.Bytes]
	}
	if int64(len(data)) != p.Bytes {
		t.Fatalf("%d bytes of %+v", len(data), p)
	}
	f, err := parquetfile.Open(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	footer, ok, err := ledger.DecodeFooter(f.Meta())
	if err != nil || !ok || footer.Partition != p.Partition || !slices.Equal(footer.Leaves, []string{p.ID}) {
		t.Fatalf("footer %+v %v %v of %+v", footer, ok, err, p)
	}
	if p.Rows != f.Rows() || p.Bytes != int64(len(data)) || footer.Sources["src"].Rows != p.Rows {
		t.Fatalf("%d rows, %d bytes, footer %+v of %+v", f.Rows(), len(data), footer, p)
	}
	got, err := parquet.Read[struct {
		ID int64 `parquet:"id,optional"`
	}](bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	var out []int64
	var sum ledger.Sum
	for _, r := range got {
		out = append(out, r.ID)
		sum.Row(r.ID) // in these tests the id is the row number
	}
	if sum != footer.Sources["src"].Sum {
		t.Fatalf("the hash sum of the rows is %v, the footer says %v", sum, footer.Sources["src"].Sum)
	}
	return out
}

// TestManyPartitionsWithinLimits: 577 partitions, small memory, few open files:
// whatever must go is a whole part (W5; cases RE-01, RE-02).
func TestManyPartitionsWithinLimits(t *testing.T) {
	fs := memfs.New()
	o := options(t, fs)
	o.Budget = NewBudget(256<<10, 8)
	o.RowGroupRows = 64
	l := lane(t, o)
	rng := rand.New(rand.NewPCG(1, 2))
	const n = 577 * 20
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("k%03d", i%577)
		if i%3 == 0 {
			keys[i] = "hot" // fills row groups, so that files stay open
		}
	}
	rng.Shuffle(n, func(i, k int) { keys[i], keys[k] = keys[k], keys[i] })
	for at := 0; at < n; at += 100 {
		write(t, l, rows(o, int64(at), keys[at:min(n, at+100)], "some text of a row"))
		if used := o.Budget.Used(); used > 256<<10+100*100 {
			t.Fatalf("%d bytes buffered", used)
		}
	}
	if o.Budget.PeakOpen() > 8 || o.Budget.PeakOpen() == 0 {
		t.Fatalf("%d files open at once", o.Budget.PeakOpen())
	}
	cut, parts := flush(t, l)
	var all []int64
	for _, p := range parts {
		for _, id := range ids(t, fs, p) {
			if p.Partition != "k="+keys[id] {
				t.Fatalf("row %d of %s is in %s", id, keys[id], p.Partition)
			}
			all = append(all, id)
		}
	}
	slices.Sort(all)
	for i, id := range all {
		if id != int64(i) {
			t.Fatalf("row %d is missing or twice", i)
		}
	}
	if s := cut.Sources["src"]; len(all) != n || s.Accepted.Rows != n || s.Position != fmt.Sprint(n) || s.NextRow != n {
		t.Fatalf("%d rows, %+v", len(all), s)
	}
	if o.Budget.Used() != 0 {
		t.Fatalf("%d bytes are still charged", o.Budget.Used())
	}
}

// TestCutFallsBetweenBatches: what is written after a cut is not of it (W2).
func TestCutFallsBetweenBatches(t *testing.T) {
	fs := memfs.New()
	o := options(t, fs)
	l := lane(t, o)
	write(t, l, rows(o, 0, []string{"a", "b", "a"}, ""))
	first, err := l.Cut()
	if err != nil {
		t.Fatal(err)
	}
	write(t, l, rows(o, 3, []string{"a", "c"}, ""))
	_, second := flush(t, l)
	parts, err := Flush(context.Background(), []*Cut{first}, 1)
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprint(parts[0].Partition, ids(t, fs, parts[0]), parts[1].Partition, ids(t, fs, parts[1]),
		second[0].Partition, ids(t, fs, second[0]), second[1].Partition, ids(t, fs, second[1]))
	if want := "k=a[0 2]k=b[1]k=a[3]k=c[4]"; strings.ReplaceAll(got, " k=", "k=") != strings.ReplaceAll(want, " k=", "k=") {
		t.Fatalf("got %s, want %s", got, want)
	}
	// The durable state: synced files and entries (W3).
	image := mem(fs).Crash(memfs.SyncedOnly, 0)
	for _, p := range append(parts, second...) {
		ids(t, image, p)
	}
}

func mem(fs storage.FS) *memfs.FS { return fs.(*memfs.FS) }

// TestBadRecordsRefuseTheBatch: over the limit nothing of the batch is taken
// (W1), and the lane goes on.
func TestBadRecordsRefuseTheBatch(t *testing.T) {
	fs := memfs.New()
	o := options(t, fs)
	l := lane(t, o)
	long := strings.Repeat("/", 100) // 300 bytes when escaped
	out := write(t, l, rows(o, 0, []string{"a", long, "b"}, ""))
	if out.Accepted != 2 || out.Bad != 1 || out.Dead != 1 {
		t.Fatalf("%+v", out)
	}
	b := rows(o, 3, []string{"a", long, long, long}, "")
	_, err := l.Write(context.Background(), "src", b)
	if fault.ClassOf(err) != fault.Halt || !strings.Contains(err.Error(), "more than 3 bad records") {
		t.Fatalf("over the limit: %v", err)
	}
	if s, _ := l.Source("src"); s.NextRow != 3 || s.DeadLettered.Rows != 1 {
		t.Fatalf("the refused batch left a trace: %+v", s)
	}
	write(t, l, rows(o, 3, []string{"a"}, ""))
	_, parts := flush(t, l)
	if len(parts) != 3 || parts[2].Table != ledger.DeadTable || parts[2].Rows != 1 {
		t.Fatalf("%+v", parts)
	}
}

// TestStorageErrorPoisons: after an I/O error nothing of the lane is cut (W1).
func TestStorageErrorPoisons(t *testing.T) {
	fs := faultfs.New(memfs.New())
	o := options(t, fs)
	o.Rolling.Rows = 2
	rule := fs.Inject(faultfs.Rule{Kind: storage.OpSync, Err: storage.ErrNoSpace}).MustFire(t)
	l := lane(t, o)
	if _, err := l.Write(context.Background(), "src", rows(o, 0, []string{"a", "a"}, "")); err == nil {
		t.Fatal("a failed sync was not noticed")
	}
	rule.Heal()
	if _, err := l.Write(context.Background(), "src", rows(o, 0, []string{"a"}, "")); err == nil {
		t.Fatal("a poisoned lane takes rows")
	}
	if _, err := l.Cut(); err == nil {
		t.Fatal("a poisoned lane was cut")
	}
}

// TestAgeAndInactivity: Tick closes what is old or idle, with no new row
// (case WM-03).
func TestAgeAndInactivity(t *testing.T) {
	fs := memfs.New()
	o := options(t, fs)
	now := int64(1_800_000_000_000_000)
	o.Now = func() int64 { return now }
	o.Rolling = rolling.Policy{Bytes: 1 << 20, Age: time.Hour, Inactivity: time.Minute}
	l := lane(t, o)
	write(t, l, rows(o, 0, []string{"a"}, ""))
	next, err := l.Tick(now)
	if err != nil || next != now+time.Minute.Microseconds() {
		t.Fatalf("next look at %d, %v", next-now, err)
	}
	now = next
	if _, err := l.Tick(now); err != nil {
		t.Fatal(err)
	}
	entries, err := fs.List(staging)
	if err != nil || len(entries) != 1 {
		t.Fatalf("%v %v: the idle part was not closed", entries, err)
	}
}
