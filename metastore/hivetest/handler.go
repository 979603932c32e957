package hivetest

import (
	"context"
	"maps"
	"slices"
	"strings"

	hms "github.com/beltran/gohive/hive_metastore"

	"github.com/hivesink/hivesink/layout"
)

// handler answers the calls that hivesink makes.
type handler struct {
	hms.ThriftHiveMetastore // of the others: a nil pointer, which ends the test
	s                       *Server
}

// enter notes a call, and asks the test.
func (h *handler) enter(call string) error {
	h.s.mu.Lock()
	h.s.calls = append(h.s.calls, call)
	before := h.s.before
	h.s.mu.Unlock()
	if before != nil {
		return before(call)
	}
	return nil
}

func (h *handler) find(db, name string) (*table, error) {
	t := h.s.tables[db+"."+name]
	if t == nil {
		return nil, &hms.NoSuchObjectException{Message: db + "." + name + " table not found"}
	}
	return t, nil
}

func nameOf(t *hms.Table, values []string) string {
	names := make([]string, len(t.PartitionKeys))
	for i, k := range t.PartitionKeys {
		names[i] = k.Name
	}
	return layout.PartitionPath(names, values)
}

func (h *handler) GetTableReq(_ context.Context, req *hms.GetTableRequest) (*hms.GetTableResult_, error) {
	if err := h.enter("get_table_req"); err != nil {
		return nil, err
	}
	h.s.mu.Lock()
	defer h.s.mu.Unlock()
	t, err := h.find(req.DbName, req.TblName)
	if err != nil {
		return nil, err
	}
	return &hms.GetTableResult_{Table: t.table}, nil
}

func (h *handler) GetDatabase(_ context.Context, name string) (*hms.Database, error) {
	if err := h.enter("get_database"); err != nil {
		return nil, err
	}
	h.s.mu.Lock()
	defer h.s.mu.Unlock()
	if d := h.s.dbs[name]; d != nil {
		return d, nil
	}
	return nil, &hms.NoSuchObjectException{Message: "database " + name}
}

func (h *handler) CreateDatabase(_ context.Context, d *hms.Database) error {
	if err := h.enter("create_database"); err != nil {
		return err
	}
	h.s.mu.Lock()
	defer h.s.mu.Unlock()
	if h.s.dbs[d.Name] != nil {
		return &hms.AlreadyExistsException{Message: "database " + d.Name}
	}
	h.s.dbs[d.Name] = d
	return nil
}

func (h *handler) CreateTable(_ context.Context, t *hms.Table) error {
	if err := h.enter("create_table"); err != nil {
		return err
	}
	h.s.mu.Lock()
	defer h.s.mu.Unlock()
	name := t.DbName + "." + t.TableName
	switch {
	case h.s.dbs[t.DbName] == nil:
		return &hms.InvalidObjectException{Message: "database " + t.DbName}
	case h.s.tables[name] != nil:
		return &hms.AlreadyExistsException{Message: "table " + name}
	}
	h.s.tables[name] = &table{t, make(map[string]*hms.Partition)}
	return nil
}

func (h *handler) AlterTableWithEnvironmentContext(_ context.Context, db, name string, t *hms.Table, _ *hms.EnvironmentContext) error {
	if err := h.enter("alter_table"); err != nil {
		return err
	}
	h.s.mu.Lock()
	defer h.s.mu.Unlock()
	old, err := h.find(db, name)
	if err != nil {
		return &hms.InvalidOperationException{Message: "alter is not possible: table " + db + "." + name}
	}
	old.table = t
	return nil
}

func (h *handler) GetPartitionNames(_ context.Context, db, name string, _ int16) ([]string, error) {
	if err := h.enter("get_partition_names"); err != nil {
		return nil, err
	}
	h.s.mu.Lock()
	defer h.s.mu.Unlock()
	t, err := h.find(db, name)
	if err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(t.parts)), nil
}

