package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"syscall"
)

type options struct {
	rounds             int
	dir, python        string
	binary             string
	out, profile       string
	scenario           *regexp.Regexp
	short, check, list bool
}

// errMissed says that a target of -check does not hold; which was printed.
var errMissed = errors.New("targets missed")

func main() {
	if len(os.Args) == 2 && os.Args[1] == "child" {
		exit(child())
	}
	o := options{}
	flag.IntVar(&o.rounds, "rounds", 3, "rounds, in each of which every mode runs once; medians are kept")
	flag.StringVar(&o.dir, "dir", "", "directory to work in (default: a temporary one); 2 GB")
	flag.StringVar(&o.python, "python", ".venv/bin/python", "Python with the packages of test/readers/requirements.txt")
	flag.StringVar(&o.binary, "hivesink", "bin/hivesink", "the program whose compact command is measured")
	flag.StringVar(&o.out, "out", "benchmarks/results", "directory of compaction.json and compaction.svg; empty: nowhere")
	flag.StringVar(&o.profile, "profile", "", "directory for a CPU profile of each mode, taken after the rounds; empty: none")
	only := flag.String("scenario", "", "run the scenarios whose names match; nothing is kept unless -out is given")
	flag.BoolVar(&o.short, "short", false, "an eighth of the files, one round; nothing is kept unless -out is given")
	flag.BoolVar(&o.check, "check", false, "exit with 1 when a target is missed")
	flag.BoolVar(&o.list, "list", false, "list the scenarios")
	flag.Parse()
	given := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { given[f.Name] = true })
	var err error
	if o.scenario, err = regexp.Compile("^(" + *only + ")$"); *only == "" {
		o.scenario = regexp.MustCompile("")
	}
	if err != nil {
		exit(fmt.Errorf("-scenario: %w", err))
	}
	if (o.short || *only != "") && !given["out"] {
		o.out = "" // part of the table is not the table
	}
	if o.short && !given["rounds"] {
		o.rounds = 1
	}
	if o.list {
		for _, s := range scenarios {
			fmt.Printf("%-16s %s, %d files of %d × %d rows: %s\n", s.Name, s.Writer, s.Files, s.Groups, s.GroupRows, s.Why)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	exit(run(ctx, o))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "compaction:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func run(ctx context.Context, o options) error {
	if o.rounds < 1 {
		return fmt.Errorf("-rounds must be at least 1")
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(o.dir, "hivesink-compaction-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b := bench{o: o, dir: dir, self: []string{self, "child"},
		python: []string{o.python, filepath.Join("benchmarks", "compaction", "duck.py")}}
	r := results{Rounds: o.rounds, Short: o.short, CPUs: runtime.NumCPU(), Go: runtime.Version()}
	if r.Start, err = b.start(ctx); err != nil {
		return fmt.Errorf("%w\nrun from the top of the tree; `make integration` makes the Python environment", err)
	}
	if out, err := exec.CommandContext(ctx, o.binary, "compact", "--help").CombinedOutput(); err != nil {
		fmt.Printf("%s compact is left out: %v: %s\n", o.binary, err, bytes.TrimSpace(out))
		allModes = slices.DeleteFunc(allModes, func(m mode) bool { return m.name == modeCommand })
	}
	for _, s := range scenarios {
		if !o.scenario.MatchString(s.Name) {
			continue
		}
		if o.short {
			s = s.scaled()
		}
		res, err := b.scenario(ctx, s)
		if err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		res.show(os.Stdout)
		r.Scenarios = append(r.Scenarios, res)
	}
	r.Checks = checks(r.Scenarios)
	missed := showChecks(os.Stdout, r.Checks)
	if err := r.keep(o.out); err != nil {
		return err
	}
	if o.check && missed > 0 {
		return fmt.Errorf("%w: %d of %d", errMissed, missed, len(r.Checks))
	}
	return nil
}
