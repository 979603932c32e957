package config

import (
	"fmt"
	"net"
	"path"
	"reflect"
	"regexp"
	"strconv"
	"strings"
)

// validator checks a whole config. Where decoding already found a problem, it
// says nothing more about that option or what is below it (G1).
type validator struct {
	c        *Config
	bad      map[string]bool // options that decoding could not use
	said     map[string]bool // options with a problem found here
	atRest   bool            // LoadAtRest
	problems []Problem
}

func (v *validator) validate() error {
	v.normalise()
	v.tags(reflect.ValueOf(v.c).Elem(), "")
	v.names()
	v.source()
	v.table()
	v.commit()
	v.s3()
	v.services()
	return (&Problems{List: v.problems}).err()
}

// add notes a problem at the place where path, or what it is part of, was
// given (G2).
func (v *validator) add(at, hint, format string, args ...any) {
	for p := at; p != ""; p = parent(p) {
		if v.bad[p] {
			return
		}
	}
	if v.said[at] {
		return
	}
	if v.said == nil {
		v.said = map[string]bool{}
	}
	v.said[at] = true
	where, p := v.c.where[at], at
	for where == (place{}) && p != "" {
		p = parent(p)
		where = v.c.where[p]
	}
	v.problems = append(v.problems, where.problem(at, fmt.Sprintf(format, args...), hint))
}

// parent is the path of the option that path is part of.
func parent(path string) string { return path[:max(strings.LastIndexAny(path, ".["), 0)] }

// normalise brings to one form what may be written in several.
func (v *validator) normalise() {
	c := v.c
	t := &c.Table
	t.Database, t.Name = strings.ToLower(t.Database), strings.ToLower(t.Name)
	if t.Location.Scheme == "" && t.Location.Path != "" {
		t.Location.Scheme, t.Location.Path = "file", path.Clean(t.Location.Path)
	}
	for i := range t.Columns {
		t.Columns[i].Name = strings.ToLower(t.Columns[i].Name)
	}
	for i := range t.PartitionedBy {
		p := &t.PartitionedBy[i]
		p.Name, p.Column = strings.ToLower(p.Name), strings.ToLower(p.Column)
	}
	if !c.Compaction.Enabled {
		c.Compaction.Policy = PolicyOff
	}
	c.Compaction.Enabled = c.Compaction.Policy != PolicyOff
	s := c.Source
	if s == nil {
		return
	}
	s.EventTime.Column = strings.ToLower(s.EventTime.Column)
	if s.Kafka != nil && s.Kafka.Group == "" {
		s.Kafka.Group = c.Pipeline
	}
	if s.Kafka != nil && !c.Given("source.csv.header") {
		s.CSV.Header = false // a message has none
	}
	if s.AtEnd == "" {
		s.AtEnd = AtEndComplete
		if s.Kafka != nil {
			s.AtEnd = AtEndTriggers
		}
	}
	if s.Datagen != nil {
		lower := make(map[string]DatagenColumn, len(s.Datagen.Columns))
		for name, col := range s.Datagen.Columns {
			lower[strings.ToLower(name)] = col
		}
		s.Datagen.Columns = lower
	}
}

// tags checks what the tags enum, min and max say.
func (v *validator) tags(s reflect.Value, path string) {
	for _, o := range options(s.Type()) {
		f, at := s.Field(o.index), join(path, o.name)
		if _, ok := section(f.Type()); ok {
			if f.Kind() == reflect.Pointer {
				if f.IsNil() {
					continue
				}
				f = f.Elem()
			}
			v.tags(f, at)
			continue
		}
		if f.Kind() == reflect.Map {
			for _, key := range sortedKeys(f) {
				v.tags(f.MapIndex(reflect.ValueOf(key)), join(at, key))
			}
			continue
		}
		v.tagsOf(o, f, at)
	}
}

func (v *validator) tagsOf(o option, f reflect.Value, at string) {
	if enum, ok := o.field.Tag.Lookup("enum"); ok {
		v.oneOf(at, f.String(), strings.Split(enum, "|"))
	}
	if limit, ok := o.field.Tag.Lookup("min"); ok {
		if limit == ">0" {
			if number(f) <= 0 {
				v.add(at, "", "must be more than 0, not %v", f)
			}
		} else if number(f) < limitOf(limit, f.Type()) {
			v.add(at, "", "must be at least %s, not %v", limit, f)
		}
	}
	if limit, ok := o.field.Tag.Lookup("max"); ok && number(f) > limitOf(limit, f.Type()) {
		v.add(at, "", "must be at most %s, not %v", limit, f)
	}
}

// number has an int64 up to 2^53 exactly, and no limit is larger.
func number(f reflect.Value) float64 {
	if f.CanInt() {
		return float64(f.Int())
	}
	return f.Float()
}

