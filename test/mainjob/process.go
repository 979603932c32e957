package mainjob

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hivesink/hivesink/test/services"
)

// deadline is how long an event may take before a test gives up on it.
const deadline = 120 * time.Second

// Binary is the program, built once for each test process.
func Binary(t testing.TB) string {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "hivesink-test-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "hivesink")
	build := exec.Command("go", "build", "-o", path, "github.com/hivesink/hivesink/cmd/hivesink")
	build.Env, build.Dir = append(os.Environ(), "CGO_ENABLED=0"), services.Source()
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the program: %w\n%s", err, out)
	}
	return path, nil
})

// Result is a process that has ended.
type Result struct {
	Code     int // -1: ended by a signal
	Signal   syscall.Signal
	Out, Err string
}

func (r Result) String() string {
	return fmt.Sprintf("exit %d (signal %d)\nstdout:\n%s\nstderr:\n%s", r.Code, r.Signal, r.Out, r.Err)
}

// Process is a running program.
type Process struct {
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

// Start starts the program; the test's end kills it.
func Start(t testing.TB, env []string, args ...string) *Process {
	t.Helper()
	p := &Process{cmd: exec.Command(Binary(t), args...), done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.err
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
		if err := services.Leaks(strings.Join(args, " "), p.end.Out+p.end.Err); err != nil {
			t.Error(err)
		}
	})
	return p
}

// Signal sends a signal; to a process that has ended nothing happens.
func (p *Process) Signal(t testing.TB, s syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
}

// Ended says whether the process has ended.
func (p *Process) Ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Wait waits for the end of the process.
func (p *Process) Wait(t testing.TB) Result {
	t.Helper()
	select {
	case <-p.done:
		return p.end
	case <-time.After(deadline):
		p.Signal(t, syscall.SIGCONT)
		p.Signal(t, syscall.SIGQUIT)
		<-p.done
		t.Fatalf("%v did not end within %s:\n%v", p.cmd.Args, deadline, p.end)
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
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	late := time.After(deadline)
	for {
		if happened() {
			return true
		}
		select {
		case <-p.done:
			return false
		case <-late:
			t.Fatalf("%s did not happen within %s", what, deadline)
		case <-tick.C:
		}
	}
}

// Want runs the program to its end and fails the test unless it exits with code.
func Want(t testing.TB, code int, env []string, args ...string) Result {
	t.Helper()
	r := Start(t, env, args...).Wait(t)
	if r.Code != code {
		t.Fatalf("hivesink %s: want exit %d: %v", strings.Join(args, " "), code, r)
	}
	return r
}
