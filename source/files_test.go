package source

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hivesink/hivesink/ledger"
)

// awkward are inputs with all that makes counting rows and lines hard.
func awkward() map[string]string {
	var ndjson, csv, header strings.Builder
	ndjson.WriteString("\xef\xbb\xbf")
	csv.WriteString("\xef\xbb\xbf")
	header.WriteString("\xef\xbb\xbfname,id\r\n")
	for i := range 40 {
		fmt.Fprintf(&ndjson, "{\"id\":%d,\"name\":\"n%d\"}\n", i, i)
		fmt.Fprintf(&csv, "%d,\"line\nof \"\"%d\"\"\"\r\n", i, i)
		fmt.Fprintf(&header, "\"two\n\nlines\",%d\n", i)
		switch i % 8 {
		case 1:
			ndjson.WriteString("\n  \r\n")
			csv.WriteString("\n\r\n")
			header.WriteString("\n")
		case 3:
			ndjson.WriteString("not json\r\n")
			csv.WriteString("x,y\n")
			header.WriteString("a,b,c\r\n")
		case 5:
			ndjson.WriteString(`{"id":1,"name":"` + strings.Repeat("x", 300) + "\"}\r\n")
			csv.WriteString(`7,"` + strings.Repeat("long\n", 60) + "\"\n")
			header.WriteString(strings.Repeat("long", 80) + ",1\n")
		}
	}
	ndjson.WriteString(`{"id":99,"name":"unterminated"}`)
	csv.WriteString("99,unterminated")
	header.WriteString("unterminated,99")
	return map[string]string{"json": ndjson.String(), "csv": csv.String(), "csv with header": header.String()}
}

func optionsFor(t testing.TB, form string) Options {
	o := Options{Schema: schemaOf(t, "id bigint", "name string"), MaxRecord: 256, Format: FormatJSON}
	if form != "json" {
		o.Format, o.CSVQuote, o.CSVHeader = FormatCSV, '"', form == "csv with header"
	}
	return o
}

// TestResumeAfterEveryBatch proves S2 and S3 for files, plain and compressed.
func TestResumeAfterEveryBatch(t *testing.T) {
	for form, data := range awkward() {
		for _, compression := range []string{plain, gz, zst} {
			t.Run(form+" "+compression, func(t *testing.T) {
				o := optionsFor(t, form)
				path := write(t, filepath.Join(t.TempDir(), "in"+suffixes[compression]), compressAs(t, compression, []byte(data)))
				s := fileSource(t, o, "", path)
				whole, err := readAll(t, s, only(t, s, nil), ledger.Source{})
				if err != nil {
					t.Fatal(err)
				}
				want := rowsOf(whole)
				if n := 40 + 5 + 5 + 1; len(want) != n {
					t.Fatalf("%d rows, want %d:\n%s", len(want), n, strings.Join(want, "\n"))
				}
				if p := s.Progress(); p != 1 {
					t.Errorf("progress is %v at the end", p)
				}
				for _, rows := range []int{1, 3, 7} {
					o.BatchRows = rows
					s := fileSource(t, o, "", path)
					split := only(t, s, nil)
					steps, err := readAll(t, s, split, ledger.Source{})
					if err != nil {
						t.Fatal(err)
					}
					equalLines(t, fmt.Sprintf("batches of %d", rows), rowsOf(steps), want)
					for i, st := range steps {
						rest, err := readAll(t, s, split, st.pos)
						if err != nil {
							t.Fatal(err)
						}
						got := append(rowsOf(steps[:i+1]), rowsOf(rest)...)
						equalLines(t, fmt.Sprintf("batches of %d, resumed after batch %d", rows, i), got, want)
					}
				}
			})
		}
	}
}

// TestPlaces looks at the line numbers of bad records.
func TestPlaces(t *testing.T) {
	o := optionsFor(t, "csv")
	path := write(t, filepath.Join(t.TempDir(), "in.csv"), []byte("1,\"a\nb\"\r\n\nx,bad\n2,\""+strings.Repeat("long\n", 60)+"\"\nx,bad\n"))
	s := fileSource(t, o, "", path)
	steps, err := readAll(t, s, only(t, s, nil), ledger.Source{})
	if err != nil {
		t.Fatal(err)
	}
	got := values(steps)
	for i, want := range []string{"1|a\nb", "bad type at " + path + " line 4", "bad too_long at " + path + " line 5: 256 bytes", "bad type at " + path + " line 66"} {
		if !strings.HasPrefix(got[i], want) {
			t.Errorf("row %d: %q, want %q", i, got[i], want)
		}
	}
}

// TestCutShort proves S4: the records before the damage come first, the error
// names file and offset, and a whole copy is read on from there.
func TestCutShort(t *testing.T) {
	var data bytes.Buffer
	for i := range 20_000 {
		fmt.Fprintf(&data, "{\"id\":%d,\"name\":\"%x\"}\n", i, mix(uint64(i)))
	}
	for _, compression := range []string{gz, zst} {
		t.Run(compression, func(t *testing.T) {
			packed := compressAs(t, compression, data.Bytes())
			path := filepath.Join(t.TempDir(), "in"+suffixes[compression])
			write(t, path, packed)
			s := fileSource(t, optionsFor(t, "json"), "", path)
			whole, err := readAll(t, s, only(t, s, nil), ledger.Source{})
			if err != nil {
				t.Fatal(err)
			}
			for _, keep := range []int{len(packed) / 2, len(packed) - 3} {
				write(t, path, packed[:keep])
				split := only(t, s, nil)
				steps, err := readAll(t, s, split, ledger.Source{})
				mustHalt(t, err, path, "offset", "cut short", "whole copy")
				if len(steps) == 0 || len(rowsOf(steps)) < 5000 {
					t.Fatalf("%d rows before the damage", len(rowsOf(steps)))
				}
				write(t, path, packed)
				rest, err := readAll(t, s, split, steps[len(steps)-1].pos)
				if err != nil {
					t.Fatal(err)
				}
				equalLines(t, "with the whole copy", append(rowsOf(steps), rowsOf(rest)...), rowsOf(whole))
			}
			broken := slices.Clone(packed)
			for i := range 64 {
				broken[len(broken)/2+i] ^= 0x55
			}
			write(t, path, broken)
			_, err = readAll(t, s, only(t, s, nil), ledger.Source{})
			mustHalt(t, err, path, "offset")
		})
	}
}

