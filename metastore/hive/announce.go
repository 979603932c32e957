package hive

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	hms "github.com/beltran/gohive/hive_metastore"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/ledger"
)

// rounds is how often a batch is changed and read back before what differs
// still is an error.
const rounds = 3

// part is an announcement on its way.
type part struct {
	a      *ledger.Announcement
	at     int // in the batch that was announced
	values []string
	name   string // in the metastore
	place  string // location
	done   bool
	err    error
}

// Announce makes partitions known and sets their totals. What fails for one
// partition does not keep the others; what fails for the server fails all that
// is not done yet.
func (c *Catalog) Announce(ctx context.Context, as []ledger.Announcement) error {
	failed := make(failures, len(as))
	for table, members := range byTable(as) {
		err := c.announce(ctx, table, members)
		if fault.ClassOf(err) == fault.Fenced {
			return err
		}
		for _, p := range members {
			if !p.done && p.err == nil {
				p.err = err
			}
			failed[p.at] = p.err
		}
	}
	return failed.err()
}

// byTable yields the announcements of each table, in the order of their first.
func byTable(as []ledger.Announcement) func(func(string, []*part) bool) {
	return func(yield func(string, []*part) bool) {
		var order []string
		members := make(map[string][]*part)
		for i := range as {
			table := as[i].Table
			if !slices.Contains(order, table) {
				order = append(order, table)
			}
			members[table] = append(members[table], &part{a: &as[i], at: i})
		}
		for _, table := range order {
			if !yield(table, members[table]) {
				return
			}
		}
	}
}

// announce announces partitions of one table. The error is for all that are
// neither done nor have one of their own.
func (c *Catalog) announce(ctx context.Context, table string, members []*part) error {
	t, err := c.prepare(ctx, table)
	if errors.Is(err, errNoTable) && table != ledger.MainTable && !c.o.CreateTable {
		for _, p := range members { // nobody asked for side tables in the metastore
			p.done = true
		}
		return nil
	}
	if err != nil {
		return err
	}
	var batch []*part
	same := make(map[string][]*part) // the same partition twice in one request is an error
	for _, p := range members {
		if p.a.Partition == "" {
			if p.err = c.announceTable(ctx, table, p.a); p.err == nil {
				p.done = true
			}
			continue
		}
		if p.err = p.locate(t); p.err != nil {
			continue
		}
		same[p.name] = append(same[p.name], p)
		if len(same[p.name]) == 1 {
			batch = append(batch, p)
		}
	}
	for b := range slices.Chunk(batch, c.o.Batch) {
		if err = c.settle(ctx, t, b); err != nil {
			break
		}
	}
	for _, twins := range same {
		for _, p := range twins[1:] {
			p.done, p.err = twins[0].done, twins[0].err
			if !strings.EqualFold(p.a.Partition, twins[0].a.Partition) {
				p.done = false
				p.err = fault.New(fault.Retry, "give the partition column type string in the metastore",
					"%q and %q are one partition in the metastore", twins[0].a.Partition, p.a.Partition)
			}
		}
	}
	return err
}

func (p *part) locate(t *hms.Table) (err error) {
	if p.values, err = canonical(t.PartitionKeys, p.a.Values); err != nil {
		return err
	}
	p.name = partitionName(t, p.values)
	p.place = strings.TrimSuffix(t.Sd.Location, "/") + "/" + p.a.Partition
	return nil
}

// settle brings a batch of partitions to what is announced (HM3).
func (c *Catalog) settle(ctx context.Context, t *hms.Table, batch []*part) error {
	for round := 0; ; round++ {
		found, err := c.look(ctx, t, batch)
		if err != nil {
			return err
		}
		var add, alter []*part
		for _, p := range batch {
			old := found[valuesKey(p.values)]
			switch {
			case p.done || p.err != nil:
			case old == nil:
				add = append(add, p)
			case !sameLocation(old.Sd.Location, p.place):
				p.err = fault.New(fault.Retry, "drop that partition, or find out who added it", "partition %s of %s.%s is in the metastore with the location %s; its data is at %s",
					p.name, t.DbName, t.TableName, old.Sd.Location, p.place)
			case c.onlyAdd && (round == 0 || number(old.Parameters, paramNumber) != p.a.Number):
				p.done = true // somebody else's, or newer
			case p.a.Register || counted(old.Parameters, p.a) && sameColumns(old.Sd.Cols, t.Sd.Cols):
				p.done = true
			default:
				alter = append(alter, p)
			}
		}
		if len(add)+len(alter) == 0 {
			return nil
		}
		if round == rounds {
			c.unkept(t, batch, append(add, alter...), found)
			return nil
		}
		if err := c.each(ctx, add, func(ps []*part) error { return c.add(ctx, t, ps) }); err != nil {
			return err
		}
		if err := c.each(ctx, alter, func(ps []*part) error { return c.alter(ctx, t, ps, found) }); err != nil {
			return err
		}
	}
}

