package maintenance

import (
	"bytes"
	"fmt"
	"path"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"

	"github.com/hivesink/hivesink/format/parquet"
	"github.com/hivesink/hivesink/storage"
	"github.com/hivesink/hivesink/storage/memfs"
)

// TestFilesReadInOtherWays: files of which readers make other dates of the same
// bytes stay apart, whatever the mode, and the plan says why (MT11).
func TestFilesReadInOtherWays(t *testing.T) {
	const legacy, int96, zone = "org.apache.spark.legacyDateTime", "org.apache.spark.legacyINT96", "org.apache.spark.timeZone"
	spark := func(version string, more ...string) map[string]string {
		m := map[string]string{sparkVersion: version, "org.apache.spark.sql.parquet.row.metadata": "{}"}
		for i := 0; i < len(more); i += 2 {
			m[more[i]] = more[i+1]
		}
		return m
	}
	hive := func(zone, proleptic, conversion string) map[string]string {
		return map[string]string{"writer.time.zone": zone, "writer.date.proleptic": proleptic, "writer.zone.conversion.legacy": conversion}
	}
	for _, c := range []struct {
		name string
		a, b map[string]string
		says string // "": they are joined
		keep string // and keep this version of Spark
	}{
		{"spark 2.4 and 3.5", spark("2.4.8"), spark("3.5.1"), sparkVersion, ""},
		{"spark 3.0 and 3.1", spark("3.0.3"), spark("3.1.2"), sparkVersion, ""},
		{"spark 3.4 and 3.5", spark("3.5.1"), spark("3.4.0"), "", "3.4.0"},
		{"spark 3.5 twice", spark("3.5.1"), spark("3.5.1"), "", "3.5.1"},
		{"spark 2.3 and 2.4", spark("2.4.8"), spark("2.3.0"), "", "2.3.0"},
		{"spark and another", spark("3.5.1"), nil, sparkVersion, ""},
		{"a calendar", spark("3.5.1", legacy, ""), spark("3.5.1"), legacy, ""},
		{"the calendar of INT96", spark("3.5.1", int96, ""), spark("3.5.1"), int96, ""},
		{"a zone", spark("3.5.1", legacy, "", zone, "Europe/Vienna"), spark("3.5.1", legacy, "", zone, "UTC"), zone, ""},
		{"hive, the same", hive("UTC", "true", "false"), hive("UTC", "true", "false"), "", ""},
		{"hive's zone", hive("UTC", "true", "false"), hive("Asia/Tokyo", "true", "false"), "writer.time.zone", ""},
		{"hive's calendar", hive("UTC", "true", "false"), hive("UTC", "false", "false"), "writer.date.proleptic", ""},
		{"hive's conversion", hive("UTC", "true", "false"), hive("UTC", "true", "true"), "writer.zone.conversion.legacy", ""},
	} {
		for _, rewrite := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, with columns: %v", c.name, rewrite), func(t *testing.T) {
				fsys := memfs.New()
				put(t, fsys, root+"/dt=0/a.parquet", fileOf(t, 0, 10, c.a))
				put(t, fsys, root+"/dt=0/b.parquet", fileOf(t, 10, 20, c.b))
				o := options(fsys)
				if rewrite {
					o.Columns = columns(t, "id bigint", "name string")
				}
				if c.says != "" {
					p := outcome(t, run(t, o), "dt=0", AsItWas)
					if !strings.Contains(p.Reason, c.says) || !strings.Contains(p.Reason, "stay apart") {
						t.Errorf("it says: %s", p.Reason)
					}
					put(t, fsys, root+"/dt=0/c.parquet", fileOf(t, 20, 30, c.b)) // those that are alike are still joined
					p = outcome(t, run(t, o), "dt=0", Compacted)
					if p.FilesAfter != 2 || !strings.Contains(p.Targets[0].Why, "stay apart") {
						t.Errorf("%d files after, target %+v", p.FilesAfter, p.Targets)
					}
					_, ids := look(t, fsys)
					wantIDs(t, ids, 30)
					return
				}
				outcome(t, run(t, o), "dt=0", Compacted)
				meta := only(t, fsys).Meta()
				if meta[sparkVersion] != c.keep {
					t.Errorf("metadata %v, want version %q", meta, c.keep)
				}
				for k, v := range c.a {
					if k != sparkVersion && meta[k] != v {
						t.Errorf("metadata %v lack %s=%s", meta, k, v)
					}
				}
			})
		}
	}
}

// TestTimesOfOldCalendarsAreNotRewritten: what says how to read them holds for
// the types they have.
func TestTimesOfOldCalendarsAreNotRewritten(t *testing.T) {
	for version, want := range map[string]string{"2.4.8": LeftAlone, "3.5.1": Compacted} {
		fsys := memfs.New()
		put(t, fsys, root+"/dt=0/a.parquet", fileOf(t, 0, 10, map[string]string{sparkVersion: version}))
		put(t, fsys, root+"/dt=0/b.parquet", narrow(t, 10, 20, parquet.KeyValueMetadata(sparkVersion, version)))
		o := options(fsys)
		o.Columns = columns(t, "id bigint", "name string")
		outcome(t, run(t, o), "dt=0", want)
	}
}

