package hive

import (
	"context"
	"errors"
	"fmt"
	"strings"

	hms "github.com/beltran/gohive/hive_metastore"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/ledger"
)

// What a Parquet table is in Hive's words.
const (
	inputFormat  = "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat"
	outputFormat = "org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat"
	serde        = "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe"

	external = "EXTERNAL_TABLE"
)

// errNoTable: the metastore does not have the table.
var errNoTable = errors.New("no such table in the metastore")

// getTable reads a table. get_table is gone in 4.0 and get_table_req is new in
// 3.0: the server's answer decides.
func (c *Catalog) getTable(ctx context.Context, name string) (*hms.Table, error) {
	var t *hms.Table
	place := c.o.Database + "." + name
	err := c.client.call(ctx, "get table "+place, func(ctx context.Context, m *hms.ThriftHiveMetastoreClient) error {
		r, err := m.GetTableReq(ctx, &hms.GetTableRequest{DbName: c.o.Database, TblName: name, ID: -1})
		if err == nil {
			t = r.Table
		}
		return err
	})
	if noMethod(err) {
		err = c.client.call(ctx, "get table "+place, func(ctx context.Context, m *hms.ThriftHiveMetastoreClient) (err error) {
			t, err = m.GetTable(ctx, c.o.Database, name)
			return err
		})
	}
	if gone(err) {
		return nil, fault.Wrap(fault.Retry, "create it, or set metastore.create_table", fmt.Errorf("table %s: %w", place, errNoTable))
	}
	if err != nil {
		return nil, err
	}
	if t == nil || t.Sd == nil {
		return nil, fault.New(fault.Retry, "", "the metastore says nothing of table %s", place)
	}
	return t, nil
}

// prepare reads a table and makes of it what it should be: created, and with
// all columns that are written, where that is allowed.
func (c *Catalog) prepare(ctx context.Context, table string) (*hms.Table, error) {
	spec, ok := c.o.Tables[table]
	if !ok {
		return nil, fault.New(fault.Halt, "", "the catalogue was not told of table %q", table)
	}
	t, err := c.getTable(ctx, spec.Name)
	if errors.Is(err, errNoTable) && c.o.CreateTable {
		if err := c.createTable(ctx, &spec); err != nil {
			return nil, err
		}
		t, err = c.getTable(ctx, spec.Name)
	}
	if err != nil {
		return nil, err
	}
	if err := check(t, &spec, c.o.Database); err != nil {
		return nil, err
	}
	next, changes, err := reconcile(t.Sd.Cols, spec.Columns)
	place := c.o.Database + "." + spec.Name
	if err != nil {
		return nil, fault.Wrap(fault.Retry, "make the two agree, or write to a new table", &mismatch{fmt.Errorf("table %s: %w", place, err)})
	}
	if len(changes) == 0 {
		return t, nil
	}
	differs := &mismatch{fmt.Errorf("table %s differs from table.columns: %s", place, strings.Join(changes, ", "))}
	if !c.o.AlterTable {
		return nil, fault.Wrap(fault.Retry, "alter the table, or set metastore.alter_table", differs)
	}
	if t.Parameters["spark.sql.sources.provider"] != "" {
		return nil, fault.Wrap(fault.Retry, "Spark keeps the columns of a table made with USING elsewhere, too: use ALTER TABLE in Spark", differs)
	}
	return c.alterColumns(ctx, t, next, changes)
}

// check refuses a table that readers would not find our data in.
func check(t *hms.Table, spec *Table, database string) error {
	place := database + "." + spec.Name
	bad := func(hint, format string, args ...any) error {
		return fault.Wrap(fault.Retry, hint, &mismatch{fmt.Errorf("table %s in the metastore %w", place, fmt.Errorf(format, args...))})
	}
	switch {
	case strings.Contains(t.TableType, "VIEW"):
		return bad("name another table", "is a view")
	case strings.EqualFold(t.Parameters["transactional"], "true"):
		return bad("create it as EXTERNAL, stored as parquet", "is transactional: only Hive may write it")
	case foreignFormat(t) != "":
		return bad("name another table", "is a table of %s, whose readers go by a log of its own: they would not see what is written", foreignFormat(t))
	case t.Sd.NumBuckets > 0 && len(t.Sd.BucketCols) > 0 || t.Parameters["spark.sql.sources.schema.numBuckets"] != "":
		return bad("create it without CLUSTERED BY", "is bucketed: where files are not its buckets, readers miss rows or fail")
	case !strings.Contains(strings.ToLower(t.Sd.InputFormat), "parquet"):
		return bad("create it with STORED AS PARQUET", "is not stored as Parquet, but read with %s", t.Sd.InputFormat)
	case !sameLocation(t.Sd.Location, spec.Location):
		return bad("make table.location (or metastore.location) and the table's agree", "lies at %s, table.location is %s", t.Sd.Location, spec.Location)
	}
	have, want := names(t.PartitionKeys), make([]string, len(spec.Keys))
	for i, k := range spec.Keys {
		want[i] = k.Name
	}
	if !strings.EqualFold(strings.Join(have, ", "), strings.Join(want, ", ")) {
		return bad("make table.partitioned_by and the table's PARTITIONED BY agree", "is partitioned by (%s), table.partitioned_by has (%s)", strings.Join(have, ", "), strings.Join(want, ", "))
	}
	return nil
}

