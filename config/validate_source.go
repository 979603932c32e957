package config

import (
	"path"
	"reflect"
	"slices"
	"sort"
	"strings"

	"github.com/hivesink/hivesink/hivetype"
)

func (v *validator) source() {
	s := v.c.Source
	if s == nil {
		return
	}
	var kinds []string
	for kind, given := range map[string]bool{
		"kafka": s.Kafka != nil, "files": s.Files != nil, "stdin": s.Stdin != nil, "datagen": s.Datagen != nil,
	} {
		if given {
			kinds = append(kinds, kind)
		}
	}
	slices.Sort(kinds)
	switch {
	case len(kinds) == 0:
		v.add("source", "add kafka, files, stdin or datagen; without options write stdin: {}", "names no kind of source")
	case len(kinds) > 1:
		v.add("source", "remove all but one", "has %s: a pipeline has one kind of source", strings.Join(kinds, " and "))
	}
	if s.Kafka != nil {
		v.kafka(s.Kafka)
	}
	if s.Files != nil {
		v.files(s.Files)
	}
	if s.Datagen != nil {
		v.datagen(s.Datagen)
	}
	if s.Datagen == nil && len(kinds) == 1 { // datagen ignores it
		switch {
		case s.Format == FormatParquet:
			v.add("source.format", "use json or csv", "reading parquet is not in this build")
		case s.Format == FormatAvro && s.Kafka == nil:
			v.add("source.format", "use json or csv", "avro from %s is not in this build: its schemas come from a registry, which needs source.kafka", kinds[0])
		}
	}
	if s.Format == FormatCSV {
		v.csv(&s.CSV)
		if s.Kafka != nil && s.CSV.Header && v.c.Given("source.csv.header") {
			v.add("source.csv.header", "leave it out: fields are in the order of table.columns", "a message is one record, and has no header")
		}
	}
	if s.Format == FormatRaw {
		v.raw()
	}
	v.eventTime(&s.EventTime)
}

// distinct refuses empty and repeated items of a list.
func (v *validator) distinct(at string, items []string) {
	for i, item := range items {
		if item == "" {
			v.add(index(at, i), "", "is empty")
		} else if slices.Contains(items[:i], item) {
			v.add(index(at, i), "remove one", "%q is listed twice", item)
		}
	}
}

func (v *validator) files(f *Files) {
	if len(f.Paths) == 0 {
		v.add("source.files.paths", `such as ["in/*.ndjson.gz"]`, "is missing")
	}
	v.distinct("source.files.paths", f.Paths)
	for i, p := range f.Paths {
		if _, err := path.Match(p, ""); err != nil {
			v.add(index("source.files.paths", i), `close the [bracket], or write \[`, "%q is not a pattern", p)
		}
	}
	if f.Follow {
		v.add("source.files.follow", "leave it out, and run again when there are more files",
			"following files as they grow is not in this build")
	}
}

func (v *validator) datagen(d *Datagen) {
	if len(v.c.Table.Columns) == 0 {
		return
	}
	for _, name := range sortedKeys(reflect.ValueOf(d.Columns)) {
		if _, ok := v.column(name); !ok {
			v.add("source.datagen.columns."+name, v.nearColumn(name), "is not a column of the table")
		}
	}
}

func (v *validator) csv(c *CSV) {
	one := func(at, text string) {
		if len(text) != 1 || text[0] == 0 || text[0] >= 0x80 || text == "\n" || text == "\r" {
			hint := ""
			if text == `\t` {
				hint = `write "\t" in double quotes`
			}
			v.add(at, hint, "%q is not one ASCII character", text)
		}
	}
	one("source.csv.delimiter", c.Delimiter)
	if c.Quote != "" && c.Quote != "\x00" { // as other tools write it, it means none
		one("source.csv.quote", c.Quote)
	}
	if c.Quote != "" && c.Quote == c.Delimiter {
		v.add("source.csv.quote", "", "is the same as the delimiter, %q", c.Quote)
	}
}

func (v *validator) eventTime(e *EventTime) {
	if e.Column == "" || len(v.c.Table.Columns) == 0 {
		return
	}
	f, ok := v.column(e.Column)
	switch {
	case !ok:
		v.add("source.event_time.column", v.nearColumn(e.Column), "%q is not a column of the table", e.Column)
	case kindOf(f) != hivetype.Timestamp && kindOf(f) != hivetype.Date && kindOf(f) != hivetype.Invalid:
		v.add("source.event_time.column", "declare it as timestamp; source.timestamps says how it is written",
			"%q is %s, not a timestamp or date", e.Column, f.Type)
	}
}

// column finds a column of the table by its name in lower case.
func (v *validator) column(name string) (hivetype.Field, bool) {
	for _, f := range v.c.Table.Columns {
		if f.Name == name {
			return f, true
		}
	}
	return hivetype.Field{}, false
}

// nearColumn is a hint for a name that is no column.
func (v *validator) nearColumn(name string) string {
	names := make([]string, len(v.c.Table.Columns))
	for i, f := range v.c.Table.Columns {
		names[i] = f.Name
	}
	if near := nearest(name, names); near != "" {
		return "did you mean " + near + "?"
	}
	return "add it to table.columns"
}

// kindOf is the kind of a column; Invalid when its type could not be read.
func kindOf(f hivetype.Field) hivetype.Kind {
	if f.Type == nil {
		return hivetype.Invalid
	}
	return f.Type.Kind
}

func sortedKeys(m reflect.Value) []string {
	keys := make([]string, 0, m.Len())
	for _, k := range m.MapKeys() {
		keys = append(keys, k.String())
	}
	sort.Strings(keys)
	return keys
}
