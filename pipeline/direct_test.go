package pipeline

import (
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/hivesink/hivesink/audit"
	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/internal/kv"
	"github.com/hivesink/hivesink/layout"
	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/storage"
	"github.com/hivesink/hivesink/storage/memobj"
)

// directSim is a sim on an object store with policy off: parts are uploads to
// their final names, those of the side tables too, and some are closed between
// two checkpoints.
func directSim(t testing.TB) *sim {
	s := objectSim(t, "rolling: {rows: 2}\n")
	s.rounds = 2
	for from, to := range map[string]string{
		"policy: hold":          "policy: 'off'",
		"policies: [metastore,": "late: side, policies: [metastore,",
	} {
		was := s.yaml
		if s.yaml = strings.Replace(s.yaml, from, to, 1); s.yaml == was {
			t.Fatalf("%q is not in the sim's configuration", from)
		}
	}
	return s
}

// undisturbed is what a run that nothing happens to ends with.
func (s *sim) undisturbed(t *testing.T) outcome {
	t.Helper()
	store := memobj.New()
	if err := s.run(t, store.View(nil), kv.NewMem()); err != nil {
		t.Fatal(err)
	}
	o := s.outcome(t, store.View(nil))
	if len(o.main) == 0 || len(o.late) == 0 || len(o.dead) == 0 {
		t.Fatalf("rows in the table %d, late %d, dead %d: there must be all", len(o.main), len(o.late), len(o.dead))
	}
	return o
}

// wantDone: the table has what an undisturbed run ends with, and nothing is left.
func (s *sim) wantDone(t *testing.T, store *memobj.Store, want outcome) {
	t.Helper()
	if got := s.outcome(t, store.View(nil)); !got.equal(want) {
		t.Fatalf("the table holds\n%v\nwant\n%v", got, want)
	}
	st, err := ledger.Read(store.View(nil), simTable)
	if err != nil || len(st.Parts) > 0 || len(st.Units) > 0 {
		t.Fatalf("in flight after the end: %v, %v, %v", st.Parts, st.Units, err)
	}
}

// TestDirectRequests counts: of each file there is one upload, to its final name,
// and nothing else (no copy, no object in the staging directory, no reading
// back); it is completed when the log names it, and not before.
func TestDirectRequests(t *testing.T) {
	store, s := memobj.New(), directSim(t)
	s.rounds = 4
	s.yaml = strings.Replace(s.yaml, "{dt: date(ts)}", `{dt: date(ts)}, {b: "bucket(5, id)"}`, 1)
	uploads, completed := make(map[string]int), make(map[string]bool)
	staging := path.Join(simTable, layout.MetaDir, layout.EpochDir(1)) + "/"
	view := store.View(func(step memobj.Step) memobj.Fate {
		data := strings.HasSuffix(step.Name, layout.PartExt)
		switch _, note := layout.ParseUploadsNote(step.Name); {
		case step.Op == "upload":
			uploads[step.Name]++
		case step.Op == "complete":
			completed[step.Name] = true
			st, err := ledger.Read(store.View(nil), simTable)
			if err != nil {
				t.Fatal(err)
			}
			named := false
			for _, p := range st.Parts {
				named = named || strings.HasSuffix(step.Name, "/"+p.Name) && p.Upload != ""
			}
			if !named {
				t.Errorf("%v: the log does not name it", step)
			}
		case step.Op == "upload-copy", data && step.Op != "head",
			step.Op == "make" && strings.HasPrefix(step.Name, staging) && !note && !strings.Contains(path.Base(step.Name), "snapshot"):
			t.Errorf("%v", step)
		}
		if !data || step.Op == "upload" {
			return memobj.Fate{}
		}
		for _, root := range []string{simTable, simTable + "_dead", simTable + "_late"} {
			_, files := visible(t, store.View(nil), root)
			for _, f := range files {
				if !completed[f] {
					t.Errorf("%v: %s is visible", step, f)
				}
			}
		}
		return memobj.Fate{}
	})
	if err := s.run(t, view, kv.NewMem()); err != nil {
		t.Fatal(err)
	}
	files := 0
	for _, root := range []string{simTable, simTable + "_dead", simTable + "_late"} {
		_, list := visible(t, store.View(nil), root)
		for _, f := range list {
			files++
			if uploads[f] != 1 {
				t.Errorf("%s was uploaded %d times", f, uploads[f])
			}
		}
	}
	if files < 20 || len(uploads) != files {
		t.Fatalf("%d files, %d uploads: want as many, and 20 at least", files, len(uploads))
	}
	wantNoUploads(t, store)
	wantNoNotes(t, store.View(nil))
}

