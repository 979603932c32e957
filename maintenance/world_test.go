package maintenance

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/parquet-go/parquet-go"

	"github.com/hivesink/hivesink/format/parquet"
	"github.com/hivesink/hivesink/hivetype"
	"github.com/hivesink/hivesink/layout"
	"github.com/hivesink/hivesink/record"
	"github.com/hivesink/hivesink/storage"
	"github.com/hivesink/hivesink/storage/memfs"
)

const root = "/w/t"

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// columns compiles "name type" texts.
func columns(t testing.TB, texts ...string) *parquetfile.Schema {
	t.Helper()
	var fields []hivetype.Field
	for _, text := range texts {
		name, typ, _ := strings.Cut(text, " ")
		ty, err := hivetype.Parse(typ)
		check(t, err)
		fields = append(fields, hivetype.Field{Name: name, Type: ty})
	}
	s, err := record.NewSchema(fields, nil)
	check(t, err)
	out, err := parquetfile.NewSchema(s)
	check(t, err)
	return out
}

// fileOf is a Parquet file of ids from..to with a name each, by another program.
func fileOf(t testing.TB, from, to int, meta map[string]string) []byte {
	t.Helper()
	idType, _ := hivetype.Parse("bigint")
	nameType, _ := hivetype.Parse("string")
	rs, err := record.NewSchema([]hivetype.Field{{Name: "id", Type: idType}, {Name: "name", Type: nameType}}, nil)
	check(t, err)
	s, err := parquetfile.NewSchema(rs)
	check(t, err)
	b := array.NewRecordBuilder(memory.DefaultAllocator, rs.Arrow)
	defer b.Release()
	for id := from; id < to; id++ {
		b.Field(0).(*array.Int64Builder).Append(int64(id))
		if id%5 == 0 {
			b.Field(1).(*array.StringBuilder).AppendNull()
		} else {
			b.Field(1).(*array.StringBuilder).Append(fmt.Sprint("name ", id%3))
		}
	}
	batch := b.NewRecordBatch()
	defer batch.Release()
	cols := s.NewColumns()
	cols.Append(batch, nil)
	var out bytes.Buffer
	w := s.NewWriter(&out, parquetfile.WriterOptions{Codec: "snappy", CreatedBy: "another program"})
	check(t, w.WriteRowGroup(cols))
	_, err = w.Close(meta)
	check(t, err)
	return out.Bytes()
}

// put makes a durable file, and the directories above it.
func put(t testing.TB, fs storage.FS, name string, data []byte) {
	t.Helper()
	check(t, storage.MkdirAllSync(fs, "/", path.Dir(name)))
	check(t, storage.WriteFile(fs, name, data))
	check(t, fs.SyncDir(path.Dir(name)))
}

// options are those of a run whose every step is the same each time.
func options(fs storage.Exchanger) Options {
	n := uint64(0)
	return Options{FS: fs, Root: root, FileSize: 1 << 20, Codec: "zstd", KeepCodec: true, Parallelism: 1, CreatedBy: "hivesink version test",
		Random: func() uint64 { n++; return 0xfeed0000 + n }}
}

func run(t testing.TB, o Options) *Report {
	t.Helper()
	rep, err := Run(context.Background(), o)
	check(t, err)
	return rep
}

func outcome(t testing.TB, rep *Report, partition, want string) Partition {
	t.Helper()
	for _, p := range rep.Partitions {
		if p.Path == partition {
			if p.Outcome != want {
				t.Fatalf("partition %q is %s (%s), want %s", partition, p.Outcome, p.Reason, want)
			}
			return p
		}
	}
	t.Fatalf("partition %q is not in the report: %+v", partition, rep.Partitions)
	panic("not reached")
}

