package hive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	hms "github.com/beltran/gohive/hive_metastore"

	"github.com/hivesink/hivesink/hivetype"
	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/internal/krb5"
	"github.com/hivesink/hivesink/layout"
	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/metastore"
)

// Catalog is a table and its side tables in a Hive Metastore.
type Catalog struct {
	o      *Options
	client *client
	// onlyAdd: what is there is left as it is; but the server may count the files
	// of what is added itself, and that is set right.
	onlyAdd bool
}

var _ metastore.Catalog = (*Catalog)(nil)

// New makes a catalogue. It connects when it is first used.
func New(o Options) *Catalog {
	o.fill()
	return &Catalog{o: &o, client: &client{o: &o}}
}

func (o *Options) fill() {
	if o.Timeout <= 0 {
		o.Timeout = 30 * time.Second
	}
	if o.ConnectTimeout <= 0 {
		o.ConnectTimeout = 5 * time.Second
	}
	if o.Batch <= 0 {
		o.Batch = 100
	}
	if o.Now == nil {
		o.Now = func() int64 { return time.Now().UnixMicro() }
	}
	if o.Auth.Mechanism == GSSAPI {
		o.Auth.Service = cmp.Or(o.Auth.Service, "hive/_HOST")
		o.tickets = krb5.NewTickets(o.Auth.Kerberos)
	}
}

// Close closes the connection.
func (c *Catalog) Close() error {
	c.client.close()
	return nil
}

// Check connects, and makes the table what it should be: what would keep every
// partition from being announced is better known before anything is read.
func (c *Catalog) Check(ctx context.Context) error {
	_, err := c.prepare(ctx, ledger.MainTable)
	return err
}

// Unreachable says whether err means that no metastore could be asked, or that
// none answered in time: an outage, which ends.
func Unreachable(err error) bool {
	var down *connectError
	var auth *authError
	return errors.As(err, &down) && !errors.As(err, &auth) || timedOut(err)
}

// Passing says whether err may be over without anybody changing this
// configuration or the table: Unreachable, or whatever else goes wrong between
// here and a metastore that has answered before. A dead server behind a proxy
// closes connections instead of refusing them; one whose database is down says
// so in an exception.
func Passing(err error) bool {
	var refused *saslRefusal
	var other *mismatch
	if errors.As(err, &refused) || errors.As(err, &other) || errors.Is(err, errNoTable) {
		return false
	}
	var auth *authError
	return Unreachable(err) || errors.As(err, &auth) && auth.silent || fault.ClassOf(err) == fault.Retry
}

