package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// bench runs scenarios.
type bench struct {
	o            options
	dir          string
	self, python []string // how a child is started
}

// mode is a way to do the work.
type mode struct {
	name    string
	threads int  // of DuckDB; 0: a child of this binary
	ours    bool // what is measured, not what it is measured against
	cheap   bool // so short that it runs three times a round
}

// The names of modes in results.
const (
	modePlain      = "plain copy"
	modePlainFiles = "plain copy, each file"
	modeRows       = "parquet-go rows"
	modeDuck1      = "DuckDB, 1 thread"
	modeDuck2      = "DuckDB, 2 threads"
	modeCopy       = "copy"
	modeMerge      = "merge"
	modeRewrite    = "rewrite"
	modeCommand    = "hivesink compact"
)

var allModes = []mode{
	{name: modePlain, cheap: true},
	{name: modeCopy, ours: true, cheap: true},
	{name: modeMerge, ours: true},
	{name: modeRewrite, ours: true},
	{name: modeCommand},
	{name: modeRows},
	{name: modeDuck1, threads: 1},
	{name: modeDuck2, threads: 2},
	{name: modePlainFiles},
}

// modesOf are the modes that can do a scenario's work: copying changes no
// codec, and the command is for tables at rest.
func modesOf(s scenario) []mode {
	return slices.DeleteFunc(slices.Clone(allModes), func(m mode) bool {
		return m.name == modeCopy && s.From != s.To || m.name == modeCommand && s.Writer == byParts
	})
}

// child is the name of the job that does it.
func (m mode) child() string {
	switch m.name {
	case modePlain:
		return "plain"
	case modePlainFiles:
		return "plain-files"
	case modeRows:
		return "rows"
	}
	return m.name
}

// start measures a process that starts Python and DuckDB and does nothing.
func (b *bench) start(ctx context.Context) (outcome, error) {
	var all []outcome
	for range 3 {
		o, err := measure(ctx, append(b.python, "start"), job{Threads: 2})
		if err != nil {
			return o, err
		}
		all = append(all, o)
	}
	slices.SortFunc(all, func(a, b outcome) int { return cmp.Compare(a.ProcessCPUSeconds, b.ProcessCPUSeconds) })
	return all[1], nil
}

// scenario makes the inputs, runs every mode, counts what came out.
func (b *bench) scenario(ctx context.Context, s scenario) (result, error) {
	dir := filepath.Join(b.dir, s.Name)
	defer os.RemoveAll(dir)
	inputs, bytes, err := b.inputs(ctx, s, dir)
	if err != nil {
		return result{}, fmt.Errorf("make inputs: %w", err)
	}
	j := job{Shape: s.Shape, Codec: s.To, Inputs: inputs}
	runs := map[string][]outcome{}
	for round := range b.o.rounds {
		for _, m := range modesOf(s) {
			times := 1
			if m.cheap {
				times = 3
			}
			if m.name == modePlainFiles && round > 0 && s.Files > 1000 {
				times = 0 // thousands of syncs: once is enough
			}
			for range times {
				o, err := b.once(ctx, dir, m, s, j)
				if err != nil {
					return result{}, fmt.Errorf("%s, round %d: %w", m.name, round+1, err)
				}
				runs[m.name] = append(runs[m.name], o)
			}
		}
	}
	res := summarize(s, inputs, bytes, runs)
	if s.growth {
		if err := b.growth(ctx, dir, j, &res); err != nil {
			return res, err
		}
	}
	if err := b.profiles(ctx, dir, s, j); err != nil {
		return res, err
	}
	return res, b.read(ctx, s, inputs, &res)
}

// inputs writes the small files and deals them to targets, neighbours together.
func (b *bench) inputs(ctx context.Context, s scenario, dir string) (targets [][]string, bytes int64, err error) {
	in := filepath.Join(dir, "in")
	if err := os.MkdirAll(in, 0o755); err != nil {
		return nil, 0, err
	}
	made, err := measure(ctx, b.self, job{Mode: "generate", Dir: in, Scenario: s})
	if err != nil {
		return nil, 0, err
	}
	if s.Writer == byPyArrow || s.Writer == byDuckDB {
		if _, err := measure(ctx, append(b.python, "convert"), job{Inputs: [][]string{made.Outputs}, Scenario: s}); err != nil {
			return nil, 0, err
		}
	}
	for _, name := range made.Outputs {
		st, err := os.Stat(name)
		if err != nil {
			return nil, 0, err
		}
		bytes += st.Size()
	}
	// What was made is on disk before anything is timed.
	syscall.Sync()
	for i := range s.Targets {
		from, to := i*s.Files/s.Targets, (i+1)*s.Files/s.Targets
		targets = append(targets, made.Outputs[from:to])
	}
	return targets, bytes, nil
}

