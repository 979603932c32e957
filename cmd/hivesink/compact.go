package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/pflag"

	"github.com/hivesink/hivesink"
	"github.com/hivesink/hivesink/compactor"
	"github.com/hivesink/hivesink/config"
	"github.com/hivesink/hivesink/format/parquet"
	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/layout"
	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/maintenance"
	"github.com/hivesink/hivesink/pipeline"
	"github.com/hivesink/hivesink/storage"
	"github.com/hivesink/hivesink/storage/localfs"
)

var compactCommand = command{
	name: "compact", usage: "-c FILE [--partition k=v/...]... [--dry-run] [--allow-window] [--json]", needsConfig: true,
	does: "compact a local table at rest, whoever wrote it; exit 1 when a partition failed",
	flags: func(f *pflag.FlagSet) {
		f.StringArray("partition", nil, "only this partition, or those below it: k=v/k=v; may be repeated")
		f.Bool("dry-run", false, "show what would be done and why; change nothing")
		f.Bool("allow-window", false, "also where a directory cannot be exchanged in one step, such as a table without partitions: readers see its rows twice for a moment")
	},
	run: compact,
}

func compact(ctx context.Context, a *app) error {
	started := time.Now()
	cfg, err := config.LoadAtRest(a.config, a.sets)
	if err != nil {
		return err
	}
	limitMemory(cfg)
	o, err := compactOptions(a, cfg)
	if err != nil {
		return err
	}
	released, err := ownAtRest(ctx, cfg, &o)
	if err != nil {
		return err
	}
	show := newCompactView(a, o.Stats)
	o.Each = show.partition
	rep, err := maintenance.Run(ctx, o)
	show.stop()
	if o.Log != nil {
		err = errors.Join(err, giveBack(o.Log, released && err == nil))
	}
	if rep != nil {
		if perr := printCompaction(a, rep, time.Since(started)); err == nil {
			err = perr
		}
	}
	if err == nil && rep.Failed > 0 {
		err = fmt.Errorf("%d of %d partitions could not be compacted", rep.Failed, len(rep.Partitions))
	}
	if err == nil && rep.NeedWindow > 0 && !rep.DryRun {
		err = errUsage{fmt.Errorf("%d partitions need --allow-window", rep.NeedWindow)}
	}
	return err
}

func compactOptions(a *app, cfg *config.Config) (o maintenance.Options, err error) {
	if l := cfg.Table.Location; !l.IsLocal() {
		return o, fault.New(fault.Config, "a pipeline compacts what it writes while it runs",
			"table.location: %s: a table at rest is compacted on a local disk only, where directories can be exchanged in one step", l)
	}
	root := pipeline.TableRoot(cfg)
	resolved, err := filepath.EvalSymlinks(root)
	if err != nil {
		return o, fault.Wrap(fault.Config, "check table.location", err)
	}
	root = filepath.ToSlash(resolved)
	if kind, network := localfs.NetworkMount(root); network {
		return o, fault.New(fault.Config, "compact it on the machine that has the disk",
			"table.location: %s is on a network mount (%s), where a lock does not decide who owns the table", root, kind)
	}
	o = maintenance.Options{FS: localfs.New().(storage.Exchanger), Root: root, FileSize: int64(cfg.Compaction.FileSize),
		Codec: cfg.Table.Compression, KeepCodec: !cfg.Given("table.compression"), Parallelism: cfg.Compaction.Parallelism,
		Throttle: compactor.NewThrottle(int64(cfg.Compaction.BytesPerSecond)), CreatedBy: "hivesink version " + hivesink.Version,
		OpenFiles: localfs.Each(cfg.Compaction.Parallelism, maintenance.OpenFiles), FooterMemory: int64(cfg.Limits.Memory) / 2 / int64(cfg.Compaction.Parallelism), Random: pipeline.RandomBits, Stats: new(maintenance.Stats)}
	o.Partitions, _ = a.flags.GetStringArray("partition")
	o.DryRun, _ = a.flags.GetBool("dry-run")
	o.AllowWindow, _ = a.flags.GetBool("allow-window")
	if len(cfg.Table.Columns) > 0 {
		schema, err := pipeline.Schema(cfg)
		if err == nil {
			o.Columns, err = parquetfile.NewSchema(schema)
		}
		if err != nil {
			return o, fault.Wrap(fault.Config, "", fmt.Errorf("table.columns: %w", err))
		}
	}
	return o, nil
}

