package maintenance

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"reflect"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/hivesink/hivesink/format/parquet"
	"github.com/hivesink/hivesink/storage/memfs"
)

var skipDir = fs.SkipDir

func TestForeignTable(t *testing.T) {
	fsys := foreign(t)
	before := fsys.Tree("/")
	o := options(fsys)
	o.DryRun = true
	dry := run(t, o)
	if after := fsys.Tree("/"); after != before {
		t.Fatalf("MT9: a dry run changed\n%s\nto\n%s", before, after)
	}
	rep := run(t, options(fsys))
	for i, p := range rep.Partitions {
		d := dry.Partitions[i]
		if p.Path != d.Path || p.Outcome != d.Outcome || p.FilesAfter != d.FilesAfter || len(p.Targets) != len(d.Targets) || p.Kept != d.Kept {
			t.Errorf("planned was %+v, done %+v", d, p)
		}
	}
	outcome(t, rep, "dt=0", Compacted)
	outcome(t, rep, "dt=1", Compacted)
	outcome(t, rep, "dt=2", AsItWas)
	if rep.FilesBefore != 7 || rep.FilesAfter != 3 || rep.Rows != foreignRows {
		t.Errorf("report: %+v", rep)
	}
	names, ids := look(t, fsys)
	wantIDs(t, ids, foreignRows)
	wantOthers(t, fsys)
	wantClean(t, fsys)
	for _, dir := range []string{"/dt=0", "/dt=1", "/dt=2"} {
		if len(names[dir]) != 1 {
			t.Errorf("%s has %v", dir, names[dir])
		}
	}
	// The order of rows, the codec and what all files agreed on are kept.
	name := path.Join(root, "dt=0", names["/dt=0"][0])
	if got := idsOf(t, fsys, name); got[0] != 0 || got[29] != 29 {
		t.Errorf("the rows of dt=0 are %v", got)
	}
	r, err := fsys.Open(name)
	check(t, err)
	f, err := parquetfile.Open(r, r.Size())
	check(t, err)
	meta := f.Meta()
	if meta["who"] != "all" || len(meta) != 1 {
		t.Errorf("metadata: %v", meta)
	}
	if c := f.Codecs(); len(c) != 1 || c[0] != "snappy" {
		t.Errorf("codecs: %v", c)
	}
	// Again: nothing to do, nothing changes.
	before = fsys.Tree("/")
	if rep := run(t, options(fsys)); rep.AsItWas != 3 || rep.Compacted != 0 {
		t.Errorf("a second run: %+v", rep)
	}
	if after := fsys.Tree("/"); after != before {
		t.Errorf("a second run changed\n%s\nto\n%s", before, after)
	}
}

func TestSelectedPartitions(t *testing.T) {
	fsys := foreign(t)
	o := options(fsys)
	o.Partitions = []string{"dt=1"}
	rep := run(t, o)
	if len(rep.Partitions) != 1 || rep.Partitions[0].Path != "dt=1" || rep.Compacted != 1 {
		t.Fatalf("report: %+v", rep.Partitions)
	}
	o = options(fsys)
	o.Partitions = []string{"dt=7"}
	if _, err := Run(t.Context(), o); err == nil {
		t.Error("a partition that is not there was compacted")
	}
	o.Partitions = []string{"7"}
	if _, err := Run(t.Context(), o); err == nil {
		t.Error("7 passes for a partition")
	}
}

