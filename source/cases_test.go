package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/ledger"
)

// VS-01: lines around and far over the buffers of the usual readers; one over
// max_record is one bad record, and the lines after it load.
func TestReportedLongLines(t *testing.T) {
	sizes := []int{10, 65517, 65518, 69982, 2097134, 10}
	var b bytes.Buffer
	for i, n := range sizes {
		fmt.Fprintf(&b, "{\"id\": %d, \"s\": \"%s\"}\n", i, strings.Repeat("x", n))
	}
	for _, compression := range []string{plain, gz, zst} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "in"), compressAs(t, compression, b.Bytes()))
		o := Options{Schema: schemaOf(t, "id bigint", "s string"), MaxRecord: 4 << 20}
		src := fileSource(t, o, dir, "in")
		steps, err := readAll(t, src, only(t, src, nil), ledger.Source{})
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		for i, n := range sizes {
			want = append(want, fmt.Sprintf("%d: %d|%s", i, i, strings.Repeat("x", n)))
		}
		equalLines(t, "all lines", rowsOf(steps), want)

		o.MaxRecord = 1 << 20
		src = fileSource(t, o, dir, "in")
		if steps, err = readAll(t, src, only(t, src, nil), ledger.Source{}); err != nil {
			t.Fatal(err)
		}
		want[4] = fmt.Sprintf("4: bad too_long at in line 5: %d bytes %q", rawBytes, `{"id": 4, "s": "`+strings.Repeat("x", 24))
		equalLines(t, "max_record 1 MiB", rowsOf(steps), want)
	}
}

// S5: a record without end costs its first max_record bytes.
func TestEndlessRecordIsBounded(t *testing.T) {
	const size, maxRecord = 64 << 20, 1 << 16
	endless := io.MultiReader(io.LimitReader(sames('x'), size), strings.NewReader("\n{\"id\":7}\n"))
	src := streamOf(t, Options{Schema: schemaOf(t, "id bigint"), MaxRecord: maxRecord}, endless, false)
	r, err := src.Open(t.Context(), only(t, src, nil), ledger.Source{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	b, err := r.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if b.Bytes < size {
		t.Errorf("%d bytes were consumed, want all %d", b.Bytes, size)
	}
	if got := after.TotalAlloc - before.TotalAlloc; got > 8<<20 {
		t.Errorf("%d bytes allocated for a record of %d", got, size)
	}
	if n := len(r.(*framer).buf); n > maxRecord+terminatorBytes+chunkBytes {
		t.Errorf("the buffer has %d bytes", n)
	}
	equalLines(t, "endless", textOf(t, b), []string{
		fmt.Sprintf("0: bad too_long at stdin line 1: %d bytes %q", rawBytes, strings.Repeat("x", 40))})
	if b, err = r.Read(t.Context()); err != nil {
		t.Fatal(err)
	}
	equalLines(t, "after it", textOf(t, b), []string{"1: 7"})
	b.Record.Release()
}

type sames byte

func (s sames) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(s)
	}
	return len(p), nil
}

// A batch ends at its bytes too, bad records included.
func TestBatchEndsAtBytes(t *testing.T) {
	for _, line := range []string{`{"s":"` + strings.Repeat("x", 1000) + "\"}\n", strings.Repeat("y", 1000) + "\n"} {
		src := streamOf(t, Options{Schema: schemaOf(t, "s string"), BatchBytes: 10_000},
			strings.NewReader(strings.Repeat(line, 100)), false)
		steps, err := readAll(t, src, only(t, src, nil), ledger.Source{})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range steps {
			if len(s.rows) > 12 {
				t.Errorf("a batch of %d records of 1 kB, want at most 10 kB", len(s.rows))
			}
		}
	}
}

// IP-01: byte order mark, quoted header, line ends inside a field. The place of
// a bad record is its first line, after a resume too.
func TestReportedCSV(t *testing.T) {
	data, err := os.ReadFile("testdata/IP-01.csv")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "in.csv"), append(data, "4,x\r\n"...))
	o := Options{Schema: schemaOf(t, "notes string", "name string"), Format: FormatCSV, CSVHeader: true, CSVQuote: '"', BatchRows: 1}
	src := fileSource(t, o, dir, "in.csv")
	split := only(t, src, nil)
	steps, err := readAll(t, src, split, ledger.Source{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"0: line1\nline2|ann", "1: he said \"hi\", ok|bob", "2: |(null)", `3: bad syntax at in.csv line 6: 3 bytes "4,x"`}
	equalLines(t, "IP-01", rowsOf(steps), want)
	rest, err := readAll(t, src, split, steps[0].pos)
	if err != nil {
		t.Fatal(err)
	}
	equalLines(t, "IP-01 resumed", rowsOf(rest), want[1:])
}

