package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/pflag"

	"github.com/hivesink/hivesink"
	"github.com/hivesink/hivesink/config"
	"github.com/hivesink/hivesink/pipeline"
)

var runCommand = command{
	name: "run", usage: "-c FILE [--set KEY=VALUE]... [--resume] [--json]", needsConfig: true,
	does: "run the pipeline; a bounded source ends it, SIGTERM ends it cleanly",
	flags: func(f *pflag.FlagSet) {
		f.Bool("resume", false, "source stdin: the stream is the last one, from its first byte; go on where it stopped")
		f.BoolP("verbose", "v", false, "log every checkpoint, published file and announcement")
	},
	run: run,
}

// summary is what a run ends with. Counts without "of this run" describe the
// table as it is now.
type summary struct {
	RowsRead      int64   `json:"rows_read"`       // of this run, bad ones included
	RowsVisible   int64   `json:"rows_visible"`    // in the table now
	RowsPublished int64   `json:"rows_published"`  // of this run, dead-letter rows included
	RowsBad       int64   `json:"rows_bad"`        // of this run: dead-lettered or dropped as bad
	RowsLate      int64   `json:"rows_late"`       // of this run
	RowsDropped   int64   `json:"rows_dropped"`    // of this run: bad or late, by policy
	BytesRead     int64   `json:"bytes_read"`      // of this run
	UnknownKeys   int64   `json:"unknown_keys"`    // of this run
	PartFiles     int64   `json:"part_files"`      // hidden files written by this run
	FilesWritten  int64   `json:"published_files"` // files published by this run
	VisibleFiles  int64   `json:"visible_files"`   // in the table now
	Partitions    int64   `json:"partitions"`      // announced, in the catalogue now
	Announcements int64   `json:"announcements"`   // of this run
	Checkpoints   int64   `json:"checkpoints"`     // of this run
	RowsSkipped   int64   `json:"rows_skipped"`    // of this run: tombstones
	Seconds       float64 `json:"seconds"`
	Stopped       bool    `json:"stopped"` // ended by a signal, not by the end of input
}

func run(ctx context.Context, a *app) error {
	started := time.Now()
	cfg, err := config.Load(a.config, a.sets)
	if err != nil {
		return err
	}
	if err := cfg.NeedSource(); err != nil {
		return err
	}
	if err := pipeline.ReadColumns(ctx, cfg); err != nil {
		return err
	}
	level := slog.LevelWarn
	if v, _ := a.flags.GetBool("verbose"); v {
		level = slog.LevelInfo
	}
	log := slog.New(slog.NewTextHandler(a.err, &slog.HandlerOptions{Level: level}))
	in, err := openSource(a, cfg, log)
	if err != nil {
		return err
	}
	defer in.close()
	tuneMemory(cfg)
	// Opening is short, and half an opening is no clean stop: a signal that
	// comes meanwhile ends the run right after it.
	warnIgnored(log, cfg)
	p, err := pipeline.Open(context.WithoutCancel(ctx), pipeline.Options{Config: cfg, Version: hivesink.Version, Events: logEvents(log)})
	if err != nil {
		return err
	}
	stop := showProgress(a.err, p, in)
	err = in.read(ctx, p)
	stop()
	var totals pipeline.Totals
	if err == nil {
		totals, err = p.Totals(context.WithoutCancel(ctx))
	}
	if rerr := p.Release(); err == nil {
		err = rerr
	}
	if err != nil {
		return err
	}
	return printSummary(a, summarise(p, totals, started, ctx.Err() != nil))
}

func summarise(p *pipeline.Pipeline, t pipeline.Totals, started time.Time, stopped bool) summary {
	s := &p.Stats
	return summary{
		RowsRead: s.RowsRead.Load(), RowsVisible: t.RowsVisible, RowsPublished: s.PublishedRows.Load(),
		RowsBad: s.RowsBad.Load(), RowsLate: s.RowsLate.Load(), RowsDropped: s.RowsDropped.Load(), RowsSkipped: s.RowsSkipped.Load(),
		BytesRead: s.BytesRead.Load(), UnknownKeys: s.UnknownKeys.Load(), PartFiles: s.PartFiles.Load(),
		FilesWritten: s.PublishedFiles.Load(), VisibleFiles: t.VisibleFiles, Partitions: t.Partitions,
		Announcements: s.Announced.Load(), Checkpoints: s.Checkpoints.Load(),
		Seconds: time.Since(started).Seconds(), Stopped: stopped,
	}
}

func printSummary(a *app, s summary) error {
	if a.json {
		return json.NewEncoder(a.out).Encode(s)
	}
	end := "end of input"
	if s.Stopped {
		end = "stopped"
	}
	fmt.Fprintf(a.out, "%s after %.1f s\n", end, s.Seconds)
	fmt.Fprintf(a.out, "  rows read       %d (%d bad, %d late, %d dropped)\n", s.RowsRead, s.RowsBad, s.RowsLate, s.RowsDropped)
	fmt.Fprintf(a.out, "  rows visible    %d\n", s.RowsVisible)
	fmt.Fprintf(a.out, "  files           %d part files → %d published (%d visible in the table)\n", s.PartFiles, s.FilesWritten, s.VisibleFiles)
	fmt.Fprintf(a.out, "  partitions      %d announced\n", s.Partitions)
	fmt.Fprintf(a.out, "  checkpoints     %d\n", s.Checkpoints)
	if s.UnknownKeys > 0 {
		fmt.Fprintf(a.out, "  unknown keys    %d (no column of that name)\n", s.UnknownKeys)
	}
	return nil
}

// warnIgnored names the options that are valid and have no effect in this
// build.
func warnIgnored(log *slog.Logger, cfg *config.Config) {
	if cfg.HTTP.Listen != "" {
		log.Warn("http.listen has no effect in this build: there is no status page yet", "listen", cfg.HTTP.Listen)
	}
	if cfg.Writer.ShuffleByPartition {
		log.Warn("writer.shuffle_by_partition has no effect in this build: every reader writes all its partitions")
	}
}

func logEvents(log *slog.Logger) func(pipeline.Event) {
	return func(e pipeline.Event) {
		switch e.Kind {
		case "first-record": // whoever measures a restart waits for this one
			log.Info("first record", "source", e.Source)
		case "checkpoint":
			log.Info("checkpoint", "checkpoint", e.Checkpoint, "part_files", e.Files)
		case "published":
			log.Info("published", "path", e.Path, "rows", e.Rows, "bytes", e.Bytes, "mode", e.Mode)
		case "announced":
			log.Info("announced", "table", e.Table, "partition", e.Partition, "rows", e.Rows, "number", e.Number)
		case "unit-unmerged":
			log.Warn("a unit could not be built: its parts are published one by one", "unit", e.Unit, "table", e.Table, "partition", e.Partition,
				"parts", e.Files, "rows", e.Rows, "error", e.Err)
		case "storage-waiting":
			log.Warn("waiting for the storage", "for", e.Path, "error", e.Err)
		case "storage-recovered":
			log.Warn("the storage answers again", "for", e.Path)
		case "index-behind":
			log.Warn("the index in state_dir is behind the table log: nothing is lost, the next start takes longer", "error", e.Err)
		case "index-rebuilt":
			log.Warn("the index in state_dir was damaged: nothing is lost, it is made anew", "error", e.Err)
		case "upkeep-failed":
			log.Warn("the table log could not be tidied up: nothing is lost, but it grows", "error", e.Err)
		case "moved":
			log.Info("moved", "source", e.Source)
		default:
			log.Warn(e.Kind, "unit", e.Unit, "error", e.Err)
		}
	}
}
