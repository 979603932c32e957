package ledger

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/storage"
	"github.com/hivesink/hivesink/storage/faultfs"
	"github.com/hivesink/hivesink/storage/memfs"
)

func hdfs() *memfs.FS { return memfs.NewWith(memfs.Options{Model: memfs.HDFS}) }

// checkpoint makes an append that a reader can count.
func (l *Ledger) checkpointNow() error {
	return l.Append(&Record{Checkpoint: &Checkpoint{Number: l.st.Checkpoint + 1}})
}

// TestFenceOldOwner lets the old owner append between any two operations of the
// takeover: what it was told is true, and after the takeover it gets nothing in
// any more (T3).
func TestFenceOldOwner(t *testing.T) {
	count := faultfs.New(hdfs())
	w := newWorld()
	if err := mustOpen(t, w.options(count)).checkpointNow(); err != nil {
		t.Fatal(err)
	}
	from := count.Ops()
	mustOpen(t, w.options(count))
	ops := count.Ops() - from
	accepted, refused := 0, 0
	for k := 1; k <= ops+1; k++ {
		disk, w := hdfs(), newWorld()
		old := mustOpen(t, w.options(disk))
		if err := old.checkpointNow(); err != nil {
			t.Fatal(err)
		}
		want := uint64(1)
		try := func(faultfs.Op) {
			switch err := old.checkpointNow(); fault.ClassOf(err) {
			case "":
				want++
				accepted++
			case fault.Fenced:
				refused++
			default:
				t.Errorf("old owner before operation %d: %v", k, err)
			}
		}
		stepped := faultfs.New(disk)
		if k <= ops {
			stepped.Inject(faultfs.Rule{Nth: k, Do: try}).MustFire(t)
		}
		o := w.options(stepped)
		o.PID, o.Host = 8, "b"
		l, err := Open(context.Background(), o)
		if err != nil {
			t.Fatalf("takeover, the old owner appending before operation %d: %v", k, err)
		}
		if l.State().Checkpoint != want {
			t.Errorf("operation %d: the new owner sees checkpoint %d, %d were acknowledged", k, l.State().Checkpoint, want)
		}
		err = old.checkpointNow()
		if fault.ClassOf(err) != fault.Fenced || k > ops && !strings.Contains(err.Error(), `process 8 on "b"`) {
			t.Errorf("operation %d: append of the old owner after the takeover: %v", k, err)
		}
		if err := old.Trash(recordPath(testTable, 1)); fault.ClassOf(err) != fault.Fenced {
			t.Errorf("T10: a fenced owner deletes: %v", err)
		}
		if err := l.checkpointNow(); err != nil {
			t.Error(err)
		}
		if got := stateOf(t, disk); canon(t, got) != canon(t, l.State()) {
			t.Errorf("operation %d: the log says %s", k, canon(t, got))
		}
	}
	if accepted == 0 || refused == 0 {
		t.Errorf("%d appends accepted, %d refused: both must be met", accepted, refused)
	}
}

// TestFenceInAppend takes the table over between any two operations of an
// append of the old owner.
func TestFenceInAppend(t *testing.T) {
	count := faultfs.New(hdfs())
	l := mustOpen(t, newWorld().options(count))
	from := count.Ops()
	if err := l.checkpointNow(); err != nil {
		t.Fatal(err)
	}
	ops := count.Ops() - from
	for k := 1; k <= ops; k++ {
		disk, w := hdfs(), newWorld()
		fsys := faultfs.New(disk)
		old := mustOpen(t, w.options(fsys))
		var next *Ledger
		fsys.Inject(faultfs.Rule{Nth: k, Do: func(faultfs.Op) { next = mustOpen(t, w.options(disk)) }}).MustFire(t)
		err := old.checkpointNow()
		switch {
		case err == nil && next.State().Checkpoint != 1:
			t.Errorf("operation %d: acknowledged, and the new owner does not see it", k)
		case err != nil && fault.ClassOf(err) != fault.Fenced:
			t.Errorf("operation %d: %v", k, err)
		}
		if err := old.checkpointNow(); fault.ClassOf(err) != fault.Fenced {
			t.Errorf("operation %d: append after the takeover: %v", k, err)
		}
		if err := next.checkpointNow(); err != nil {
			t.Errorf("operation %d: append of the new owner: %v", k, err)
		}
		if got := stateOf(t, disk); canon(t, got) != canon(t, next.State()) {
			t.Errorf("operation %d: the log says %s", k, canon(t, got))
		}
	}
}

// TestTwoNewcomers lets a second newcomer take over, and append, between any two
// operations of a first. In the end just one of them owns the table.
func TestTwoNewcomers(t *testing.T) {
	for _, fresh := range []bool{true, false} {
		count := faultfs.New(hdfs())
		w := newWorld()
		if !fresh {
			mustOpen(t, w.options(count))
		}
		from := count.Ops()
		mustOpen(t, w.options(count))
		ops := count.Ops() - from
		won, left := 0, 0
		for k := 1; k <= ops; k++ {
			disk, w := hdfs(), newWorld()
			if !fresh {
				mustOpen(t, w.options(disk))
			}
			stepped := faultfs.New(disk)
			var second *Ledger
			stepped.Inject(faultfs.Rule{Nth: k, Do: func(faultfs.Op) {
				second = mustOpen(t, w.options(disk))
				if err := second.checkpointNow(); err != nil {
					t.Error(err)
				}
			}}).MustFire(t)
			first, err := Open(context.Background(), w.options(stepped))
			appended := second.checkpointNow()
			switch {
			case err == nil && fault.ClassOf(appended) == fault.Fenced: // the first claimed after the second
				won++
				if first.Epoch() <= second.Epoch() || first.State().Checkpoint != 1 || first.checkpointNow() != nil {
					t.Errorf("operation %d: epoch %d has lost against %d", k, second.Epoch(), first.Epoch())
				}
			case err == nil: // the second took over when the first had just sealed
				if err := first.checkpointNow(); appended != nil || fault.ClassOf(err) != fault.Fenced {
					t.Errorf("operation %d: epochs %d and %d both own it: %v, %v", k, first.Epoch(), second.Epoch(), err, appended)
				}
			case fault.ClassOf(err) == fault.Fenced:
				left++
				if appended != nil {
					t.Errorf("operation %d: neither owns it: %v, %v", k, err, appended)
				}
			default:
				t.Errorf("operation %d: %v", k, err)
			}
			if st := stateOf(t, disk); st.Checkpoint != 2 {
				t.Errorf("operation %d: the log says %s", k, canon(t, st))
			}
		}
		if won == 0 || left == 0 {
			t.Errorf("fresh %v: the first newcomer won %d and left %d times: both must be met", fresh, won, left)
		}
	}
}

