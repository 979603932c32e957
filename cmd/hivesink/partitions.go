package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/pflag"

	"github.com/hivesink/hivesink/audit"
	"github.com/hivesink/hivesink/config"
	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/internal/place"
	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/metastore"
	"github.com/hivesink/hivesink/metastore/hive"
	"github.com/hivesink/hivesink/pipeline"
)

var partitionsCommand = command{
	name: "partitions", usage: "-c FILE [k=v[/k=v]...] [--add-missing] [--json]", needsConfig: true, takesArgs: true,
	does: "announced partitions with their files, rows and bytes, and whether the Hive Metastore has them",
	flags: func(f *pflag.FlagSet) {
		f.Bool("add-missing", false, "add to the Hive Metastore what was announced and is not there; what is there is not changed")
	},
	run: func(ctx context.Context, a *app) error {
		cfg, err := config.Load(a.config, a.sets)
		if err != nil {
			return err
		}
		add, err := a.flags.GetBool("add-missing")
		if err != nil {
			return err
		}
		if add && !asksMetastore(cfg) {
			return fault.New(fault.Config, "", "--add-missing: metastore.type is not hive, or commit.policies has no metastore")
		}
		var list []listed
		var unsure error
		err = atTable(ctx, a, cfg, func(at *place.Place) (err error) {
			if add {
				if err := addMissing(ctx, a, cfg, at); err != nil {
					return err
				}
			}
			if list, err = logged(cfg, at, strings.Join(a.args, "/")); err != nil || !asksMetastore(cfg) {
				return err
			}
			var ds []hive.Difference
			if ds, unsure = differences(ctx, cfg, at); unsure == nil {
				list, err = mark(cfg, list, ds, strings.Join(a.args, "/"))
			}
			return err
		})
		if err != nil {
			return err
		}
		if err := show(a, list, asksMetastore(cfg)); err != nil {
			return err
		}
		return unless(unsure)
	},
}

// listed is a partition that was announced, and what the metastore says of it.
type listed struct {
	metastore.Entry
	// Metastore: `agrees`, or the kind of a difference; empty when it was not
	// asked.
	Metastore string `json:"metastore,omitempty"`
	note      string
}

const agrees = "agrees"

// asksMetastore says whether a Hive Metastore is told of the table.
func asksMetastore(cfg *config.Config) bool {
	return cfg.Metastore.Type == config.MetastoreHive && slices.Contains(cfg.Commit.Policies, config.CommitMetastore)
}

// logged lists what the table log says was announced.
func logged(cfg *config.Config, at *place.Place, filter string) ([]listed, error) {
	st, err := ledger.Read(at.FS, at.Root)
	if err != nil {
		return nil, err
	}
	entries, err := metastore.NewEmbedded(cfg.Table.Database, cfg.Table.Name, pipeline.TableRoot(cfg), st).List(filter)
	if err != nil {
		return nil, errUsage{err}
	}
	list := make([]listed, len(entries)) // not nil: JSON has a list
	for i, e := range entries {
		list[i].Entry = e
	}
	return list, nil
}

// withMetastore opens the metastore for a while.
func withMetastore(ctx context.Context, cfg *config.Config, do func(*hive.Catalog) error) error {
	c, err := pipeline.OpenCatalog(ctx, cfg)
	if err != nil {
		return err
	}
	err = do(c)
	_ = c.Close() // there is nothing left to lose
	return err
}

// unless is the error of a command whose work is done but for asking the
// metastore.
func unless(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", errUnsure, err)
}

// differences asks the metastore.
func differences(ctx context.Context, cfg *config.Config, at *place.Place) (ds []hive.Difference, err error) {
	err = withMetastore(ctx, cfg, func(c *hive.Catalog) (err error) {
		ds, err = c.Compare(ctx, func() (*ledger.State, error) { return ledger.Read(at.FS, at.Root) })
		return err
	})
	return ds, err
}

