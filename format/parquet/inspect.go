package parquetfile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go/format"
)

// Leaves are the paths of the columns that have values, in the file's order.
func (f *File) Leaves() []string {
	var out []string
	for _, p := range f.pq.Schema().Columns() {
		out = append(out, strings.Join(p, "."))
	}
	return out
}

// Codecs are the codecs in use, sorted, each once.
func (f *File) Codecs() []string {
	var out []string
	for i := range f.groups() {
		for k := range f.groups()[i].Columns {
			name := strings.ToLower(f.groups()[i].Columns[k].MetaData.Codec.String())
			if !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	slices.Sort(out)
	return out
}

// Nulls is the number of nulls of each leaf, by its place in Leaves, as the
// statistics have it; -1 where a row group does not say.
func (f *File) Nulls() []int64 {
	out := make([]int64, len(f.Leaves()))
	for i := range f.groups() {
		columns := f.groups()[i].Columns
		for k := range min(len(columns), len(out)) {
			if out[k] < 0 {
				continue
			}
			// A count that is absent reads as 0: it counts where there are bounds,
			// or more than none.
			s := &columns[k].MetaData.Statistics
			if n := s.NullCount; n > 0 || bounded(s) {
				out[k] += n
			} else {
				out[k] = -1
			}
		}
	}
	return out
}

func bounded(s *format.Statistics) bool {
	return len(s.MinValue) > 0 || len(s.MaxValue) > 0 || len(s.Min) > 0 || len(s.Max) > 0
}

// Takes says whether Rewrite takes a file and loses nothing of it: its columns
// are the table's, or fewer, with types that widen to the table's.
func (s *Schema) Takes(f *File) error {
	if _, err := s.NewReader(f); err != nil {
		return err
	}
	known := make(map[string]bool, len(s.leaves))
	for i := range s.leaves {
		known[strings.Join(s.leaves[i].path, ".")] = true
	}
	for _, name := range f.Leaves() {
		if !known[name] {
			return fmt.Errorf("column %s: the table does not have it, and its values would be lost", name)
		}
	}
	return nil
}
