package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hivesink/hivesink/audit"
	"github.com/hivesink/hivesink/metastore/hivetest"
)

const announcedYAML = `
pipeline: p
state_dir: {dir}/state
table:
  name: t
  location: {dir}/table
COLUMNS  partitioned_by: [dt]
source: {files: {paths: ["{dir}/in/*.json"]}, format: json}
compaction: {policy: checkpoint}
commit: {trigger: process-time, delay: 0s}
METASTORE
`

// announced is a pipeline whose partitions a metastore is told of.
type announced struct {
	*table
	s    *hivetest.Server
	days int
}

func newAnnounced(t *testing.T, columns, more string) *announced {
	t.Helper()
	s := hivetest.New(t)
	a := &announced{s: s}
	a.table = newTable(t, a.yaml(columns, "metastore: {type: hive, uri: \"thrift://"+s.Address()+"\", timeout: 2m, connect_timeout: 1m"+more+"}"))
	return a
}

func (a *announced) yaml(columns, metastore string) string {
	return strings.NewReplacer("COLUMNS", columns, "METASTORE", metastore).Replace(announcedYAML)
}

const listedColumns = "  columns: [id bigint, dt string]\n"

// day adds an input file with one more day.
func (a *announced) day() {
	a.days++
	a.write(fmt.Sprintf("in/%d.json", a.days), fmt.Sprintf(`{"id":%d,"dt":"d%d"}`+"\n", a.days, a.days))
}

// partitions runs the command and returns what it says of each partition.
func (a *announced) partitions(code int, args ...string) string {
	a.t.Helper()
	r := want(a.t, code, append([]string{"partitions", "-c", a.config, "--json"}, args...)...)
	var list []struct {
		Partition string `json:"partition"`
		NumRows   int64  `json:"num_rows"`
		Metastore string `json:"metastore"`
	}
	if err := json.Unmarshal([]byte(r.Out), &list); err != nil {
		a.t.Fatalf("%v: %v", err, r)
	}
	var out []string
	for _, p := range list {
		out = append(out, fmt.Sprintf("%s %d %s", p.Partition, p.NumRows, p.Metastore))
	}
	return strings.Join(out, ", ")
}

