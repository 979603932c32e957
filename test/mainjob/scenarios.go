package mainjob

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hivesink/hivesink/internal/testproc"
)

// dice are seeded, and the seed is said.
func dice(t testing.TB) *rand.Rand {
	t.Helper()
	seed := testproc.Number(t, "HIVESINK_SEED", int(time.Now().UnixNano()%1_000_000_000))
	t.Logf("HIVESINK_SEED=%d", seed)
	return rand.New(rand.NewPCG(uint64(seed), 1))
}

// spoilState says in turn what becomes of the state directory after a kill.
func (j *job) spoilState(turn int) {
	j.t.Helper()
	state, older := filepath.Join(j.dir, "state"), filepath.Join(j.dir, "older-state")
	var err error
	switch turn % 4 {
	case 0: // kept; a copy is put aside
		if err = os.RemoveAll(older); err == nil {
			err = os.CopyFS(older, os.DirFS(state))
		}
		if errors.Is(err, os.ErrNotExist) {
			err = nil // killed before it was made
		}
	case 1: // kept
	case 2: // lost
		err = os.RemoveAll(state)
	case 3: // an old copy
		if _, statErr := os.Stat(older); statErr == nil {
			if err = os.RemoveAll(state); err == nil {
				err = os.CopyFS(state, os.DirFS(older))
			}
		}
	}
	if err != nil {
		j.t.Fatal(err)
	}
}

// moment waits for a random moment of a run: at a log record or some time after
// it. False: the process ended before.
func (j *job) moment(p *testproc.Process, rng *rand.Rand) bool {
	j.t.Helper()
	more := j.records() + rng.IntN(6)
	if !p.Until(j.t, "the next log records", func() bool { return j.records() > more }) {
		return false
	}
	if rng.IntN(2) == 0 {
		return true
	}
	select {
	case <-p.Done():
		return false
	case <-time.After(time.Duration(rng.IntN(60_000)) * time.Microsecond):
		return true
	}
}

// pace is how fast the next run may read: slower when those before have read more
// than their share, as they do on a machine that is too busy to kill them in time.
func (j *job) pace(rows, hits, kills int) int {
	j.t.Helper()
	if hits == 0 || hits == kills || j.records() == 0 {
		return j.rate
	}
	read := int64(0)
	for _, s := range j.log().Sources {
		read += s.NextRow
	}
	share := int64(rows) * int64(hits+1) / int64(kills+1)
	if read <= share {
		return j.rate
	}
	return max(500, int(int64(j.rate)*(int64(rows)-read)/(4*int64(rows))))
}

