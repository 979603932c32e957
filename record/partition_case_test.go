package record

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/hivesink/hivesink/layout"
)

// Public reports as cases: testdata/<case>.ndjson is the input,
// testdata/<case>.expect.json what must come out.

func readCase(t testing.TB, id string, expect any) (rows []map[string]any) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", id+".expect.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, expect); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(filepath.Join("testdata", id+".ndjson"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for in := bufio.NewScanner(f); in.Scan(); {
		d := json.NewDecoder(strings.NewReader(in.Text()))
		d.UseNumber()
		var row map[string]any
		if err := d.Decode(&row); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
	if len(rows) == 0 {
		t.Fatalf("case %s has no rows", id)
	}
	return rows
}

// texts takes columns out of a case's rows: null and a missing key are "", an
// empty text is `""`.
func texts(rows []map[string]any, columns ...string) [][]string {
	out := make([][]string, len(rows))
	for i, row := range rows {
		for _, c := range columns {
			text := ""
			if v := row[c]; v == "" {
				text = `""`
			} else if v != nil {
				text = fmt.Sprint(v)
			}
			out[i] = append(out[i], text)
		}
	}
	return out
}

// L1, L2: PE-01, every special character.
func TestCaseSpecialCharacters(t *testing.T) {
	var expect struct {
		Partitions []struct {
			Dir       string
			HMSValues []string `json:"hms_values"`
		}
	}
	rows := readCase(t, "PE-01", &expect)
	s := testSchema(t, "k string")
	p := newPartitioner(t, s, nil, "k")
	rec := testBatch(t, s, texts(rows, "k")...)
	out := make([]int32, rec.NumRows())
	if bad := p.Assign(rec, out); bad != nil {
		t.Fatal(bad)
	}
	for i, want := range expect.Partitions {
		got := p.Partition(out[i])
		if got.Path != want.Dir || !reflect.DeepEqual(got.Values, want.HMSValues) {
			t.Errorf("row %d: %q %q, want %q %q", i+1, got.Path, got.Values, want.Dir, want.HMSValues)
		}
		if _, back, err := layout.ParsePath(got.Path); err != nil || !reflect.DeepEqual(back, got.Values) {
			t.Errorf("row %d: reading %q back gives %q, %v", i+1, got.Path, back, err)
		}
	}
	if p.Len() != len(expect.Partitions) {
		t.Errorf("%d partitions, want %d", p.Len(), len(expect.Partitions))
	}
}

// PE-02: escaped once, also when a path is taken apart and made again.
func TestCaseEscapedOnce(t *testing.T) {
	var expect struct {
		Dir       string
		HMSValues []string `json:"hms_values"`
	}
	rows := readCase(t, "PE-02", &expect)
	s := testSchema(t, "dt string")
	p := newPartitioner(t, s, nil, "dt")
	for _, path := range route(t, p, testBatch(t, s, texts(rows, "dt")...)) {
		if path != expect.Dir {
			t.Errorf("path %q, want %q", path, expect.Dir)
		}
	}
	names, values, err := layout.ParsePath(expect.Dir)
	if err != nil || !reflect.DeepEqual(values, expect.HMSValues) || layout.PartitionPath(names, values) != expect.Dir {
		t.Errorf("%q, %v", values, err)
	}
	if p.Len() != 1 {
		t.Errorf("%d partitions", p.Len())
	}
}

// L2: PE-03, null, missing and empty.
func TestCaseNullAndEmpty(t *testing.T) {
	var expect struct {
		Dirs      map[string][]int
		HMSValues [][]string `json:"hms_values"`
	}
	rows := readCase(t, "PE-03", &expect)
	s := testSchema(t, "k string", "d date")
	p := newPartitioner(t, s, nil, "k", "d")
	checkDirs(t, expect.Dirs, route(t, p, testBatch(t, s, texts(rows, "k", "d")...)))
	for n, want := range expect.HMSValues {
		if got := p.Partition(int32(n)).Values; !reflect.DeepEqual(got, want) {
			t.Errorf("values %q, want %q", got, want)
		}
	}
	// The literal text is the same directory, hence the same partition.
	if got := route(t, p, testBatch(t, s, []string{layout.DefaultPartition, "2024-02-03"})); p.Len() != 2 {
		t.Errorf("%q has a number of its own", got)
	}
}

func checkDirs(t *testing.T, want map[string][]int, paths []string) {
	t.Helper()
	got := make(map[string][]int)
	for i, path := range paths {
		got[path] = append(got[path], i+1)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// PE-04: integers in their shortest form, text as it is.
func TestCaseLeadingZeros(t *testing.T) {
	var expect struct{ Dirs map[string][]int }
	rows := readCase(t, "PE-04", &expect)
	s := testSchema(t, "h int", "s string")
	checkDirs(t, expect.Dirs, route(t, newPartitioner(t, s, nil, "h", "s"), testBatch(t, s, texts(rows, "h", "s")...)))
}

// P3: PE-05, 255 bytes after escaping.
func TestCaseTooLong(t *testing.T) {
	var expect struct {
		Rows []struct {
			Bytes   int `json:"component_bytes"`
			Written bool
		}
	}
	rows := readCase(t, "PE-05", &expect)
	s := testSchema(t, "k string")
	p := newPartitioner(t, s, nil, "k")
	for range 2 { // what was found before must not make a difference
		for i, path := range route(t, p, testBatch(t, s, texts(rows, "k")...)) {
			switch want := expect.Rows[i]; {
			case want.Written && len(path) != want.Bytes:
				t.Errorf("row %d: %q", i+1, path)
			case !want.Written && (path[0] != '!' || !strings.Contains(path, "column k") || !strings.Contains(path, fmt.Sprint(want.Bytes))):
				t.Errorf("row %d: %q, want an error that says %d bytes", i+1, path, want.Bytes)
			}
		}
	}
	if p.Len() != 2 {
		t.Errorf("%d partitions, want 2", p.Len())
	}
}

// Two columns that are too long make one error of the row; the neighbours of a
// bad row keep their partitions.
func TestTooLongTwice(t *testing.T) {
	s := testSchema(t, "a string", "b string")
	long := strings.Repeat("x", 300)
	p := newPartitioner(t, s, nil, "a", "b")
	got := route(t, p, testBatch(t, s, []string{"1", long}, []string{long, long}, []string{"1", "2"}, []string{long, "2"}))
	if got[2] != "a=1/b=2" || p.Len() != 1 {
		t.Errorf("good row: %q, %d partitions", got[2], p.Len())
	}
	for _, i := range []int{0, 1, 3} {
		if got[i][0] != '!' {
			t.Errorf("row %d: %q", i, got[i])
		}
	}
}

// L5: TZ-01.
func TestCaseZones(t *testing.T) {
	var expect struct {
		Rows []struct{ Zone, Dir string }
	}
	rows := readCase(t, "TZ-01", &expect)
	s := testSchema(t, "ts timestamp")
	for i, want := range expect.Rows {
		p := newPartitioner(t, s, testZone(t, want.Zone), "day: date(ts)", "hour: hour(ts)")
		// All rows before it too: the cached interval must not leak over.
		got := route(t, p, testBatch(t, s, texts(rows[:i+1], "ts")...))
		if got[i] != want.Dir {
			t.Errorf("row %d: %q, want %q", i+1, got[i], want.Dir)
		}
	}
}

// L6: TZ-02.
func TestCaseRepeatedHour(t *testing.T) {
	var expect struct {
		Zone string
		Dirs map[string][]int
		End  string `json:"hour_01_end_instant"`
	}
	rows := readCase(t, "TZ-02", &expect)
	s := testSchema(t, "ts timestamp")
	p := newPartitioner(t, s, testZone(t, expect.Zone), "day: date(ts)", "hour: hour(ts)")
	checkDirs(t, expect.Dirs, route(t, p, testBatch(t, s, texts(rows, "ts")...)))
	end, err := time.Parse(time.RFC3339, expect.End)
	if err != nil {
		t.Fatal(err)
	}
	if got := p.Partition(0).Closes; got != end.UnixMicro() {
		t.Errorf("%s closes at %v, want %v", p.Partition(0).Path, time.UnixMicro(got).UTC(), end)
	}
}

// L5: OD-01, before 1970.
func TestCaseBefore1970(t *testing.T) {
	var expect struct{ Dir map[string]string }
	rows := readCase(t, "OD-01", &expect)
	s := testSchema(t, "ts timestamp")
	p := newPartitioner(t, s, time.UTC, "day: date(ts)")
	for i, path := range route(t, p, testBatch(t, s, texts(rows, "ts")...)) {
		if want := expect.Dir[fmt.Sprint(i+1)]; path != want {
			t.Errorf("row %d: %q, want %q", i+1, path, want)
		}
	}
	// It ends at 0, which would mean that it never ends.
	if got := p.Partition(0); got.Path != "day=1969-12-31" || got.Closes != 1 {
		t.Errorf("%s closes at %d, want 1", got.Path, got.Closes)
	}
}

// WM-02: rows out of order at the edge of an hour.
func TestCaseHourEdge(t *testing.T) {
	var expect struct{ Dirs map[string][]int }
	rows := readCase(t, "WM-02", &expect)
	s := testSchema(t, "ts timestamp")
	checkDirs(t, expect.Dirs, route(t, newPartitioner(t, s, nil, "hour: hour(ts)"), testBatch(t, s, texts(rows, "ts")...)))
}

// NU-01: integers are exact in directories too.
func TestCaseExactIntegers(t *testing.T) {
	var expect struct{ N map[string]string }
	rows := readCase(t, "NU-01", &expect)
	s := testSchema(t, "n bigint")
	got := route(t, newPartitioner(t, s, nil, "n"), testBatch(t, s, texts(rows, "n")...))
	for i := range len(expect.N) {
		if want := "n=" + expect.N[fmt.Sprint(i+1)]; got[i] != want {
			t.Errorf("row %d: %q, want %q", i+1, got[i], want)
		}
	}
}
