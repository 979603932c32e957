package source

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hivesink/hivesink/ledger"
)

// inputCase is how an input of a test is made.
type inputCase struct {
	format, compression string
	header, crlf, bom   bool
	unterminated        bool
	batchRows           int
	maxRecord           int64
}

func (c inputCase) String() string {
	return fmt.Sprintf("%s%s header=%v crlf=%v bom=%v unterminated=%v batch=%d max=%d",
		c.format, suffixes[c.compression], c.header, c.crlf, c.bom, c.unterminated, c.batchRows, c.maxRecord)
}

func randomCase(r *rand.Rand) inputCase {
	c := inputCase{
		format: []string{FormatJSON, FormatCSV}[r.IntN(2)], compression: []string{plain, gz, zst}[r.IntN(3)],
		crlf: r.IntN(2) == 0, bom: r.IntN(3) == 0, unterminated: r.IntN(2) == 0,
		batchRows: 1 + r.IntN(30), maxRecord: 64 + r.Int64N(100),
	}
	c.header = c.format == FormatCSV && r.IntN(3) > 0
	return c
}

func (c inputCase) options(t testing.TB) Options {
	return Options{Schema: schemaOf(t, "id bigint", "s string"), Format: c.format, CSVHeader: c.header, CSVQuote: '"',
		MaxRecord: c.maxRecord, BatchRows: c.batchRows}
}

// generate makes n records: good, bad, too long, with line ends inside, and
// blank lines between them.
func (c inputCase) generate(r *rand.Rand, n int) []byte {
	var b bytes.Buffer
	end := "\n"
	if c.crlf {
		end = "\r\n"
	}
	if c.bom {
		b.Write(bom)
	}
	if c.header {
		b.WriteString("s,id,extra" + end)
	}
	for i := range n {
		for r.IntN(6) == 0 {
			b.WriteString(end)
		}
		s := strings.Repeat("x", r.IntN(40))
		switch r.IntN(12) {
		case 0:
			s = strings.Repeat("y", int(c.maxRecord)+r.IntN(400)-20)
		case 1:
			s = strings.Repeat("z", max(0, int(c.maxRecord)-len(`{"id": ,"s":""}`)-2+r.IntN(5)))
		}
		b.WriteString(c.record(r, i, s))
		if i < n-1 || !c.unterminated {
			b.WriteString(end)
		}
	}
	return b.Bytes()
}

func (c inputCase) record(r *rand.Rand, i int, s string) string {
	bad := r.IntN(10) == 0
	if c.format == FormatJSON {
		if bad {
			return fmt.Sprintf(`{"id": %d, "s": [oops`, i)
		}
		return fmt.Sprintf(`{"id": %d, "s": %q, "extra": 1}`, i, s)
	}
	if bad {
		return fmt.Sprintf("%s,%d,1,2,3,4", s, i)
	}
	if r.IntN(4) == 0 {
		s = "\"" + s + "\nnext \"\"line\"\",\r\n\""
	}
	if c.header {
		return fmt.Sprintf("%s,%d,1", s, i)
	}
	return fmt.Sprintf("%d,%s", i, s)
}