// once runs a mode. Its outputs lie in a directory of the mode and stay until
// it runs again.
func (b *bench) once(ctx context.Context, dir string, m mode, s scenario, j job) (outcome, error) {
	j.Dir = filepath.Join(dir, strings.ReplaceAll(m.name, " ", "-"))
	if err := os.RemoveAll(j.Dir); err != nil {
		return outcome{}, err
	}
	if err := os.Mkdir(j.Dir, 0o755); err != nil {
		return outcome{}, err
	}
	if m.name == modeCommand {
		return b.compactCommand(ctx, j.Dir, s, j.Inputs)
	}
	j.Mode, j.Threads = m.child(), m.threads
	argv := b.self
	if m.threads > 0 {
		argv = append(b.python, "join")
	}
	o, err := measure(ctx, argv, j)
	if m.name == modePlainFiles {
		return o, cmp.Or(err, os.RemoveAll(j.Dir))
	}
	return o, err
}

// growth measures our modes on the first quarter of the inputs, for their
// memory.
func (b *bench) growth(ctx context.Context, dir string, j job, res *result) error {
	j.Inputs = slices.Clone(j.Inputs)
	for i, names := range j.Inputs {
		j.Inputs[i] = names[:max(1, len(names)/4)]
	}
	for _, m := range modesOf(res.scenario) {
		if !m.ours {
			continue
		}
		j.Mode = m.child()
		o, err := b.quarter(ctx, dir, j)
		if err != nil {
			return fmt.Errorf("%s of a quarter: %w", m.name, err)
		}
		r := res.Modes[m.name]
		r.QuarterRSSMB = o.PeakRSSMB
		res.Modes[m.name] = r
	}
	return nil
}

func (b *bench) quarter(ctx context.Context, dir string, j job) (outcome, error) {
	j.Dir = filepath.Join(dir, "quarter")
	defer os.RemoveAll(j.Dir)
	if err := os.Mkdir(j.Dir, 0o755); err != nil {
		return outcome{}, err
	}
	return measure(ctx, b.self, j)
}

// profiles runs each of our modes once more, with a CPU profile.
func (b *bench) profiles(ctx context.Context, dir string, s scenario, j job) error {
	if b.o.profile == "" {
		return nil
	}
	if err := os.MkdirAll(b.o.profile, 0o755); err != nil {
		return err
	}
	for _, m := range modesOf(s) {
		if !m.ours {
			continue
		}
		j.Profile = filepath.Join(b.o.profile, s.Name+"-"+m.name+".pprof")
		if _, err := b.once(ctx, dir, m, s, j); err != nil {
			return fmt.Errorf("profile %s: %w", m.name, err)
		}
	}
	return nil
}

// reading is what duck.py says of what came out.
type reading struct {
	Rows  int64 `json:"rows"`
	Modes map[string]struct {
		Fault string             `json:"fault"`
		Scans map[string]float64 `json:"scans"`
	} `json:"modes"`
}

// read has DuckDB count and scan what the last round left.
func (b *bench) read(ctx context.Context, s scenario, inputs [][]string, res *result) error {
	ask := struct {
		Inputs  [][]string          `json:"inputs"`
		Outputs map[string][]string `json:"outputs"`
		Scan    []string            `json:"scan"` // the modes whose outputs are timed
		Sum     string              `json:"sum"`
		Filter  string              `json:"filter"`
	}{Inputs: inputs, Outputs: map[string][]string{}, Sum: shapes[s.Shape].sum, Filter: shapes[s.Shape].filter}
	for _, m := range modesOf(s) {
		if m.name == modePlain || m.name == modePlainFiles {
			continue
		}
		ask.Outputs[m.name] = res.Modes[m.name].outputs
		if m.ours {
			ask.Scan = append(ask.Scan, m.name)
		}
	}
	var answer reading
	if _, _, err := spawn(ctx, append(b.python, "check"), ask, &answer); err != nil {
		return err
	}
	if want := int64(s.rows()); answer.Rows != want {
		return fmt.Errorf("the inputs have %d rows, want %d", answer.Rows, want)
	}
	for name, a := range answer.Modes {
		if a.Fault != "" {
			return fmt.Errorf("%s: %s", name, a.Fault)
		}
		m := res.Modes[name]
		m.Scans, m.Counted = a.Scans, true
		res.Modes[name] = m
	}
	return nil
}