func (h *handler) GetPartitionsByNames(_ context.Context, db, name string, names []string) ([]*hms.Partition, error) {
	if err := h.enter("get_partitions_by_names " + size(len(names))); err != nil {
		return nil, err
	}
	h.s.mu.Lock()
	defer h.s.mu.Unlock()
	t, err := h.find(db, name)
	if err != nil {
		return nil, err
	}
	var out []*hms.Partition
	for _, n := range names {
		if p := t.parts[h.s.kept(n)]; p != nil {
			out = append(out, p)
		}
	}
	return out, nil
}

func (h *handler) AddPartitionsReq(_ context.Context, req *hms.AddPartitionsRequest) (*hms.AddPartitionsResult_, error) {
	if err := h.enter("add_partitions " + size(len(req.Parts))); err != nil {
		return nil, err
	}
	h.s.mu.Lock()
	defer h.s.mu.Unlock()
	t, err := h.find(req.DbName, req.TblName)
	if err != nil {
		return nil, &hms.InvalidObjectException{Message: req.DbName + "." + req.TblName}
	}
	fresh := make(map[string]*hms.Partition)
	for _, p := range req.Parts {
		n := h.s.kept(nameOf(t.table, p.Values))
		for i := range p.Values {
			p.Values[i] = h.s.kept(p.Values[i])
		}
		if fresh[n] != nil {
			return nil, &hms.MetaException{Message: "duplicate partition " + n}
		}
		fresh[n] = p
	}
	for n, p := range fresh {
		if t.parts[n] == nil {
			t.parts[n] = p
		}
	}
	return &hms.AddPartitionsResult_{}, nil
}

func (h *handler) AlterPartitionsWithEnvironmentContext(_ context.Context, db, name string, parts []*hms.Partition, _ *hms.EnvironmentContext) error {
	if err := h.enter("alter_partitions " + size(len(parts))); err != nil {
		return err
	}
	h.s.mu.Lock()
	defer h.s.mu.Unlock()
	t, err := h.find(db, name)
	if err != nil {
		return &hms.InvalidOperationException{Message: "table " + db + "." + name}
	}
	for _, p := range parts {
		n := nameOf(t.table, p.Values)
		if t.parts[n] == nil {
			return &hms.InvalidOperationException{Message: "partition " + n + " does not exist"}
		}
		t.parts[n] = p
	}
	return nil
}

// size tells calls about many partitions from others.
func size(n int) string {
	if n > MostPartitions {
		return "of more than MostPartitions"
	}
	return "of some"
}

// MostPartitions is how many one call may be about.
const MostPartitions = 1000

// TooMany is for Before, of a server with such a limit (hive.metastore.limit.partition.request).
func TooMany(call string) error {
	if strings.HasSuffix(call, "of more than MostPartitions") {
		return &hms.MetaException{Message: "number of partitions exceeds the limit"}
	}
	return nil
}

// Partitions are the names of a table's partitions.
func (s *Server) Partitions(name string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tables[name]
	if t == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(t.parts))
}

// DropTable forgets a table (database.table) and its partitions.
func (s *Server) DropTable(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.tables, name)
}

// DropPartition forgets one partition.
func (s *Server) DropPartition(name, partition string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.tables[name].parts, partition)
}

// MovePartition gives a partition another location, as somebody else might.
func (s *Server) MovePartition(name, partition, location string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := *s.tables[name].parts[partition]
	sd := *p.Sd
	sd.Location = location
	p.Sd = &sd
	s.tables[name].parts[partition] = &p
}

// Change lets f change a partition, as somebody else might, and returns it.
func (s *Server) Change(name, partition string, f func(*hms.Partition)) *hms.Partition {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := *s.tables[name].parts[partition]
	sd := *p.Sd
	p.Sd, p.Parameters = &sd, maps.Clone(p.Parameters)
	f(&p)
	s.tables[name].parts[partition] = &p
	return &p
}
