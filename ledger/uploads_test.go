package ledger

import (
	"context"
	"strings"
	"testing"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/layout"
	"github.com/hivesink/hivesink/storage/memobj"
)

// uploaded is a checkpoint of one part that is an upload to its final name, and
// the unit that completes it.
func uploaded(l *Ledger, upload string) *Checkpoint {
	n := l.State().Checkpoint + 1
	name := layout.PartFile(l.Epoch(), n)
	p := Part{ID: layout.ID(n), Partition: "dt=1", Epoch: l.Epoch(), Name: name, Upload: upload, Rows: 3, Bytes: 10, Schema: "s1", Codec: "zstd",
		Final: true, Checkpoint: n}
	u := Unit{ID: layout.ID(n << 32), Partition: p.Partition, Inputs: []string{p.ID}, Target: name, Mode: ModePublish, Checkpoint: n, Rows: p.Rows}
	return &Checkpoint{Number: n, Parts: []Part{p}, Units: []Unit{u}}
}

// TestUploadedParts: a part that is an upload to its final name goes with the
// unit that completes it, and nothing else becomes of it (T14).
func TestUploadedParts(t *testing.T) {
	l := mustOpen(t, newWorld().options(memobj.New().View(nil)))
	for name, spoil := range map[string]func(*Checkpoint){
		"no unit":        func(c *Checkpoint) { c.Units = nil },
		"another target": func(c *Checkpoint) { c.Units[0].Target = layout.PartFile(1, 99) },
		"merged":         func(c *Checkpoint) { c.Units[0].Mode = ModeMerge },
		"not final":      func(c *Checkpoint) { c.Parts[0].Final = false },
		"a slice":        func(c *Checkpoint) { c.Parts[0].Bundle = true },
		"merged with another": func(c *Checkpoint) {
			more := Part{ID: layout.ID(77), Partition: "dt=1", Epoch: 1, Name: layout.StagedPart(layout.ID(77)), Rows: 1, Bytes: 1, Checkpoint: c.Number}
			c.Parts = append(c.Parts, more)
			c.Units[0].Inputs, c.Units[0].Rows, c.Units[0].Mode = append(c.Units[0].Inputs, more.ID), 4, ModeMerge
		},
	} {
		c := uploaded(l, "u1")
		spoil(c)
		if err := l.Append(&Record{Checkpoint: c}); fault.ClassOf(err) != fault.Halt {
			t.Errorf("%s: %v", name, err)
		}
	}
	c := uploaded(l, "u1")
	r := &Record{Checkpoint: c}
	mustAppend(t, l, r)
	data, _, err := Encode(r)
	if err != nil || !strings.Contains(string(data), `"upload":"u1"`) {
		t.Fatalf("the record is %s, %v", data, err)
	}
	if back, _, err := Decode("r", data); err != nil || back.Checkpoint.Parts[0].Upload != "u1" {
		t.Fatalf("it reads as %+v, %v", back, err)
	}
	u := c.Units[0]
	if p := l.State().Ready(l.State().Units[u.ID]); p == nil || p.ID != c.Parts[0].ID {
		t.Fatalf("ready: %v", p)
	}
	published := func(mode string) *Record {
		return &Record{Published: []Published{{Unit: u.ID, Path: "dt=1/" + u.Target, Mode: mode, Rows: 3, Bytes: 10, Leaves: u.Inputs}}}
	}
	if err := l.Append(&Record{Uploading: []Upload{{Unit: u.ID, ID: "u2"}}}); fault.ClassOf(err) != fault.Halt {
		t.Errorf("another upload of it: %v", err)
	}
	if err := l.Append(published(ModeMerge)); fault.ClassOf(err) != fault.Halt {
		t.Errorf("published by another mode: %v", err)
	}
	mustAppend(t, l, published(ModePublish))
	if st := l.State(); len(st.Parts)+len(st.Units) != 0 {
		t.Errorf("left: %v %v", st.Parts, st.Units)
	}
}

// TestUploadNotes: an owner dies with uploads of which the log names one. The
// next owner aborts the other one, and not before it owns the table.
func TestUploadNotes(t *testing.T) {
	ctx := context.Background()
	store, w := memobj.New(), newWorld()
	l := mustOpen(t, w.options(store.View(nil)))
	c := uploaded(l, "")
	file := func(name string) string { return testTable + "/dt=1/" + name }
	named, lost := file(c.Parts[0].Name), file(layout.PartFile(1, 1<<40))
	if err := l.Uploads().Note([]string{named, lost}); err != nil {
		t.Fatal(err)
	}
	view := store.View(nil)
	id, err := view.Upload(ctx, named, strings.NewReader("0123456789"), 10)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := view.Upload(ctx, lost, strings.NewReader("x"), 1); err != nil {
		t.Fatal(err)
	}
	c.Parts[0].Upload = id
	mustAppend(t, l, &Record{Checkpoint: c})
	l.Uploads().Named([]string{named})

	early := 0
	o := w.options(store.View(func(s memobj.Step) memobj.Fate {
		if st, err := Read(store.View(nil), testTable); err == nil && st.Epoch == 1 && len(store.Uploads()) < 2 {
			early++
		}
		return memobj.Fate{}
	}))
	mustOpen(t, o)
	if early > 0 {
		t.Error("an upload was aborted before the take-over")
	}
	if left := store.Uploads(); len(left) != 1 || left[id] != named {
		t.Errorf("uploads left: %v", left)
	}
	if notes := noteCount(t, store); notes != 0 {
		t.Errorf("%d notes are left", notes)
	}

	// A note goes when all that it has is named.
	l2 := mustOpen(t, w.options(store.View(nil)))
	if err := l2.Uploads().Note([]string{file("a"), file("b")}); err != nil {
		t.Fatal(err)
	}
	l2.Uploads().Named([]string{file("a")})
	if notes := noteCount(t, store); notes != 1 {
		t.Errorf("%d notes with a name that waits", notes)
	}
	l2.Uploads().Named([]string{file("b")})
	if notes := noteCount(t, store); notes != 0 {
		t.Errorf("%d notes with no name that waits", notes)
	}
}

func noteCount(t *testing.T, store *memobj.Store) (n int) {
	t.Helper()
	view := store.View(nil)
	meta, err := view.List(metaDir(testTable))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range meta {
		if _, ok := layout.ParseEpochDir(e.Name); !ok {
			continue
		}
		subs, err := view.List(metaDir(testTable) + "/" + e.Name)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range subs {
			files, err := view.List(metaDir(testTable) + "/" + e.Name + "/" + s.Name)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range files {
				if _, note := layout.ParseUploadsNote(f.Name); note {
					n++
				}
			}
		}
	}
	return n
}
