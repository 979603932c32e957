package parquetfile

import (
	"slices"
	"testing"
)

// TestSlice: a slice has the rows of its row groups, in order, and none else.
func TestSlice(t *testing.T) {
	rs := schemaOf(t, "id bigint")
	s := compiled(t, rs)
	var groups []*Columns
	for _, rows := range [][]string{{`{"id":1}`, `{"id":2}`}, {`{"id":3}`}, {`{"id":4}`, `{"id":5}`, `{"id":6}`}} {
		c := s.NewColumns()
		c.Append(fromJSON(t, rs, rows...), nil)
		groups = append(groups, c)
	}
	f := opened(t, encode(t, s, WriterOptions{Codec: "none"}, nil, groups...))
	for _, c := range []struct {
		from, to int
		want     []int64
	}{{0, 3, []int64{1, 2, 3, 4, 5, 6}}, {1, 2, []int64{3}}, {1, 3, []int64{3, 4, 5, 6}}, {2, 2, nil}} {
		part, err := f.Slice(c.from, c.to)
		if err != nil {
			t.Fatal(err)
		}
		if got := part.Rows(); got != int64(len(c.want)) {
			t.Fatalf("slice %d to %d has %d rows, want %d", c.from, c.to, got, len(c.want))
		}
		r, err := s.NewReader(part)
		if err != nil {
			t.Fatal(err)
		}
		got := s.NewColumns()
		for r.Left() > 0 {
			if _, err := r.Read(got, 2); err != nil {
				t.Fatal(err)
			}
		}
		if !slices.Equal(got.leaves[0].i64, c.want) {
			t.Fatalf("slice %d to %d: %v, want %v", c.from, c.to, got.leaves[0].i64, c.want)
		}
	}
	inner, err := f.Slice(1, 3)
	if err != nil {
		t.Fatal(err)
	}
	if last, err := inner.Slice(1, 2); err != nil || last.Rows() != 3 {
		t.Fatalf("a slice of a slice: %v", err)
	}
	for _, c := range [][2]int{{-1, 1}, {0, 4}, {2, 1}} {
		if _, err := f.Slice(c[0], c[1]); err == nil {
			t.Fatalf("slice %v is an error", c)
		}
	}
}
