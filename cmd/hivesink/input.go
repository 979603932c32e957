package main

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/hivesink/hivesink/config"
	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/pipeline"
	"github.com/hivesink/hivesink/source"
	"github.com/hivesink/hivesink/source/kafka"
)

// input is what a run reads: a source with an end, or a live one.
type input struct {
	source source.Source
	live   source.Live
}

func (in *input) read(ctx context.Context, p *pipeline.Pipeline) error {
	if in.live != nil {
		return p.RunLive(ctx, in.live)
	}
	return p.Run(ctx, in.source)
}

// Progress is about the share that has been read, 0 when it is not known.
func (in *input) Progress() float64 {
	if in.live != nil {
		return in.live.Progress()
	}
	return in.source.Progress()
}

// Waiting is how many source partitions have not been readable for long.
func (in *input) Waiting() int {
	if w, ok := in.live.(interface{ Waiting() int }); ok {
		return w.Waiting()
	}
	return 0
}

func (in *input) close() {
	if in.live != nil {
		in.live.Close() //nolint:errcheck // it has nothing that could be lost
	}
}

// fetchShare is the part of limits.memory that fetched messages may take.
const fetchShare = 8

// openSource makes the source that the configuration names.
func openSource(a *app, cfg *config.Config, log *slog.Logger) (*input, error) {
	schema, err := pipeline.Schema(cfg)
	if err != nil {
		return nil, fault.Wrap(fault.Config, "", err)
	}
	o, err := pipeline.SourceOptions(cfg, schema)
	if err != nil {
		return nil, err
	}
	s := cfg.Source
	resume, _ := a.flags.GetBool("resume")
	if resume && s.Stdin == nil {
		return nil, errUsage{fmt.Errorf("--resume is for source stdin; other sources always go on where they stopped")}
	}
	in := &input{}
	switch {
	case s.Kafka != nil:
		in.live, err = kafka.New(kafka.Options{Options: o, Config: s.Kafka, Memory: int64(cfg.Limits.Memory) / fetchShare, Readers: s.Readers, Log: log})
	case s.Files != nil:
		in.source, err = source.NewFiles(s.Files.Paths, o)
	case s.Stdin != nil:
		in.source, err = source.NewStdin(a.in, o, resume)
	default:
		in.source, err = source.NewDatagen(pipeline.DatagenOptions(cfg), o)
	}
	return in, err
}
