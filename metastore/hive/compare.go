package hive

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	hms "github.com/beltran/gohive/hive_metastore"

	"github.com/hivesink/hivesink/layout"
	"github.com/hivesink/hivesink/ledger"
)

// Kinds of differences between the table log and the metastore.
const (
	NoTable   = "no-table"  // the metastore does not have the table
	NotThere  = "not-there" // announced, and the metastore does not have it
	Elsewhere = "elsewhere" // it has another location in the metastore
	Outdated  = "outdated"  // the metastore has less than what was announced last
	Unknown   = "unknown"   // the metastore has a partition that the table log does not know
)

// Difference is what the metastore has otherwise than the table log says it was
// told.
type Difference struct {
	Kind      string `json:"kind"`
	Table     string `json:"table"`               // name in the database
	Partition string `json:"partition,omitempty"` // path
	Message   string `json:"message"`

	repeat *ledger.Announcement // what would mend it
	side   string
}

// Compare holds what the metastore has against what the table log says it was
// told. read reads the log: before the metastore is asked, since what is noted
// as announced stands there already, and once more for what was written
// meanwhile. So a run beside it makes no difference (HM9).
func (c *Catalog) Compare(ctx context.Context, read func() (*ledger.State, error)) ([]Difference, error) {
	before, err := read()
	if err != nil {
		return nil, err
	}
	var out []Difference
	var unknown []Difference
	for _, table := range []string{ledger.MainTable, ledger.LateTable, ledger.DeadTable} {
		told := toldOf(before, table)
		if len(told) == 0 && table != ledger.MainTable {
			continue
		}
		some, strange, err := c.compareTable(ctx, table, told)
		if err != nil {
			return nil, err
		}
		out, unknown = append(out, some...), append(unknown, strange...)
	}
	if len(unknown) == 0 {
		return out, nil
	}
	after, err := read()
	if err != nil {
		return nil, err
	}
	for _, d := range unknown {
		if after.Partitions[ledger.PartitionKey(d.side, d.Partition)] == nil {
			out = append(out, d)
		}
	}
	return out, nil
}

// toldOf are a table's partitions that the log says were announced, by path.
func toldOf(st *ledger.State, table string) map[string]*ledger.Partition {
	told := make(map[string]*ledger.Partition)
	for _, p := range st.Partitions {
		if p.Table == table && (p.Announced > 0 || p.Registered) {
			told[p.Path] = p
		}
	}
	return told
}

func (c *Catalog) compareTable(ctx context.Context, table string, told map[string]*ledger.Partition) (out, unknown []Difference, err error) {
	name := c.o.Tables[table].Name
	differ := func(kind, partition string, p *ledger.Partition, format string, args ...any) Difference {
		d := Difference{Kind: kind, Table: name, Partition: partition, side: table, Message: fmt.Sprintf(format, args...)}
		if p != nil {
			_, values, _ := layout.ParsePath(p.Path) // the log has only paths that were made of values
			d.repeat = &ledger.Announcement{Table: table, Partition: p.Path, Values: values, Number: p.Announced, Register: p.Announced == 0,
				Cut: p.AnnouncedCut, Files: p.AnnouncedFiles, Rows: p.AnnouncedRows, Bytes: p.AnnouncedBytes}
		}
		return d
	}
	t, err := c.getTable(ctx, name)
	if errors.Is(err, errNoTable) {
		if len(told) == 0 || table != ledger.MainTable && !c.o.CreateTable {
			return nil, nil, nil // nobody asked for it
		}
		return []Difference{differ(NoTable, "", nil, "table %s.%s is not in the metastore; %d partitions of it were announced", c.o.Database, name, len(told))}, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	have, err := c.Partitions(ctx, table, "")
	if err != nil {
		return nil, nil, err
	}
	paths, err := spellings(t, told)
	if err != nil {
		return nil, nil, err
	}
	there := make(map[string]bool)
	for i := range have {
		e := &have[i]
		path := paths[valuesKey(e.Values)] // hr=09 for the metastore's hr=9
		p := told[path]
		where := strings.TrimSuffix(c.o.Tables[table].Location, "/")
		if path != "" {
			where += "/" + path
		}
		switch {
		case p == nil:
			unknown = append(unknown, differ(Unknown, e.Partition, nil, "partition %s of %s.%s is in the metastore, and the table log does not know it", e.Partition, c.o.Database, name))
		case !sameLocation(e.Location, where):
			out = append(out, differ(Elsewhere, path, nil, "%s of %s.%s has the location %s in the metastore; its data is at %s", partitionWord(path), c.o.Database, name, e.Location, where))
		case e.Number < p.Announced || e.Number == p.Announced && p.Announced > 0 && e.NumRows != p.AnnouncedRows:
			// Of other files there may be: compaction at rest makes no announcement,
			// and the rows are the same.
			out = append(out, differ(Outdated, path, nil, "%s of %s.%s: the metastore has announcement %d (%d files, %d rows), the table log %d (%d files, %d rows)",
				partitionWord(path), c.o.Database, name, e.Number, e.NumFiles, e.NumRows, p.Announced, p.AnnouncedFiles, p.AnnouncedRows))
		}
		if p != nil {
			there[path] = true
		}
	}
	for _, path := range slices.Sorted(maps.Keys(told)) {
		if !there[path] {
			out = append(out, differ(NotThere, path, told[path], "%s of %s.%s was announced, and is not in the metastore", partitionWord(path), c.o.Database, name))
		}
	}
	return out, unknown, nil
}

func partitionWord(path string) string {
	if path == "" {
		return "the announcement"
	}
	return "partition " + path
}

// spellings are the told paths by the values that the metastore has for them.
func spellings(t *hms.Table, told map[string]*ledger.Partition) (map[string]string, error) {
	paths := make(map[string]string, len(told))
	for path := range told {
		_, values, err := layout.ParsePath(path)
		if err != nil {
			return nil, err
		}
		if values, err = canonical(t.PartitionKeys, values); err == nil {
			paths[valuesKey(values)] = path
		}
	}
	return paths, nil
}

// Add adds to the metastore what differences say is not there, with the totals
// that were announced last, and the table where it may be made. What is there is
// not changed, so that a run beside it comes to no harm (HM9). It returns how many were
// added.
func (c *Catalog) Add(ctx context.Context, read func() (*ledger.State, error)) (int, error) {
	ds, err := c.Compare(ctx, read)
	if err != nil {
		return 0, err
	}
	if slices.ContainsFunc(ds, func(d Difference) bool { return d.Kind == NoTable }) {
		for _, d := range ds {
			if d.Kind == NoTable {
				if _, err := c.prepare(ctx, d.side); err != nil {
					return 0, err
				}
			}
		}
		if ds, err = c.Compare(ctx, read); err != nil {
			return 0, err
		}
	}
	var as []ledger.Announcement
	for _, d := range ds {
		if d.repeat != nil {
			as = append(as, *d.repeat)
		}
	}
	if len(as) == 0 {
		return 0, nil
	}
	added := *c
	added.onlyAdd = true
	return len(as), added.Announce(ctx, as)
}