// Columns are the columns of a table's files, and its partition columns.
func (c *Catalog) Columns(ctx context.Context, name string) (columns, keys []hivetype.Field, err error) {
	t, err := c.getTable(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	for i, f := range slices.Concat(t.Sd.Cols, t.PartitionKeys) {
		typ, err := hivetype.Parse(f.Type)
		if err != nil {
			return nil, nil, fault.Wrap(fault.Config, "list table.columns without it: readers see null", fmt.Errorf("column %s of %s.%s: %w", f.Name, c.o.Database, name, err))
		}
		field := hivetype.Field{Name: strings.ToLower(f.Name), Type: typ}
		if i < len(t.Sd.Cols) {
			columns = append(columns, field)
		} else {
			keys = append(keys, field)
		}
	}
	return columns, keys, nil
}

// Name is metastore.PolicyName.
func (c *Catalog) Name() string { return metastore.PolicyName }

// mayChange holds a change back until a former owner's last call has ended, and
// asks whether this process still owns the table (HM6).
func (c *Catalog) mayChange(ctx context.Context) error {
	if wait := time.Until(c.o.NotBefore); wait > 0 {
		t := time.NewTimer(wait)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if c.o.Owner == nil {
		return nil
	}
	err := c.o.Owner()
	if err != nil && fault.ClassOf(err) != fault.Fenced {
		return fault.Wrap(fault.Retry, "", err) // not known: it is asked again
	}
	return err
}

// Parameters of a partition, or of a table without partition columns.
const (
	numFiles  = "numFiles"
	numRows   = "numRows"
	totalSize = "totalSize"
	accurate  = "COLUMN_STATS_ACCURATE"

	paramNumber = "hivesink.announcement"
	paramTime   = "hivesink.announced.us" // wall clock, microseconds since 1970
)

// totals are the parameters that must stand as they are here (HM3).
func totals(a *ledger.Announcement) map[string]string {
	return map[string]string{
		numFiles: strconv.FormatInt(a.Files, 10), numRows: strconv.FormatInt(a.Rows, 10), totalSize: strconv.FormatInt(a.Bytes, 10),
		paramNumber: strconv.FormatInt(a.Number, 10),
	}
}

// counted says whether the parameters say what a does.
func counted(params map[string]string, a *ledger.Announcement) bool {
	for k, v := range totals(a) {
		if params[k] != v {
			return false
		}
	}
	return params[accurate] == ""
}

// parameters are those of an announcement, and of what was there all that is
// not ours (HM8).
func (c *Catalog) parameters(old map[string]string, a *ledger.Announcement) map[string]string {
	out := maps.Clone(old)
	if out == nil {
		out = make(map[string]string)
	}
	delete(out, accurate)
	if a.Register {
		return out
	}
	maps.Copy(out, totals(a))
	out[paramTime] = strconv.FormatInt(c.o.Now(), 10)
	return out
}

// Get describes one partition.
func (c *Catalog) Get(ctx context.Context, table, partition string) (metastore.Entry, error) {
	t, err := c.getTable(ctx, c.o.Tables[table].Name)
	if err != nil {
		return metastore.Entry{}, err
	}
	missing := fmt.Errorf("%s.%s, partition %q: %w", t.DbName, t.TableName, partition, metastore.ErrNoPartition)
	if partition == "" {
		if t.Parameters[paramNumber] == "" {
			return metastore.Entry{}, missing
		}
		return tableEntry(t), nil
	}
	_, values, err := layout.ParsePath(partition)
	if err != nil {
		return metastore.Entry{}, err
	}
	if values, err = canonical(t.PartitionKeys, values); err != nil {
		return metastore.Entry{}, err
	}
	found, err := c.find(ctx, t, []string{partitionName(t, values)})
	if err != nil {
		return metastore.Entry{}, err
	}
	p := found[valuesKey(values)]
	if p == nil {
		return metastore.Entry{}, missing
	}
	return entry(t, p), nil
}

// Partitions lists the partitions of a table that filter selects. It asks for
// all names, and for the partitions of those that match in batches.
func (c *Catalog) Partitions(ctx context.Context, table, filter string) ([]metastore.Entry, error) {
	f, err := metastore.ParseFilter(filter)
	if err != nil {
		return nil, err
	}
	t, err := c.getTable(ctx, c.o.Tables[table].Name)
	if err != nil {
		return nil, err
	}
	if len(t.PartitionKeys) == 0 {
		if _, err := f.Match(""); err != nil {
			return nil, err
		}
		if t.Parameters[paramNumber] == "" {
			return []metastore.Entry{}, nil
		}
		return []metastore.Entry{tableEntry(t)}, nil
	}
	var all []string
	err = c.client.call(ctx, "list partitions of "+t.DbName+"."+t.TableName, func(ctx context.Context, m *hms.ThriftHiveMetastoreClient) (err error) {
		all, err = m.GetPartitionNames(ctx, t.DbName, t.TableName, -1)
		return err
	})
	if err != nil {
		return nil, err
	}
	if _, err := f.Match(partitionName(t, make([]string, len(t.PartitionKeys)))); err != nil {
		return nil, err // also when there is nothing to match
	}
	var selected []string
	for _, name := range all {
		if ok, err := f.Match(name); err == nil && ok {
			selected = append(selected, name)
		}
	}
	entries := make([]metastore.Entry, 0, len(selected)) // not nil: JSON has a list
	for batch := range slices.Chunk(selected, c.o.Batch) {
		found, err := c.find(ctx, t, batch)
		if err != nil {
			return nil, err
		}
		for _, p := range found {
			entries = append(entries, entry(t, p))
		}
	}
	slices.SortFunc(entries, func(a, b metastore.Entry) int { return strings.Compare(a.Partition, b.Partition) })
	return entries, nil
}

func tableEntry(t *hms.Table) metastore.Entry {
	e := metastore.Entry{Database: t.DbName, Table: t.TableName, Location: t.Sd.Location}
	e.NumFiles, e.NumRows, e.TotalSize = number(t.Parameters, numFiles), number(t.Parameters, numRows), number(t.Parameters, totalSize)
	e.Number, e.AnnouncedAt = number(t.Parameters, paramNumber), number(t.Parameters, paramTime)
	return e
}

func entry(t *hms.Table, p *hms.Partition) metastore.Entry {
	e := tableEntry(&hms.Table{DbName: t.DbName, TableName: t.TableName, Sd: p.Sd, Parameters: p.Parameters})
	e.Values = p.Values
	e.Partition = partitionName(t, p.Values)
	if below, ok := strings.CutPrefix(p.Sd.Location, strings.TrimSuffix(t.Sd.Location, "/")+"/"); ok {
		e.Partition = below // its values may be spelt otherwise there: hr=09
	}
	return e
}

func number(params map[string]string, name string) int64 {
	n, err := strconv.ParseInt(params[name], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// partitionName is a partition's name in the metastore.
func partitionName(t *hms.Table, values []string) string {
	return layout.PartitionPath(names(t.PartitionKeys), values)
}

// valuesKey tells partitions of one table apart.
func valuesKey(values []string) string { return strings.Join(values, "\x00") }

// find reads partitions by their names, by valuesKey. Those that are not there
// are left out.
func (c *Catalog) find(ctx context.Context, t *hms.Table, names []string) (map[string]*hms.Partition, error) {
	var got []*hms.Partition
	what := fmt.Sprintf("get %d partitions of %s.%s", len(names), t.DbName, t.TableName)
	err := c.client.call(ctx, what, func(ctx context.Context, m *hms.ThriftHiveMetastoreClient) (err error) {
		got, err = m.GetPartitionsByNames(ctx, t.DbName, t.TableName, names)
		return err
	})
	var meta *hms.MetaException
	if errors.As(err, &meta) && len(names) > 1 { // perhaps more than the server takes
		found, err := c.find(ctx, t, names[:len(names)/2])
		if err != nil {
			return nil, err
		}
		rest, err := c.find(ctx, t, names[len(names)/2:])
		maps.Copy(found, rest)
		return found, err
	}
	if err != nil {
		return nil, err
	}
	found := make(map[string]*hms.Partition, len(got))
	for _, p := range got {
		if p.Sd == nil {
			p.Sd = &hms.StorageDescriptor{}
		}
		found[valuesKey(p.Values)] = p
	}
	return found, nil
}
