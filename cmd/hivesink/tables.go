package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/hivesink/hivesink"
	"github.com/hivesink/hivesink/audit"
	"github.com/hivesink/hivesink/config"
	"github.com/hivesink/hivesink/internal/place"
	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/metastore/hive"
	"github.com/hivesink/hivesink/pipeline"
)

var validateCommand = command{
	name: "validate", usage: "-c FILE [--set KEY=VALUE]... [--json]", needsConfig: true,
	does: "every problem of a configuration at once, with line numbers; touches nothing",
	run: func(_ context.Context, a *app) error {
		_, err := config.Load(a.config, a.sets)
		if err != nil {
			return err
		}
		if a.json {
			return json.NewEncoder(a.out).Encode(map[string]any{"valid": true, "config": a.config})
		}
		fmt.Fprintf(a.out, "%s is valid\n", a.config)
		return nil
	},
}

var drainCommand = command{
	name: "drain", usage: "-c FILE [--json]", needsConfig: true,
	does: "publish everything, empty staging, release the ownership of the table",
	run: func(ctx context.Context, a *app) error {
		cfg, err := config.Load(a.config, a.sets)
		if err != nil {
			return err
		}
		if err := needTable(ctx, a, cfg); err != nil {
			return err
		}
		if err := pipeline.ReadColumns(ctx, cfg); err != nil {
			return err
		}
		p, err := pipeline.Open(ctx, pipeline.Options{Config: cfg, Version: hivesink.Version})
		if err != nil {
			return err
		}
		err = p.Drain(ctx)
		published := p.Stats.PublishedFiles.Load()
		if err := errors.Join(err, p.Release()); err != nil {
			return err
		}
		if a.json {
			return json.NewEncoder(a.out).Encode(map[string]any{"published_files": published, "released": true})
		}
		fmt.Fprintf(a.out, "%d files published; the table is released\n", published)
		return nil
	},
}

// needTable refuses a table that no run has written yet.
func needTable(ctx context.Context, a *app, cfg *config.Config) error {
	return atTable(ctx, a, cfg, func(at *place.Place) error {
		_, err := ledger.Read(at.FS, at.Root)
		return err
	})
}

// atTable opens the storage of the table for a while.
func atTable(ctx context.Context, a *app, cfg *config.Config, do func(*place.Place) error) error {
	log := slog.New(slog.NewTextHandler(a.err, nil))
	at, err := place.Open(ctx, cfg, func(what string, err error) {
		if err != nil {
			log.Warn("waiting for the storage", "for", what, "error", err)
		}
	})
	if err != nil {
		return err
	}
	return errors.Join(do(at), at.Close())
}

var logCommand = command{
	name: "log", usage: "-c FILE [--json]", needsConfig: true,
	does: "the history of the table: owners, checkpoints, plans, published files, announcements",
	run: func(ctx context.Context, a *app) error {
		cfg, err := config.Load(a.config, a.sets)
		if err != nil {
			return err
		}
		enc := json.NewEncoder(a.out)
		show := func(r *ledger.Record) error {
			if a.json {
				return enc.Encode(r)
			}
			for _, line := range describe(r) {
				fmt.Fprintf(a.out, "%d\t%s\tepoch %d\t%s\n", r.Seq, time.UnixMicro(r.Time).UTC().Format(time.RFC3339Nano), r.Epoch, line)
			}
			return nil
		}
		return atTable(ctx, a, cfg, func(at *place.Place) error {
			err := ledger.ReadLog(at.FS, at.Root, show)
			if err == nil { // old records may be gone; those that are needed may not
				_, err = ledger.Read(at.FS, at.Root)
			}
			return err
		})
	},
}