// TestSameNumber: of two claimants of one number one wins, and the other leaves
// nothing behind.
func TestSameNumber(t *testing.T) {
	disk, w := hdfs(), newWorld()
	stepped := faultfs.New(disk)
	var winner *Ledger
	stepped.Inject(faultfs.Rule{Kind: storage.OpRename, Glob: "epoch-1", Do: func(faultfs.Op) { winner = mustOpen(t, w.options(disk)) }}).MustFire(t)
	_, err := Open(context.Background(), w.options(stepped))
	if fault.ClassOf(err) != fault.Fenced {
		t.Errorf("the second claimant: %v", err)
	}
	if err := winner.checkpointNow(); err != nil {
		t.Error(err)
	}
	if tree := disk.Tree(testTable + "/.hivesink"); strings.Contains(tree, "claim-") || strings.Count(tree, "epoch-") != 1 {
		t.Error(tree)
	}
}

// TestFencedDirTaken: a fenced directory of the same number is not overwritten.
func TestFencedDirTaken(t *testing.T) {
	disk, w := hdfs(), newWorld()
	old := mustOpen(t, w.options(disk))
	s := &script{l: old, fsys: disk}
	if err := s.run(0, 1, nil); err != nil {
		t.Fatal(err)
	}
	meta := metaDir(testTable)
	for i, name := range []string{"fenced-1", "fenced-1-1"} {
		if err := storage.MkdirAllSync(disk, meta, fmt.Sprintf("%s/%s/%016x", meta, name, i)); err != nil {
			t.Fatal(err)
		}
	}
	l := mustOpen(t, w.options(disk))
	for _, p := range l.State().Parts {
		if where, err := l.Locate(1, p.Name); err != nil || !strings.Contains(where, "/fenced-1-2/") {
			t.Errorf("part at %q: %v", where, err)
		}
	}
}

// TestLook: who sees a higher epoch leaves without a trace, before it fences
// anybody (step 2).
func TestLook(t *testing.T) {
	disk, w := hdfs(), newWorld()
	old := mustOpen(t, w.options(disk))
	stepped := faultfs.New(disk)
	stepped.Inject(faultfs.Rule{Kind: storage.OpSyncDir, Glob: metaDir(testTable), Do: func(faultfs.Op) {
		if err := storage.MkdirAllSync(disk, metaDir(testTable), metaDir(testTable)+"/epoch-9/00000000000000aa"); err != nil {
			t.Error(err)
		}
	}}).MustFire(t)
	_, err := Open(context.Background(), w.options(stepped))
	if fault.ClassOf(err) != fault.Fenced || !strings.Contains(err.Error(), "epoch 9 has been claimed") {
		t.Errorf("open: %v", err)
	}
	if tree := disk.Tree(metaDir(testTable)); strings.Contains(tree, "epoch-2") || strings.Contains(tree, "fenced-") {
		t.Error(tree)
	}
	if err := old.checkpointNow(); err != nil {
		t.Errorf("the owner was disturbed: %v", err)
	}
}

// TestTakeoverOrder: claim and fence are durable, and the log is looked at once
// more, before the seal is written; nothing is removed before it stands (T5).
func TestTakeoverOrder(t *testing.T) {
	disk, w := memfs.New(), newWorld()
	old := mustOpen(t, w.options(disk))
	if err := (&script{l: old, fsys: disk}).run(0, 1, nil); err != nil {
		t.Fatal(err)
	}
	if err := storage.WriteFile(disk, old.Staging()+"/garbage", nil); err != nil {
		t.Fatal(err)
	}
	fsys := faultfs.New(disk)
	l := mustOpen(t, w.options(fsys))
	meta, log := metaDir(testTable), logDir(testTable)
	want := []string{
		"rename " + meta + "/claim-" + l.dir + " " + meta + "/epoch-2",
		"sync-dir " + meta,
		"list " + log, // look
		"list " + meta,
		"rename " + meta + "/epoch-1 " + meta + "/fenced-1",
		"sync-dir " + meta,
		"list " + log, // step 0 once more
		"create " + l.Staging() + "/record-",
		"sync " + l.Staging() + "/record-",
		"rename " + l.Staging() + "/record-",
		"sync-dir " + log,
		"rename " + meta + "/fenced-1/", // garbage, moved aside
		"remove " + l.Staging() + "/trash-",
	}
	next, removed := 0, 0
	for _, op := range fsys.Trace() {
		if next < len(want) && strings.HasPrefix(op.String(), want[next]) {
			next++
		}
		if op.Kind == storage.OpRemove {
			removed++
		}
	}
	if next < len(want) || removed != 1 {
		t.Errorf("T5: %q does not come in its place; %d removals in\n%v", want[min(next, len(want)-1)], removed, fsys.Trace())
	}
}