// TestOldTimesKeepTheirWriter: readers shift INT96 by who wrote the file, so
// those of different programs stay apart and the target names the program.
func TestOldTimesKeepTheirWriter(t *testing.T) {
	type row struct {
		ID int64            `parquet:"id,snappy"`
		At deprecated.Int96 `parquet:"at,snappy"`
	}
	file := func(from, to int, application, version string) []byte {
		var out bytes.Buffer
		w := parquet.NewGenericWriter[row](&out, parquet.CreatedBy(application, version, "abc"))
		for id := from; id < to; id++ {
			_, err := w.Write([]row{{int64(id), deprecated.Int96{uint32(id), 0, 2440588}}})
			check(t, err)
		}
		check(t, w.Close())
		return out.Bytes()
	}
	fsys := memfs.New()
	put(t, fsys, root+"/dt=0/a.parquet", file(0, 10, "parquet-mr", "1.12.3"))
	put(t, fsys, root+"/dt=0/b.parquet", file(10, 20, "parquet-mr", "1.10.1"))
	outcome(t, run(t, options(fsys)), "dt=0", Compacted)
	if by := only(t, fsys).CreatedBy(); !strings.HasPrefix(by, "parquet-mr version 1.10.1") {
		t.Errorf("created by %q", by)
	}
	put(t, fsys, root+"/dt=0/c.parquet", file(20, 30, "impala", "4.0"))
	p := outcome(t, run(t, options(fsys)), "dt=0", AsItWas)
	if !strings.Contains(p.Reason, "INT96") {
		t.Errorf("it says: %s", p.Reason)
	}
}

// only is the one visible file of dt=0.
func only(t testing.TB, fsys storage.FS) *parquetfile.File {
	t.Helper()
	names, _ := look(t, fsys)
	if len(names["/dt=0"]) != 1 {
		t.Fatalf("files %v, want one", names)
	}
	r, err := fsys.Open(path.Join(root, "dt=0", names["/dt=0"][0]))
	check(t, err)
	f, err := parquetfile.Open(r, r.Size())
	check(t, err)
	return f
}

// TestDaysBeforeTheReform: whose calendar a file is in matters where it has days
// before 1582-10-15 only: those files are joined to none that say it, and not
// written anew. hivesink's own were always in the same.
func TestDaysBeforeTheReform(t *testing.T) {
	type row struct {
		ID  int64 `parquet:"id,snappy"`
		Day int32 `parquet:"day,date,snappy"`
	}
	const reform, said, unsaid = -141_427, true, false
	file := func(from int, day int32, says bool, application string) []byte {
		var out bytes.Buffer
		options := []parquet.WriterOption{parquet.CreatedBy(application, "1.0", "abc")}
		if says {
			options = append(options, parquet.KeyValueMetadata(proleptic, "true"))
		}
		w := parquet.NewGenericWriter[row](&out, options...)
		for id := from; id < from+10; id++ {
			_, err := w.Write([]row{{int64(id), day}})
			check(t, err)
		}
		check(t, w.Close())
		return out.Bytes()
	}
	for _, c := range []struct {
		name string
		a, b []byte
		want string
		says string // of the target
	}{
		{"new days", file(0, reform, said, "x"), file(10, reform, unsaid, "y"), Compacted, "true"},
		{"new days, nobody says", file(0, reform, unsaid, "x"), file(10, reform, unsaid, "y"), Compacted, ""},
		{"old days", file(0, reform-1, said, "x"), file(10, reform-1, said, "y"), Compacted, "true"},
		{"old days, nobody says", file(0, reform-1, unsaid, "x"), file(10, reform-1, unsaid, "y"), Compacted, ""},
		{"old days, one says", file(0, reform, said, "x"), file(10, reform-1, unsaid, "y"), AsItWas, ""},
		{"hivesink's old days", file(0, reform, said, "x"), file(10, reform-1, unsaid, "hivesink"), Compacted, "true"},
	} {
		t.Run(c.name, func(t *testing.T) {
			fsys := memfs.New()
			put(t, fsys, root+"/dt=0/a.parquet", c.a)
			put(t, fsys, root+"/dt=0/b.parquet", c.b)
			p := outcome(t, run(t, options(fsys)), "dt=0", c.want)
			if c.want == AsItWas {
				if !strings.Contains(p.Reason, proleptic) {
					t.Errorf("it says: %s", p.Reason)
				}
				return
			}
			if says := only(t, fsys).Meta()[proleptic]; says != c.says {
				t.Errorf("the target says %q, want %q", says, c.says)
			}
		})
	}
}
