package ledger

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/storage"
	"github.com/hivesink/hivesink/storage/memobj"
)

var errCut = errors.New("the connection was cut")

// at is a hook that does something before the k-th request.
func at(k int, do func()) func(memobj.Step) memobj.Fate {
	return func(s memobj.Step) memobj.Fate {
		if s.N == k {
			do()
		}
		return memobj.Fate{}
	}
}

// TestObjectsFenceOldOwner lets the old owner append between any two requests of
// the take-over: what it was told is true, and after the take-over it gets
// nothing in any more.
func TestObjectsFenceOldOwner(t *testing.T) {
	accepted, refused := 0, 0
	for k := 1; ; k++ {
		store, w := memobj.New(), newWorld()
		old := mustOpen(t, w.options(store.View(nil)))
		if err := old.checkpointNow(); err != nil {
			t.Fatal(err)
		}
		want := uint64(1)
		view := store.View(at(k, func() {
			switch err := old.checkpointNow(); fault.ClassOf(err) {
			case "":
				want++
				accepted++
			case fault.Fenced:
				refused++
			default:
				t.Errorf("old owner before request %d: %v", k, err)
			}
		}))
		o := w.options(view)
		o.PID, o.Host = 8, "b"
		l, err := Open(context.Background(), o)
		if err != nil {
			t.Fatalf("take-over, the old owner appending before request %d: %v", k, err)
		}
		if l.State().Checkpoint != want {
			t.Errorf("request %d: the new owner sees checkpoint %d, %d were acknowledged", k, l.State().Checkpoint, want)
		}
		if err := old.checkpointNow(); fault.ClassOf(err) != fault.Fenced {
			t.Errorf("request %d: append of the old owner after the take-over: %v", k, err)
		}
		if err := old.Confirm(); fault.ClassOf(err) != fault.Fenced {
			t.Errorf("request %d: the old owner thinks that it owns the table: %v", k, err)
		}
		if err := errors.Join(l.checkpointNow(), l.Confirm()); err != nil {
			t.Error(err)
		}
		if got := stateOf(t, store.View(nil)); canon(t, got) != canon(t, l.State()) {
			t.Errorf("request %d: the log says %s", k, canon(t, got))
		}
		if k > view.Steps() {
			break
		}
	}
	if accepted == 0 || refused == 0 {
		t.Errorf("%d appends accepted, %d refused: both must be met", accepted, refused)
	}
}

// TestObjectsFenceInAppend takes the table over between any two requests of an
// append of the old owner.
func TestObjectsFenceInAppend(t *testing.T) {
	counted, adopted := 0, 0
	for k := 1; ; k++ {
		store, w := memobj.New(), newWorld()
		var next *Ledger
		from := 0
		view := store.View(func(s memobj.Step) memobj.Fate {
			if from > 0 && s.N == from+k {
				next = mustOpen(t, w.options(store.View(nil)))
			}
			return memobj.Fate{}
		})
		old := mustOpen(t, w.options(view))
		from = view.Steps()
		err := old.checkpointNow()
		if next == nil {
			break
		}
		switch {
		case err == nil && next.State().Checkpoint != 1:
			t.Errorf("request %d: acknowledged, and the new owner does not see it", k)
		case err != nil && fault.ClassOf(err) != fault.Fenced:
			t.Errorf("request %d: %v", k, err)
		case err == nil:
			counted++
		case next.State().Checkpoint == 1:
			adopted++ // it stood, and did not count
		}
		if err := old.checkpointNow(); fault.ClassOf(err) != fault.Fenced {
			t.Errorf("request %d: append after the take-over: %v", k, err)
		}
		if err := next.checkpointNow(); err != nil {
			t.Errorf("request %d: append of the new owner: %v", k, err)
		}
		if got := stateOf(t, store.View(nil)); canon(t, got) != canon(t, next.State()) {
			t.Errorf("request %d: the log says %s", k, canon(t, got))
		}
	}
	if adopted == 0 {
		t.Error("no record stood without counting: the look was not in the way")
	}
}

// TestObjectsTwoNewcomers lets a second newcomer take over, and append, between
// any two requests of a first. In the end just one of them owns the table.
func TestObjectsTwoNewcomers(t *testing.T) {
	won, left := 0, 0
	for k := 1; ; k++ {
		store, w := memobj.New(), newWorld()
		mustOpen(t, w.options(store.View(nil)))
		var second *Ledger
		view := store.View(at(k, func() {
			second = mustOpen(t, w.options(store.View(nil)))
			if err := second.checkpointNow(); err != nil {
				t.Error(err)
			}
		}))
		first, err := Open(context.Background(), w.options(view))
		if second == nil {
			break
		}
		appended := second.checkpointNow()
		switch {
		case err == nil && fault.ClassOf(appended) == fault.Fenced:
			won++
			if first.Epoch() <= second.Epoch() || first.checkpointNow() != nil {
				t.Errorf("request %d: epoch %d has lost against %d", k, second.Epoch(), first.Epoch())
			}
		case err == nil:
			if err := first.checkpointNow(); appended != nil || fault.ClassOf(err) != fault.Fenced {
				t.Errorf("request %d: both own it: %v, %v", k, err, appended)
			}
		case fault.ClassOf(err) == fault.Fenced:
			left++
			if appended != nil {
				t.Errorf("request %d: neither owns it: %v, %v", k, err, appended)
			}
		default:
			t.Errorf("request %d: %v", k, err)
		}
		if st := stateOf(t, store.View(nil)); st.Checkpoint != 2 {
			t.Errorf("request %d: the log says %s", k, canon(t, st))
		}
	}
	if won == 0 || left == 0 {
		t.Errorf("the first newcomer won %d and left %d times: both must be met", won, left)
	}
}

