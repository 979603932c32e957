// Command hivesink turns record streams into Hive-partitioned Parquet tables.
// `hivesink help` lists the commands.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/hivesink/hivesink"
	"github.com/hivesink/hivesink/internal/fault"
)

// Exit codes.
const (
	exitDone   = 0
	exitFailed = 1 // also a halt
	exitUsage  = 2 // bad configuration or usage
	exitFenced = 3 // not the owner of the table, or fenced by another writer
	exitFault  = 4 // fsck found a fault
	exitUnsure = 5 // the metastore could not be asked; all else is well
)

// app is what a command works with.
type app struct {
	in     io.Reader
	out    io.Writer // facts
	err    io.Writer // progress and logs
	config string
	sets   []string
	json   bool
	flags  *pflag.FlagSet
	args   []string
}

type command struct {
	name, usage, does string
	needsConfig       bool
	takesArgs         bool // else a word that is no flag is a mistake
	flags             func(*pflag.FlagSet)
	run               func(context.Context, *app) error
}

func commands() []command {
	return []command{
		runCommand, validateCommand, compactCommand, fsckCommand, partitionsCommand, logCommand, drainCommand, configCommand, versionCommand,
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	go func() { // ends with the process: a second signal kills
		<-ctx.Done()
		stop()
	}()
	os.Exit(Main(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// Main runs one command line and returns its exit code.
func Main(ctx context.Context, args []string, in io.Reader, out, errs io.Writer) int {
	if len(args) > 1 && args[0] == "help" {
		args = []string{args[1], "--help"}
	}
	if len(args) == 0 || args[0] == "help" || args[0] == "-h" || args[0] == "--help" {
		usage(out)
		if len(args) == 0 {
			return exitUsage
		}
		return exitDone
	}
	for _, c := range commands() {
		if c.name == args[0] {
			return runOne(ctx, c, args[1:], in, out, errs)
		}
	}
	fmt.Fprintf(errs, "hivesink: no command %q; `hivesink help` lists them\n", args[0])
	return exitUsage
}

func runOne(ctx context.Context, c command, args []string, in io.Reader, out, errs io.Writer) int {
	facts := &facts{w: out}
	a := &app{in: in, out: facts, err: errs, flags: pflag.NewFlagSet(c.name, pflag.ContinueOnError)}
	a.flags.SetOutput(io.Discard)
	a.flags.StringVarP(&a.config, "config", "c", "", "configuration file (YAML or JSON)")
	a.flags.StringArrayVar(&a.sets, "set", nil, "replace one option: KEY=VALUE (VALUE is YAML); may be repeated")
	a.flags.BoolVar(&a.json, "json", false, "print facts as JSON")
	if c.flags != nil {
		c.flags(a.flags)
	}
	err := a.flags.Parse(args)
	if errors.Is(err, pflag.ErrHelp) {
		fmt.Fprintf(out, "hivesink %s %s\n\n%s\n\n%s", c.name, c.usage, c.does, a.flags.FlagUsages())
		return exitDone
	}
	if err == nil && c.needsConfig && a.config == "" {
		err = errors.New("-c FILE is missing")
	}
	if err == nil && !c.takesArgs && a.flags.NArg() > 0 {
		err = fmt.Errorf("no use for %q", a.flags.Arg(0))
		if a.flags.Lookup("partition") != nil {
			err = fmt.Errorf("%w; one partition is --partition %s", err, a.flags.Arg(0))
		}
	}
	if err != nil {
		fmt.Fprintf(errs, "hivesink %s: %v\nusage: hivesink %s %s\n", c.name, err, c.name, c.usage)
		return exitUsage
	}
	a.args = a.flags.Args()
	err = c.run(ctx, a)
	if facts.err != nil && !errors.Is(err, facts.err) {
		err = errors.Join(err, fmt.Errorf("print what was found: %w", facts.err))
	}
	if err == nil {
		return exitDone
	}
	fmt.Fprintf(errs, "hivesink %s: %v\n", c.name, err)
	return exitCode(err)
}

// facts remembers that they could not be written: whoever asked for them, into a
// file on a full disk say, must not be told that all is well.
type facts struct {
	w   io.Writer
	err error // the first
}

func (f *facts) Write(p []byte) (int, error) {
	n, err := f.w.Write(p)
	if f.err == nil {
		f.err = err
	}
	return n, err
}

func usage(w io.Writer) {
	fmt.Fprintf(w, "hivesink %s: record streams in, compacted Hive-partitioned Parquet tables out, exactly once\n\n", hivesink.Version)
	for _, c := range commands() {
		fmt.Fprintf(w, "  hivesink %-11s %-38s %s\n", c.name, c.usage, c.does)
	}
	fmt.Fprintln(w, "\nExit codes: 0 done, 1 failed or halted, 2 bad config or usage, 3 not the owner of the table, 4 fsck found a fault, 5 the metastore could not be asked.")
}

// errFault is what fsck returns when the table is not as it should be.
var errFault = errors.New("the table has faults")

// errUnsure is what fsck and partitions return when the metastore could not be
// asked.
var errUnsure = errors.New("the metastore could not be asked")

// errUsage marks a wrong command line.
type errUsage struct{ error }

func exitCode(err error) int {
	var u errUsage
	switch {
	case errors.Is(err, errFault):
		return exitFault
	case errors.Is(err, errUnsure):
		return exitUnsure
	case errors.As(err, &u):
		return exitUsage
	}
	switch fault.ClassOf(err) {
	case fault.Config:
		return exitUsage
	case fault.Fenced:
		return exitFenced
	}
	return exitFailed
}
