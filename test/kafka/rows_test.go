//go:build integration

package kafkatest

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"
)

// rows reads the published files of a table: of each row the leaf values by
// column path, nil for null.
func (w *world) rows(location string) []map[string]any {
	w.t.Helper()
	var out []map[string]any
	err := filepath.WalkDir(location, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && strings.HasPrefix(d.Name(), ".") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".parquet") {
			return nil
		}
		out = append(out, w.file(path)...)
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

func (w *world) file(path string) []map[string]any {
	w.t.Helper()
	f, err := os.Open(path)
	if err != nil {
		w.t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		w.t.Fatal(err)
	}
	p, err := parquet.OpenFile(f, info.Size())
	if err != nil {
		w.t.Fatal(err)
	}
	columns := p.Schema().Columns()
	var out []map[string]any
	for _, g := range p.RowGroups() {
		r := g.Rows()
		buf := make([]parquet.Row, 256)
		for {
			n, err := r.ReadRows(buf)
			for _, row := range buf[:n] {
				one := make(map[string]any)
				for _, v := range row {
					name := strings.Join(columns[v.Column()], ".")
					var x any
					switch {
					case v.IsNull():
					case v.Kind() == parquet.ByteArray || v.Kind() == parquet.FixedLenByteArray:
						x = string(v.ByteArray())
					case v.Kind() == parquet.Int32:
						x = int64(v.Int32())
					case v.Kind() == parquet.Int64:
						x = v.Int64()
					case v.Kind() == parquet.Double:
						x = v.Double()
					case v.Kind() == parquet.Float:
						x = float64(v.Float())
					case v.Kind() == parquet.Boolean:
						x = v.Boolean()
					}
					if v.RepetitionLevel() > 0 || strings.Contains(name, ".") { // a list or map
						list, _ := one[name].([]any)
						one[name] = append(list, x)
					} else {
						one[name] = x
					}
				}
				out = append(out, one)
			}
			if err != nil {
				break
			}
		}
		r.Close()
	}
	return out
}

// ids are the sorted values of column id.
func (w *world) ids() []int64 {
	w.t.Helper()
	var out []int64
	for _, r := range w.rows(w.location()) {
		out = append(out, r["id"].(int64))
	}
	slices.Sort(out)
	return out
}

// wantIDs checks that the table has each id of [first, last] once and no other,
// for each engine too.
func (w *world) wantIDs(first, last int64) {
	w.t.Helper()
	got := w.ids()
	for i, id := range got {
		if id != first+int64(i) {
			w.t.Fatalf("row %d has id %d, want %d (%d rows in all, want %d)", i, id, first+int64(i), len(got), last-first+1)
		}
	}
	if int64(len(got)) != last-first+1 {
		w.t.Fatalf("the table has %d rows, want %d", len(got), last-first+1)
	}
	w.wantEngines(got)
}
