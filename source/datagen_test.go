package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/hivesink/hivesink/hivetype"
	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/record"
)

func testSchema(t testing.TB, identity []string, columns ...string) *record.Schema {
	t.Helper()
	fields := make([]hivetype.Field, len(columns))
	for i, c := range columns {
		f, err := hivetype.ParseColumn(c)
		if err != nil {
			t.Fatal(err)
		}
		fields[i] = f
	}
	s, err := record.NewSchema(fields, identity)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// everyType has a column of each type datagen knows.
func everyType(t testing.TB) *record.Schema {
	return testSchema(t, []string{"region"},
		"id bigint", "ts timestamp", "other timestamp", "flag boolean", "a tinyint", "b smallint", "c int", "f float", "d double",
		"price decimal(7,2)", "big decimal(38,10)", "name string", "code char(3)", "v varchar(40)", "raw binary", "born date",
		"tags array<string>", "ids array<bigint>", "m map<string,int>", "flags map<boolean,int>",
		"s struct<x:int,y:array<struct<z:string>>>", "must int not null", "region string")
}

// rowsOfSplit reads a split from a position to its end, or until most rows, and
// prints its rows; it returns what the last batch says of the resume, too.
func rowsOfSplit(t *testing.T, s Source, id string, from ledger.Source, most int) (rows []string, last ledger.Source) {
	t.Helper()
	r, err := s.Open(t.Context(), Split{ID: id, Name: id}, from)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	last = from
	for len(rows) < most {
		b, err := r.Read(t.Context())
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if b.FirstRow != last.NextRow {
			t.Fatalf("%s: a batch begins at row %d, want %d", id, b.FirstRow, last.NextRow)
		}
		rows = append(rows, printRows(t, b)...)
		last = ledger.Source{Position: b.Position, NextRow: b.FirstRow + b.Count, Ended: b.End}
	}
	return rows, last
}

func printRows(t *testing.T, b *record.Batch) []string {
	t.Helper()
	if b.Record == nil {
		if b.Count != 0 {
			t.Fatalf("%d rows without a record", b.Count)
		}
		return nil
	}
	defer b.Record.Release()
	if b.Record.NumRows() != b.Count {
		t.Fatalf("record of %d rows in a batch of %d", b.Record.NumRows(), b.Count)
	}
	rows := make([]string, b.Count)
	for i := range rows {
		var text strings.Builder
		for c, col := range b.Record.Columns() {
			fmt.Fprintf(&text, "%s=%s ", b.Record.ColumnName(c), col.ValueStr(i))
		}
		rows[i] = text.String()
	}
	return rows
}

func newDatagen(t testing.TB, d DatagenOptions, o Options) *datagen {
	t.Helper()
	s, err := NewDatagen(d, o)
	if err != nil {
		t.Fatal(err)
	}
	return s.(*datagen)
}

// TestDatagenResume proves S3 and S9: whatever the batches, and from every batch
// on, the rows are the same.
func TestDatagenResume(t *testing.T) {
	d := DatagenOptions{Rows: 803, Seed: 7, Late: 0.1, Columns: map[string]DatagenColumn{"c": {Values: 50, Skew: 1.2}}}
	schema := everyType(t)
	whole := newDatagen(t, d, Options{Schema: schema})
	small := newDatagen(t, d, Options{Schema: schema, BatchRows: 13})
	for k := range datagenSplits {
		id := fmt.Sprint(datagenPrefix, k)
		want, last := rowsOfSplit(t, whole, id, ledger.Source{}, 1<<30)
		if n := whole.rowsOf(k); int64(len(want)) != n || last.NextRow != n || !last.Ended {
			t.Fatalf("%s: %d rows, next row %d, ended %v; want %d rows", id, len(want), last.NextRow, last.Ended, n)
		}
		var got []string
		for from := (ledger.Source{}); !from.Ended; {
			var rows []string
			rows, from = rowsOfSplit(t, small, id, from, 1) // one batch
			got = append(got, rows...)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: rows of many readers differ from those of one", id)
		}
	}
	other := d
	other.Seed++
	a, _ := rowsOfSplit(t, whole, "datagen-0", ledger.Source{}, 1)
	b, _ := rowsOfSplit(t, newDatagen(t, other, Options{Schema: schema}), "datagen-0", ledger.Source{}, 1)
	if slices.Equal(a, b) {
		t.Error("another seed makes the same rows")
	}
}

// TestDatagenIDs proves that the ids of a run are 0 to Rows-1, each once.
func TestDatagenIDs(t *testing.T) {
	s := newDatagen(t, DatagenOptions{Rows: 20_003}, Options{Schema: testSchema(t, nil, "id bigint")})
	splits, err := s.Splits(t.Context(), nil)
	if err != nil || len(splits) != datagenSplits {
		t.Fatalf("splits %v, error %v", splits, err)
	}
	seen := make([]int, s.d.Rows)
	for _, split := range splits {
		eachBatch(t, s, split, func(rec arrow.RecordBatch) {
			for _, id := range rec.Column(0).(*array.Int64).Int64Values() {
				seen[id]++
			}
		})
	}
	for id, n := range seen {
		if n != 1 {
			t.Fatalf("id %d is there %d times", id, n)
		}
	}
	if p := s.Progress(); p != 1 {
		t.Errorf("progress is %v at the end", p)
	}
}

func eachBatch(t *testing.T, s Source, split Split, do func(arrow.RecordBatch)) {
	t.Helper()
	r, err := s.Open(t.Context(), split, ledger.Source{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for {
		b, err := r.Read(t.Context())
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if b.Record != nil {
			do(b.Record)
			b.Record.Release()
		}
	}
}

// TestDatagenValues looks at the values of every type: how many there are, and
// where nulls are.
func TestDatagenValues(t *testing.T) {
	const rows = 40_000
	cols := map[string]DatagenColumn{"name": {Values: 150_000}, "code": {Values: 5000}, "v": {Values: 20}, "c": {Values: 3}, "a": {Values: 1000}, "ts": {Values: 4}}
	s := newDatagen(t, DatagenOptions{Rows: rows, Columns: cols}, Options{Schema: everyType(t)})
	distinct := make(map[string]map[string]bool)
	nulls := make(map[string]int)
	for k := range datagenSplits {
		eachBatch(t, s, Split{ID: fmt.Sprint(datagenPrefix, k)}, func(rec arrow.RecordBatch) {
			for c, col := range rec.Columns() {
				name := rec.ColumnName(c)
				nulls[name] += col.NullN()
				if distinct[name] == nil {
					distinct[name] = make(map[string]bool)
				}
				for i := range col.Len() {
					if !col.IsNull(i) {
						distinct[name][col.ValueStr(i)] = true
					}
				}
			}
			checkMaps(t, rec)
		})
	}
	for name, n := range map[string]int{"id": rows, "ts": rows, "flag": 2, "a": 128, "c": 3, "v": 20, "code": 1000, "born": 365, "region": 1000} {
		if len(distinct[name]) != n {
			t.Errorf("%s has %d values, want %d", name, len(distinct[name]), n)
		}
	}
	if n := len(distinct["name"]); n < 30_000 { // 150,000 × (1 − e^(−40/150)), less nulls: about 34,000
		t.Errorf("name has %d values", n)
	}
	for name, n := range nulls {
		none := name == "id" || name == "ts" || name == "must" || name == "region"
		if none && n > 0 || !none && (n < rows*2/100 || n > rows*4/100) {
			t.Errorf("%s has %d nulls of %d", name, n, rows)
		}
	}
	if !distinct["v"]["v-000019"] || !distinct["code"]["007"] {
		t.Error("texts are not as documented")
	}
}

// checkMaps looks for a key that is twice in a map.
func checkMaps(t *testing.T, rec arrow.RecordBatch) {
	t.Helper()
	for _, name := range []string{"m", "flags"} {
		m := rec.Column(rec.Schema().FieldIndices(name)[0]).(*array.Map)
		for i := range m.Len() {
			seen := make(map[string]bool)
			from, to := m.ValueOffsets(i)
			if to-from > maxElements {
				t.Fatalf("%s has a map of %d entries", name, to-from)
			}
			for k := from; k < to; k++ {
				key := m.Keys().ValueStr(int(k))
				if seen[key] {
					t.Fatalf("%s has key %s twice in a map", name, key)
				}
				seen[key] = true
			}
		}
	}
}

// TestDatagenTimes looks at the days and the late rows of the time column.
func TestDatagenTimes(t *testing.T) {
	tests := []struct {
		name string
		d    DatagenOptions
		days int // distinct
		late float64
	}{
		{"default", DatagenOptions{Rows: 10_000}, 10, 0},
		{"days", DatagenOptions{Rows: 10_000, Columns: map[string]DatagenColumn{"ts": {Values: 30}}}, 30, 0},
		{"skewed days", DatagenOptions{Rows: 10_000, Columns: map[string]DatagenColumn{"ts": {Values: 5, Skew: 1}}}, 5, 0},
		{"late", DatagenOptions{Rows: 10_000, Late: 0.25}, 12, 0.25},
		{"named date", DatagenOptions{Rows: 10_000, TimeColumn: "born"}, 10, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := newDatagen(t, test.d, Options{Schema: testSchema(t, nil, "id bigint", "ts timestamp", "born date")})
			days := make(map[int64]int)
			late := 0
			for k := range datagenSplits {
				eachBatch(t, s, Split{ID: fmt.Sprint(datagenPrefix, k)}, func(rec arrow.RecordBatch) {
					for i := range int(rec.NumRows()) {
						if test.d.TimeColumn == "born" {
							days[int64(rec.Column(2).(*array.Date32).Value(i))]++
							continue
						}
						at := int64(rec.Column(1).(*array.Timestamp).Value(i))
						days[floorDay(at)]++
						if onTime := firstTime.UnixMicro() + rec.Column(0).(*array.Int64).Value(i)*defaultDays*day/10_000; test.late > 0 && at < onTime-1 {
							late++
						}
					}
				})
			}
			if len(days) != test.days {
				t.Errorf("%d days, want %d", len(days), test.days)
			}
			if share := float64(late) / 10_000; share < test.late-0.02 || share > test.late+0.02 {
				t.Errorf("%v of the rows are late, want %v", share, test.late)
			}
			if first := firstTime.UnixMicro() / day; test.name == "skewed days" && days[first] < 2*days[first+3] {
				t.Errorf("days are not skewed: %v", days)
			}
		})
	}
}

// TestDrawer compares the frequencies of a skewed draw with Zipf's law.
func TestDrawer(t *testing.T) {
	for _, n := range []int64{1, 2, 10, 100_000} {
		for _, skew := range []float64{0, 0.5, 1, 1.5} {
			draw := drawer(n, skew)
			count := make([]int, n)
			const draws = 100_000
			for i := range uint64(draws) {
				count[draw(mix(i*golden))]++ // panics out of range
			}
			if draw(0) != 0 || draw(1<<64-1) != n-1 {
				t.Errorf("%d values, skew %v: draws from %d to %d", n, skew, draw(0), draw(1<<64-1))
			}
			if n == 10 && skew == 1 {
				if share := float64(count[0]) / draws; share < 0.25 || share > 0.4 {
					t.Errorf("the most frequent of 10 values has a share of %v", share)
				}
				if count[0] < 3*count[9] {
					t.Errorf("not skewed: %v", count)
				}
			}
		}
	}
}

// TestDatagenSplits looks at what is left out and what is refused.
func TestDatagenSplits(t *testing.T) {
	o := Options{Schema: testSchema(t, nil, "id bigint")}
	ids := func(d DatagenOptions, known map[string]ledger.Source) string {
		s := newDatagen(t, d, o)
		splits, err := s.Splits(t.Context(), known)
		if err != nil {
			return err.Error()
		}
		text := ""
		for _, split := range splits {
			text += strings.TrimPrefix(split.ID, datagenPrefix)
		}
		return text
	}
	at := func(r int64, ended bool) map[string]ledger.Source {
		return map[string]ledger.Source{"datagen-1": {Position: fmt.Sprintf(`{"r":%d}`, r), NextRow: r, Ended: ended}, "stdin:1": {}}
	}
	tests := []struct {
		name  string
		rows  int64
		known map[string]ledger.Source
		want  string
	}{
		{"new", 16, nil, "01234567"},
		{"fewer rows than splits", 3, nil, "012"},
		{"half read", 16, at(1, false), "01234567"},
		{"ended", 16, at(2, true), "0234567"},
		{"ended, more rows now", 32, at(2, true), "01234567"},
		{"not ended, fewer rows now", 8, at(2, false), "01234567"},
		{"without end", 0, at(2, true), "01234567"},
	}
	for _, test := range tests {
		if got := ids(DatagenOptions{Rows: test.rows}, test.known); got != test.want {
			t.Errorf("%s: splits %s, want %s", test.name, got, test.want)
		}
	}
	wrong := map[string]ledger.Source{"datagen-1": {Position: `{"o":1}`, NextRow: 7}}
	if got := ids(DatagenOptions{}, wrong); !strings.Contains(got, "is not one of this source") {
		t.Errorf("another source's position: %s", got)
	}
	rows, last := rowsOfSplit(t, newDatagen(t, DatagenOptions{Rows: 8}, o), "datagen-1", at(2, false)["datagen-1"], 1)
	if len(rows) != 0 || !last.Ended || last.NextRow != 2 {
		t.Errorf("beyond the end: rows %v, then %+v", rows, last)
	}
	if _, err := newDatagen(t, DatagenOptions{}, o).Open(t.Context(), Split{ID: "datagen-9"}, ledger.Source{}); err == nil {
		t.Error("datagen-9 can be opened")
	}
	for _, d := range []DatagenOptions{
		{Rows: -1}, {Rate: -1}, {Late: 2}, {TimeColumn: "x"},
		{Columns: map[string]DatagenColumn{"x": {}}}, {Columns: map[string]DatagenColumn{"id": {Skew: -1}}},
	} {
		if _, err := NewDatagen(d, o); fault.ClassOf(err) != fault.Config {
			t.Errorf("%+v: error %v", d, err)
		}
	}
}

// TestDatagenRate reads with a clock that moves when somebody waits.
func TestDatagenRate(t *testing.T) {
	for _, rate := range []int64{1, 100, 1_000_000} {
		s := newDatagen(t, DatagenOptions{Rate: rate}, Options{Schema: testSchema(t, nil, "id bigint")})
		start := firstTime
		now := start
		s.pace.now = func() time.Time { return now }
		s.pace.wait = func(_ context.Context, d time.Duration) error { now = now.Add(d); return nil }
		var readers [3]Reader
		for k := range readers {
			r, err := s.Open(t.Context(), Split{ID: fmt.Sprint(datagenPrefix, k)}, ledger.Source{})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			readers[k] = r
		}
		rows := int64(0)
		for i := 0; now.Sub(start) < 10*time.Second; i++ {
			b, err := readers[i%len(readers)].Read(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			rows += b.Count
			b.Record.Release()
		}
		if want := 10 * rate; rows < want || rows > want+max(1, rate/pacesPerSecond)+1 {
			t.Errorf("rate %d: %d rows in 10 s", rate, rows)
		}
		s.pace.wait = func(context.Context, time.Duration) error { return context.Canceled }
		before := s.at[0].Load()
		if _, err := readers[0].Read(t.Context()); !errors.Is(err, context.Canceled) {
			t.Errorf("rate %d: cancelled wait: %v", rate, err)
		}
		now = now.Add(time.Hour)
		b, err := readers[0].Read(t.Context())
		if err != nil || b.FirstRow != before {
			t.Fatalf("rate %d: after a cancelled wait: %v", rate, err)
		}
		b.Record.Release()
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := waitFor(ctx, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("waitFor: %v", err)
	}
}

// TestDatagenAllocations proves S8: a batch of many rows allocates no more often
// than one of few, save for what buffers take to grow.
func TestDatagenAllocations(t *testing.T) {
	schema := everyType(t)
	perBatch := func(rows int) float64 {
		s := newDatagen(t, DatagenOptions{}, Options{Schema: schema, BatchRows: rows, BatchBytes: 1 << 40})
		r, err := s.Open(t.Context(), Split{ID: "datagen-0"}, ledger.Source{})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		return testing.AllocsPerRun(5, func() {
			b, err := r.Read(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			b.Record.Release()
		})
	}
	few, many := perBatch(100), perBatch(8000)
	if many > 2*few {
		t.Errorf("%v allocations for 100 rows, %v for 8000", few, many)
	}
}

func BenchmarkDatagen(b *testing.B) {
	schema := testSchema(b, nil, "id bigint", "ts timestamp", "user string", "n int", "price decimal(10,2)", "d double", "flag boolean")
	s := newDatagen(b, DatagenOptions{}, Options{Schema: schema})
	r, err := s.Open(b.Context(), Split{ID: "datagen-0"}, ledger.Source{})
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	rows := int64(0)
	for b.Loop() {
		batch, err := r.Read(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		rows += batch.Count
		batch.Record.Release()
	}
	b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "rows/s")
}
