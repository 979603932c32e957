package maintenance

import (
	"bytes"
	_ "embed"
	"testing"

	"github.com/hivesink/hivesink/format/parquet"
	"github.com/hivesink/hivesink/storage/memfs"
)

// Two row groups of a text in a struct, from a dictionary: null, a, b with 0 nulls,
// as PyArrow 26 counts a struct that is null, and null, a, null with 2.
//
//go:embed testdata/pyarrow-26-nulls.parquet
var wrongNulls []byte

// TestWrongNullsOfOthers: what a writer counts wrongly stops no compaction; what is
// in the pages does.
func TestWrongNullsOfOthers(t *testing.T) {
	f, err := parquetfile.Open(bytes.NewReader(wrongNulls), int64(len(wrongNulls)))
	check(t, err)
	if n := f.Nulls(); len(n) != 1 || n[0] != 2 {
		t.Fatalf("its statistics say %v nulls", n)
	}
	if n, err := f.CountNulls(t.Context(), 0); err != nil || n != 3 {
		t.Fatalf("it has %d nulls, %v", n, err)
	}
	fsys := memfs.New()
	put(t, fsys, root+"/dt=1/a.parquet", wrongNulls)
	put(t, fsys, root+"/dt=1/b.parquet", wrongNulls)
	rep := run(t, options(fsys))
	outcome(t, rep, "dt=1", Compacted)
	p := rep.Partitions[0]
	data, err := fsys.ReadFile(root + "/dt=1/" + p.Targets[0].File)
	check(t, err)
	out, err := parquetfile.Open(bytes.NewReader(data), int64(len(data)))
	check(t, err)
	if n, err := out.CountNulls(t.Context(), 0); err != nil || n != 6 {
		t.Errorf("the new file has %d nulls, %v", n, err)
	}
	one := []*parquetfile.File{f}
	if err := sameNulls(t.Context(), one, out); err == nil || !contains(err.Error(), "6 nulls, in the inputs 3") {
		t.Errorf("a file with twice the nulls: %v", err)
	}
}