func describe(r *ledger.Record) (lines []string) {
	if e := r.NewEpoch; e != nil {
		lines = append(lines, fmt.Sprintf("epoch: pipeline %s, host %s, process %d, hivesink %s", e.Pipeline, e.Host, e.PID, e.Version))
	}
	if c := r.Checkpoint; c != nil {
		var rows int64
		for _, p := range c.Parts {
			rows += p.Rows
		}
		line := fmt.Sprintf("checkpoint %d: %d rows in %d part files, %d source partitions moved", c.Number, rows, len(c.Parts), len(c.Sources))
		if c.InputEnded {
			line += ", end of input"
		}
		lines = append(lines, line)
	}
	if len(r.GivenUp) > 0 {
		lines = append(lines, "given up: unit "+strings.Join(r.GivenUp, ", "))
	}
	for _, u := range r.Plan {
		lines = append(lines, fmt.Sprintf("plan: unit %s of %q: %d inputs, %d rows → %s (%s)", u.ID, u.Partition, len(u.Inputs), u.Rows, u.Target, u.Reason))
	}
	if n := len(r.Uploading); n > 0 {
		lines = append(lines, fmt.Sprintf("uploaded: the targets of %d units, not visible yet", n))
	}
	for _, p := range r.Published {
		lines = append(lines, fmt.Sprintf("published: %s%s, %d rows, %d bytes (%s)", sideName(p.Table), p.Path, p.Rows, p.Bytes, p.Mode))
	}
	if n := len(r.InputsDeleted); n > 0 {
		lines = append(lines, fmt.Sprintf("inputs deleted of %d units", n))
	}
	for _, p := range r.Announced {
		lines = append(lines, fmt.Sprintf("announced: %s%q number %d, %d files, %d rows", sideName(p.Table), p.Partition, p.Number, p.Files, p.Rows))
	}
	for i := range r.Replacing {
		p := &r.Replacing[i]
		lines = append(lines, fmt.Sprintf("replacing: %s%q, %d files by %d, %d rows", sideName(p.Table), p.Partition, len(p.Removed), len(p.Added), p.Rows()))
	}
	if len(r.Replaced) > 0 {
		lines = append(lines, "replaced: unit "+strings.Join(r.Replaced, ", "))
	}
	if len(r.ReplacementsEnded) > 0 {
		lines = append(lines, "replacement ended: unit "+strings.Join(r.ReplacementsEnded, ", "))
	}
	if r.Released {
		lines = append(lines, "released")
	}
	return lines
}

func sideName(table string) string {
	if table == ledger.MainTable {
		return ""
	}
	return "[" + table + "] "
}

var fsckCommand = command{
	name: "fsck", usage: "-c FILE [--json]", needsConfig: true,
	does: "prove from storage and log that every accepted row is in the table once, and ask the Hive Metastore what it knows; exit 4 otherwise",
	run: func(ctx context.Context, a *app) error {
		cfg, err := config.Load(a.config, a.sets)
		if err != nil {
			return err
		}
		var rep *audit.Report
		var unsure error
		err = atTable(ctx, a, cfg, func(at *place.Place) (err error) {
			if rep, err = audit.Run(ctx, at.FS, at.Root); err != nil || !asksMetastore(cfg) {
				return err
			}
			var ds []hive.Difference
			ds, unsure = differences(ctx, cfg, at)
			noteDifferences(rep, ds, unsure)
			return nil
		})
		if err != nil {
			return err
		}
		if a.json {
			if err := json.NewEncoder(a.out).Encode(rep); err != nil {
				return err
			}
		} else {
			rep.Print(a.out)
		}
		if len(rep.Faults) > 0 {
			return fmt.Errorf("%w: %d", errFault, len(rep.Faults))
		}
		return unless(unsure)
	},
}

var configCommand = command{
	name: "config", usage: "docs|schema", takesArgs: true,
	does: "the reference of all options, or their JSON Schema",
	run: func(_ context.Context, a *app) error {
		if len(a.args) != 1 || (a.args[0] != "docs" && a.args[0] != "schema") {
			return errUsage{errors.New("want `hivesink config docs` or `hivesink config schema`")}
		}
		if a.args[0] == "docs" {
			_, err := fmt.Fprint(a.out, config.Docs())
			return err
		}
		_, err := a.out.Write(config.JSONSchema())
		return err
	},
}

var versionCommand = command{
	name: "version", usage: "[--json]", does: "print the version",
	flags: func(*pflag.FlagSet) {},
	run: func(_ context.Context, a *app) error {
		if a.json {
			return json.NewEncoder(a.out).Encode(map[string]string{"version": hivesink.Version, "go": runtime.Version()})
		}
		fmt.Fprintf(a.out, "hivesink %s (%s)\n", hivesink.Version, runtime.Version())
		return nil
	},
}