// line is a record of 26 bytes.
func line(i int) string { return fmt.Sprintf("{\"id\":%07d,\"name\":\"n\"}\n", 1_000_000+i) }

func lines(from, to int) (all []byte) {
	for i := from; i < to; i++ {
		all = append(all, line(i)...)
	}
	return all
}

// TestChangedFile proves S4 and S6: what a file may become between two runs.
func TestChangedFile(t *testing.T) {
	old := lines(0, 300)
	tests := []struct {
		name        string
		compression string
		now         []byte
		rows        int      // read of it now; -1: left out
		halt        []string // or the error says this
	}{
		{"unchanged", plain, old, -1, nil},
		{"unchanged", gz, old, -1, nil},
		{"grown", plain, lines(0, 310), 10, nil},
		{"grown by a blank line", plain, append(lines(0, 300), '\n'), 0, nil},
		{"replaced", plain, lines(1, 301), 0, []string{"another file", "hash"}},
		{"replaced by a longer one", plain, lines(1, 400), 0, []string{"another file", "hash"}},
		{"replaced", gz, lines(1, 301), 0, []string{""}},
		{"shorter", plain, lines(0, 299), 0, []string{"fewer than", fmt.Sprint(len(old))}},
		{"emptied", plain, nil, 0, []string{"fewer than", "0 bytes"}},
	}
	for _, test := range tests {
		t.Run(test.name+" "+test.compression, func(t *testing.T) {
			path := write(t, filepath.Join(t.TempDir(), "in"+suffixes[test.compression]), compressAs(t, test.compression, old))
			s := fileSource(t, optionsFor(t, "json"), "", path)
			split := only(t, s, nil)
			steps, err := readAll(t, s, split, ledger.Source{})
			if err != nil {
				t.Fatal(err)
			}
			end := steps[len(steps)-1].pos
			known := map[string]ledger.Source{split.ID: end}
			write(t, path, compressAs(t, test.compression, test.now))
			splits, err := s.Splits(t.Context(), known)
			if err == nil && len(splits) == 1 {
				steps, err = readAll(t, s, splits[0], end)
			}
			switch {
			case test.halt != nil:
				mustHalt(t, err, append(test.halt, path)...)
			case err != nil:
				t.Fatal(err)
			case test.rows < 0 && len(splits) > 0:
				t.Errorf("it is not left out")
			case test.rows >= 0 && (len(splits) == 0 || len(rowsOf(steps)) != test.rows):
				t.Errorf("%d splits, %d rows, want %d", len(splits), len(rowsOf(steps)), test.rows)
			}
		})
	}
}

// TestGrownCompressed: a compressed file that has grown after its end halts or
// is read on, never read twice.
func TestGrownCompressed(t *testing.T) {
	path := write(t, filepath.Join(t.TempDir(), "in.gz"), compressAs(t, gz, lines(0, 3000)))
	s := fileSource(t, optionsFor(t, "json"), "", path)
	split := only(t, s, nil)
	steps, err := readAll(t, s, split, ledger.Source{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	f.Write(compressAs(t, gz, lines(3000, 3002)))
	f.Close()
	end := steps[len(steps)-1].pos
	split = only(t, s, map[string]ledger.Source{split.ID: end})
	_, err = readAll(t, s, split, end)
	mustHalt(t, err, path, "has grown")
}

// TestEmpty: a file without records still ends.
func TestEmpty(t *testing.T) {
	for form := range awkward() {
		for _, data := range []string{"", "\n", "\xef\xbb\xbf", "\r\n\n"} {
			s := fileSource(t, optionsFor(t, form), "", write(t, filepath.Join(t.TempDir(), "in"), []byte(data)))
			steps, err := readAll(t, s, only(t, s, nil), ledger.Source{})
			if err != nil || len(rowsOf(steps)) != 0 {
				t.Errorf("%s %q: %v, error %v", form, data, rowsOf(steps), err)
			}
		}
	}
}

// TestCancelledFile: the end of a context is no end of the reader.
func TestCancelledFile(t *testing.T) {
	s := fileSource(t, optionsFor(t, "json"), "", write(t, filepath.Join(t.TempDir(), "in"), lines(0, 3)))
	r, err := s.Open(t.Context(), only(t, s, nil), ledger.Source{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Read(cancelled(t)); !isCancelled(err) {
		t.Fatalf("cancelled: %v", err)
	}
	b, err := r.Read(t.Context())
	if err != nil || b.Count != 3 {
		t.Fatalf("afterwards: %+v, %v", b, err)
	}
	b.Record.Release()
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if _, err := r.Read(t.Context()); err == nil || errors.Is(err, os.ErrClosed) {
		t.Errorf("a closed reader: %v", err)
	}
}