func addMissing(ctx context.Context, a *app, cfg *config.Config, at *place.Place) error {
	return withMetastore(ctx, cfg, func(c *hive.Catalog) error {
		n, err := c.Add(ctx, func() (*ledger.State, error) { return ledger.Read(at.FS, at.Root) })
		if err == nil {
			fmt.Fprintf(a.err, "added to the metastore: %d\n", n)
		}
		return err
	})
}

// mark says of each partition what the metastore has, and appends those that
// only the metastore has. Those of side tables are not listed here.
func mark(cfg *config.Config, list []listed, ds []hive.Difference, filter string) ([]listed, error) {
	f, err := metastore.ParseFilter(filter)
	if err != nil {
		return nil, errUsage{err}
	}
	by := make(map[string]hive.Difference)
	var table *hive.Difference
	for i, d := range ds {
		switch {
		case d.Table != cfg.Table.Name:
		case d.Kind == hive.NoTable:
			table = &ds[i]
		default:
			by[d.Partition] = d
		}
	}
	for i := range list {
		l := &list[i]
		d, ok := by[l.Partition]
		switch {
		case table != nil:
			l.Metastore, l.note = table.Kind, table.Message
		case ok:
			l.Metastore, l.note = d.Kind, d.Message
		default:
			l.Metastore = agrees
		}
	}
	for _, d := range ds {
		if d.Kind != hive.Unknown || d.Table != cfg.Table.Name {
			continue
		}
		if ok, err := f.Match(d.Partition); err != nil || !ok {
			continue
		}
		list = append(list, listed{Entry: metastore.Entry{Database: cfg.Table.Database, Table: d.Table, Partition: d.Partition}, Metastore: d.Kind, note: d.Message})
	}
	return list, nil
}

func show(a *app, list []listed, asked bool) error {
	if a.json {
		return json.NewEncoder(a.out).Encode(list)
	}
	w := tabwriter.NewWriter(a.out, 0, 8, 2, ' ', 0)
	head := "PARTITION\tFILES\tROWS\tBYTES\tANNOUNCED\tTIMES"
	if asked {
		head += "\tMETASTORE"
	}
	fmt.Fprintln(w, head)
	for _, e := range list {
		name := e.Partition
		if name == "" {
			name = "(table)"
		}
		at := "-"
		if e.AnnouncedAt > 0 {
			at = time.UnixMicro(e.AnnouncedAt).UTC().Format(time.RFC3339)
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%s\t%d", name, e.NumFiles, e.NumRows, e.TotalSize, at, e.Number)
		if asked {
			state := e.Metastore
			if state == "" {
				state = "?"
			}
			fmt.Fprintf(w, "\t%s", state)
		}
		fmt.Fprintln(w)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	said := make(map[string]bool) // a note may be of the whole table
	for _, e := range list {
		if e.note != "" && !said[e.note] {
			said[e.note] = true
			fmt.Fprintln(a.out, e.note)
		}
	}
	return nil
}

// noteDifferences makes faults of what readers miss, and notes of what is there
// besides.
func noteDifferences(rep *audit.Report, ds []hive.Difference, unsure error) {
	switch {
	case unsure != nil:
		rep.Metastore = fmt.Sprintf("not asked: %v", unsure)
		return
	case len(ds) == 0:
		rep.Metastore = agrees
		return
	}
	rep.Metastore = "differs"
	for _, d := range ds {
		if d.Kind == hive.Unknown {
			rep.Notes = append(rep.Notes, d.Message)
			continue
		}
		rep.Faults = append(rep.Faults, audit.Fault{Kind: audit.Catalog, Message: d.Message + hintFor(d.Kind)})
	}
}

func hintFor(kind string) string {
	switch kind {
	case hive.NoTable, hive.NotThere:
		return " (`hivesink partitions --add-missing` adds it)"
	case hive.Outdated:
		return " (drop it in the metastore, and `hivesink partitions --add-missing` adds it anew)"
	}
	return " (find out who added it, or drop it in the metastore and use `hivesink partitions --add-missing`)"
}
