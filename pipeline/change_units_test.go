package pipeline

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/hivesink/hivesink/layout"
	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/storage"
	"github.com/hivesink/hivesink/storage/memfs"
	"github.com/hivesink/hivesink/storage/memobj"
)

// TestChangesOnObjects: the same on an object store, where with policy off a part
// is an upload to its final name already.
func TestChangesOnObjects(t *testing.T) {
	for _, name := range []string{"a column more", "a column less", "another type", "a column partitions", "a partition column more",
		"codec", "compaction off", "compaction by checkpoint", "delay and late rows to the side"} {
		i := slices.IndexFunc(changes, func(c change) bool { return c.name == name })
		t.Run(name, func(t *testing.T) {
			before, after := changes[i].configs(t)
			for way, pair := range [][2]string{{before, after}, {after, before}} {
				sim := func(yaml string) *sim {
					return &sim{yaml: strings.Replace(yaml, "/nowhere", t.TempDir(), 1), rounds: 4}
				}
				clean := memobj.New()
				view := clean.View(nil)
				if err := sim(pair[0]).run(t, view, nil); err != nil {
					t.Fatal(err)
				}
				inFlight, all := 0, view.Steps()
				for k := all / 4; k < all; k += max(1, all/6) {
					if testing.Short() && inFlight > 0 {
						break // one kill with work in flight
					}
					store, first, fired := memobj.New(), sim(pair[0]), 0
					if err := first.run(t, store.View(fateOf("not done, then dead", k, &fired)), nil); err == nil || fired == 0 {
						t.Fatalf("request %d: it did not die", k)
					}
					image := store.View(nil)
					st, err := ledger.Read(image, simTable)
					if err != nil {
						t.Fatal(err)
					}
					inFlight += len(st.Parts)
					next := sim(pair[1])
					next.now, next.bits = first.now, first.bits
					if err := next.run(t, image, nil); err != nil {
						t.Fatalf("way %d, request %d: %v", way, k, err)
					}
					if err := next.accounted(t, image, st, strings.Contains(pair[0], "name string")); err != nil {
						t.Fatalf("way %d, request %d: %v", way, k, err)
					}
					wantNoUploads(t, store, k)
				}
				if inFlight == 0 {
					t.Errorf("way %d: nothing was in flight at any kill", way)
				}
			}
		})
	}
}

// held writes some batches that stay hidden, and dies.
func (s *sim) held(t *testing.T, fs storage.FS, batches int) {
	t.Helper()
	ctx := context.Background()
	p, err := Open(ctx, Options{Config: s.config(t), Version: "test", FS: fs, NoLock: true, Inline: true, Now: s.clock, Random: s.random})
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range simSources {
		from, err := p.Own(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		lane, err := p.NewLane()
		if err != nil {
			t.Fatal(err)
		}
		lane.Adopt(name, from)
		for k := range batches {
			b := s.batch(p.Schema(), i, from.NextRow+int64(k)*simBatch)
			if _, err := lane.Write(ctx, name, b); err != nil {
				t.Fatal(err)
			}
			b.Record.Release()
		}
	}
	if err := p.Checkpoint(ctx); err != nil {
		t.Fatal(err)
	}
	if err := p.Release(); err != nil {
		t.Fatal(err)
	}
}

// TestMixedUnit: older versions planned parts of before and after a change of
// columns as one unit. What cannot be one file is given up, and each part is
// published by itself, with the columns it has.
func TestMixedUnit(t *testing.T) {
	fs := memfs.New()
	before := &sim{yaml: strings.Replace(simYAML, "max_delay: 7s", "max_delay: 1h", 1), rounds: 4}
	before.held(t, fs, 1)
	named, err := ledger.Read(fs, simTable)
	if err != nil {
		t.Fatal(err)
	}
	after := before.again()
	after.yaml = strings.Replace(before.yaml, simColumns, "columns: [id bigint, ts timestamp]", 1)
	after.held(t, fs, 1)
	log, err := ledger.Open(context.Background(), ledger.Options{FS: fs, Table: simTable, Pipeline: "sim", Random: after.random})
	if err != nil {
		t.Fatal(err)
	}
	members := make(map[string][]*ledger.Part)
	for _, id := range slices.Sorted(maps.Keys(log.State().Parts)) {
		if p := log.State().Parts[id]; p.Table == ledger.MainTable {
			members[p.Partition] = append(members[p.Partition], p)
		}
	}
	var plan []ledger.Unit
	for _, partition := range slices.Sorted(maps.Keys(members)) {
		u := ledger.Unit{ID: layout.ID(after.random()), Partition: partition, Target: layout.PartFile(1, after.random()), Mode: ledger.ModeRewrite}
		schemas := make(map[string]bool)
		for _, p := range members[partition] {
			u.Inputs, u.Rows, u.Checkpoint = append(u.Inputs, p.ID), u.Rows+p.Rows, max(u.Checkpoint, p.Checkpoint)
			schemas[p.Schema] = true
		}
		if len(schemas) == 2 {
			plan = append(plan, u)
		}
	}
	if len(plan) == 0 {
		t.Fatal("no partition has parts of both")
	}
	if err := log.Append(&ledger.Record{Plan: plan}); err != nil {
		t.Fatal(err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	end := after.again()
	if err := end.run(t, fs, nil); err != nil {
		t.Fatal(err)
	}
	if err := end.accounted(t, fs, named, true); err != nil {
		t.Fatal(err)
	}
}