func limitOf(text string, t reflect.Type) float64 {
	limit := reflect.New(t).Elem()
	decodeDefault(text, limit, "limit")
	return number(limit)
}

func (v *validator) oneOf(at, value string, known []string) {
	if strings.EqualFold(value, "orc") {
		v.add(at, "docs/orc.md has the reasons", "orc is not one of %s: it can be neither read nor written", strings.Join(known, ", "))
		return
	}
	for _, k := range known {
		if value == k {
			return
		}
	}
	hint := ""
	if near := nearest(value, known); near != "" {
		hint = "did you mean " + near + "?"
	}
	v.add(at, hint, "%q is not one of %s", value, strings.Join(known, ", "))
}

var (
	pipelineName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,100}$`)
	identifier   = regexp.MustCompile(`^[a-z0-9_]{1,128}$`)
)

func (v *validator) names() {
	c := v.c
	switch {
	case c.Pipeline == "":
		v.add("pipeline", "give the pipeline a name, and do not change it later: it owns the table", "is missing")
	case !pipelineName.MatchString(c.Pipeline):
		v.add("pipeline", "1 to 100 letters, digits, dots, underscores or hyphens", "%q is not a name", c.Pipeline)
	}
	if c.StateDir == "" {
		v.add("state_dir", "such as ./state", "is empty")
	}
	v.identifier("table.database", c.Table.Database)
	v.identifier("table.name", c.Table.Name)
	l := c.Table.Location
	switch {
	case l.Path == "":
		v.add("table.location", "such as file:///data/web.db/clicks", "is missing")
	case l.IsLocal() && (l.Path == "/" || l.Path == "."):
		v.add("table.location", "give the table a directory of its own", "%s is not a place for a table", l.Path)
	case l.IsLocal() && c.StateDir != "" && within(l.Path, c.StateDir):
		v.add("state_dir", "put it elsewhere: nothing but the table belongs there", "is inside the table's location %s", l)
	}
}

func (v *validator) identifier(at, name string) {
	switch {
	case name == "":
		v.add(at, "", "is missing")
	case !identifier.MatchString(name):
		v.add(at, "1 to 128 letters, digits or underscores; Hive knows no upper case", "%q is not a name", name)
	}
}

// within says whether path lies in directory dir, as far as the text tells.
func within(dir, file string) bool {
	dir, file = path.Clean(dir), path.Clean(file)
	return file == dir || strings.HasPrefix(file, dir+"/")
}

// hdfs checks what the tags do not say; whether there is such a cluster is for
// the run to find out (G6).
func (v *validator) hdfs() {
	h := &v.c.HDFS
	v.distinct("hdfs.namenodes", h.NameNodes)
	for i, address := range h.NameNodes {
		if problem := addressProblem(address, 1); address != "" && problem != "" {
			v.add(index("hdfs.namenodes", i), "host:port, such as nn1:8020", "%q is not an address", address)
		}
	}
	if h.Kerberos != nil {
		v.kerberos("hdfs.kerberos", h.Kerberos)
	}
}

// kerberos wants one of keytab and ticket cache.
func (v *validator) kerberos(at string, k *Kerberos) {
	switch {
	case k.Keytab == "" && k.TicketCache == "":
		v.add(at+".keytab", "the path of the principal's keytab, or of a ticket cache as ticket_cache", "is missing: Kerberos needs it")
	case k.Keytab != "" && k.TicketCache != "":
		v.add(at+".ticket_cache", "remove one of them", "and keytab are both given")
	}
	if k.Principal == "" && k.TicketCache == "" {
		v.add(at+".principal", "such as hivesink@EXAMPLE.COM", "is missing: Kerberos needs it")
	}
}

func (v *validator) services() {
	v.hdfs()
	v.metastore()
	if listen := v.c.HTTP.Listen; listen != "" {
		if problem := addressProblem(listen, 0); problem != "" {
			v.add("http.listen", "host:port, such as 127.0.0.1:8088, or :8088 for all addresses", "%q %s", listen, problem)
		}
	}
	if s := v.c.Source; s != nil && s.MaxRecord > v.c.Limits.Memory {
		v.add("source.max_record", "raise limits.memory, or lower it", "%s is more than limits.memory, %s", s.MaxRecord, v.c.Limits.Memory)
	}
}

// addressProblem says what is wrong with host:port; port 0 asks for any.
func addressProblem(address string, lowest int) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "is not host:port"
	}
	if n, err := strconv.Atoi(port); err != nil || n < lowest || n > 65535 {
		return "has no port between " + strconv.Itoa(lowest) + " and 65535"
	}
	if lowest > 0 && host == "" {
		return "has no host"
	}
	return ""
}
