package maintenance

import (
	"bytes"
	"testing"

	"github.com/hivesink/hivesink/format/parquet"
	"github.com/hivesink/hivesink/storage/memfs"
)

// TestFilesWithoutRows: EM-02. Files without rows, as other programs leave them,
// go into the new file like any others and leave no empty row group behind.
func TestFilesWithoutRows(t *testing.T) {
	fsys := memfs.New()
	none := fileOf(t, 0, 0, nil)
	put(t, fsys, root+"/dt=1/a.parquet", none)
	put(t, fsys, root+"/dt=1/b.parquet", fileOf(t, 0, 10, nil))
	put(t, fsys, root+"/dt=1/c.parquet", none)
	put(t, fsys, root+"/dt=1/d.parquet", fileOf(t, 10, 20, nil))
	put(t, fsys, root+"/dt=1/e.parquet", none)
	put(t, fsys, root+"/dt=2/a.parquet", none)
	put(t, fsys, root+"/dt=2/b.parquet", none)
	rep := run(t, options(fsys))
	outcome(t, rep, "dt=1", Compacted)
	names, ids := look(t, fsys)
	wantIDs(t, ids, 20)
	if len(names["/dt=1"]) != 1 || len(names["/dt=2"]) > 1 {
		t.Fatalf("files %v", names)
	}
	for dir, list := range names {
		for _, name := range list {
			data, err := fsys.ReadFile(root + dir + "/" + name)
			check(t, err)
			f, err := parquetfile.Open(bytes.NewReader(data), int64(len(data)))
			check(t, err)
			for i, rows := range f.RowGroups() {
				if rows == 0 {
					t.Errorf("%s/%s: row group %d has no rows", dir, name, i)
				}
			}
		}
	}
	wantClean(t, fsys)
}