func (a *announced) is(what, got, want string) {
	a.t.Helper()
	if got != want {
		a.t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// TestMetastoreKnows: partitions and fsck ask the metastore, report what
// differs, and mend what is not there.
func TestMetastoreKnows(t *testing.T) {
	a := newAnnounced(t, listedColumns, ", create_table: true")
	a.day()
	a.day()
	a.run()
	a.is("at first", a.partitions(exitDone), "dt=d1 1 agrees, dt=d2 1 agrees")
	if rep := a.fsck(exitDone); rep.Metastore != "agrees" {
		t.Errorf("%+v", rep)
	}
	a.s.DropPartition("default.t", "dt=d1")
	a.is("one dropped", a.partitions(exitDone), "dt=d1 1 not-there, dt=d2 1 agrees")
	rep := a.fsck(exitFault)
	if len(rep.Faults) != 1 || rep.Faults[0].Kind != audit.Catalog || !strings.Contains(rep.Faults[0].Message, "dt=d1") || !strings.Contains(rep.Faults[0].Message, "--add-missing") {
		t.Errorf("%+v", rep)
	}
	a.is("selected", a.partitions(exitDone, "dt=d2"), "dt=d2 1 agrees")
	a.s.MovePartition("default.t", "dt=d2", "file:/elsewhere")
	a.is("one moved", a.partitions(exitDone), "dt=d1 1 not-there, dt=d2 1 elsewhere")
	a.s.DropPartition("default.t", "dt=d2")
	a.is("added", a.partitions(exitDone, "--add-missing"), "dt=d1 1 agrees, dt=d2 1 agrees")
	if rep := a.fsck(exitDone); rep.Metastore != "agrees" {
		t.Errorf("%+v", rep)
	}
	if text := want(t, exitDone, "partitions", "-c", a.config).Out; !strings.Contains(text, "METASTORE") || !strings.Contains(text, "agrees") {
		t.Error(text)
	}
	// Down: said so, with an exit code of its own; what the log knows is listed.
	a.s.Stop()
	a.is("down", a.partitions(exitUnsure), "dt=d1 1 , dt=d2 1 ")
	r := want(t, exitUnsure, "fsck", "-c", a.config)
	if !strings.Contains(r.Out, "not asked") || !strings.Contains(r.Out, "clean") || !strings.Contains(r.Err, "metastore.uri") {
		t.Error(r)
	}
	want(t, exitFailed, "partitions", "-c", a.config, "--add-missing")
	a.s.Start(t)
	// A fault in the table outweighs a metastore that is down.
	files, err := filepath.Glob(filepath.Join(a.root, "dt=d1", "*.parquet"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	if err := os.Remove(files[0]); err != nil {
		t.Fatal(err)
	}
	a.s.Stop()
	want(t, exitFault, "fsck", "-c", a.config)
	a.s.Start(t)
}

// TestTableDropped: MS-02b. The table is dropped after two commits; what is due
// then waits until it is there again, and one command adds the partitions that
// went with it.
func TestTableDropped(t *testing.T) {
	a := newAnnounced(t, listedColumns, ", create_table: true")
	for range 2 {
		a.day()
		a.run()
	}
	a.write("sink.yaml", strings.Replace(a.yaml(listedColumns, "metastore: {type: hive, uri: \"thrift://"+a.s.Address()+"\", timeout: 2m, connect_timeout: 1m}"), "{dir}", a.dir, -1))
	a.s.DropTable("default.t")
	a.day()
	r := want(t, exitFailed, "run", "-c", a.config) // not made by itself: nobody said so
	if !strings.Contains(r.Err, "default.t") || !strings.Contains(r.Err, "metastore.create_table") {
		t.Error(r)
	}
	a.is("dropped", a.partitions(exitDone), "dt=d1 1 no-table, dt=d2 1 no-table")
	if r := want(t, exitDone, "partitions", "-c", a.config); strings.Count(r.Out, "default.t is not in the metastore") != 1 {
		t.Errorf("the note about the table is to be there once: %v", r)
	}
	if rep := a.fsck(exitFault); !strings.Contains(rep.Faults[0].Message, "default.t") {
		t.Errorf("%+v", rep)
	}
	a.run("--set", "metastore.create_table=true") // somebody creates it
	a.is("created", a.partitions(exitDone), "dt=d1 1 not-there, dt=d2 1 not-there, dt=d3 1 agrees")
	a.is("added", a.partitions(exitDone, "--add-missing"), "dt=d1 1 agrees, dt=d2 1 agrees, dt=d3 1 agrees")
	if got := strings.Join(a.s.Partitions("default.t"), " "); got != "dt=d1 dt=d2 dt=d3" {
		t.Error(got)
	}
	a.fsck(exitDone)
}

// TestMetastoreLater: MS-02c. A metastore that is off during a run is told by
// the next one; one that comes into the configuration later by one command.
func TestMetastoreLater(t *testing.T) {
	a := newAnnounced(t, listedColumns, ", create_table: true")
	config, err := os.ReadFile(a.config)
	if err != nil {
		t.Fatal(err)
	}
	a.write("sink.yaml", a.yaml(listedColumns, "")) // the embedded catalogue
	a.day()
	a.run()
	a.write("sink.yaml", string(config))
	a.is("switched on", a.partitions(exitDone), "dt=d1 1 no-table")
	a.day()
	a.run()
	a.is("after a run", a.partitions(exitDone), "dt=d1 1 not-there, dt=d2 1 agrees")
	a.is("added", a.partitions(exitDone, "--add-missing"), "dt=d1 1 agrees, dt=d2 1 agrees")
	a.s.Stop()
	a.day()
	// It would try for half a minute; the day is accepted, and it is killed.
	seen := a.records()
	p := start(t, nil, binary, "run", "-c", a.config)
	if !p.Until(t, "the end of the input", func() bool { return a.inputEnded(&seen) }) || !p.Kill(t) {
		t.Fatalf("it ended by itself: %v", p.End())
	}
	if !strings.Contains(p.End().Err, "metastore") {
		t.Errorf("it does not say that the metastore is off: %v", p.End())
	}
	a.is("off", a.partitions(exitUnsure), "dt=d1 1 , dt=d2 1 ")
	a.s.Start(t)
	a.run()
	a.is("on again", a.partitions(exitDone), "dt=d1 1 agrees, dt=d2 1 agrees, dt=d3 1 agrees")
	a.fsck(exitDone)
}

// TestColumnsFromMetastore: without table.columns a run takes them, and the
// partition columns, from the table in the metastore.
func TestColumnsFromMetastore(t *testing.T) {
	a := newAnnounced(t, listedColumns, ", create_table: true")
	a.day()
	a.run()
	bare := strings.NewReplacer("COLUMNS", "", "  partitioned_by: [dt]\n", "", "METASTORE",
		"metastore: {type: hive, uri: \"thrift://"+a.s.Address()+"\", timeout: 2m, connect_timeout: 1m}").Replace(announcedYAML)
	a.write("sink.yaml", bare)
	a.day()
	if s := a.run(); s.RowsRead != 1 || s.RowsBad != 0 {
		t.Errorf("%+v", s)
	}
	a.is("read", a.partitions(exitDone), "dt=d1 1 agrees, dt=d2 1 agrees")
	a.fsck(exitDone)
	a.s.DropTable("default.t")
	r := want(t, exitFailed, "run", "-c", a.config)
	if !strings.Contains(r.Err, "table.columns are left out") || !strings.Contains(r.Err, "default.t") {
		t.Error(r)
	}
}

// TestMetastoreRefusesColumns: columns that the table in the metastore cannot have
// are refused at the start, also of a table that has been announced before: what is
// not as configured is no outage. One that it can have is added where that is allowed.
func TestMetastoreRefusesColumns(t *testing.T) {
	a := newAnnounced(t, listedColumns, ", create_table: true")
	a.day()
	a.run()
	a.day()
	was := a.files()
	for columns, says := range map[string][]string{
		"[id string, dt string]":              {"default.t", "id", "bigint", "string", "make the two agree"},
		"[id int, dt string]":                 {"default.t", "id", "bigint", "int", "make the two agree"},
		"[id bigint, more string, dt string]": {"default.t", "more string", "metastore.alter_table"},
	} {
		r := want(t, exitFailed, "run", "-c", a.config, "--set", "table.columns="+columns)
		for _, word := range says {
			if !strings.Contains(r.Err, word) {
				t.Errorf("%s: the refusal does not say %q: %v", columns, word, r)
			}
		}
		if is := a.files(); len(is) != len(was) {
			t.Errorf("%s: %d files are visible after the refusal, %d before", columns, len(is), len(was))
		}
	}
	more := []string{"--set", "table.columns=[id bigint, more string, dt string]", "--set", "metastore.alter_table=true"}
	if s := a.run(more...); s.RowsRead != 1 {
		t.Errorf("%+v", s)
	}
	a.is("altered", a.partitions(exitDone), "dt=d1 1 agrees, dt=d2 1 agrees")
	a.day()
	r := want(t, exitFailed, append([]string{"run", "-c", a.config, "--set", "table.partitioned_by=[dt, {b: \"bucket(2, id)\"}]"}, more...)...)
	if !strings.Contains(r.Err, "table.partitioned_by") {
		t.Error(r)
	}
	a.run(append(more, "--set", "table.database=second")...) // another one knows what comes from now on
	a.is("another database", a.partitions(exitDone, "--set", "table.database=second"), "dt=d1 1 not-there, dt=d2 1 not-there, dt=d3 1 agrees")
	a.is("added", a.partitions(exitDone, "--add-missing", "--set", "table.database=second"), "dt=d1 1 agrees, dt=d2 1 agrees, dt=d3 1 agrees")
}
