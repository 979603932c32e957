package mainjob

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hivesink/hivesink/internal/testproc"
	"github.com/hivesink/hivesink/test/services"
)

// deadline is how long an event may take before a test gives up on it.
const deadline = 5 * time.Minute

// tick is the time between two looks for an event: leave the servers some for
// others.
const tick = 5 * time.Millisecond

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
	path, _, err := testproc.Build(services.Source()) // it goes with the machine's temporary files
	return path, err
})

// Start starts the program; the test's end kills it.
func Start(t testing.TB, env []string, args ...string) *testproc.Process {
	t.Helper()
	return testproc.Start(t, testproc.Command{Path: Binary(t), Args: args, Env: env, Deadline: deadline, Tick: tick, Ended: func(r testproc.Result) {
		if err := services.Leaks(strings.Join(args, " "), r.Out+r.Err); err != nil {
			t.Error(err)
		}
	}})
}

// Want runs the program to its end and fails the test unless it exits with code.
func Want(t testing.TB, code int, env []string, args ...string) testproc.Result {
	t.Helper()
	r := Start(t, env, args...).Wait(t)
	if r.Code != code {
		t.Fatalf("hivesink %s: want exit %d: %v", strings.Join(args, " "), code, r)
	}
	return r
}
