package pipeline

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hivesink/hivesink/commit"
	"github.com/hivesink/hivesink/config"
	"github.com/hivesink/hivesink/hivetype"
	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/internal/krb5"
	"github.com/hivesink/hivesink/internal/tlsopt"
	"github.com/hivesink/hivesink/layout"
	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/metastore"
	"github.com/hivesink/hivesink/metastore/hive"
	"github.com/hivesink/hivesink/record"
	"github.com/hivesink/hivesink/writer"
)

// policies makes the policies that commit.policies names.
func (p *Pipeline) policies(ctx context.Context, o Options, log *ledger.Ledger, location func(string) string) ([]commit.Policy, error) {
	var out []commit.Policy
	for _, name := range o.Config.Commit.Policies {
		switch name {
		case config.CommitMetastore:
			catalog, err := p.catalog(ctx, o, log)
			if err != nil {
				return nil, err
			}
			out = append(out, catalog)
		case config.CommitSuccessFile:
			out = append(out, commit.NewSuccessFile(o.FS, location, log.Staging, o.Config.Commit.SuccessFile, syncs(o.Inline)))
		default:
			return nil, fault.New(fault.Config, "use metastore or success-file", "commit.policies: %s is not in this build", name)
		}
	}
	return out, nil
}

// catalog makes the policy metastore. A Hive Metastore is asked at once whether
// it can be announced to, since nothing can be when it cannot. But a table with
// a checkpoint has had a start that asked and was answered: its metastore may
// be down, and reading starts all the same (P6).
func (p *Pipeline) catalog(ctx context.Context, o Options, log *ledger.Ledger) (commit.Policy, error) {
	if o.catalog != nil {
		return o.catalog, nil
	}
	if o.Config.Metastore.Type == config.MetastoreEmbedded {
		return metastore.NewEmbeddedPolicy(), nil
	}
	h, err := hiveOptions(o.Config, p.schema)
	if err != nil {
		return nil, err
	}
	h.Owner, h.Now = log.Confirm, o.Now
	if log.Unclean() {
		h.NotBefore = time.Now().Add(h.Timeout)
	}
	catalog := hive.New(h)
	p.closers = append(p.closers, catalog)
	err = catalog.Check(ctx)
	if err != nil && hive.Passing(err) && log.State().Checkpoint > 0 {
		p.c.emit(Event{Kind: "metastore-down", Err: err})
		return catalog, nil
	}
	if err != nil {
		return nil, fmt.Errorf("the metastore cannot be announced to: %w", err)
	}
	return catalog, nil
}

// hiveOptions are what a Hive Metastore is told of the table; of its columns
// only when they are known.
func hiveOptions(cfg *config.Config, schema *record.Schema) (hive.Options, error) {
	m := &cfg.Metastore
	o := hive.Options{
		Timeout: time.Duration(m.Timeout), ConnectTimeout: time.Duration(m.ConnectTimeout), Batch: m.BatchSize,
		Database: cfg.Table.Database, CreateTable: m.CreateTable, AlterTable: m.AlterTable,
	}
	for _, a := range m.Addresses() {
		o.Addresses = append(o.Addresses, strings.TrimPrefix(a, "thrift://"))
	}
	var err error
	if o.TLS, err = tlsopt.Client("metastore.tls", m.TLS); err != nil {
		return o, err
	}
	if s := m.SASL; s != nil {
		o.Auth = hive.Auth{Mechanism: s.Mechanism, User: s.Username,
			Password: func() (string, error) { return s.Password.Read("metastore.sasl.password") },
			Service:  s.Kerberos.Service,
			Kerberos: krb5.Identity{At: "metastore.sasl.kerberos", Principal: s.Kerberos.Principal, Keytab: s.Kerberos.Keytab,
				TicketCache: s.Kerberos.TicketCache, Krb5Conf: s.Kerberos.Krb5Conf}}
	}
	location := m.Location
	if location == "" {
		l := cfg.Table.Location
		if l.IsLocal() {
			l.Scheme, l.Path = "file", TableRoot(cfg)
		}
		location = l.String()
	}
	o.Tables = make(map[string]hive.Table)
	for _, table := range []string{ledger.MainTable, ledger.LateTable, ledger.DeadTable} {
		t := hive.Table{Name: metastore.SideName(cfg.Table.Name, table), Location: metastore.SideName(strings.TrimSuffix(location, "/"), table)}
		switch {
		case table == ledger.DeadTable:
			dead, err := writer.DeadSchema()
			if err != nil {
				return o, err
			}
			t.Columns = dead.Data
		case schema != nil:
			t.Columns, t.Keys = schema.Data, partitionKeys(cfg)
		}
		o.Tables[table] = t
	}
	return o, nil
}

// OpenCatalog is the Hive Metastore of the configuration, for those who ask it
// beside a run.
func OpenCatalog(ctx context.Context, cfg *config.Config) (*hive.Catalog, error) {
	if err := ReadColumns(ctx, cfg); err != nil {
		return nil, err
	}
	schema, err := Schema(cfg)
	if err != nil {
		return nil, fault.Wrap(fault.Config, "", fmt.Errorf("table.columns: %w", err))
	}
	o, err := hiveOptions(cfg, schema)
	if err != nil {
		return nil, err
	}
	return hive.New(o), nil
}

// partitionKeys are the partition columns with their types: that of the column
// for identity, else string.
func partitionKeys(cfg *config.Config) []hivetype.Field {
	keys := make([]hivetype.Field, len(cfg.Table.PartitionedBy))
	for i, p := range cfg.Table.PartitionedBy {
		keys[i] = hivetype.Field{Name: p.Name, Type: &hivetype.Type{Kind: hivetype.String}}
		if p.Func != layout.Identity {
			continue
		}
		for _, c := range cfg.Table.Columns {
			if c.Name == p.Column {
				keys[i].Type = c.Type
			}
		}
	}
	return keys
}

// ReadColumns fills in table.columns from the metastore, when they were left
// out, and checks the configuration again. It comes before all that needs a
// schema.
func ReadColumns(ctx context.Context, cfg *config.Config) error {
	if len(cfg.Table.Columns) > 0 || cfg.Metastore.Type != config.MetastoreHive {
		return nil
	}
	o, err := hiveOptions(cfg, nil)
	if err != nil {
		return err
	}
	catalog := hive.New(o)
	columns, keys, err := catalog.Columns(ctx, cfg.Table.Name)
	if err = errors.Join(err, catalog.Close()); err != nil {
		return fmt.Errorf("table.columns are left out, and cannot be read from the metastore: %w", err)
	}
	// A partition column that is no transform's is a column of the records.
	if len(cfg.Table.PartitionedBy) == 0 {
		for _, k := range keys {
			cfg.Table.PartitionedBy = append(cfg.Table.PartitionedBy, layout.Transform{Name: k.Name, Func: layout.Identity, Column: k.Name})
		}
	}
	for _, p := range cfg.Table.PartitionedBy {
		for _, k := range keys {
			if p.Func == layout.Identity && p.Column == k.Name {
				columns = append(columns, k)
			}
		}
	}
	cfg.Table.Columns = columns
	return cfg.Validate()
}
