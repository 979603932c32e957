package config

import (
	"strings"
	"time"

	"github.com/hivesink/hivesink/hivetype"
	"github.com/hivesink/hivesink/layout"
)

func (v *validator) table() {
	t := &v.c.Table
	if t.TimeZone == "Local" {
		v.add("table.time_zone", "name it, such as Europe/Berlin",
			"Local is another zone on another machine, and the table stays the same")
	} else if _, err := time.LoadLocation(t.TimeZone); err != nil {
		v.add("table.time_zone", "an IANA name such as UTC, Europe/Berlin, America/New_York", "%q is not a time zone", t.TimeZone)
	}
	switch f := strings.ToLower(t.Format); {
	case f == "orc":
		v.add("table.format", "use parquet, which Hive, Spark, Trino and Impala read as well; docs/orc.md has the reasons",
			"orc cannot be written: no library in pure Go appends columns to ORC files and joins them without decoding")
	case f != FormatParquet:
		v.add("table.format", "parquet is the only one", "%q is not a format of tables", t.Format)
	}
	if len(t.Columns) == 0 {
		if v.c.Metastore.Type == MetastoreEmbedded && !v.atRest {
			v.add("table.columns", "list them, such as - id bigint; only with metastore.type hive may they be left out", "is missing")
		}
	} else {
		v.columns(t.Columns)
	}
	v.partitions(t)
}

// Zone is the zone of the transforms and of partition time.
func (t *Table) Zone() *time.Location {
	zone, err := time.LoadLocation(t.TimeZone)
	if err != nil {
		return time.UTC // Validate has refused it
	}
	return zone
}

func (v *validator) columns(columns []hivetype.Field) {
	first := map[string]int{}
	for i, f := range columns {
		at := index("table.columns", i)
		if j, twice := first[f.Name]; twice && f.Name != "" {
			v.add(at, "Hive does not tell upper from lower case", "column %q is listed twice, first at table.columns[%d]", f.Name, j)
			continue
		}
		first[f.Name] = i
		if f.Type == nil {
			v.add(at, "", "column %q has no type", f.Name)
			continue
		}
		if f.Name == "" {
			v.add(at, "", "has no name")
			continue
		}
		if problem, hint := fieldProblem(f, f.Name); problem != "" {
			v.add(at, hint, "%s", problem)
		}
	}
}

// fieldProblem says what is wrong with the names and structs within a column.
func fieldProblem(f hivetype.Field, path string) (problem, hint string) {
	if strings.Contains(f.Name, ".") {
		return "the name of " + path + " has a dot: readers take it for a field of a struct",
			"rename it, or declare a struct"
	}
	if f.Type == nil {
		return path + " has no type", ""
	}
	return typeProblem(f.Type, path)
}

func typeProblem(t *hivetype.Type, path string) (problem, hint string) {
	seen := map[string]bool{}
	switch {
	case t.Kind == hivetype.Invalid,
		t.Kind == hivetype.Array && t.Elem == nil,
		t.Kind == hivetype.Map && (t.Key == nil || t.Elem == nil):
		return path + " has no type", ""
	case t.Kind == hivetype.Struct && len(t.Fields) == 0:
		return "the struct " + path + " has no fields: Parquet cannot hold it", "give it a field, or use string"
	case t.Kind == hivetype.Map && !primitive(t.Key.Kind):
		return "the map " + path + " has a key that is not a primitive type", ""
	}
	for _, f := range t.Fields {
		name := strings.ToLower(f.Name)
		if seen[name] {
			return "the struct " + path + " has the field " + name + " twice", "Hive does not tell upper from lower case"
		}
		seen[name] = true
		if problem, hint = fieldProblem(f, path+"."+f.Name); problem != "" {
			return problem, hint
		}
	}
	for _, inner := range []*hivetype.Type{t.Key, t.Elem} {
		if inner != nil {
			if problem, hint = typeProblem(inner, path); problem != "" {
				return problem, hint
			}
		}
	}
	return "", ""
}

func primitive(k hivetype.Kind) bool {
	return k != hivetype.Array && k != hivetype.Map && k != hivetype.Struct
}