// TestObjectsFreeSequence: an owner is stopped just before it appends, for so
// long that the record which took its sequence has left the log. Its append
// succeeds then, and must not count (T13); nor may it be read as part of the log.
func TestObjectsFreeSequence(t *testing.T) {
	for _, who := range []string{"an owner", "a newcomer"} {
		store, w := memobj.New(), newWorld()
		mustOpen(t, w.options(store.View(nil)))
		var next *Ledger
		overtake := func() {
			// Two of them: the record of the first one's epoch, which takes the
			// sequence, stays while it owns the table.
			for range 2 {
				o := w.options(store.View(nil))
				o.SnapshotEvery, o.History = 4, time.Nanosecond
				next = mustOpen(t, o)
				for range 40 {
					if err := next.checkpointNow(); err != nil {
						t.Fatal(err)
					}
				}
			}
			if err := next.UpkeepErr(); err != nil {
				t.Fatal(err)
			}
		}
		armed, made, stood := false, 0, false
		view := store.View(func(s memobj.Step) memobj.Fate {
			if armed && s.Op == "make" && made == 0 {
				made++
				overtake()
			} else if made == 1 && s.Op == "list-after" { // the look comes after what stood only
				stood = true
			}
			return memobj.Fate{}
		})
		var err error
		if who == "an owner" {
			old := mustOpen(t, w.options(view))
			armed = true
			err = old.checkpointNow()
		} else {
			armed = true
			_, err = Open(context.Background(), w.options(view))
		}
		if made != 1 {
			t.Fatalf("%s made %d records", who, made)
		}
		if !stood {
			t.Errorf("%s: the sequence was not free again", who)
		}
		if fault.ClassOf(err) != fault.Fenced {
			t.Errorf("%s whose sequence was free again: %v", who, err)
		}
		if err := next.checkpointNow(); err != nil {
			t.Error(err)
		}
		if got := stateOf(t, store.View(nil)); canon(t, got) != canon(t, next.State()) {
			t.Errorf("%s: the log says %s", who, canon(t, got))
		}
		for range 40 { // the stray record must not stop the upkeep
			if err := next.checkpointNow(); err != nil {
				t.Fatal(err)
			}
		}
		if err := next.UpkeepErr(); err != nil {
			t.Errorf("%s: upkeep: %v", who, err)
		}
		last := uint64(0)
		err = ReadLog(store.View(nil), testTable, func(r *Record) error {
			if r.Seq < 30 {
				t.Errorf("%s: the stray record %d is read as part of the log", who, r.Seq)
			}
			last = r.Seq
			return nil
		})
		if err != nil || last != next.State().Seq {
			t.Errorf("%s: the log ends at %d of %d: %v", who, last, next.State().Seq, err)
		}
	}
}

// TestObjectsCrash stops a script at every request, done and not done, and
// answers lost; the next owner finds what was acknowledged, and at most one
// record more, and finishes the script.
func TestObjectsCrash(t *testing.T) {
	const records = 2 * steps
	for _, fate := range []memobj.Fate{{Before: errCut}, {After: errCut}, {Repeat: true}} {
		fired := 0
		for k := 1; ; k++ {
			store, w := memobj.New(), newWorld()
			dead := false
			view := store.View(func(s memobj.Step) memobj.Fate {
				switch {
				case s.N == k:
					fired++
					dead = !fate.Repeat
					return fate
				case dead:
					return memobj.Fate{Before: errCut}
				}
				return memobj.Fate{}
			})
			o := w.options(view)
			o.SnapshotEvery = 4
			acknowledged := 0
			l, err := Open(context.Background(), o)
			if err == nil {
				err = (&script{l: l, fsys: view}).run(0, records, func() { acknowledged++ })
			}
			if fate.Repeat && err != nil {
				t.Fatalf("request %d done twice: %v", k, err)
			}
			if k > view.Steps() {
				break
			}
			again := w.options(store.View(nil))
			next := mustOpen(t, again)
			have := 0
			if err := ReadLog(store.View(nil), testTable, func(r *Record) error {
				if r.NewEpoch == nil {
					have++
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			if have != acknowledged && have != acknowledged+1 {
				t.Errorf("request %d, %+v: %d records acknowledged, %d are there", k, fate, acknowledged, have)
			}
			if err := (&script{l: next, fsys: store.View(nil)}).run(have, records-have, nil); err != nil {
				t.Fatalf("request %d, %+v: go on after %d records: %v", k, fate, have, err)
			}
			if got := stateOf(t, store.View(nil)); canon(t, got) != canon(t, next.State()) {
				t.Errorf("request %d: the log says %s", k, canon(t, got))
			}
		}
		if fired == 0 {
			t.Fatalf("%+v never fired", fate)
		}
	}
}

// TestObjectsStaleProbe: what a probe left whose process died goes at the next
// start.
func TestObjectsStaleProbe(t *testing.T) {
	store, w := memobj.New(), newWorld()
	left := metaDir(testTable) + "/probe-0123456789abcdef"
	if err := store.View(nil).Make(left, nil); err != nil {
		t.Fatal(err)
	}
	mustOpen(t, w.options(store.View(nil)))
	if _, err := store.View(nil).Stat(left); !errors.Is(err, storage.ErrNotExist) {
		t.Fatalf("the probe is still there: %v", err)
	}
}
