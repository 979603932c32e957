package pipeline

import (
	"errors"
	"strings"
	"testing"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/internal/kv"
	"github.com/hivesink/hivesink/storage/memobj"
)

var errCut = errors.New("the connection was cut")

// objectSim is a sim with a real directory for its spool.
func objectSim(t testing.TB, extra string) *sim {
	s := newSim()
	s.yaml = strings.Replace(s.yaml, "/nowhere", t.TempDir(), 1) + extra
	return s
}

func wantNoUploads(t *testing.T, store *memobj.Store, at ...any) {
	t.Helper()
	if left := store.Uploads(); len(left) > 0 {
		t.Fatalf("uploads are left: %v %v", left, at)
	}
}

func TestObjectsUndisturbed(t *testing.T) {
	for _, policy := range []string{"hold", "off"} {
		store, s := memobj.New(), objectSim(t, "")
		s.yaml = strings.Replace(s.yaml, "policy: hold", "policy: "+policy, 1)
		if err := s.run(t, store.View(nil), kv.NewMem()); err != nil {
			t.Fatal(err)
		}
		s.checkDone(t, store.View(nil))
		wantNoUploads(t, store)
		if err := s.again().run(t, store.View(nil), nil); err != nil {
			t.Fatal(err)
		}
		s.checkDone(t, store.View(nil))
	}
}

// fates are what becomes of one request.
var fates = map[string]memobj.Fate{
	"not done, then dead":   {Before: errCut},
	"done, then dead":       {After: errCut},
	"done twice":            {Repeat: true},
	"done, the answer lost": {After: errCut},
}

// fateOf is what becomes of each request when that befalls request k: nothing of
// the others, but that the dead make none. fired counts.
func fateOf(name string, k int, fired *int) func(memobj.Step) memobj.Fate {
	dead := false
	return func(step memobj.Step) memobj.Fate {
		switch {
		case step.N == k:
			*fired++
			dead = strings.HasSuffix(name, "dead")
			return fates[name]
		case dead:
			return memobj.Fate{Before: errCut}
		}
		return memobj.Fate{}
	}
}

// TestObjectsEveryRequest stops the run at every request, loses every answer and
// does every request twice, on stores of both kinds. What a reader sees is right
// at any moment, and the next process finishes.
func TestObjectsEveryRequest(t *testing.T) {
	for name, fate := range fates {
		for _, idempotent := range []bool{false, true} {
			fired := 0
			for k := 1; ; k += stride() {
				store, s := memobj.New(), objectSim(t, "")
				store.Idempotent = idempotent
				view := store.View(fateOf(name, k, &fired))
				index := kv.NewMem()
				err := s.run(t, view, index)
				if k > view.Steps() {
					break
				}
				if fate.Repeat && err != nil {
					t.Fatalf("request %d done twice: %v", k, err)
				}
				s.checkNow(t, store.View(nil))
				r := s.again()
				if err := r.run(t, store.View(nil), index); err != nil {
					t.Fatalf("request %d, %s, idempotent %v: restart: %v", k, name, idempotent, err)
				}
				r.checkDone(t, store.View(nil))
				if !fate.Repeat { // an upload begun twice: a run that goes well does not look for the first
					wantNoUploads(t, store)
				}
			}
			if fired == 0 {
				t.Fatalf("%s never fired", name)
			}
		}
	}
}

// TestObjectsTakeover lets a second owner take the table over before every
// request of the first and finish the work; the first is fenced, and makes
// nothing visible afterwards, though all its later requests are let through.
func TestObjectsTakeover(t *testing.T) {
	fenced, uploads := 0, 0
	for k := 1; ; k += stride() {
		store, s := memobj.New(), objectSim(t, "")
		store.Idempotent = k%2 == 0
		var files []string
		taken := false
		view := store.View(func(step memobj.Step) memobj.Fate {
			if step.N == k {
				taken = true
				uploads += len(store.Uploads())
				r := s.again()
				r.bits += 1 << 32 // draws of its own
				if err := r.run(t, store.View(nil), kv.NewMem()); err != nil {
					t.Fatalf("take-over before request %v: %v", step, err)
				}
				r.checkDone(t, store.View(nil))
				_, files = visible(t, store.View(nil), simTable)
			}
			return memobj.Fate{}
		})
		err := s.run(t, view, kv.NewMem())
		if !taken {
			break
		}
		if err != nil && fault.ClassOf(err) != fault.Fenced {
			t.Fatalf("request %d: the first owner: %v", k, err)
		}
		if err != nil {
			fenced++
		}
		if _, now := visible(t, store.View(nil), simTable); strings.Join(files, " ") != strings.Join(now, " ") {
			t.Fatalf("request %d: the first owner, fenced, changed the table:\n%v\n%v", k, files, now)
		}
		s.again().checkDone(t, store.View(nil))
	}
	if fenced == 0 || uploads == 0 {
		t.Fatalf("fenced %d times, with %d uploads under way: both must be met", fenced, uploads)
	}
}
