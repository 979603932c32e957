package ledger

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/layout"
	"github.com/hivesink/hivesink/storage"
	"github.com/hivesink/hivesink/storage/faultfs"
	"github.com/hivesink/hivesink/storage/memfs"
)

// lifeOptions make snapshots and removals frequent.
func lifeOptions(w *world, fsys storage.FS) Options {
	o := w.options(fsys)
	o.SnapshotEvery, o.History = 3, time.Nanosecond
	return o
}

// life is two owners after one another, the second one taking over from a
// first that does not know. done is told each state that was acknowledged.
func life(fsys storage.FS, done func(*State)) error {
	w := newWorld()
	for _, stretch := range []struct{ from, n int }{{0, 4}, {4, 6}} {
		l, err := Open(context.Background(), lifeOptions(w, fsys))
		if err != nil {
			return err
		}
		done(l.State())
		s := &script{l: l, fsys: fsys}
		if err := s.run(stretch.from, stretch.n, func() { done(l.State()) }); err != nil {
			return err
		}
	}
	return nil
}

// stateOf is what a reader finds.
func stateOf(t *testing.T, fsys storage.FS) *State {
	t.Helper()
	st, err := Read(fsys, testTable)
	if fault.ClassOf(err) == fault.Config {
		return NewState()
	}
	if err != nil {
		t.Fatal(err)
	}
	return st
}

type image struct {
	mode memfs.Mode
	seed uint64
}

// The images that are looked at. Where little can differ (a crash after an
// operation leaves what one before the next does, HDFS has no unsynced
// entries), the extremes do.
var (
	extremes = []image{{memfs.SyncedOnly, 0}, {memfs.Everything, 0}}
	images   = append(extremes[:2:2], image{memfs.EntriesOnly, 0}, image{memfs.DataOnly, 0},
		image{memfs.Ordered, 1}, image{memfs.Random, 1}, image{memfs.Random, 2}, image{memfs.Random, 3})
)

// TestCrashEverywhere stops a life before and after each of its operations. What
// is found then is the last acknowledged state or the one after it, and a new
// owner goes on from there (T1, T5, T7, T11).
func TestCrashEverywhere(t *testing.T) {
	for _, model := range []memfs.Model{memfs.Posix, memfs.HDFS} {
		states := []string{canon(t, NewState())}
		whole := faultfs.New(memfs.NewWith(memfs.Options{Model: model}))
		if err := life(whole, func(st *State) { states = append(states, canon(t, st)) }); err != nil {
			t.Fatal(err)
		}
		for k := 1; k <= whole.Ops(); k++ {
			for _, after := range []bool{false, true} {
				crashLife(t, model, k, after, states)
				if t.Failed() {
					t.Fatalf("model %v, crash at operation %d (%v), after %v", model, k, whole.Trace()[k-1], after)
				}
			}
		}
	}
}

func crashLife(t *testing.T, model memfs.Model, k int, after bool, states []string) {
	disk := memfs.NewWith(memfs.Options{Model: model})
	fsys := faultfs.New(disk)
	fsys.CrashAt(k, after)
	acknowledged := 0
	err := life(fsys, func(*State) { acknowledged++ })
	select {
	case <-fsys.Crashed():
	default:
		t.Fatalf("the crash did not happen: %v", err)
	}
	// The snapshot belongs to an append that is not to fail because of it.
	if err != nil && !errors.Is(err, faultfs.ErrCrashed) {
		t.Errorf("after the crash: %v", err)
	}
	found := map[string]bool{states[min(acknowledged, len(states)-1)]: true}
	if acknowledged+1 < len(states) {
		found[states[acknowledged+1]] = true
	}
	look := images
	if after || model == memfs.HDFS {
		look = extremes
	}
	for _, im := range look {
		after := disk.Crash(im.mode, im.seed)
		st := stateOf(t, after)
		if !found[canon(t, st)] {
			t.Errorf("%v %d: %d states were acknowledged, found:\n%s\nwant\n%s", im.mode, im.seed, acknowledged, canon(t, st), states[acknowledged])
			return
		}
		goOn(t, after, st)
	}
}

// goOn opens what a crash left and lives on.
func goOn(t *testing.T, fsys *memfs.FS, st *State) {
	t.Helper()
	w := newWorld()
	w.rng.Uint64() // other draws than the first life's
	l, err := Open(context.Background(), lifeOptions(w, fsys))
	if err != nil {
		t.Errorf("open after the crash: %v", err)
		return
	}
	if l.State().Seq != st.Seq+1 || l.State().Checkpoint != st.Checkpoint || l.UpkeepErr() != nil {
		t.Errorf("opened at record %d, the log ended at %d: %v", l.State().Seq, st.Seq, l.UpkeepErr())
	}
	published := make(map[string]bool)
	for _, u := range l.State().Units {
		for _, id := range u.Inputs {
			published[id] = u.Published
		}
	}
	for _, p := range l.State().Parts {
		where, err := l.Locate(p.Epoch, p.Name)
		if errors.Is(err, storage.ErrNotExist) && published[p.ID] {
			continue // being deleted
		}
		if err != nil {
			t.Errorf("part %s: %v", p.ID, err)
			continue
		}
		if data, err := fsys.ReadFile(where); err != nil || string(data) != "part "+p.ID {
			t.Errorf("part %s holds %q: %v", p.ID, data, err)
		}
	}
	// Every epoch is one record; the others are the script's.
	i := int(st.Seq - st.Epoch)
	if err := (&script{l: l, fsys: fsys}).run(i, steps, nil); err != nil {
		t.Errorf("go on with step %d: %v", i, err)
		return
	}
	if got := stateOf(t, fsys); canon(t, got) != canon(t, l.State()) {
		t.Errorf("the log says something else than the state at the end")
	}
}

