package metastore

import (
	"context"
	"fmt"
	"slices"

	"github.com/hivesink/hivesink/layout"
	"github.com/hivesink/hivesink/ledger"
)

// Embedded is the catalogue of a table that needs no server: the announced
// facts of its own log. It reads the state it was made of at every call, so it
// sees what is applied to it meanwhile, and must not be used beside that.
type Embedded struct {
	EmbeddedPolicy
	database, name, location string
	state                    *ledger.State
}

// NewEmbedded makes the catalogue of the table called name, whose root
// directory is location, from what its log says. Its side tables lie beside it.
func NewEmbedded(database, name, location string, state *ledger.State) *Embedded {
	return &Embedded{database: database, name: name, location: location, state: state}
}

// List is Partitions of the table itself.
func (e *Embedded) List(filter string) ([]Entry, error) {
	return e.Partitions(context.Background(), ledger.MainTable, filter)
}

// Partitions lists the announced and registered partitions of a table that
// filter selects, sorted by path (M1, M4).
func (e *Embedded) Partitions(ctx context.Context, table, filter string) ([]Entry, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f, err := ParseFilter(filter)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, p := range e.state.Partitions {
		if p.Table != table || !listed(p) {
			continue
		}
		match, err := f.Match(p.Path)
		if err != nil {
			return nil, err
		}
		if match {
			paths = append(paths, p.Path)
		}
	}
	slices.Sort(paths)
	entries := make([]Entry, len(paths)) // not nil: JSON has a list
	for i, path := range paths {
		if entries[i], err = e.entry(e.state.Partitions[ledger.PartitionKey(table, path)]); err != nil {
			return nil, err
		}
	}
	return entries, nil
}

// Get describes one partition.
func (e *Embedded) Get(ctx context.Context, table, partition string) (Entry, error) {
	if err := ctx.Err(); err != nil {
		return Entry{}, err
	}
	p := e.state.Partitions[ledger.PartitionKey(table, partition)]
	if p == nil || !listed(p) {
		return Entry{}, fmt.Errorf("%s.%s, partition %q: %w", e.database, SideName(e.name, table), partition, ErrNoPartition)
	}
	return e.entry(p)
}

// listed says whether the catalogue has learned of p (M1).
func listed(p *ledger.Partition) bool { return p.Announced > 0 || p.Registered }

// entry is p as its last announcement made it known (M2).
func (e *Embedded) entry(p *ledger.Partition) (Entry, error) {
	_, values, err := layout.ParsePath(p.Path)
	if err != nil {
		return Entry{}, fmt.Errorf("the table log names a partition: %w", err)
	}
	location := SideName(e.location, p.Table)
	if p.Path != "" {
		location += "/" + p.Path
	}
	return Entry{
		Database: e.database, Table: SideName(e.name, p.Table), Partition: p.Path, Values: values, Location: location,
		NumFiles: p.AnnouncedFiles, NumRows: p.AnnouncedRows, TotalSize: p.AnnouncedBytes,
		Number: p.Announced, AnnouncedAt: p.AnnouncedTime,
	}, nil
}

// EmbeddedPolicy announces to the embedded catalogue.
type EmbeddedPolicy struct{}

// NewEmbeddedPolicy makes the policy of the embedded catalogue.
func NewEmbeddedPolicy() EmbeddedPolicy { return EmbeddedPolicy{} }

// Name is PolicyName.
func (EmbeddedPolicy) Name() string { return PolicyName }

// Announce has nothing to do: the catalogue is a projection of the announced
// facts, and the caller appends the fact after the last policy. Doing more here
// would make a second copy of it, which a crash could leave different.
func (EmbeddedPolicy) Announce(context.Context, []ledger.Announcement) error { return nil }