// S2, S3: from every batch boundary on, a new reader delivers what the first
// one did, whatever the batches and the pieces the bytes come in.
func TestResumeAtEveryBoundary(t *testing.T) {
	var bads, longs int
	for seed := range uint64(120) {
		r := rand.New(rand.NewPCG(seed, 1))
		c := randomCase(r)
		data := c.generate(r, 1+r.IntN(120))
		name := "in.txt" + suffixes[c.compression]
		dir := t.TempDir()
		write(t, filepath.Join(dir, name), compressAs(t, c.compression, data))
		o := c.options(t)
		src := fileSource(t, o, dir, name)
		split := only(t, src, nil)
		steps, err := readAll(t, src, split, ledger.Source{})
		if err != nil {
			t.Fatalf("seed %d, %v: %v", seed, c, err)
		}
		whole := rowsOf(steps)
		bads += strings.Count(strings.Join(whole, "\n"), ": bad syntax")
		longs += strings.Count(strings.Join(whole, "\n"), ": bad too_long")
		read := 0
		for i, s := range steps {
			read += len(s.rows)
			o.BatchRows = 1 + r.IntN(50)
			rest, err := readAll(t, fileSource(t, o, dir, name), split, s.pos)
			if err != nil {
				t.Fatalf("seed %d, %v, resumed after batch %d: %v", seed, c, i, err)
			}
			equalLines(t, fmt.Sprintf("seed %d, %v, resumed after batch %d at %s", seed, c, i, s.pos.Position), rowsOf(rest), whole[read:])
		}
		stream := &dribble{data: compressAs(t, c.compression, data), sizes: func() int { return r.IntN(1 << r.IntN(9)) }}
		streamed, err := readAll(t, streamOf(t, o, stream, false), Split{ID: "stdin:1", Name: name}, ledger.Source{})
		if err != nil {
			t.Fatalf("seed %d, %v, as a stream: %v", seed, c, err)
		}
		equalLines(t, fmt.Sprintf("seed %d, %v, as a stream", seed, c), rowsOf(streamed), whole)
		s := streamed[r.IntN(len(streamed))]
		again := &dribble{data: compressAs(t, c.compression, data), sizes: func() int { return r.IntN(700) }}
		rest, err := readAll(t, streamOf(t, o, again, true), Split{ID: "stdin:1", Name: name}, s.pos)
		if err != nil {
			t.Fatalf("seed %d, %v, stream resumed: %v", seed, c, err)
		}
		equalLines(t, fmt.Sprintf("seed %d, %v, stream resumed", seed, c), rowsOf(rest), whole[s.pos.NextRow:])
	}
	if bads == 0 || longs == 0 {
		t.Errorf("the inputs had %d bad and %d long records: they test nothing", bads, longs)
	}
}

// S4: a compressed file that is cut anywhere delivers what comes before the
// cut and halts; once it is whole, the rest follows.
func TestTruncatedAnywhere(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	for _, compression := range []string{gz, zst} {
		c := inputCase{format: FormatJSON, compression: compression, batchRows: 7, maxRecord: 1000}
		data := compressAs(t, compression, c.generate(r, 200))
		dir, name := t.TempDir(), "in.json"+suffixes[compression]
		path := filepath.Join(dir, name)
		src := fileSource(t, c.options(t), dir, name)
		write(t, path, data)
		steps, err := readAll(t, src, only(t, src, nil), ledger.Source{})
		if err != nil {
			t.Fatal(err)
		}
		whole := rowsOf(steps)
		someRows := false
		for cut := 0; cut < len(data); cut += 1 + r.IntN(len(data)/40) {
			write(t, path, data[:cut])
			split := Split{ID: filePrefix + path, Name: name}
			before, err := readAll(t, src, split, ledger.Source{})
			mustHalt(t, err, name)
			got := rowsOf(before)
			equalLines(t, fmt.Sprintf("%s cut at %d", name, cut), got, whole[:len(got)])
			someRows = someRows || len(got) > 0
			var from ledger.Source
			if len(before) > 0 {
				mustHalt(t, err, "cut short", "offset", "whole copy")
				from = before[len(before)-1].pos
			}
			write(t, path, data)
			rest, err := readAll(t, src, only(t, src, map[string]ledger.Source{split.ID: from}), from)
			if err != nil {
				t.Fatalf("made whole after a cut at %d: %v", cut, err)
			}
			equalLines(t, "the rest", rowsOf(rest), whole[len(got):])
		}
		if compression == gz && !someRows {
			t.Error("no cut left any row: the test cuts too early")
		}
	}
}

// A flipped bit in a gzip file is found, at the latest by its checksum.
func TestDamagedGzip(t *testing.T) {
	data := compressAs(t, gz, []byte(strings.Repeat("{\"id\": 1, \"s\": \"abc\"}\n", 1000)))
	data[len(data)-6] ^= 1
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.gz"), data)
	c := inputCase{format: FormatJSON, batchRows: 300, maxRecord: 1000}
	src := fileSource(t, c.options(t), dir, "a.gz")
	steps, err := readAll(t, src, only(t, src, nil), ledger.Source{})
	mustHalt(t, err, "a.gz", "damaged", "offset 22000")
	if n := len(rowsOf(steps)); n != 1000 {
		t.Errorf("%d rows before the damage, want 1000", n)
	}
}

