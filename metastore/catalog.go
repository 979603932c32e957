package metastore

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/layout"
	"github.com/hivesink/hivesink/ledger"
)

// PolicyName is the name of the policy that announces to a catalogue.
const PolicyName = "metastore"

// ErrNoPartition: the catalogue does not know the partition.
var ErrNoPartition = errors.New("no such partition in the catalogue")

// Catalog knows the partitions of a table and of its side tables. Tables are
// named as in the ledger (ledger.MainTable and so on). It is a policy of the
// committer by its methods Name and Announce.
type Catalog interface {
	// Name is PolicyName.
	Name() string
	// Announce makes partitions and their totals known, at once for those that
	// are new and in place of what was known of the others; what a catalogue
	// holds of a partition beyond that is kept. It is idempotent (M3). An error
	// of class retry may be tried again; one with a method FailedAt(int) error
	// says which of the batch failed.
	Announce(ctx context.Context, as []ledger.Announcement) error
	// Get describes one partition, "" for a table without partition columns;
	// ErrNoPartition when it is not known.
	Get(ctx context.Context, table, partition string) (Entry, error)
	// Partitions lists what filter (ParseFilter) selects, sorted by path.
	Partitions(ctx context.Context, table, filter string) ([]Entry, error)
}

// Entry is a partition as the catalogue has it.
type Entry struct {
	Database  string   `json:"database"`
	Table     string   `json:"table"`     // name in the database
	Partition string   `json:"partition"` // path below the table's location; "" without partition columns
	Values    []string `json:"values"`    // of the partition columns, unescaped
	Location  string   `json:"location"`  // directory
	NumFiles  int64    `json:"num_files"`
	NumRows   int64    `json:"num_rows"`
	TotalSize int64    `json:"total_size"` // bytes
	// Number counts the announcements. 0: the partition is registered, and
	// not complete yet; its counts are then not known either.
	Number int64 `json:"number"`
	// AnnouncedAt is the time of the last announcement, wall clock,
	// microseconds since 1970.
	AnnouncedAt int64 `json:"announced_at"`
}

// SideName is the name of a table in the database: NAME, NAME_dead, NAME_late.
func SideName(name, table string) string {
	if table == ledger.MainTable {
		return name
	}
	return name + "_" + table
}

// Filter selects partitions by values of their columns. The zero value selects
// all.
type Filter struct {
	text  string
	terms []term
}

// term is a column and the values it may have: as typed, and unescaped.
type term struct{ column, plain, unescaped string }

// ParseFilter reads "k=v/k=v…": any of the partition columns, in any order. A
// value may be typed as it is or as in a path, escaped ("%2F" for a slash); an
// empty one selects null. The error has class config.
func ParseFilter(text string) (Filter, error) {
	f := Filter{text: text}
	if text == "" {
		return f, nil
	}
	for component := range strings.SplitSeq(strings.TrimSuffix(text, "/"), "/") {
		column, value, ok := strings.Cut(component, "=")
		if !ok || column == "" {
			return Filter{}, fault.New(fault.Config, "such as dt=2026-01-31/country=de", "partition filter %q: %q is not column=value", text, component)
		}
		value = layout.ValueOrDefault(value)
		f.terms = append(f.terms, term{strings.ToLower(layout.Unescape(column)), value, layout.Unescape(value)})
	}
	return f, nil
}

// Match says whether f selects a partition. A column the partition does not
// have is an error of class config.
func (f Filter) Match(partition string) (bool, error) {
	if len(f.terms) == 0 {
		return true, nil
	}
	columns, values, err := layout.ParsePath(partition)
	if err != nil {
		return false, err
	}
	match := true
	for _, t := range f.terms {
		i := 0
		for i < len(columns) && columns[i] != t.column {
			i++
		}
		if i == len(columns) {
			return false, fault.New(fault.Config, hintColumns(columns), "partition filter %q: %q is not a partition column", f.text, t.column)
		}
		match = match && (values[i] == t.plain || values[i] == t.unescaped)
	}
	return match, nil
}

func hintColumns(columns []string) string {
	if len(columns) == 0 {
		return "the table has no partition columns"
	}
	return fmt.Sprintf("the columns are %s", strings.Join(columns, ", "))
}