// wantNoNotes: the notes of uploads are gone.
func wantNoNotes(t *testing.T, fs storage.FS) {
	t.Helper()
	err := storage.Walk(fs, path.Join(simTable, layout.MetaDir), func(name string, _ storage.Info) error {
		if _, note := layout.ParseUploadsNote(name); note {
			return fmt.Errorf("a note of uploads is left: %s", name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// step is a stride that leaves time to the other tests.
func step() int {
	if os.Getenv("HIVESINK_EVERY") != "" {
		return stride()
	}
	return 3 * stride()
}

// TestDirectEveryRequest is TestObjectsEveryRequest with policy off: the next
// process has the state or has lost it, and may have another policy. At every
// point fsck finds each row that a checkpoint has, published or held.
func TestDirectEveryRequest(t *testing.T) {
	want := directSim(t).undisturbed(t)
	pending, first := 0, 1
	for _, name := range slices.Sorted(maps.Keys(fates)) {
		fate := fates[name]
		for _, idempotent := range []bool{false, true} {
			fired := 0
			first = first%3 + 1 // so that each request is met, by some fate on some store; HIVESINK_EVERY=1: by each
			for k := first; ; k += step() {
				lost, merging := k%2 > 0, k%4 > 1
				store, s := memobj.New(), directSim(t)
				store.Idempotent = idempotent
				view := store.View(fateOf(name, k, &fired))
				index := kv.NewMem()
				err := s.run(t, view, index)
				if k > view.Steps() {
					break
				}
				at := fmt.Sprintf("request %d, %s, idempotent %v, state lost %v, then merging %v", k, name, idempotent, lost, merging)
				if fate.Repeat && err != nil {
					t.Fatalf("%s: %v", at, err)
				}
				s.checkNow(t, store.View(nil))
				if rep, err := audit.Run(t.Context(), store.View(nil), simTable); err == nil {
					if len(rep.Faults) > 0 {
						t.Fatalf("%s: fsck: %+v", at, rep.Faults)
					}
					pending += rep.PendingParts
				}
				r := s.again()
				if lost {
					index = kv.NewMem()
				}
				if merging {
					r.yaml = strings.Replace(r.yaml, "policy: 'off'", "policy: hold", 1)
				}
				if err := r.run(t, store.View(nil), index); err != nil {
					t.Fatalf("%s: restart: %v", at, err)
				}
				r.wantDone(t, store, want)
				if !fate.Repeat { // an upload begun twice: a run that goes well does not look for the first
					wantNoUploads(t, store, at)
				}
				wantNoNotes(t, store.View(nil))
			}
			if fired == 0 {
				t.Fatalf("%s never fired", name)
			}
		}
	}
	if pending == 0 {
		t.Fatal("fsck never saw a part that an upload holds")
	}
}

// TestDirectAfterMerging: parts that a merging policy has staged are published by
// a run with policy off.
func TestDirectAfterMerging(t *testing.T) {
	want := directSim(t).undisturbed(t)
	staged := 0
	for k := 1; ; k += step() {
		store, s := memobj.New(), directSim(t)
		s.yaml = strings.Replace(s.yaml, "policy: 'off'", "policy: hold", 1)
		view := store.View(func(step memobj.Step) memobj.Fate {
			if step.N >= k {
				return memobj.Fate{Before: errCut}
			}
			return memobj.Fate{}
		})
		_ = s.run(t, view, nil) // the cut
		if k > view.Steps() {
			break
		}
		if st, err := ledger.Read(store.View(nil), simTable); err == nil {
			staged += len(st.Parts)
		}
		r := s.again()
		r.yaml = directSim(t).yaml
		if err := r.run(t, store.View(nil), nil); err != nil {
			t.Fatalf("request %d: restart: %v", k, err)
		}
		r.wantDone(t, store, want)
		wantNoUploads(t, store)
	}
	if staged == 0 {
		t.Fatal("nothing was ever staged")
	}
}

// TestDirectTakeover is TestObjectsTakeover with policy off: both owners may
// complete the same upload, and it makes one file.
func TestDirectTakeover(t *testing.T) {
	want := directSim(t).undisturbed(t)
	fenced, both := 0, 0
	for k := 1; ; k += step() {
		for _, idempotent := range []bool{false, true} {
			store, s := memobj.New(), directSim(t)
			store.Idempotent = idempotent
			var files []string
			taken := false
			view := store.View(func(step memobj.Step) memobj.Fate {
				if step.N == k {
					taken = true
					r := s.again()
					r.bits += 1 << 32 // draws of its own
					if err := r.run(t, store.View(nil), kv.NewMem()); err != nil {
						t.Fatalf("take-over before request %v: %v", step, err)
					}
					r.wantDone(t, store, want)
					_, files = visible(t, store.View(nil), simTable)
				} else if taken && step.Op == "complete" {
					both++
				}
				return memobj.Fate{}
			})
			err := s.run(t, view, kv.NewMem())
			if !taken {
				if fenced == 0 || both == 0 {
					t.Fatalf("fenced %d times, %d uploads completed by the fenced owner too: both must be met", fenced, both)
				}
				return
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
			wantNoUploads(t, store, "request", k, idempotent, err)
			s.again().wantDone(t, store, want)
		}
	}
}

// TestDirectUploadGone: somebody has aborted an upload that a checkpoint names.
// fsck names the rows, and the next process does not go on without them.
func TestDirectUploadGone(t *testing.T) {
	store, s := memobj.New(), directSim(t)
	gone := ""
	view := store.View(func(step memobj.Step) memobj.Fate {
		if step.Op == "complete" {
			gone = step.Name
			return memobj.Fate{Before: errCut}
		}
		return memobj.Fate{}
	})
	if err := s.run(t, view, nil); err == nil || gone == "" {
		t.Fatalf("no completion was cut: %v", err)
	}
	if err := store.View(nil).AbortAt(gone); err != nil {
		t.Fatal(err)
	}
	rep, err := audit.Run(t.Context(), store.View(nil), simTable)
	if err != nil {
		t.Fatal(err)
	}
	if len(rep.Faults) == 0 || rep.Faults[0].Kind != audit.Vanished || !strings.Contains(rep.Faults[0].Message, path.Base(gone)) {
		t.Fatalf("fsck: %+v", rep.Faults)
	}
	err = s.again().run(t, store.View(nil), nil)
	if fault.ClassOf(err) != fault.Halt || !strings.Contains(err.Error(), gone) || !strings.Contains(err.Error(), "rows") {
		t.Fatalf("the next process: %v", err)
	}
}