func TestGzipMembersAndPlainTextWithoutSuffix(t *testing.T) {
	one := compressAs(t, gz, []byte("{\"id\":1,\"s\":\"a\"}\n{\"id\":2,"))
	two := compressAs(t, gz, []byte("\"s\":\"b\"}\n"))
	dir := t.TempDir()
	write(t, filepath.Join(dir, "log"), append(one, two...))
	c := inputCase{format: FormatJSON, batchRows: 300, maxRecord: 1000}
	src := fileSource(t, c.options(t), dir, "log")
	steps, err := readAll(t, src, only(t, src, nil), ledger.Source{})
	if err != nil {
		t.Fatal(err)
	}
	equalLines(t, "members", rowsOf(steps), []string{"0: 1|a", "1: 2|b"})
	write(t, filepath.Join(dir, "text.gz"), []byte("{}\n"))
	src = fileSource(t, c.options(t), dir, "text.gz")
	_, err = readAll(t, src, only(t, src, nil), ledger.Source{})
	mustHalt(t, err, "text.gz", "gzip")
}

// What was read of a file is known again by its start, its length and its last
// line (S4); an ended file is read again only when it has grown (S6).
func TestFileChangesBetweenRuns(t *testing.T) {
	const first = "{\"id\":1,\"s\":\"a\"}\n{\"id\":2,\"s\":\"b\"}\n"
	for name, c := range map[string]struct {
		before, after string
		splits        int
		rest          []string
		halt          []string
	}{
		"unchanged":             {before: first, after: first},
		"grown":                 {before: first, after: first + "{\"id\":3}\n", splits: 1, rest: []string{"2: 3|(null)"}},
		"grown from nothing":    {before: "", after: first, splits: 1, rest: []string{"0: 1|a", "1: 2|b"}},
		"shorter":               {before: first, after: first[:17], splits: 1, halt: []string{"in.json", "17 bytes", "34"}},
		"replaced, same size":   {before: first, after: strings.Replace(first, "a", "x", 1), halt: []string{"in.json", "another file", "34 bytes"}},
		"replaced, longer":      {before: first, after: strings.Replace(first, "a", "xxx", 1), splits: 1, halt: []string{"in.json", "another file"}},
		"last line ended":       {before: first + "{}", after: first + "{}\n{\"id\":4}", splits: 1, rest: []string{"3: 4|(null)"}},
		"last line ended, CRLF": {before: first + "{}", after: first + "{}\r\n{\"id\":4}", splits: 1, rest: []string{"3: 4|(null)"}},
		"last line continued":   {before: first + "{}", after: first + "{}{\"id\":4}", splits: 1, halt: []string{"in.json line 3", "continued"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := write(t, filepath.Join(dir, "in.json"), []byte(c.before))
			o := Options{Schema: schemaOf(t, "id bigint", "s string")}
			src := fileSource(t, o, dir, "*.json")
			split := only(t, src, nil)
			steps, err := readAll(t, src, split, ledger.Source{})
			if err != nil {
				t.Fatal(err)
			}
			known := map[string]ledger.Source{split.ID: steps[len(steps)-1].pos}
			write(t, path, []byte(c.after))
			splits, err := src.Splits(t.Context(), known)
			if err == nil && len(splits) != c.splits {
				t.Fatalf("%d splits, want %d", len(splits), c.splits)
			}
			var rest []step
			if err == nil && len(splits) == 1 {
				rest, err = readAll(t, src, splits[0], known[split.ID])
			}
			if c.halt != nil {
				mustHalt(t, err, c.halt...)
			} else if err != nil {
				t.Fatal(err)
			}
			equalLines(t, name, rowsOf(rest), c.rest)
		})
	}
}