// Kills kills a run again and again, with the state directory kept, lost and
// replaced by an old copy in between (HIVESINK_KILLS times).
func Kills(t *testing.T, p Place, rows, rate, kills int) {
	kills = testproc.Number(t, "HIVESINK_KILLS", kills)
	rng := dice(t)
	j := newJob(t, p, rows, rate)
	w, stop := j.watch()
	t.Cleanup(func() { _ = stop() })
	hits := 0
	for {
		run := j.startAt(j.pace(rows, hits, kills), "")
		if hits < kills && j.moment(run, rng) && run.Kill(t) {
			hits++
			if hits%4 == 0 && j.records() > 0 {
				j.fsck()
			}
			j.spoilState(hits)
			continue
		}
		if r := run.Wait(t); r.Code != 0 {
			t.Fatalf("after %d kills: %v", hits, r)
		}
		break
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d kills hit; %d log records, %d files, listed %d times", hits, j.records(), len(w.Seen), w.Looks)
	if hits < (kills+1)/2 {
		t.Fatalf("only %d of %d kills hit a live process: raise rows", hits, kills)
	}
	if len(w.Row) != rows {
		t.Fatalf("the reader has seen %d ids, want %d", len(w.Row), rows)
	}
	j.finished(rows)
}

// TakeOvers stops each owner with SIGSTOP at a random moment, lets a process
// with another state directory take over, and wakes the former owners up while
// the last one works and after it has finished: each of them ends with exit code
// 3, and has neither added nor removed anything.
func TakeOvers(t *testing.T, p Place, rows, rate, owners int) {
	rng := dice(t)
	j := newJob(t, p, rows, rate)
	w, stop := j.watch()
	t.Cleanup(func() { _ = stop() })
	var stopped []*testproc.Process
	taken := func(epoch int) func() bool {
		return func() bool { return j.records() > 0 && j.log().Epoch >= uint64(epoch) }
	}
	for i := range owners {
		run := j.startAt(rate/8, fmt.Sprintf("state-%d", i)) // so that a busy machine stops it in time
		// A new record alone may be one that the owner before had sent off when it
		// was stopped.
		if !run.Until(t, "the take-over", taken(i+1)) || !j.moment(run, rng) {
			t.Fatalf("owner %d ended early: raise rows: %v", i+1, run.End())
		}
		run.Signal(t, syscall.SIGSTOP)
		stopped = append(stopped, run)
	}
	last := j.start("state-last")
	if !last.Until(t, "the last owner's take-over", taken(owners+1)) {
		t.Fatalf("the last owner: %v", last.End())
	}
	// One wakes up beside the owner, the others when it has finished.
	wake := func(p *testproc.Process) {
		p.Signal(t, syscall.SIGCONT)
		if r := p.Wait(t); r.Code != 3 {
			t.Fatalf("a former owner, woken up: want exit 3: %v", r)
		}
	}
	if last.Ended() {
		t.Fatal("the last owner had nothing left to do: raise rows")
	}
	wake(stopped[0])
	if r := last.Wait(t); r.Code != 0 {
		t.Fatalf("the last owner: %v", r)
	}
	for _, p := range stopped[1:] {
		wake(p)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d owners; %d log records, %d files, listed %d times", owners+1, j.records(), len(w.Seen), w.Looks)
	j.finished(rows)
}

// Outage runs the job, breaks something at a random moment of it, waits until
// the run says that it waits (its log is what an operator sees), mends it, and
// sees the run end well, without help.
func Outage(t *testing.T, p Place, rows, rate int, breakIt, mendIt func() error) {
	rng := dice(t)
	j := newJob(t, p, rows, rate)
	run := j.start("")
	if !j.moment(run, rng) {
		t.Fatalf("the run ended before anything broke: raise rows: %v", run.End())
	}
	before := j.records()
	if err := breakIt(); err != nil {
		t.Fatal(err)
	}
	broken := time.Now()
	said := func(words string) func() bool {
		return func() bool { return strings.Contains(run.Log(), words) }
	}
	if !run.Until(t, "a word of the outage", said("waiting for the storage")) {
		t.Fatalf("the run ended in the outage: %v", run.End())
	}
	t.Logf("after %s the run says that it waits", time.Since(broken).Round(time.Millisecond))
	if err := mendIt(); err != nil {
		t.Fatal(err)
	}
	mended := time.Now()
	if !run.Until(t, "a word of the recovery", said("the storage answers again")) {
		t.Fatalf("the run ended without a word of the recovery: %v", run.End())
	}
	t.Logf("%s after it was mended the run goes on", time.Since(mended).Round(time.Millisecond))
	if r := run.Wait(t); r.Code != 0 {
		t.Fatalf("after an outage: %v", r)
	}
	if j.records() == before {
		t.Fatal("nothing was left to do when it broke: raise rows")
	}
	j.finished(rows)
}

// Plain runs the job to its end, whatever the storage does meanwhile.
func Plain(t *testing.T, p Place, rows, rate int) {
	j := newJob(t, p, rows, rate)
	w, stop := j.watch()
	t.Cleanup(func() { _ = stop() })
	r := j.start("").Wait(t)
	if r.Code != 0 {
		t.Fatalf("%v", r)
	}
	t.Logf("it says:\n%s", r.Err)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d log records, %d files, listed %d times", j.records(), len(w.Seen), w.Looks)
	j.finished(rows)
}

// Dump ends a run by SIGQUIT, which dumps all of its stacks, as a panic does: no
// secret is in them, nor in anything else that the run has written.
func Dump(t *testing.T, p Place, rows, rate int) {
	j := newJob(t, p, rows, rate)
	run := j.start("")
	if !run.Until(t, "the first checkpoints", func() bool { return j.records() > 3 }) {
		t.Fatalf("the run ended early: raise rows: %v", run.End())
	}
	run.Signal(t, syscall.SIGQUIT)
	if r := run.Wait(t); !strings.Contains(r.Err, "goroutine ") {
		t.Fatalf("there is no dump: %v", r)
	}
	j.noSecrets()
}
