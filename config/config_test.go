package config

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/hivesink/hivesink/hivetype"
	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/layout"
)

// TestScripts runs testdata/*: every rule has its case there. Commands:
//
//	print [base]   the effective config, or the problems
//	check [base]   ok, or the problems
//
// The input is a config; lines that start with --set are flags. base table
// puts a table of many columns before it, base columns a table whose last
// lines the input is.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, td *datadriven.TestData) string {
			text, sets := script(t, td)
			c, err := Parse("c.yaml", []byte(text), sets)
			if err != nil {
				var p *Problems
				if !errors.As(err, &p) {
					t.Fatalf("not a *Problems: %v", err)
				}
				if fault.ClassOf(err) != fault.Config {
					t.Fatalf("class %s", fault.ClassOf(err))
				}
				return p.Error()
			}
			if td.Cmd == "check" {
				return "ok"
			}
			return marshal(t, c)
		})
	})
}

const tableBase = `pipeline: p
table: {name: t, location: /w/t, columns: [id bigint, ts timestamp, d date, name string, country string, price double]}
`

const columnsBase = `pipeline: p
table:
  name: t
  location: /w/t
`

func script(t *testing.T, td *datadriven.TestData) (text string, sets []string) {
	if td.Cmd != "print" && td.Cmd != "check" {
		t.Fatalf("%s: unknown command %s", td.Pos, td.Cmd)
	}
	for line := range strings.Lines(td.Input + "\n") {
		if flag, ok := strings.CutPrefix(line, "--set "); ok {
			sets = append(sets, strings.TrimSuffix(flag, "\n"))
		} else {
			text += line
		}
	}
	switch {
	case td.HasArg("table"):
		text = tableBase + text
	case td.HasArg("columns"):
		text = columnsBase + "  " + text // the runner trims the input's first indent
	}
	return text, sets
}