// Headers are each file's own.
func TestHeaders(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.csv"), []byte("\n\nid,s\n1,a\n"))
	write(t, filepath.Join(dir, "b.csv"), []byte("s,id\nb,2\n"))
	write(t, filepath.Join(dir, "c.csv"), nil)
	write(t, filepath.Join(dir, "d.csv"), []byte("x,y\n1,2\n"))
	write(t, filepath.Join(dir, "e.csv"), []byte(strings.Repeat("n", 3000)))
	write(t, filepath.Join(dir, "f.csv"), []byte("id,s"))
	o := Options{Schema: schemaOf(t, "id bigint", "s string"), Format: FormatCSV, CSVHeader: true, CSVQuote: '"', MaxRecord: 1000}
	src := fileSource(t, o, dir, "*.csv")
	splits, err := src.Splits(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := [][]string{{"0: 1|a"}, {"0: 2|b"}, nil, nil, nil, nil}
	for i, s := range splits {
		steps, err := readAll(t, src, s, ledger.Source{})
		switch s.Name {
		case "d.csv":
			mustFail(t, fault.Config, err, "header", "d.csv line 1")
		case "e.csv":
			mustHalt(t, err, "header", "e.csv", "1000")
		default:
			if err != nil {
				t.Fatal(err)
			}
			equalLines(t, s.Name, rowsOf(steps), want[i])
		}
	}
	// A header that had no line end when it was read is read again: no record
	// came after it.
	steps, err := readAll(t, src, splits[5], ledger.Source{})
	if err != nil {
		t.Fatal(err)
	}
	from := steps[0].pos
	for text, want := range map[string]string{"id,s\n1,a\n": "0: 1|a", "id,s2\n1,a\n": "0: 1|(null)"} {
		write(t, filepath.Join(dir, "f.csv"), []byte(text))
		if steps, err = readAll(t, src, splits[5], from); err != nil {
			t.Fatal(err)
		}
		equalLines(t, "header continued", rowsOf(steps), []string{want})
	}
}

// A stream that pauses delivers what it has; the end of a context ends Read
// although the stream blocks, and nothing is lost by it.
func TestStreamPauses(t *testing.T) {
	pr, pw := io.Pipe()
	src := streamOf(t, Options{Schema: schemaOf(t, "id bigint")}, pr, false)
	r, err := src.Open(t.Context(), only(t, src, nil), ledger.Source{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer pr.Close()
	send := func(text string) {
		if _, err := io.WriteString(pw, text); err != nil {
			t.Error(err)
		}
	}
	send("{\"id\":1}\n{\"id\":")
	b, err := r.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	equalLines(t, "before the pause", textOf(t, b), []string{"0: 1"})
	if b.End || !strings.Contains(b.Position, `"o":9,`) {
		t.Errorf("position %s", b.Position)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := r.Read(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("interrupted Read: %v", err)
	}
	go func() { // ends with the write of the last bytes
		send("2}\n")
		pw.Close()
	}()
	var rows []string
	for {
		b, err := r.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, textOf(t, b)...)
		if b.End {
			break
		}
	}
	equalLines(t, "after it", rows, []string{"1: 2"})
}

// S3: a position that no reader of this source has written halts.
func TestForeignPositions(t *testing.T) {
	dir := t.TempDir()
	path := write(t, filepath.Join(dir, "a"), []byte("{}\n"))
	src := fileSource(t, Options{Schema: schemaOf(t, "id bigint")}, dir, "a")
	for _, text := range []string{"17", "{", `{"o":-1}`, `{"n":1000000}`} {
		from := ledger.Source{Position: text}
		_, err := src.Splits(t.Context(), map[string]ledger.Source{filePrefix + path: from})
		mustHalt(t, err, "position")
		_, err = src.Open(t.Context(), Split{ID: filePrefix + path, Name: "a"}, from)
		mustHalt(t, err, "position")
	}
}

func TestProgress(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a"), []byte("{\"id\":1}\n"))
	write(t, filepath.Join(dir, "b"), []byte("{\"id\":2}\n"))
	src := fileSource(t, Options{Schema: schemaOf(t, "id bigint")}, dir, "*")
	splits, err := src.Splits(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{0.5, 1} {
		steps, err := readAll(t, src, splits[i], ledger.Source{})
		if err != nil {
			t.Fatal(err)
		}
		if got := src.Progress(); got != want {
			t.Errorf("progress %v after %d files, want %v", got, i+1, want)
		}
		if splits[i].Size != 9 || len(steps) != 1 {
			t.Errorf("%+v, %d batches", splits[i], len(steps))
		}
	}
}

// S8: nothing is allocated per row.
func TestNoAllocationPerRow(t *testing.T) {
	const rows = 200_000
	for _, format := range []string{FormatJSON, FormatCSV} {
		line := "{\"id\": 123456, \"s\": \"some text\"}\r\n"
		if format == FormatCSV {
			line = "123456,some text\r\n"
		}
		dir := t.TempDir()
		write(t, filepath.Join(dir, "in"), []byte(strings.Repeat(line, rows)))
		src := fileSource(t, Options{Schema: schemaOf(t, "id bigint", "s string"), Format: format, CSVQuote: '"'}, dir, "in")
		split := only(t, src, nil)
		n := int64(0)
		perRun := testing.AllocsPerRun(1, func() {
			r, err := src.Open(t.Context(), split, ledger.Source{})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			for n = 0; ; {
				b, err := r.Read(t.Context())
				if errors.Is(err, io.EOF) {
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				n += b.Count
				if b.Record != nil {
					b.Record.Release()
				}
			}
		})
		if n != rows {
			t.Fatalf("%d rows, want %d", n, rows)
		}
		if perRun/rows > 0.02 {
			t.Errorf("%s: %.3f allocations a row", format, perRun/rows)
		}
	}
}