// look is what a reader sees that skips hidden names: files by directory, and
// the ids in them.
func look(t testing.TB, fs storage.FS) (names map[string][]string, ids []int) {
	t.Helper()
	names = map[string][]string{}
	err := storage.Walk(fs, root, func(name string, info storage.Info) error {
		if layout.Hidden(info.Name) {
			if info.Dir {
				return skipDir
			}
			return nil
		}
		if info.Dir || !strings.HasSuffix(name, ".parquet") {
			return nil
		}
		rel := strings.TrimPrefix(path.Dir(name), root)
		names[rel] = append(names[rel], info.Name)
		ids = append(ids, idsOf(t, fs, name)...)
		return nil
	})
	check(t, err)
	slices.Sort(ids)
	return names, ids
}

func idsOf(t testing.TB, fs storage.FS, name string) (ids []int) {
	t.Helper()
	data, err := fs.ReadFile(name)
	check(t, err)
	type row struct {
		ID int64 `parquet:"id,optional"`
	}
	rows, err := parquet.Read[row](bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatalf("%s: a reader cannot read it: %v", name, err)
	}
	for _, r := range rows {
		ids = append(ids, int(r.ID))
	}
	return ids
}

// wantIDs fails unless the ids 0 to n-1 are visible, each once.
func wantIDs(t testing.TB, ids []int, n int) {
	t.Helper()
	if len(ids) != n {
		t.Fatalf("%d rows are visible, want %d", len(ids), n)
	}
	for i, id := range ids {
		if i != id {
			t.Fatalf("at place %d is row %d", i, id)
		}
	}
}

// foreign is a table by another program: two partitions with three files each
// and other files beside them, one with a large file only. It has 70 rows.
func foreign(t testing.TB) *memfs.FS {
	t.Helper()
	fs := memfs.New()
	for i := range 6 {
		put(t, fs, fmt.Sprintf("%s/dt=%d/f-%d.parquet", root, i/3, i%3), fileOf(t, 10*i, 10*i+10, map[string]string{"who": "all", "which": fmt.Sprint(i)}))
	}
	put(t, fs, root+"/dt=0/_SUCCESS", nil)
	put(t, fs, root+"/dt=0/.f-0.parquet.crc", []byte("crc"))
	put(t, fs, root+"/dt=0/README.txt", []byte("by hand"))
	put(t, fs, root+"/dt=1/_meta/deep/x", []byte("x"))
	put(t, fs, root+"/dt=2/only.parquet", fileOf(t, 60, 70, nil))
	return fs
}

const foreignRows = 70

// others are the files that must be there before and after.
var others = map[string]string{"/dt=0/_SUCCESS": "", "/dt=0/.f-0.parquet.crc": "crc", "/dt=0/README.txt": "by hand", "/dt=1/_meta/deep/x": "x"}

func wantOthers(t testing.TB, fs storage.FS) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(others)) {
		data, err := fs.ReadFile(root + name)
		if err != nil || string(data) != others[name] {
			t.Fatalf("%s is %q, %v", name, data, err)
		}
	}
}

// wantClean fails when anything of a compaction is left.
func wantClean(t testing.TB, fs storage.FS) {
	t.Helper()
	check(t, storage.Walk(fs, root, func(name string, info storage.Info) error {
		if info.Name == layout.CompactDir || info.Name == layout.CompactMarker || strings.HasSuffix(name, ".target") || strings.HasSuffix(name, ".unit") {
			t.Fatalf("left behind: %s", name)
		}
		return nil
	}))
}

func contains(text, part string) bool { return strings.Contains(text, part) }

// narrow is a file of ids as int, without names.
func narrow(t testing.TB, from, to int, options ...parquet.WriterOption) []byte {
	t.Helper()
	type row struct {
		ID *int32 `parquet:"id,optional,snappy"`
	}
	var out bytes.Buffer
	w := parquet.NewGenericWriter[row](&out, options...)
	for id := from; id < to; id++ {
		v := int32(id)
		_, err := w.Write([]row{{&v}})
		check(t, err)
	}
	check(t, w.Close())
	return out.Bytes()
}