// fails are partitions of one kind each that cannot be compacted (MT6).
func TestLeftAsItWas(t *testing.T) {
	good := fileOf(t, 0, 10, nil)
	for _, c := range []struct {
		name, want string
		files      map[string][]byte
	}{
		{"cut short", Failed, map[string][]byte{"a.parquet": good, "b.parquet": good[:len(good)-9]}},
		{"empty", Failed, map[string][]byte{"a.parquet": good, "b.parquet": nil}},
		{"no Parquet", Failed, map[string][]byte{"a.parquet": good, "b.parquet": []byte("id,name\n1,x\n")}},
		{"a writer at work", LeftAlone, map[string][]byte{"a.parquet": good, "b.parquet": good, "_temporary/0/c.parquet": good}},
		{"a file being written", LeftAlone, map[string][]byte{"a.parquet": good, "b.parquet": good, ".c.parquet.inprogress.7": good}},
		{"one file", AsItWas, map[string][]byte{"a.parquet": good}},
		{"one file and others", AsItWas, map[string][]byte{"a.parquet": good, "notes": []byte("text")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			fsys := memfs.New()
			put(t, fsys, root+"/dt=0/x.parquet", fileOf(t, 10, 20, nil))
			put(t, fsys, root+"/dt=0/y.parquet", fileOf(t, 20, 30, nil))
			for name, data := range c.files {
				put(t, fsys, root+"/dt=1/"+name, data)
			}
			before := fsys.Tree(root + "/dt=1")
			rep := run(t, options(fsys))
			p := outcome(t, rep, "dt=1", c.want)
			if c.want == Failed && (rep.Failed != 1 || !errorNames(p.Reason, "b.parquet")) {
				t.Errorf("it says: %s", p.Reason)
			}
			outcome(t, rep, "dt=0", Compacted) // the others go on
			if after := fsys.Tree(root + "/dt=1"); after != before {
				t.Errorf("it was\n%s\nand is\n%s", before, after)
			}
			wantClean(t, fsys)
		})
	}
}

func errorNames(text, name string) bool { return len(text) > 0 && contains(text, name) }