// S7: a file that was read in part and is gone is not passed over.
func TestVanishedFile(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "in", "b.json"), []byte("{}\n"))
	src := fileSource(t, Options{Schema: schemaOf(t, "id bigint")}, dir, "in/*.json")
	gone := func(p position) map[string]ledger.Source {
		return map[string]ledger.Source{filePrefix + filepath.Join(dir, "in", "a.json"): {Position: p.String(), NextRow: 1}}
	}
	_, err := src.Splits(t.Context(), gone(position{Offset: 3, Size: 6}))
	mustHalt(t, err, "in/a.json", "gone")
	up := fileSource(t, Options{Schema: schemaOf(t, "id bigint")}, filepath.Join(dir, "work"), "../in/*.json")
	_, err = up.Splits(t.Context(), gone(position{Offset: 3, Size: 6}))
	mustHalt(t, err, "in/a.json", "gone")
	if _, err := src.Splits(t.Context(), gone(position{Offset: 3, Size: 3, End: true})); err != nil {
		t.Errorf("a file that was read to its end may go: %v", err)
	}
	other := fileSource(t, Options{Schema: schemaOf(t, "id bigint")}, dir, "in/b*")
	if _, err := other.Splits(t.Context(), gone(position{Offset: 3, Size: 6})); err != nil {
		t.Errorf("patterns may change: %v", err)
	}
}

// A file may grow while it is read: what is read up to its end counts, and the
// rest is there for the next run.
func TestFileGrowsWhileRead(t *testing.T) {
	dir := t.TempDir()
	path := write(t, filepath.Join(dir, "a"), []byte("{\"id\":1}\n"))
	src := fileSource(t, Options{Schema: schemaOf(t, "id bigint"), BatchRows: 1}, dir, "a")
	split := only(t, src, nil)
	r, err := src.Open(t.Context(), split, ledger.Source{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	first, err := r.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	last, err := r.Read(t.Context())
	if err != nil || !last.End || first.Count != 1 {
		t.Fatalf("%+v, %+v, %v", first, last, err)
	}
	if _, err := r.Read(t.Context()); !errors.Is(err, io.EOF) {
		t.Fatalf("after the end: %v", err)
	}
	write(t, path, []byte("{\"id\":1}\n{\"id\":2}\n"))
	known := map[string]ledger.Source{split.ID: {Position: last.Position, NextRow: 1, Ended: true}}
	rest, err := readAll(t, src, only(t, src, known), known[split.ID])
	if err != nil {
		t.Fatal(err)
	}
	equalLines(t, "grown", rowsOf(rest), []string{"1: 2"})
}

// S2: a record that is too long ends where it would end if it were not.
func TestLongRecordsEndWhereRecordsEnd(t *testing.T) {
	stray := 0
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 3))
		c := inputCase{format: FormatCSV, maxRecord: 1 << 20}
		const alphabet = "aa,,\"\"\n\r"
		data := make([]byte, 50+r.IntN(300))
		for i := range data {
			data[i] = alphabet[r.IntN(len(alphabet))]
		}
		stray += bytes.Count(data, []byte("a\""))
		// The ends of all records: how far each batch of one record consumes.
		offsets := func(maxRecord int64) map[int64]bool {
			o := c.options(t)
			o.MaxRecord, o.BatchRows = maxRecord, 1
			steps, err := readAll(t, streamOf(t, o, bytes.NewReader(data), false), Split{ID: "stdin:1", Name: "stdin"}, ledger.Source{})
			if err != nil {
				t.Fatal(err)
			}
			out := make(map[int64]bool)
			for _, s := range steps {
				p, err := parsePosition("stdin", s.pos)
				if err != nil {
					t.Fatal(err)
				}
				out[p.Offset] = true
			}
			return out
		}
		whole, cut := offsets(1<<20), offsets(1+r.Int64N(8))
		if !maps.Equal(whole, cut) {
			t.Fatalf("seed %d: records end at %v, cut ones at %v:\n%q", seed, slices.Sorted(maps.Keys(whole)), slices.Sorted(maps.Keys(cut)), data)
		}
	}
	if stray == 0 {
		t.Error("no input had a quote inside a field")
	}
}