// ownAtRest opens the log of a table that has one, and says whether the table
// was released. A dry run only reads it.
func ownAtRest(ctx context.Context, cfg *config.Config, o *maintenance.Options) (released bool, err error) {
	meta, err := storage.Exists(o.FS, path.Join(o.Root, layout.MetaDir))
	if err != nil || !meta {
		return false, err
	}
	st, err := ledger.Read(o.FS, o.Root)
	if fault.ClassOf(err) == fault.Config {
		return false, fault.New(fault.Halt, "restore it from a copy; if the files are all that is left of the table, remove the directory",
			"%s has no table log", path.Join(o.Root, layout.MetaDir))
	}
	if err != nil {
		return false, err
	}
	if o.DryRun {
		if st.Owner.Pipeline != cfg.Pipeline && !st.Released {
			return false, fault.New(fault.Fenced, "run `hivesink drain` with that pipeline's configuration to release the table",
				"table %s belongs to pipeline %q, this is pipeline %q", o.Root, st.Owner.Pipeline, cfg.Pipeline)
		}
		o.State = st
		return st.Released, nil
	}
	host, _ := os.Hostname() // for people only
	o.Log, err = ledger.Open(ctx, ledger.Options{FS: o.FS, Table: o.Root, Pipeline: cfg.Pipeline, Host: host, PID: os.Getpid(),
		Version: hivesink.Version, StateDir: cfg.StateDir, Lock: true, History: ledger.Keep(time.Duration(cfg.History))})
	return st.Released, err
}

// giveBack leaves the table as it was found: released, or its pipeline's.
func giveBack(log *ledger.Ledger, release bool) error {
	var err error
	if release {
		err = log.Append(&ledger.Record{Released: true})
	}
	return errors.Join(err, log.Close())
}

func printCompaction(a *app, r *maintenance.Report, took time.Duration) error {
	if a.json {
		return json.NewEncoder(a.out).Encode(struct {
			*maintenance.Report
			Seconds float64 `json:"seconds"`
		}{r, took.Seconds()})
	}
	verb := "compacted"
	if r.DryRun {
		verb = "would be compacted"
	}
	end := "done"
	if r.Stopped {
		end = "stopped"
	}
	fmt.Fprintf(a.out, "%s after %.1f s\n", end, took.Seconds())
	fmt.Fprintf(a.out, "  partitions      %d %s, %d as they were, %d left alone, %d failed\n", r.Compacted, verb, r.AsItWas, r.LeftAlone, r.Failed)
	fmt.Fprintf(a.out, "  files           %d → %d%s\n", r.FilesBefore, r.FilesAfter, modes(r.Modes))
	if r.DryRun {
		fmt.Fprintf(a.out, "  bytes           %s\n", size(r.BytesBefore))
	} else {
		fmt.Fprintf(a.out, "  bytes           %s → %s\n", size(r.BytesBefore), size(r.BytesAfter))
	}
	fmt.Fprintf(a.out, "  rows            %d\n", r.Rows)
	if r.Settled > 0 {
		fmt.Fprintf(a.out, "  settled         %d units of a compaction that was interrupted\n", r.Settled)
	}
	return nil
}

func modes(n map[string]int) string {
	var out []string
	for _, m := range []string{maintenance.ModeCopy, maintenance.ModeMerge, maintenance.ModeRewrite} {
		if n[m] > 0 {
			out = append(out, fmt.Sprintf("%d by %s", n[m], m))
		}
	}
	if out == nil {
		return ""
	}
	return " (" + strings.Join(out, ", ") + ")"
}

func size(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.2f GB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f KB", float64(n)/(1<<10))
}

// printable is a name as it is, unless it would break the line or the terminal.
func printable(name string) string {
	if strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(name)
	}
	return name
}

// describePartition is a partition's line, and a line for each new file when
// there are several.
func describePartition(w io.Writer, p *maintenance.Partition) {
	name := printable(p.Path)
	if name == "" {
		name = "(table)"
	}
	switch p.Outcome {
	case maintenance.AsItWas:
		fmt.Fprintf(w, "%s  nothing to do: %s\n", name, p.Reason)
		return
	case maintenance.LeftAlone:
		fmt.Fprintf(w, "%s  left alone: %s\n", name, p.Reason)
		return
	case maintenance.Failed:
		fmt.Fprintf(w, "%s  FAILED: %s\n", name, p.Reason)
		return
	case maintenance.NotDone:
		return
	}
	kept := ""
	if p.Kept > 0 {
		kept = fmt.Sprintf(", %d kept", p.Kept)
	}
	fmt.Fprintf(w, "%s  %d files, %s → %d%s", name, p.FilesBefore, size(p.BytesBefore), p.FilesAfter, kept)
	if p.Window {
		fmt.Fprint(w, ", in a window")
	}
	for i, t := range p.Targets {
		if i == 5 {
			fmt.Fprintf(w, "\n    and %d more", len(p.Targets)-i)
			break
		}
		if len(p.Targets) > 1 {
			fmt.Fprintf(w, "\n    %d files, %s,", t.Inputs, size(t.BytesIn))
		}
		fmt.Fprintf(w, "  %s: %s", t.Mode, t.Why)
	}
	fmt.Fprintln(w)
}
