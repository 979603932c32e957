package record

import (
	"fmt"
	"math"
	"math/big"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/hivesink/hivesink/hivetype"
	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/layout"
)

// testSchema makes a schema of "name kind" columns.
func testSchema(t testing.TB, columns ...string) *Schema {
	t.Helper()
	kinds := map[string]hivetype.Type{
		"boolean": {Kind: hivetype.Boolean}, "tinyint": {Kind: hivetype.TinyInt}, "smallint": {Kind: hivetype.SmallInt},
		"int": {Kind: hivetype.Int}, "bigint": {Kind: hivetype.BigInt}, "double": {Kind: hivetype.Double},
		"decimal": {Kind: hivetype.Decimal, Precision: 38, Scale: 2}, "string": {Kind: hivetype.String},
		"binary": {Kind: hivetype.Binary}, "date": {Kind: hivetype.Date}, "timestamp": {Kind: hivetype.Timestamp},
	}
	fields := make([]hivetype.Field, 0, len(columns)+1)
	for _, c := range columns {
		name, kind, _ := strings.Cut(c, " ")
		typ, ok := kinds[kind]
		if !ok {
			t.Fatalf("no type %q", kind)
		}
		fields = append(fields, hivetype.Field{Name: name, Type: &typ})
	}
	s, err := NewSchema(append(fields, hivetype.Field{Name: "rest", Type: &hivetype.Type{Kind: hivetype.Int}}), nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// testBatch makes a batch of texts, "" for a missing value; nil is null too,
// but the text `""` is the empty one.
func testBatch(t testing.TB, s *Schema, rows ...[]string) arrow.RecordBatch {
	t.Helper()
	rb := array.NewRecordBuilder(memory.DefaultAllocator, s.Arrow)
	defer rb.Release()
	for _, row := range rows {
		for i := range s.Columns {
			if i >= len(row) || row[i] == "" {
				rb.Field(i).AppendNull()
				continue
			}
			appendText(t, rb.Field(i), row[i])
		}
	}
	rec := rb.NewRecordBatch()
	t.Cleanup(rec.Release)
	return rec
}

func appendText(t testing.TB, b array.Builder, text string) {
	t.Helper()
	integer := func(bits int) int64 {
		n, err := strconv.ParseInt(text, 10, bits)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	instant := func(layout string) time.Time {
		at, err := time.Parse(layout, text)
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	switch b := b.(type) {
	case *array.BooleanBuilder:
		b.Append(text == "true")
	case *array.Int8Builder:
		b.Append(int8(integer(8)))
	case *array.Int16Builder:
		b.Append(int16(integer(16)))
	case *array.Int32Builder:
		b.Append(int32(integer(32)))
	case *array.Int64Builder:
		b.Append(integer(64))
	case *array.StringBuilder:
		b.Append(strings.ReplaceAll(text, `""`, ""))
	case *array.BinaryBuilder:
		b.Append([]byte(text))
	case *array.Date32Builder:
		b.Append(arrow.Date32(instant(time.DateOnly).Unix() / 86400))
	case *array.TimestampBuilder:
		b.Append(arrow.Timestamp(instant(time.RFC3339Nano).UnixMicro()))
	case *array.Decimal128Builder:
		n, ok := new(big.Int).SetString(text, 10) // the unscaled value
		if !ok {
			t.Fatalf("decimal %q", text)
		}
		b.Append(decimal128.FromBigInt(n))
	default:
		t.Fatalf("no builder for %T", b)
	}
}

func testSpec(t testing.TB, specs ...string) []layout.Transform {
	t.Helper()
	out := make([]layout.Transform, len(specs))
	for i, s := range specs {
		name, expr, _ := strings.Cut(s, ": ")
		var err error
		if out[i], err = layout.ParseTransform(name, expr); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func testZone(t testing.TB, name string) *time.Location {
	t.Helper()
	loc, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

// route gives each row's path, or "!reason".
func route(t testing.TB, p *Partitioner, rec arrow.RecordBatch) []string {
	t.Helper()
	out := make([]int32, rec.NumRows())
	bad := p.Assign(rec, out)
	paths := make([]string, len(out))
	for i, n := range out {
		if n >= 0 {
			paths[i] = p.Partition(n).Path
		}
	}
	last := -1
	for _, e := range bad {
		if e.Row <= last || out[e.Row] != -1 || e.Class != ClassPartition {
			t.Errorf("bad row %+v, number %d, after row %d", e, out[e.Row], last)
		}
		last, paths[e.Row] = e.Row, "!"+e.Reason
	}
	return paths
}

func newPartitioner(t testing.TB, s *Schema, zone *time.Location, specs ...string) *Partitioner {
	t.Helper()
	p, err := NewPartitioner(s, testSpec(t, specs...), zone, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// PE-06, and everything else no reader would find.
func TestNewPartitionerRefuses(t *testing.T) {
	s := testSchema(t, "_year int", "ts timestamp", "d date", "x double", "b binary", "id bigint", "ok boolean")
	long := strings.Repeat("n", 240)
	for _, c := range []struct {
		spec layout.Transform
		says string
	}{
		{layout.Transform{Name: "_year", Func: layout.Identity, Column: "_year"}, "_year"},
		{layout.Transform{Name: ".y", Func: layout.Year, Column: "ts"}, ".y"},
		{layout.Transform{Name: "dt", Func: layout.Date, Column: "nope"}, "no column \"nope\""},
		{layout.Transform{Name: "id", Func: layout.Date, Column: "ts"}, "also a column"},
		{layout.Transform{Name: "key", Func: layout.Identity, Column: "id"}, "under its own name"},
		{layout.Transform{Name: long, Func: layout.Year, Column: "ts"}, "too long"},
		{layout.Transform{Name: "dt", Func: layout.Date, Column: "id"}, "needs a timestamp"},
		{layout.Transform{Name: "hr", Func: layout.Hour, Column: "d"}, "no time of day"},
		{layout.Transform{Name: "hr", Func: layout.Format, Column: "d", Layout: "yyyyMMddHH"}, "no time of day"},
		{layout.Transform{Name: "x", Func: layout.Identity, Column: "x"}, "no text"},
		{layout.Transform{Name: "b", Func: layout.Identity, Column: "b"}, "no text"},
		{layout.Transform{Name: "h", Func: layout.Bucket, Column: "x", N: 4}, "not defined"},
		{layout.Transform{Name: "h", Func: layout.Bucket, Column: "ok", N: 4}, "not defined"},
		{layout.Transform{Name: "h", Func: layout.Bucket, Column: "id"}, "at least one"},
		{layout.Transform{Name: "h", Func: layout.Truncate, Column: "id"}, "at least 1"},
		{layout.Transform{Name: "h", Func: layout.Truncate, Column: "ts", N: 1}, "not defined"},
		{layout.Transform{Name: "h", Func: "shard", Column: "id", N: 1}, "shard"},
	} {
		_, err := NewPartitioner(s, []layout.Transform{c.spec}, nil, nil)
		if err == nil || !strings.Contains(err.Error(), c.says) || fault.ClassOf(err) != fault.Config {
			t.Errorf("%s: %v, want a config error that says %q", c.spec, err, c.says)
		}
	}
	twice := testSpec(t, "id", "id")
	if _, err := NewPartitioner(s, twice, nil, nil); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Errorf("listed twice: %v", err)
	}
	if _, err := NewPartitioner(s, testSpec(t, "id"), nil, &layout.TimeExtractor{Pattern: "$dt"}); fault.ClassOf(err) != fault.Config {
		t.Errorf("extractor of another column: %v", err)
	}
}

// The text of every type, as Hive writes it.
func TestValueText(t *testing.T) {
	for _, c := range []struct {
		column, spec string
		values       []string
		want         []string
	}{
		{"v boolean", "v", []string{"true", "false", ""}, []string{"v=true", "v=false", "v=" + layout.DefaultPartition}},
		{"v tinyint", "v", []string{"-128", "7"}, []string{"v=-128", "v=7"}},
		{"v smallint", "v", []string{"-32768"}, []string{"v=-32768"}},
		{"v int", "v", []string{"0", "", "0"}, []string{"v=0", "v=" + layout.DefaultPartition, "v=0"}},
		{"v decimal", "v", []string{"1050", "1000", "0", "-5", "-120", "100000", "99999999999999999999999999999999999999"},
			[]string{"v=10.5", "v=10", "v=0", "v=-0.05", "v=-1.2", "v=1000", "v=999999999999999999999999999999999999.99"}},
		{"v date", "v", []string{"2024-02-29", "1969-12-31", "0001-01-01"}, []string{"v=2024-02-29", "v=1969-12-31", "v=0001-01-01"}},
		{"v timestamp", "v", []string{"2024-02-29T12:00:00Z", "2024-02-29T12:00:00.120Z", "1969-12-31T23:59:59.999999Z"},
			[]string{"v=2024-02-29 12%3A00%3A00", "v=2024-02-29 12%3A00%3A00.12", "v=1969-12-31 23%3A59%3A59.999999"}},
		{"v timestamp", "p: year(v)", []string{"1969-12-31T23:59:59.999999Z", "2024-01-01T00:00:00Z"}, []string{"p=1969", "p=2024"}},
		{"v timestamp", "p: month(v)", []string{"2024-01-31T00:00:00Z", "2023-01-01T00:00:00Z", "2024-02-01T00:00:00Z"}, []string{"p=01", "p=01", "p=02"}},
		{"v timestamp", "p: day(v)", []string{"2024-01-31T00:00:00Z"}, []string{"p=31"}},
		{"v date", "p: year(v)", []string{"2024-01-31", ""}, []string{"p=2024", "p=" + layout.DefaultPartition}},
		{"v date", `p: format(v, "yyyyMMdd")`, []string{"2024-01-31"}, []string{"p=20240131"}},
		{"v timestamp", `p: format(v, "yyyy/MM 'at' HHmmssSSS")`, []string{"2024-01-31T05:06:07.089999Z"}, []string{"p=2024%2F01 at 050607089"}},
		{"v string", "p: truncate(2, v)", []string{"東京都", "ab", "a", "", "東京"}, []string{"p=東京", "p=ab", "p=a", "p=" + layout.DefaultPartition, "p=東京"}},
		{"v int", "p: truncate(10, v)", []string{"1", "-1", "-10", "19", ""}, []string{"p=0", "p=-10", "p=-10", "p=10", "p=" + layout.DefaultPartition}},
		{"v bigint", "p: truncate(10, v)", []string{"-9223372036854775808", "9223372036854775807"},
			[]string{"p=-9223372036854775808", "p=9223372036854775800"}},
		{"v int", "p: bucket(16, v)", []string{"34", ""}, []string{"p=3", "p=" + layout.DefaultPartition}},
	} {
		s := testSchema(t, c.column)
		rows := make([][]string, len(c.values))
		for i, v := range c.values {
			rows[i] = []string{v}
		}
		p := newPartitioner(t, s, nil, c.spec)
		if got := route(t, p, testBatch(t, s, rows...)); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s by %s: got %q, want %q", c.column, c.spec, got, c.want)
		}
	}
}

// Iceberg's test vectors.
func TestBucketHashes(t *testing.T) {
	day := func(s string) int64 {
		at, err := time.Parse(time.DateOnly, s)
		if err != nil {
			t.Fatal(err)
		}
		return at.Unix() / 86400
	}
	for _, c := range []struct {
		what string
		got  uint32
		want int32
	}{
		{"int 34", hashLong(34), 2017239379},
		{"date 2017-11-16", hashLong(day("2017-11-16")), -653330422},
		{"timestamp 2017-11-16T22:31:08", hashLong(time.Date(2017, 11, 16, 22, 31, 8, 0, time.UTC).UnixMicro()), -2047944441},
		{"string iceberg", hash("iceberg"), 1210000089},
		{"binary 00 01 02 03", hash([]byte{0, 1, 2, 3}), -188683207},
		{"fixed 00 01 02 03", hash("\x00\x01\x02\x03"), -188683207},
		// Of the algorithm itself: every length of tail.
		{"nothing", hash(""), 0},
		{"hello", hash("hello"), 0x248bfa47},
		{"hello, world", hash("hello, world"), 0x149bbb7f},
		{"19 Jan 2038 at 3:14:07 AM", hash("19 Jan 2038 at 3:14:07 AM"), -0x1ce17590},
		{"The quick brown fox jumps over the lazy dog.", hash("The quick brown fox jumps over the lazy dog."), -0x2a3b7404},
		{"decimal 14.20", hashDecimal(decimal128.FromI64(1420)), -500754589},
	} {
		if int32(c.got) != c.want {
			t.Errorf("%s: %d, want %d", c.what, int32(c.got), c.want)
		}
	}
	for _, n := range []int64{0, -1, 127, 128, -128, -129, math.MaxInt64, math.MinInt64} {
		least := big.NewInt(n)
		width := 1
		for bits := least.BitLen(); width*8 <= bits && !(n < 0 && new(big.Int).Not(least).BitLen() < width*8); {
			width++
		}
		mask := new(big.Int).Lsh(big.NewInt(1), uint(8*width))
		bytes := make([]byte, width)
		new(big.Int).Mod(least, mask).FillBytes(bytes)
		if got, want := hashDecimal(decimal128.FromI64(n)), hash(bytes); got != want {
			t.Errorf("decimal %d: not the hash of % x", n, bytes)
		}
	}
}

// A bucket number is never negative, of all types alike.
func TestBucketOfEveryType(t *testing.T) {
	s := testSchema(t, "i tinyint", "s smallint", "n int", "l bigint", "c decimal", "t string", "b binary", "d date", "ts timestamp")
	spec := make([]string, 0, 9)
	for _, c := range s.Columns[:9] {
		spec = append(spec, fmt.Sprintf("p_%s: bucket(7, %s)", c.Name, c.Name))
	}
	p := newPartitioner(t, s, nil, spec...)
	route(t, p, testBatch(t, s, []string{"34", "34", "34", "34", "1420", "iceberg", "\x00\x01\x02\x03", "2017-11-16", "2017-11-16T22:31:08Z"}))
	bucket := func(hash int32) string { return fmt.Sprint((hash & math.MaxInt32) % 7) }
	long := bucket(2017239379)
	want := []string{long, long, long, long, bucket(-500754589), bucket(1210000089), bucket(-188683207), bucket(-653330422), bucket(-2047944441)}
	if got := p.Partition(0).Values; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Closes: of transforms the period's end, of the reference's rule 1 µs after
// the time the values name.
func TestCloses(t *testing.T) {
	s := testSchema(t, "dt string", "hr string", "ts timestamp", "n int")
	at := func(text string) int64 {
		v, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return v.UnixMicro()
	}
	row := []string{"2024-05-06", "7", "2024-05-06T07:30:00Z", "3"}
	for _, c := range []struct {
		spec []string
		ex   *layout.TimeExtractor
		want int64
	}{
		{[]string{"d: date(ts)"}, nil, at("2024-05-07T00:00:00Z")},
		{[]string{"d: date(ts)", "h: hour(ts)"}, nil, at("2024-05-06T08:00:00Z")},
		{[]string{"d: date(ts)", "n"}, nil, at("2024-05-07T00:00:00Z")},
		{[]string{"n", "d: date(ts)"}, nil, at("2024-05-07T00:00:00Z")},
		{[]string{"dt", "hr"}, nil, at("2024-05-06T00:00:00Z") + 1},
		{[]string{"dt", "hr"}, &layout.TimeExtractor{Pattern: "$dt $hr:00:00"}, at("2024-05-06T07:00:00Z") + 1},
		{[]string{"dt", "h: hour(ts)"}, nil, at("2024-05-06T00:00:00Z") + 1}, // an hour of no day is no period
		{[]string{"dt", "h: hour(ts)"}, &layout.TimeExtractor{Pattern: "$dt $h:00:00"}, at("2024-05-06T07:00:00Z") + 1},
		{[]string{"dt", "y: year(ts)"}, nil, at("2025-01-01T00:00:00Z")},
		{[]string{"n"}, nil, 0},
		{[]string{"h: hour(ts)"}, nil, 0},
		{[]string{"b: bucket(4, dt)"}, nil, 0},
		{nil, nil, 0},
	} {
		p, err := NewPartitioner(s, testSpec(t, c.spec...), nil, c.ex)
		if err != nil {
			t.Fatal(err)
		}
		route(t, p, testBatch(t, s, row, make([]string, 4)))
		if got := p.Partition(0).Closes; got != c.want {
			t.Errorf("%v closes at %d, want %d", c.spec, got, c.want)
		}
		if c.spec == nil {
			if p.Len() != 1 || p.Partition(0).Path != "" {
				t.Errorf("without partition columns: %d partitions, %q", p.Len(), p.Partition(0).Path)
			}
		} else if got := p.Partition(1).Closes; got != 0 && !strings.Contains(p.Partition(1).Path, "bucket") {
			t.Errorf("%s closes at %d", p.Partition(1).Path, got)
		}
	}
}

// P1, P2: numbers stay over batches, Partition pointers over Reset; what is
// known costs no allocation.
func TestNumbersAndReset(t *testing.T) {
	s := testSchema(t, "k string", "c decimal", "ts timestamp", "n int")
	p := newPartitioner(t, s, nil, "k", "c", "dt: date(ts)", "n", "h: bucket(4, k)")
	rows := [][]string{{"a", "150", "2024-05-06T07:30:00Z", "1"}, {"b", "150", "2024-05-07T07:30:00Z", "1"}, {"", "", "", ""}, {"a", "150", "2024-05-06T09:30:00Z", "1"}}
	rec := testBatch(t, s, rows...)
	out, again := make([]int32, 4), make([]int32, 4)
	p.Assign(rec, out)
	if want := []int32{0, 1, 2, 0}; !reflect.DeepEqual(out, want) {
		t.Fatalf("numbers %v, want %v", out, want)
	}
	if n := testing.AllocsPerRun(20, func() { p.Assign(rec, again) }); n != 0 {
		t.Errorf("%v allocations for a batch of known partitions", n)
	}
	if !reflect.DeepEqual(out, again) {
		t.Errorf("numbers changed from %v to %v", out, again)
	}
	kept := p.Partition(1)
	path := kept.Path
	p.Reset()
	if p.Len() != 0 {
		t.Errorf("%d partitions after Reset", p.Len())
	}
	got := route(t, p, testBatch(t, s, rows[1], rows[0]))
	if kept.Path != path || got[0] != path || p.Partition(0) == kept {
		t.Errorf("after Reset: kept %q, new %q, want %q", kept.Path, got[0], path)
	}
}

// A slice of a batch is routed by its own rows.
func TestSlicedBatch(t *testing.T) {
	s := testSchema(t, "k string", "ts timestamp", "ok boolean", "c decimal")
	p := newPartitioner(t, s, nil, "k", "dt: date(ts)", "ok", "c")
	rec := testBatch(t, s, []string{"a", "2024-05-06T00:00:00Z", "true", "1"}, []string{"b", "2024-05-07T00:00:00Z", "false", "2"},
		[]string{"", "2024-05-08T00:00:00Z", "", "3"})
	slice := rec.NewSlice(1, 3)
	defer slice.Release()
	want := []string{"k=b/dt=2024-05-07/ok=false/c=0.02", "k=" + layout.DefaultPartition + "/dt=2024-05-08/ok=" + layout.DefaultPartition + "/c=0.03"}
	if got := route(t, p, slice); !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// L5: against the standard library, random instants in zones with odd rules.
func TestTimeColumnsAgainstStandardLibrary(t *testing.T) {
	s := testSchema(t, "ts timestamp")
	for _, name := range []string{"UTC", "America/New_York", "America/Santiago", "Asia/Kathmandu", "Australia/Lord_Howe", "Pacific/Apia", "Africa/Monrovia"} {
		loc := testZone(t, name)
		p := newPartitioner(t, s, loc, "d: date(ts)", "h: hour(ts)", "m: month(ts)", `f: format(ts, "yyyyMMddHHmm")`)
		rb := array.NewRecordBuilder(memory.DefaultAllocator, s.Arrow)
		var want []string
		at, step := time.Date(1905, 1, 1, 0, 0, 0, 0, time.UTC), 37*time.Hour+13*time.Minute+7*time.Second
		for range 20000 {
			at = at.Add(step)
			local := at.In(loc)
			rb.Field(0).(*array.TimestampBuilder).Append(arrow.Timestamp(at.UnixMicro()))
			rb.Field(1).AppendNull()
			want = append(want, local.Format("d=2006-01-02/h=15/m=01/f=200601021504"))
		}
		rec := rb.NewRecordBatch()
		for i, got := range route(t, p, rec) {
			if got != want[i] {
				t.Fatalf("%s, row %d: %q, want %q", name, i, got, want[i])
			}
		}
		rec.Release()
		rb.Release()
	}
}

// ClosesNow: what parts say stays; where they know of no period, the
// configuration of now may.
func TestClosesNow(t *testing.T) {
	s := testSchema(t, "dt string", "ts timestamp", "n int")
	at := time.Date(2024, 5, 6, 0, 0, 0, 0, time.UTC).UnixMicro()
	for _, c := range []struct {
		spec     string
		ex       *layout.TimeExtractor
		path     string
		recorded int64
		want     int64
	}{
		{"dt", nil, "dt=20240506", 0, 0}, // the reference's rule cannot read it
		{"dt", &layout.TimeExtractor{Formatter: "yyyyMMdd"}, "dt=20240506", 0, at + 1},
		{"dt", &layout.TimeExtractor{Formatter: "yyyyMMdd"}, "dt=20240506", 7, 7},
		{"dt", &layout.TimeExtractor{Formatter: "yyyyMMdd"}, "dt=" + layout.DefaultPartition, 0, 0},
		{"dt", nil, "dt=2024-05-06 00%3A00%3A00", 0, at + 1},
		{"p: format(ts, \"yyyyMMdd\")", nil, "p=20240506", 0, at + 24*time.Hour.Microseconds()},
		{"p: format(ts, \"yyyyMMdd\")", nil, "dt=20240506", 0, 0}, // other partition columns
		{"p: format(ts, \"yyyyMMdd\")", nil, "p=20240506/n=1", 0, 0},
		{"p: format(ts, \"yyyyMMdd\")", nil, "", 0, 0}, // the dead-letter table
		{"n", nil, "n=20240506", 0, 0},
	} {
		p, err := NewPartitioner(s, testSpec(t, c.spec), nil, c.ex)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.ClosesNow(c.path, c.recorded); got != c.want {
			t.Errorf("%s, %+v: %s, recorded %d, closes at %d, want %d", c.spec, c.ex, c.path, c.recorded, got, c.want)
		}
	}
}