func TestManagedTables(t *testing.T) {
	for _, name := range []string{"_delta_log/0.json", "_spark_metadata/0", ".hoodie/x", "metadata/v1.metadata.json"} {
		fsys := foreign(t)
		put(t, fsys, root+"/"+name, []byte("{}"))
		if _, err := Run(t.Context(), options(fsys)); err == nil || !contains(err.Error(), "managed by") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A summary file has the footers of all files below it: readers that go by it
// would look for those that compaction takes away.
func TestSummaryFiles(t *testing.T) {
	fsys := foreign(t)
	put(t, fsys, root+"/_metadata", []byte("PAR1"))
	if _, err := Run(t.Context(), options(fsys)); err == nil || !contains(err.Error(), "_metadata") {
		t.Errorf("of the table: %v", err)
	}
	fsys = foreign(t)
	put(t, fsys, root+"/dt=0/_metadata", []byte("PAR1"))
	put(t, fsys, root+"/dt=0/hr=1/a.parquet", fileOf(t, 1000, 1010, nil))
	put(t, fsys, root+"/dt=0/hr=1/b.parquet", fileOf(t, 1010, 1020, nil))
	rep := run(t, options(fsys))
	for _, partition := range []string{"dt=0", "dt=0/hr=1"} {
		if p := outcome(t, rep, partition, LeftAlone); !contains(p.Reason, "dt=0/_metadata") {
			t.Errorf("%s: %s", partition, p.Reason)
		}
	}
	if rep.Compacted == 0 {
		t.Error("the other partitions were not compacted")
	}
}

// encrypted says of a file that its columns are encrypted: an algorithm as the
// last field of its footer.
func encrypted(data []byte) []byte {
	n := int(binary.LittleEndian.Uint32(data[len(data)-8:]))
	out := slices.Clone(data[:len(data)-8-1]) // without the end of the struct
	out = append(out, 0x1c, 0x1c, 0, 0, 0)    // field 8: AES_GCM_V1 of nothing
	return append(binary.LittleEndian.AppendUint32(out, uint32(n+4)), "PAR1"...)
}

// Encrypted files are neither damaged nor joined, and a dry run says so too.
func TestEncryptedFiles(t *testing.T) {
	fsys := foreign(t)
	for i := range 2 {
		put(t, fsys, fmt.Sprintf("%s/dt=5/%d.parquet", root, i), encrypted(fileOf(t, 0, 10, nil)))
		put(t, fsys, fmt.Sprintf("%s/dt=6/%d.parquet", root, i), []byte("PARE, and what nobody can read PARE"))
	}
	put(t, fsys, root+"/dt=7/one.parquet", encrypted(fileOf(t, 0, 10, nil)))
	for _, dry := range []bool{true, false} {
		o := options(fsys)
		o.DryRun = dry
		rep := run(t, o)
		for _, partition := range []string{"dt=5", "dt=6"} {
			if p := outcome(t, rep, partition, LeftAlone); !contains(p.Reason, "is encrypted") {
				t.Errorf("%s: %s", partition, p.Reason)
			}
		}
		outcome(t, rep, "dt=7", AsItWas)
		outcome(t, rep, "dt=0", Compacted)
	}
}

// MT2: the root is not exchanged; the window must be allowed.
func TestUnpartitioned(t *testing.T) {
	fsys := memfs.New()
	for i := range 4 {
		put(t, fsys, root+"/"+string(rune('a'+i))+".parquet", fileOf(t, 10*i, 10*i+10, nil))
	}
	put(t, fsys, root+"/_SUCCESS", nil)
	before := fsys.Tree("/")
	outcome(t, run(t, options(fsys)), "", LeftAlone)
	if after := fsys.Tree("/"); after != before {
		t.Fatalf("without --allow-window it became\n%s", after)
	}
	o := options(fsys)
	o.AllowWindow = true
	if p := outcome(t, run(t, o), "", Compacted); !p.Window {
		t.Error("the report does not tell of the window")
	}
	names, ids := look(t, fsys)
	wantIDs(t, ids, 40)
	wantClean(t, fsys)
	if len(names[""]) != 1 {
		t.Errorf("it has %v", names[""])
	}
	if _, err := fsys.Stat(root + "/_SUCCESS"); err != nil {
		t.Error(err)
	}
}

// A directory with data files and with directories below it: those are carried
// over, compacted before it.
func TestMixedDirectory(t *testing.T) {
	fsys := memfs.New()
	put(t, fsys, root+"/dt=0/a.parquet", fileOf(t, 0, 10, nil))
	put(t, fsys, root+"/dt=0/b.parquet", fileOf(t, 10, 20, nil))
	put(t, fsys, root+"/dt=0/hr=1/a.parquet", fileOf(t, 20, 30, nil))
	put(t, fsys, root+"/dt=0/hr=1/b.parquet", fileOf(t, 30, 40, nil))
	rep := run(t, options(fsys))
	outcome(t, rep, "dt=0", Compacted)
	outcome(t, rep, "dt=0/hr=1", Compacted)
	names, ids := look(t, fsys)
	wantIDs(t, ids, 40)
	wantClean(t, fsys)
	if len(names["/dt=0"]) != 1 || len(names["/dt=0/hr=1"]) != 1 {
		t.Errorf("files: %v", names)
	}
}

// Files of two schemas: rewritten to the table's columns when those are known,
// else joined by schema; never what would lose values.
func TestSchemasDiffer(t *testing.T) {
	table := func() *memfs.FS {
		fsys := memfs.New()
		for i := range 2 {
			put(t, fsys, root+"/dt=0/a"+string(rune('0'+i))+".parquet", fileOf(t, 10*i, 10*i+10, nil))
			put(t, fsys, root+"/dt=0/b"+string(rune('0'+i))+".parquet", narrow(t, 20+10*i, 30+10*i))
		}
		return fsys
	}
	fsys := table()
	p := outcome(t, run(t, options(fsys)), "dt=0", Compacted)
	if p.FilesAfter != 2 {
		t.Errorf("by schema: %+v", p)
	}
	_, ids := look(t, fsys)
	wantIDs(t, ids, 40)

	fsys = table()
	o := options(fsys)
	o.Columns = columns(t, "id bigint", "name string")
	p = outcome(t, run(t, o), "dt=0", Compacted)
	if p.FilesAfter != 1 || p.Targets[0].Mode != ModeRewrite {
		t.Errorf("with columns: %+v", p)
	}
	_, ids = look(t, fsys)
	wantIDs(t, ids, 40)

	fsys = table()
	o = options(fsys)
	o.Columns = columns(t, "id bigint") // name would be lost
	p = outcome(t, run(t, o), "dt=0", LeftAlone)
	if !contains(p.Reason, "name") {
		t.Errorf("it says: %s", p.Reason)
	}
	fsys = table()
	o = options(fsys)
	o.Columns = columns(t, "id string", "name string")
	outcome(t, run(t, o), "dt=0", LeftAlone)
}

// A second compaction of the same table waits for nobody.
func TestLocked(t *testing.T) {
	fsys := foreign(t)
	lock, err := fsys.LockDir(root)
	check(t, err)
	if _, err := Run(t.Context(), options(fsys)); err == nil || !contains(err.Error(), "locked") {
		t.Fatalf("a locked table: %v", err)
	}
	check(t, lock.Close())
	if err := errors.Join(lock.Close()); err == nil {
		t.Fatal("closed twice")
	}
	run(t, options(fsys))
}

// The footers of a target's inputs fit into the memory it may have; what is
// left is joined by later runs.
func TestManyInputs(t *testing.T) {
	fsys := memfs.New()
	for i := range 40 {
		put(t, fsys, fmt.Sprintf("%s/dt=0/f-%02d.parquet", root, i), fileOf(t, i, i+1, nil))
	}
	o := options(fsys)
	o.FooterMemory = 10 * (footerBytes + 2*chunkBytes)
	if p := outcome(t, run(t, o), "dt=0", Compacted); p.FilesAfter != 4 || p.Targets[3].Inputs != 10 {
		t.Errorf("%+v", p)
	}
	if p := outcome(t, run(t, o), "dt=0", Compacted); p.FilesAfter != 1 {
		t.Errorf("the next run: %+v", p)
	}
	_, ids := look(t, fsys)
	wantIDs(t, ids, 40)
}

// A target's row groups can be numbered with 16 bits, unless one file alone has more.
func TestManyRowGroups(t *testing.T) {
	c := &compaction{}
	for _, x := range []struct{ groups, want []int }{
		{[]int{100, 200, 300}, []int{3}},
		{[]int{mostRowGroups - 1, 1, 1, 5}, []int{2, 2}},
		{[]int{1, mostRowGroups + 1, 1, 1}, []int{1, 1, 2}},
	} {
		var inputs []*dataFile
		for _, n := range x.groups {
			inputs = append(inputs, &dataFile{groups: n})
		}
		var got []int
		for _, part := range c.bounded(inputs) {
			got = append(got, len(part))
		}
		if !slices.Equal(got, x.want) {
			t.Errorf("%v: %v, want %v", x.groups, got, x.want)
		}
	}
}

// Several workers, one report.
func TestParallel(t *testing.T) {
	fsys := memfs.New()
	const partitions, files = 12, 5
	id := 0
	for p := range partitions {
		for f := range files {
			put(t, fsys, fmt.Sprintf("%s/dt=%d/f-%d.parquet", root, p, f), fileOf(t, id, id+3, nil))
			id += 3
		}
	}
	o := options(fsys)
	var n atomic.Uint64
	o.Random = func() uint64 { return n.Add(1) }
	o.Parallelism = 4
	told := 0
	o.Each = func(Partition) { told++ } // one at a time
	rep := run(t, o)
	if rep.Compacted != partitions || told != partitions || rep.FilesAfter != partitions || rep.Rows != int64(id) {
		t.Errorf("%d told, %+v", told, rep)
	}
	_, ids := look(t, fsys)
	wantIDs(t, ids, id)
	wantClean(t, fsys)
}

// TestFlagsWithADictionary: few writers have one, and no value of it may be lost
// (MT1).
func TestFlagsWithADictionary(t *testing.T) {
	type row struct {
		ID   int64 `parquet:"id"`
		Flag bool  `parquet:"flag,dict"`
		May  *bool `parquet:"may,optional,dict"`
	}
	const rows = 20_000
	fsys := memfs.New()
	var want []row
	for i := range 2 {
		var out bytes.Buffer
		w := parquet.NewGenericWriter[row](&out)
		for k := range rows {
			r := row{ID: int64(i*rows + k), Flag: k%3 == 0}
			if k%5 != 0 {
				may := k%7 == 0
				r.May = &may
			}
			want = append(want, r)
			_, err := w.Write([]row{r})
			check(t, err)
		}
		check(t, w.Close())
		put(t, fsys, fmt.Sprintf("%s/dt=0/%d.parquet", root, i), out.Bytes())
	}
	outcome(t, run(t, options(fsys)), "dt=0", Compacted)
	names, _ := look(t, fsys)
	data, err := fsys.ReadFile(path.Join(root, "dt=0", names["/dt=0"][0]))
	check(t, err)
	got, err := parquet.Read[row](bytes.NewReader(data), int64(len(data)))
	check(t, err)
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%d rows, want %d, or others", len(got), len(want))
	}
}
