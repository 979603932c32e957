// Package testproc runs programs for tests: it starts one, watches what it
// writes, waits for events while it runs, signals and kills it, and sees to it
// that none outlives its test.
package testproc

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Program is the import path of the program that most tests run.
const Program = "github.com/hivesink/hivesink/cmd/hivesink"

// Build builds Program, without cgo as it is shipped, into a new directory, of
// which remove is to be called. module is a directory of the module, "" the
// working directory.
func Build(module string) (path string, remove func(), err error) {
	dir, err := os.MkdirTemp("", "hivesink-test-")
	if err != nil {
		return "", nil, err
	}
	remove = func() { os.RemoveAll(dir) }
	path = filepath.Join(dir, "hivesink")
	build := exec.Command("go", "build", "-o", path, Program)
	build.Env, build.Dir = append(os.Environ(), "CGO_ENABLED=0"), module
	if out, err := build.CombinedOutput(); err != nil {
		remove()
		return "", nil, fmt.Errorf("build the program: %w\n%s", err, out)
	}
	return path, remove, nil
}

// Result is a process that has ended.
type Result struct {
	Code     int // -1: ended by a signal
	Signal   syscall.Signal
	Out, Err string
}

func (r Result) String() string {
	return fmt.Sprintf("exit %d (signal %d)\nstdout:\n%s\nstderr:\n%s", r.Code, r.Signal, r.Out, r.Err)
}

// Command says what to run.
type Command struct {
	Path  string
	Args  []string
	Env   []string // beside the test's own
	Stdin io.Reader
	// Ended is called at the end of the test, when the process has ended.
	Ended func(Result)

	Deadline time.Duration // of an event; a minute when 0
	Tick     time.Duration // between two looks for an event; a millisecond when 0
}

// Process is a running program.
type Process struct {
	c        Command
	cmd      *exec.Cmd
	out, err output
	done     chan struct{} // closed when it has ended; then end is set
	end      Result
}

// output is what a process has written so far.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// Start starts a program; the test's end kills it.
func Start(t testing.TB, c Command) *Process {
	t.Helper()
	c.Deadline, c.Tick = cmp.Or(c.Deadline, time.Minute), cmp.Or(c.Tick, time.Millisecond)
	p := &Process{c: c, cmd: exec.Command(c.Path, c.Args...), done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), c.Env...)
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = c.Stdin, &p.out, &p.err
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { // ends with the process
		defer close(p.done)
		err := p.cmd.Wait()
		p.end = Result{Code: p.cmd.ProcessState.ExitCode(), Out: p.out.String(), Err: p.err.String()}
		if st, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && st.Signaled() {
			p.end.Signal = st.Signal()
		}
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			p.end.Err += "\nwait: " + err.Error()
		}
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // it may have ended long ago
		<-p.done
		if c.Ended != nil {
			c.Ended(p.end)
		}
	})
	return p
}

// Pid is its number.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Log is what it has written to stderr so far.
func (p *Process) Log() string { return p.err.String() }

// Done is closed when it has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Ended says whether it has ended.
func (p *Process) Ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// End is how it has ended; of one that runs, what it has written so far.
func (p *Process) End() Result {
	if p.Ended() {
		return p.end
	}
	return Result{Out: p.out.String(), Err: p.err.String()}
}

// Send sends a signal. It is an error when the process has ended.
func (p *Process) Send(s syscall.Signal) error { return p.cmd.Process.Signal(s) }

// Signal sends a signal; to a process that has ended nothing happens.
func (p *Process) Signal(t testing.TB, s syscall.Signal) {
	t.Helper()
	if err := p.Send(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
}

// Wait waits for its end. One that does not end tells where its goroutines are.
func (p *Process) Wait(t testing.TB) Result {
	t.Helper()
	select {
	case <-p.done:
		return p.end
	case <-time.After(p.c.Deadline):
		p.Signal(t, syscall.SIGCONT)
		p.Signal(t, syscall.SIGQUIT)
		<-p.done
		t.Fatalf("%v did not end within %s:\n%v", p.cmd.Args, p.c.Deadline, p.end)
		panic("not reached")
	}
}

// Kill sends SIGKILL and says whether it hit a live process.
func (p *Process) Kill(t testing.TB) bool {
	t.Helper()
	_ = p.cmd.Process.Kill() // an error means that it has ended, as end tells
	<-p.done
	return p.end.Signal == syscall.SIGKILL
}

// Until polls for a condition while the process runs. False: the process ended
// before.
func (p *Process) Until(t testing.TB, what string, happened func() bool) bool {
	t.Helper()
	tick := time.NewTicker(p.c.Tick)
	defer tick.Stop()
	late := time.After(p.c.Deadline)
	for {
		if happened() {
			return true
		}
		select {
		case <-p.done:
			return false
		case <-late:
			t.Fatalf("%s did not happen within %s:\n%v", what, p.c.Deadline, p.End())
		case <-tick.C:
		}
	}
}
