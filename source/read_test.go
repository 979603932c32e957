package source

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/hivesink/hivesink/hivetype"
	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/record"
)

// schemaOf makes a schema of columns such as "id bigint".
func schemaOf(t testing.TB, columns ...string) *record.Schema {
	t.Helper()
	var fields []hivetype.Field
	for _, c := range columns {
		f, err := hivetype.ParseColumn(c)
		if err != nil {
			t.Fatal(err)
		}
		fields = append(fields, f)
	}
	s, err := record.NewSchema(fields, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// step is what one Read gave, as text, and where the ledger is after it.
type step struct {
	rows []string // "number: value|value" and "number: bad class at place"
	pos  ledger.Source
	end  bool
}

// readAll reads a split to its end or to an error.
func readAll(t testing.TB, s Source, split Split, from ledger.Source) ([]step, error) {
	t.Helper()
	r, err := s.Open(t.Context(), split, from)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var steps []step
	next := from.NextRow
	for {
		b, err := r.Read(t.Context())
		if errors.Is(err, io.EOF) {
			if len(steps) == 0 || !steps[len(steps)-1].end {
				t.Fatal("end of input without a batch with End")
			}
			return steps, nil
		}
		if err != nil {
			return steps, err
		}
		if b.FirstRow != next {
			t.Fatalf("batch begins with row %d, want %d", b.FirstRow, next)
		}
		next += b.Count
		steps = append(steps, step{rows: textOf(t, b), pos: ledger.Source{Position: b.Position, NextRow: next, Ended: b.End}, end: b.End})
		if b.Record != nil {
			b.Record.Release()
		}
	}
}

// textOf checks a batch against its own numbers (S2) and prints its records in
// the order of their numbers.
func textOf(t testing.TB, b *record.Batch) []string {
	t.Helper()
	out := make([]string, b.Count)
	put := func(row int64, text string) {
		if i := row - b.FirstRow; i < 0 || i >= b.Count || out[i] != "" {
			t.Fatalf("row %d twice or not in [%d,+%d)", row, b.FirstRow, b.Count)
		}
		out[row-b.FirstRow] = fmt.Sprintf("%d: %s", row, text)
	}
	if b.Record != nil {
		if b.Rows != nil && int64(len(b.Rows)) != b.Record.NumRows() {
			t.Fatalf("%d row numbers for %d rows", len(b.Rows), b.Record.NumRows())
		}
		for i := range int(b.Record.NumRows()) {
			row := b.FirstRow + int64(i)
			if b.Rows != nil {
				row = b.Rows[i]
			}
			var values []string
			for _, c := range b.Record.Columns() {
				values = append(values, strings.Clone(c.ValueStr(i)))
			}
			put(row, strings.Join(values, "|"))
		}
	}
	for _, r := range b.Bad {
		put(r.Row, fmt.Sprintf("bad %s at %s: %d bytes %.40q", r.Class, r.Place, len(r.Raw), r.Raw))
	}
	for i, text := range out {
		if text == "" {
			t.Fatalf("row %d is missing from its batch", b.FirstRow+int64(i))
		}
	}
	return out
}

func rowsOf(steps []step) []string {
	var out []string
	for _, s := range steps {
		out = append(out, s.rows...)
	}
	return out
}

// values are the rows without their numbers.
func values(steps []step) []string {
	out := rowsOf(steps)
	for i, r := range out {
		_, out[i], _ = strings.Cut(r, ": ")
	}
	return out
}

func equalLines(t testing.TB, what string, got, want []string) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		g, w := "nothing", "nothing"
		if i < len(got) {
			g = got[i]
		}
		if i < len(want) {
			w = want[i]
		}
		if g != w {
			t.Fatalf("%s: item %d of %d and %d:\n got %.300s\nwant %.300s", what, i, len(got), len(want), g, w)
		}
	}
}

func compressAs(t testing.TB, compression string, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	switch compression {
	case plain:
		return data
	case gz:
		z := gzip.NewWriter(&b)
		z.Write(data)
		z.Close()
	case zst:
		z, err := zstd.NewWriter(&b)
		if err != nil {
			t.Fatal(err)
		}
		z.Write(data)
		z.Close()
	}
	return b.Bytes()
}

var suffixes = map[string]string{plain: "", gz: ".gz", zst: ".zst"}

func write(t testing.TB, path string, data []byte) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// fileSource makes a source of patterns in a fresh directory.
func fileSource(t testing.TB, o Options, dir string, patterns ...string) Source {
	t.Helper()
	o.WorkingDir = dir
	s, err := NewFiles(patterns, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// only is the one split there is to read.
func only(t testing.TB, s Source, known map[string]ledger.Source) Split {
	t.Helper()
	splits, err := s.Splits(t.Context(), known)
	if err != nil {
		t.Fatal(err)
	}
	if len(splits) != 1 {
		t.Fatalf("%d splits, want 1: %v", len(splits), splits)
	}
	return splits[0]
}

// mustHalt checks the class of an error and that it says all of what.
func mustHalt(t testing.TB, err error, what ...string) {
	t.Helper()
	mustFail(t, fault.Halt, err, what...)
}

func mustFail(t testing.TB, class fault.Class, err error, what ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one of class %s", class)
	}
	if fault.ClassOf(err) != class {
		t.Errorf("class %s, want %s: %v", fault.ClassOf(err), class, err)
	}
	for _, w := range what {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error does not say %q: %v", w, err)
		}
	}
}

// dribble gives a few bytes at a time.
type dribble struct {
	data  []byte
	sizes func() int
}

func (d *dribble) Read(p []byte) (int, error) {
	if len(d.data) == 0 {
		return 0, io.EOF
	}
	n := copy(p, d.data[:min(len(d.data), max(1, d.sizes()))])
	d.data = d.data[n:]
	return n, nil
}

func streamOf(t testing.TB, o Options, r io.Reader, resume bool) Source {
	t.Helper()
	s, err := NewStdin(r, o, resume)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