// marshal prints c and proves G4 on the way.
func marshal(t *testing.T, c *Config) string {
	t.Helper()
	out, err := c.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	again, err := Parse("again.yaml", out, nil)
	if err != nil {
		t.Fatalf("what Marshal printed is refused (G4):\n%s\n%v", out, err)
	}
	twice, err := again.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(out, twice) {
		t.Fatalf("Marshal is not stable (G4):\n%s\n%s", out, twice)
	}
	return string(out)
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "sink.yaml")
	if err := os.WriteFile(file, []byte(tableBase+"history: soon\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Load(file, nil)
	if want := file + `:3:10: history: "soon" is not a duration`; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
	c, err := Load(file, []string{"history=2d"})
	if err != nil || c.History.String() != "2d" {
		t.Errorf("got %v, %v", c, err)
	}
	for _, path := range []string{dir, filepath.Join(dir, "none.yaml")} {
		_, err := Load(path, nil)
		if fault.ClassOf(err) != fault.Config || !strings.Contains(err.Error(), path) {
			t.Errorf("Load(%s): %v", path, err)
		}
	}
	if err := os.WriteFile(file, bytes.Repeat([]byte("#\n"), int(maxFileBytes)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(file, nil); err == nil || !strings.Contains(err.Error(), "larger than 4MB") {
		t.Errorf("a large file: %v", err)
	}
}

// A library user fills the struct; what is zero takes its default.
func TestFilledStruct(t *testing.T) {
	c := &Config{
		Pipeline: "orders",
		Table: Table{
			Name:     "Orders",
			Location: Location{Path: "out/orders/"},
			Columns: []hivetype.Field{
				{Name: "Id", Type: &hivetype.Type{Kind: hivetype.BigInt}},
				{Name: "ts", Type: &hivetype.Type{Kind: hivetype.Timestamp}},
			},
			PartitionedBy: []layout.Transform{{Name: "DT", Func: "date", Column: "TS"}},
		},
	}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	if c.Table.Name != "orders" || c.Table.Columns[0].Name != "id" || c.Table.PartitionedBy[0].Name != "dt" || c.Table.PartitionedBy[0].Column != "ts" {
		t.Errorf("names are not lower case: %+v", c.Table)
	}
	if c.Table.Location != (Location{Scheme: "file", Path: "out/orders"}) {
		t.Errorf("location %+v", c.Table.Location)
	}
	if c.Rolling.FileSize != 128*MB || !c.Compaction.Enabled || c.Compaction.Policy != PolicyHold || len(c.Commit.Policies) != 2 {
		t.Errorf("defaults are missing: %+v %+v %+v", c.Rolling, c.Compaction, c.Commit)
	}
	// Once filled, a zero is a wish.
	c.History = 0
	c.Commit.Policies = nil
	if err := c.Validate(); err != nil || c.History != 0 || c.Commit.Policies != nil {
		t.Errorf("Validate overwrote a zero: %v %v %v", err, c.History, c.Commit.Policies)
	}
	c.Rolling.FileSize = -1
	c.Table.PartitionedBy[0].Func = "week"
	c.Table.Columns[1].Type = nil
	err := c.Validate()
	want := "rolling.file_size: must be more than 0, not -1B\n" +
		"table.columns[1]: column \"ts\" has no type\n" +
		"table.partitioned_by[0]: partition column dt: no transform is called \"week\"; expected a column"
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

// What the parser of columns refuses in a file is refused in a filled struct
// as well: NM-01, NM-02, NE-03, keys of maps, missing types.
func TestFilledColumns(t *testing.T) {
	bigint, text := &hivetype.Type{Kind: hivetype.BigInt}, &hivetype.Type{Kind: hivetype.String}
	structOf := func(fields ...hivetype.Field) *hivetype.Type {
		return &hivetype.Type{Kind: hivetype.Struct, Fields: fields}
	}
	c := Default()
	c.Pipeline, c.Table.Name, c.Table.Location.Path = "p", "t", "/t"
	c.Table.Columns = []hivetype.Field{
		{Name: "id", Type: bigint},
		{Name: "ID", Type: text},
		{Name: "a.b", Type: text},
		{Name: "e", Type: structOf()},
		{Name: "s", Type: structOf(hivetype.Field{Name: "x", Type: bigint}, hivetype.Field{Name: "X", Type: bigint})},
		{Name: "l", Type: &hivetype.Type{Kind: hivetype.Array, Elem: structOf(hivetype.Field{Name: "x.y", Type: bigint})}},
		{Name: "m", Type: &hivetype.Type{Kind: hivetype.Map, Key: structOf(hivetype.Field{Name: "x", Type: bigint}), Elem: text}},
		{Name: "n", Type: structOf(hivetype.Field{Name: "x"})},
		{Name: "", Type: bigint},
		{Name: "y", Type: &hivetype.Type{}},
		{Name: "z", Type: &hivetype.Type{Kind: hivetype.Array}},
	}
	want := []string{
		`table.columns[1]: column "id" is listed twice, first at table.columns[0]`,
		`table.columns[2]: the name of a.b has a dot`,
		`table.columns[3]: the struct e has no fields`,
		`table.columns[4]: the struct s has the field x twice`,
		`table.columns[5]: the name of l.x.y has a dot`,
		`table.columns[6]: the map m has a key that is not a primitive type`,
		`table.columns[7]: n.x has no type`,
		`table.columns[8]: has no name`,
		`table.columns[9]: y has no type`,
		`table.columns[10]: z has no type`,
	}
	err := c.Validate()
	if err == nil {
		t.Fatal("accepted")
	}
	got := strings.Split(err.Error(), "\n")
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || !strings.HasPrefix(got[i], want[i]) {
			t.Fatalf("problem %d: got\n%s\nwant\n%s", i, err, strings.Join(want, "\n"))
		}
	}
}

func TestFilledSource(t *testing.T) {
	c := Default()
	c.Pipeline, c.Table.Name, c.Table.Location.Path = "p", "t", "/t"
	c.Table.Columns = []hivetype.Field{{Name: "id", Type: &hivetype.Type{Kind: hivetype.BigInt}}}
	c.Source = &Source{Datagen: &Datagen{Columns: map[string]DatagenColumn{"ID": {Values: 3}}}}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	if s := c.Source; s.Readers != 1 || !s.CSV.Header || s.MaxRecord != MB || s.Datagen.Rows != 1000000 || s.AtEnd != AtEndComplete {
		t.Errorf("defaults are missing: %+v", s)
	}
	if c.Source.Datagen.Columns["id"].Values != 3 {
		t.Errorf("columns are not in lower case: %v", c.Source.Datagen.Columns)
	}
	c.Source = &Source{Kafka: &Kafka{Brokers: []string{"b:9092"}, Topics: []string{"x"}}}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	if k := c.Source.Kafka; k.Start != "earliest" || k.Group != "p" || c.Source.AtEnd != AtEndTriggers {
		t.Errorf("defaults are missing: %+v", k)
	}
}

func TestNeeds(t *testing.T) {
	c, err := Parse("c.yaml", []byte(tableBase), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.NeedSource(); err == nil || !strings.HasPrefix(err.Error(), "c.yaml:1:1: source: is missing (") || fault.ClassOf(err) != fault.Config {
		t.Errorf("NeedSource: %v", err)
	}
	c, err = Parse("c.yaml", []byte(tableBase), []string{
		"source.kafka={brokers: [b:9092], topics: [t]}", "table.location=s3://bkt/t", "metastore={type: hive, uri: thrift://h:9083}"})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.NeedSource(); err != nil {
		t.Errorf("NeedSource: %v", err)
	}
}

func TestZoneAndNames(t *testing.T) {
	c, err := Parse("c.yaml", []byte(tableBase+"commit: {policies: [success-file]}\n"), []string{
		"table.time_zone=Asia/Shanghai", "table.partitioned_by=[country, {dt: date(ts)}]"})
	if err != nil {
		t.Fatal(err)
	}
	if c.Table.Zone().String() != "Asia/Shanghai" {
		t.Errorf("zone %s", c.Table.Zone())
	}
	if got := fmt.Sprint(c.IdentityColumns()); got != "[country]" {
		t.Errorf("identity columns %s", got)
	}
	if c.Announces(CommitMetastore) || !c.Announces(CommitSuccessFile) {
		t.Errorf("policies %v", c.Commit.Policies)
	}
	if len(c.Table.ColumnText) != 6 || c.Table.ColumnText[0] != "id bigint" {
		t.Errorf("column text %q", c.Table.ColumnText)
	}
}

// FuzzParse: no text breaks Parse, every error is a *Problems that names a
// place, and what is accepted prints and reads back the same (G4).
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		tableBase, columnsBase + "  columns: [id bigint]\n  partitioned_by: [{b: \"bucket(4, id)\"}]\n",
		"a: &x [*x]", "table: &t {<<: *t}", "{\"pipeline\": \"p\", \"history\": 1}", "? [a]\n: b", "--- 1\n--- 2", "source: {stdin: }",
	} {
		f.Add(text, "rolling.rows=5")
	}
	f.Add(tableBase, "table.columns=[\"a.b bigint\"]")
	f.Fuzz(func(t *testing.T, text, flag string) {
		c, err := Parse("c.yaml", []byte(text), []string{flag})
		if err != nil {
			p, ok := err.(*Problems)
			if !ok || len(p.List) == 0 {
				t.Fatalf("not problems: %v", err)
			}
			for _, one := range p.List {
				if one.File == "" || one.Message == "" {
					t.Fatalf("a problem without a place or a message (G2): %+v", one)
				}
			}
			return
		}
		marshal(t, c)
	})
}