// foreignFormat names the table format that decides which files are the table's;
// "" for a table of Hive. That of Hudi has an input format for Parquet.
func foreignFormat(t *hms.Table) string {
	said := strings.ToLower(strings.Join([]string{t.Parameters["table_type"], t.Parameters["spark.sql.sources.provider"],
		t.Parameters["storage_handler"], t.Sd.InputFormat}, " "))
	for _, format := range []string{"Iceberg", "Delta", "Hudi", "Paimon"} {
		if strings.Contains(said, strings.ToLower(format)) {
			return format
		}
	}
	return ""
}

// mismatch: the table in the metastore is not the one that is configured.
type mismatch struct{ err error }

func (m *mismatch) Error() string { return m.err.Error() }
func (m *mismatch) Unwrap() error { return m.err }

func names(fs []*hms.FieldSchema) []string {
	out := make([]string, len(fs))
	for i, f := range fs {
		out[i] = strings.ToLower(f.Name)
	}
	return out
}

// createTable creates a table and, where it is missing, its database. Another
// job may be doing the same.
func (c *Catalog) createTable(ctx context.Context, spec *Table) error {
	db := c.o.Database
	if err := c.createDatabase(ctx, db); err != nil {
		return err
	}
	t := hms.NewTable()
	t.DbName, t.TableName, t.TableType, t.Owner = db, spec.Name, external, c.o.Auth.owner()
	t.PartitionKeys = fields(spec.Keys)
	t.Parameters = map[string]string{"EXTERNAL": "TRUE"}
	t.Sd = &hms.StorageDescriptor{
		Cols: fields(spec.Columns), Location: spec.Location, InputFormat: inputFormat, OutputFormat: outputFormat, NumBuckets: -1,
		SerdeInfo:  &hms.SerDeInfo{SerializationLib: serde, Parameters: map[string]string{"serialization.format": "1"}},
		BucketCols: []string{}, SortCols: []*hms.Order{}, Parameters: map[string]string{},
		SkewedInfo: &hms.SkewedInfo{SkewedColNames: []string{}, SkewedColValues: [][]string{}},
	}
	err := c.client.change(ctx, "create table "+db+"."+spec.Name, c.mayChange, func(ctx context.Context, m *hms.ThriftHiveMetastoreClient) error {
		return m.CreateTable(ctx, t)
	})
	if alreadyExists(err) {
		return nil
	}
	return err
}

// createDatabase creates a database that is missing, beside the default one, as
// Hive does.
func (c *Catalog) createDatabase(ctx context.Context, db string) error {
	get := func(name string) (found *hms.Database, err error) {
		err = c.client.call(ctx, "get database "+name, func(ctx context.Context, m *hms.ThriftHiveMetastoreClient) (err error) {
			found, err = m.GetDatabase(ctx, name)
			return err
		})
		return found, err
	}
	if _, err := get(db); !gone(err) {
		return err
	}
	beside, err := get("default")
	if err != nil {
		return err
	}
	location := strings.TrimSuffix(beside.LocationUri, "/") + "/" + db + ".db"
	err = c.client.change(ctx, "create database "+db, c.mayChange, func(ctx context.Context, m *hms.ThriftHiveMetastoreClient) error {
		return m.CreateDatabase(ctx, &hms.Database{Name: db, LocationUri: location})
	})
	if alreadyExists(err) {
		return nil
	}
	return err
}

// keepStats tells the server to store what it is given, not what it lists.
func keepStats() *hms.EnvironmentContext {
	return &hms.EnvironmentContext{Properties: map[string]string{"DO_NOT_UPDATE_STATS": "true"}}
}

func (c *Catalog) alterColumns(ctx context.Context, t *hms.Table, next []*hms.FieldSchema, changes []string) (*hms.Table, error) {
	t.Sd.Cols = next
	what := fmt.Sprintf("alter table %s.%s (%s)", t.DbName, t.TableName, strings.Join(changes, ", "))
	err := c.client.change(ctx, what, c.mayChange, func(ctx context.Context, m *hms.ThriftHiveMetastoreClient) error {
		return m.AlterTableWithEnvironmentContext(ctx, t.DbName, t.TableName, t, keepStats())
	})
	if err != nil {
		return nil, err
	}
	return c.getTable(ctx, t.TableName)
}

// announceTable sets the totals of a table without partition columns.
func (c *Catalog) announceTable(ctx context.Context, table string, a *ledger.Announcement) error {
	for round := 0; ; round++ {
		t, err := c.prepare(ctx, table)
		if err != nil {
			return err
		}
		if a.Register || c.onlyAdd && t.Parameters[paramNumber] != "" || counted(t.Parameters, a) {
			return nil
		}
		if round == rounds {
			return fault.New(fault.Retry, "does another job write it?", "the metastore does not keep the totals of table %s.%s", t.DbName, t.TableName)
		}
		t.Parameters = c.parameters(t.Parameters, a)
		err = c.client.change(ctx, "alter table "+t.DbName+"."+t.TableName, c.mayChange, func(ctx context.Context, m *hms.ThriftHiveMetastoreClient) error {
			return m.AlterTableWithEnvironmentContext(ctx, t.DbName, t.TableName, t, keepStats())
		})
		if err != nil {
			return err
		}
	}
}