// TestAppendFaults makes each operation of an append fail, before and after it
// took effect. Retry means not done; acknowledged means there; and what is
// undecided is decided by the next owner (T9).
func TestAppendFaults(t *testing.T) {
	count := func() (from, to int) {
		fsys := faultfs.New(memfs.New())
		l := mustOpen(t, newWorld().options(fsys))
		from = fsys.Ops()
		mustAppend(t, l, &Record{})
		return from + 1, fsys.Ops()
	}
	from, to := count()
	if to-from < 5 {
		t.Fatalf("an append of %d operations", to-from)
	}
	classes := map[fault.Class]int{}
	for n := from; n <= to; n++ {
		for _, cause := range []error{syscall.EIO, &storage.NoSpaceError{Err: syscall.ENOSPC}} {
			for _, when := range []faultfs.When{faultfs.Before, faultfs.After} {
				t.Run(fmt.Sprint(n-from, cause, when), func(t *testing.T) {
					disk := memfs.New()
					fsys := faultfs.New(disk)
					w := newWorld()
					l := mustOpen(t, w.options(fsys))
					before := canon(t, l.State())
					rule := fsys.Inject(faultfs.Rule{Nth: n - fsys.Ops(), When: when, Err: cause}).MustFire(t)
					err := l.Append(&Record{Checkpoint: &Checkpoint{Number: 1, Watermark: 5}})
					rule.Heal()
					classes[fault.ClassOf(err)]++
					if err != nil && canon(t, l.State()) != before {
						t.Errorf("the state moved in spite of: %v", err)
					}
					there := stateOf(t, disk).Checkpoint == 1
					switch fault.ClassOf(err) {
					case "":
						if !there || stateOf(t, disk.Crash(memfs.SyncedOnly, 0)).Checkpoint != 1 {
							t.Error("acknowledged, and not in the log")
						}
						mustAppend(t, l, &Record{})
					case fault.Retry:
						if there {
							t.Errorf("in the log in spite of: %v", err)
						}
						mustAppend(t, l, &Record{Checkpoint: &Checkpoint{Number: 1, Watermark: 6}})
					case fault.Halt:
						if again := l.Append(&Record{}); again == nil {
							t.Errorf("goes on after: %v", err)
						}
					default:
						t.Errorf("class %s of: %v", fault.ClassOf(err), err)
					}
					next := mustOpen(t, w.options(disk.Kill()))
					if was := next.State().Checkpoint == 1; was != (there || fault.ClassOf(err) == fault.Retry) {
						t.Errorf("the next owner sees checkpoint %d", next.State().Checkpoint)
					}
				})
			}
		}
	}
	if classes[""] == 0 || classes[fault.Retry] == 0 || classes[fault.Halt] == 0 {
		t.Errorf("outcomes %v: not all were met", classes)
	}
}

// TestFullDisk: a full disk stops nothing for good.
func TestFullDisk(t *testing.T) {
	disk := memfs.New()
	l := mustOpen(t, newWorld().options(disk))
	disk.SetCapacity(disk.Used() + 10)
	for range 3 {
		if err := l.Append(&Record{}); fault.ClassOf(err) != fault.Retry || !errors.Is(err, storage.ErrNoSpace) {
			t.Fatalf("append on a full disk: %v", err)
		}
	}
	disk.SetCapacity(0)
	mustAppend(t, l, &Record{})
	if l.State().Seq != 2 {
		t.Errorf("record %d", l.State().Seq)
	}
}

// TestRefusedRecord: what contradicts the state gets neither into it nor into
// the log, and the ledger goes on (T6).
func TestRefusedRecord(t *testing.T) {
	disk := memfs.New()
	l := mustOpen(t, newWorld().options(disk))
	before := canon(t, l.State())
	if err := l.Append(&Record{Checkpoint: &Checkpoint{Number: 2}}); fault.ClassOf(err) != fault.Halt {
		t.Errorf("checkpoint 2 first: %v", err)
	}
	if err := l.Append(&Record{NewEpoch: &Epoch{}}); err == nil {
		t.Error("an epoch by Append")
	}
	if canon(t, l.State()) != before || stateOf(t, disk).Seq != 1 {
		t.Error("T6: a refused record changed something")
	}
	mustAppend(t, l, &Record{})
}

// TestLateAppend: a record of ours that was given up and appears after all is
// not another process's.
func TestLateAppend(t *testing.T) {
	disk := memfs.New()
	fsys := faultfs.New(disk)
	l := mustOpen(t, newWorld().options(fsys))
	r := &Record{Version: 1, Seq: 2, Epoch: 1, Nonce: layout.ID(99), Previous: l.State().Checksum}
	data, _, err := Encode(r)
	if err != nil {
		t.Fatal(err)
	}
	fsys.Inject(faultfs.Rule{Kind: storage.OpRename, Glob: layout.LogFile(2), Do: func(faultfs.Op) {
		if err := storage.WriteFile(disk, recordPath(testTable, 2), data); err != nil {
			t.Error(err)
		}
	}}).MustFire(t)
	if err := l.Append(&Record{}); fault.ClassOf(err) != fault.Halt {
		t.Errorf("append: %v", err)
	}
}