// unkept says what the metastore has in place of what partitions were given. What
// came back and nobody asked for is how it keeps their names: its database knows
// fewer letters, and readers would look for another partition.
func (c *Catalog) unkept(t *hms.Table, batch, ps []*part, found map[string]*hms.Partition) {
	asked := make(map[string]bool, len(batch))
	for _, p := range batch {
		asked[valuesKey(p.values)] = true
	}
	var instead []string
	for key, h := range found {
		if !asked[key] {
			instead = append(instead, partitionName(t, h.Values))
		}
	}
	slices.Sort(instead)
	for _, p := range ps {
		if len(instead) > 0 {
			p.err = fault.New(fault.Retry, "its database does not keep all letters (a latin1 PART_NAME?): change that, drop what is wrong there, or partition by other values",
				"partition %s of %s.%s is not in the metastore after it was added; what it has instead is %s", p.name, t.DbName, t.TableName, strings.Join(instead, ", "))
			continue
		}
		p.err = fault.New(fault.Retry, "does another job write it?", "the metastore does not keep what partition %s of %s.%s was given", p.name, t.DbName, t.TableName)
	}
}

func (c *Catalog) look(ctx context.Context, t *hms.Table, batch []*part) (map[string]*hms.Partition, error) {
	var names []string
	for _, p := range batch {
		if !p.done && p.err == nil {
			names = append(names, p.name)
		}
	}
	if len(names) == 0 {
		return nil, nil
	}
	return c.find(ctx, t, names)
}

// each changes partitions in one call; when the server refuses, in two halves,
// so that in the end the one it does not like is known. That another job was
// faster is decided by reading back.
func (c *Catalog) each(ctx context.Context, ps []*part, change func([]*part) error) error {
	if len(ps) == 0 {
		return nil
	}
	err := change(ps)
	var server *serverError
	var table *hms.InvalidObjectException
	switch {
	case err == nil || alreadyExists(err) && len(ps) == 1:
		return nil
	case !errors.As(err, &server) || errors.As(err, &table) || gone(err):
		return err // not about one of them
	case len(ps) == 1:
		ps[0].err = err
		return nil
	}
	if err := c.each(ctx, ps[:len(ps)/2], change); err != nil {
		return err
	}
	return c.each(ctx, ps[len(ps)/2:], change)
}

func (c *Catalog) add(ctx context.Context, t *hms.Table, ps []*part) error {
	fresh := make([]*hms.Partition, len(ps))
	for i, p := range ps {
		h := hms.NewPartition()
		sd := *t.Sd
		sd.Location = p.place
		h.DbName, h.TableName, h.Values, h.Sd = t.DbName, t.TableName, p.values, &sd
		h.Parameters = c.parameters(nil, p.a)
		fresh[i] = h
	}
	what := fmt.Sprintf("add %d partitions to %s.%s", len(ps), t.DbName, t.TableName)
	return c.client.change(ctx, what, c.mayChange, func(ctx context.Context, m *hms.ThriftHiveMetastoreClient) error {
		_, err := m.AddPartitionsReq(ctx, &hms.AddPartitionsRequest{DbName: t.DbName, TblName: t.TableName, Parts: fresh, IfNotExists: true})
		return err
	})
}

func (c *Catalog) alter(ctx context.Context, t *hms.Table, ps []*part, found map[string]*hms.Partition) error {
	changed := make([]*hms.Partition, len(ps))
	for i, p := range ps {
		h := *found[valuesKey(p.values)]
		sd := *h.Sd
		sd.Cols = t.Sd.Cols // columns added since; readers take them from here
		h.Sd, h.Parameters = &sd, c.parameters(h.Parameters, p.a)
		changed[i] = &h
	}
	what := fmt.Sprintf("alter %d partitions of %s.%s", len(ps), t.DbName, t.TableName)
	return c.client.change(ctx, what, c.mayChange, func(ctx context.Context, m *hms.ThriftHiveMetastoreClient) error {
		return m.AlterPartitionsWithEnvironmentContext(ctx, t.DbName, t.TableName, changed, keepStats())
	})
}

// failures says which of a batch failed; it is what the committer knows by its
// shape.
type failures []error

func (f failures) FailedAt(i int) error { return f[i] }

func (f failures) Unwrap() (errs []error) {
	for _, err := range f {
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

func (f failures) Error() string {
	errs := f.Unwrap()
	return fmt.Sprintf("%d of %d partitions: %v", len(errs), len(f), errs[0])
}

// err is nil when nothing failed, and one error when all failed for one reason.
func (f failures) err() error {
	errs := f.Unwrap()
	if len(errs) == 0 {
		return nil
	}
	if len(errs) == len(f) && !slices.ContainsFunc(errs, func(err error) bool { return err != errs[0] }) {
		return errs[0]
	}
	return f
}