func (v *validator) partitions(t *Table) {
	first := map[string]int{}
	identity := 0
	for i, p := range t.PartitionedBy {
		at := index("table.partitioned_by", i)
		if p.Name == "" {
			v.add(at, "", "has no name")
			continue
		}
		if j, twice := first[p.Name]; twice {
			v.add(at, "give it another name", "partition column %q is listed twice, first at table.partitioned_by[%d]", p.Name, j)
			continue
		}
		first[p.Name] = i
		v.partitionName(at, p.Name)
		if p.Func == "" && v.bad[at] {
			continue
		}
		if _, ok := v.column(p.Column); ok && p.Func == layout.Identity {
			identity++
		}
		v.partition(at, p)
	}
	if len(t.Columns) > 0 && identity == len(t.Columns) {
		v.add("table.partitioned_by", "keep at least one column for the files",
			"every column is a partition column: data files would have no columns")
	}
}

// partitionName refuses names that readers would skip, and those that a path
// cannot show as they are.
func (v *validator) partitionName(at, name string) {
	switch {
	case name[0] == '_' || name[0] == '.':
		v.add(at, "rename it", "partition column %q: readers skip directories whose name starts with %c", name, name[0])
	case len(name) > 128:
		v.add(at, "at most 128 bytes", "the name of the partition column is %d bytes long", len(name))
	case strings.ContainsAny(name, `."#%'*/:=?\{}[]^<> `) || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }):
		v.add(at, "use letters, digits and underscores", "partition column %q cannot be part of a path as it is", name)
	}
}

// partition checks one partition column against the columns of the table.
func (v *validator) partition(at string, p layout.Transform) {
	known := len(v.c.Table.Columns) > 0
	source, found := v.column(p.Column)
	if p.Func == layout.Identity && p.Name != p.Column {
		v.add(at, "write - "+p.Column+", or a transform", "partition column %q renames column %q: a column is a partition column under its own name", p.Name, p.Column)
		return
	}
	if _, clash := v.column(p.Name); clash && p.Func != layout.Identity {
		v.add(at, "give the partition column another name", "partition column %q is also a column: readers would see it twice", p.Name)
	}
	if known && !found {
		v.add(at, v.nearColumn(p.Column), "%q is not a column of the table", p.Column)
		return
	}
	if _, err := layout.ParseTransform(p.Name, p.String()); err != nil { // of a filled struct
		v.add(at, "", "%s", err)
		return
	}
	kind := kindOf(source)
	if kind == hivetype.Invalid {
		kind = anyKind // the column is not known, or is a problem of its own
	}
	if why := transformProblem(p, kind); why != "" {
		if kind != anyKind {
			why = strings.ReplaceAll(why, "$type", source.Type.String())
		}
		v.add(at, "", "%s: %s", p, why)
	}
}

// anyKind stands for a type that is not known and suits every transform.
const anyKind hivetype.Kind = 0xff

// transformProblem says why a transform does not suit a column's type; "$type"
// in it stands for the type.
func transformProblem(p layout.Transform, kind hivetype.Kind) string {
	isAny, isDate := kind == anyKind, kind == hivetype.Date
	isTime := isAny || isDate || kind == hivetype.Timestamp
	isInt := kind >= hivetype.TinyInt && kind <= hivetype.BigInt
	isText := kind == hivetype.String || kind == hivetype.Varchar || kind == hivetype.Char
	switch p.Func {
	case layout.Identity:
		switch kind {
		case hivetype.Array, hivetype.Map, hivetype.Struct:
			return "a partition column has a primitive type, not $type"
		case hivetype.Binary:
			return "a binary value has no text for the path"
		case hivetype.Float, hivetype.Double:
			return "$type has no one text for a value, so that equal values could get different paths"
		}
	case layout.Date, layout.Year, layout.Month, layout.Day, layout.Hour, layout.Format:
		if !isTime {
			return "needs a timestamp or date, not $type"
		}
		if isDate && (p.Func == layout.Hour || p.Func == layout.Format && strings.ContainsAny(unquoted(p.Layout), "HmsS")) {
			return "a date has no time of day"
		}
	case layout.Bucket:
		if !isAny && (!primitive(kind) || kind == hivetype.Boolean || kind == hivetype.Float || kind == hivetype.Double) {
			return "bucket is defined for integers, decimal, text, binary, date and timestamp, not $type"
		}
	case layout.Truncate:
		if !isAny && !isInt && !isText {
			return "truncate is defined for text and integers, not $type"
		}
	}
	return ""
}

// unquoted is the layout of a format without its quoted text.
func unquoted(text string) string {
	out := ""
	for i, part := range strings.Split(text, "'") {
		if i%2 == 0 {
			out += part
		}
	}
	return out
}
