package pipeline

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/hivesink/hivesink/audit"
	"github.com/hivesink/hivesink/internal/kv"
	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/storage"
	"github.com/hivesink/hivesink/storage/faultfs"
	"github.com/hivesink/hivesink/storage/memfs"
)

// outcome is what a finished table holds, for a comparison of runs: lateness
// depends on nothing but a source partition's own records, so a disturbed run
// must end with the same.
type outcome struct {
	main, late, dead []int64
	dropped          int64
}

func (s *sim) outcome(t *testing.T, fs storage.FS) outcome {
	t.Helper()
	var o outcome
	o.main, _ = visible(t, fs, simTable)
	o.late, _ = visible(t, fs, simTable+"_late")
	o.dead, _ = visible(t, fs, simTable+"_dead")
	rep, err := audit.Run(t.Context(), fs, simTable)
	if err != nil {
		t.Fatal(err)
	}
	if len(rep.Faults) > 0 || rep.PendingParts > 0 {
		t.Fatalf("fsck: %+v", rep)
	}
	st, err := ledger.Read(fs, simTable)
	if err != nil {
		t.Fatal(err)
	}
	for _, src := range st.Sources {
		o.dropped += src.Dropped.Rows
	}
	checkStaging(t, fs)
	return o
}

func (o outcome) equal(p outcome) bool {
	return slices.Equal(o.main, p.main) && slices.Equal(o.late, p.late) && slices.Equal(o.dead, p.dead) && o.dropped == p.dropped
}

// partsMerged: parts have the table's encoding, so that their pages are moved.
const partsMerged = "parts in the table's encoding"

// modes counts the published units by the mode that was used.
func modes(t *testing.T, fs storage.FS) map[string]int {
	t.Helper()
	out := map[string]int{}
	err := ledger.ReadLog(fs, simTable, func(r *ledger.Record) error {
		for _, p := range r.Published {
			out[p.Mode]++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestCrashVariants crashes runs of other policies: what is packed, what
// becomes of late rows and of bad ones, when partitions are announced.
func TestCrashVariants(t *testing.T) {
	for _, v := range []struct {
		name, from, to string
		check          func(*testing.T, outcome)
	}{
		{"policy off", "policy: hold", "policy: 'off'", nil},
		{"policy checkpoint", "policy: hold", "policy: checkpoint", nil},
		{"process-time", "trigger: partition-time, delay: 2h", "trigger: process-time, delay: 0s", nil},
		{"late drop", "policies: [metastore", "late: drop, policies: [metastore", func(t *testing.T, o outcome) {
			if o.dropped == 0 {
				t.Fatal("no row was late: the variant tests nothing")
			}
		}},
		{"late side", "policies: [metastore", "late: side, policies: [metastore", func(t *testing.T, o outcome) {
			if len(o.late) == 0 {
				t.Fatal("no row was late: the variant tests nothing")
			}
		}},
		{"bad drop", "policy: dead-letter", "policy: drop", func(t *testing.T, o outcome) {
			if o.dropped == 0 || len(o.dead) != 0 {
				t.Fatalf("%d dropped, %d dead-lettered", o.dropped, len(o.dead))
			}
		}},
		{"unmerged", "commit: {", "limits: {staging: 2KB}\ncommit: {", nil}, // slices, which no unit may publish as they are
		{"tiny targets", "file_size: 3KB", "file_size: 1B", nil},
		{"many partitions", "{dt: date(ts)}", `{dt: date(ts)}, {b: "bucket(7, id)"}`, nil},
		{"not partitioned", "  partitioned_by: [{dt: date(ts)}]\n", "", nil},
		{partsMerged, "policy: hold, file_size: 3KB", "policy: hold, file_size: 30KB", nil},
	} {
		t.Run(v.name, func(t *testing.T) {
			s := newSim()
			s.yaml = strings.Replace(simYAML, v.from, v.to, 1)
			if s.yaml == simYAML {
				t.Fatal("the variant changes nothing")
			}
			if v.name == "not partitioned" {
				s.yaml = strings.Replace(s.yaml, "trigger: partition-time, delay: 2h", "trigger: process-time", 1)
			}
			if v.name == partsMerged {
				s.small = 1
			}
			clean := memfs.New()
			watch := faultfs.New(clean)
			if err := s.run(t, watch, kv.NewMem()); err != nil {
				t.Fatal(err)
			}
			want := s.outcome(t, clean)
			if n := modes(t, clean)[ledger.ModeMerge]; (n > 0) != (v.name == partsMerged) {
				t.Fatalf("%d units were merged", n)
			}
			all, _ := s.wantRows()
			if n := int64(len(want.main) + len(want.late) + len(want.dead)); n+want.dropped != 2*s.end() || len(want.main) > len(all) {
				t.Fatalf("%d rows of %d are somewhere", n+want.dropped, 2*s.end())
			}
			if v.check != nil {
				v.check(t, want)
			}
			for k := 1; k <= watch.Ops()-4; k += max(10, watch.Ops()/40) * stride() {
				mem := memfs.New()
				fs := faultfs.New(mem)
				fs.CrashAt(k, k%2 == 0)
				r := &sim{yaml: s.yaml, rounds: s.rounds, small: s.small}
				if err := r.run(t, fs, kv.NewMem()); !errors.Is(err, faultfs.ErrCrashed) {
					t.Fatalf("operation %d: the crash did not stop the run: %v", k, err)
				}
				for _, image := range []*memfs.FS{mem.Kill(), mem.Crash(memfs.Random, uint64(k))} {
					again := r.again()
					if err := again.run(t, image, nil); err != nil {
						t.Fatalf("operation %d: restart: %v", k, err)
					}
					if got := again.outcome(t, image); !got.equal(want) {
						t.Fatalf("operation %d: got %+v\nwant %+v", k, got, want)
					}
				}
			}
		})
	}
}

// TestPolicyChangesBetweenCrashAndRestart: other packing after the restart
// loses and doubles nothing, and stored plans are finished as they were.
func TestPolicyChangesBetweenCrashAndRestart(t *testing.T) {
	watch := faultfs.New(memfs.New())
	if err := newSim().run(t, watch, nil); err != nil {
		t.Fatal(err)
	}
	changes := []string{"policy: 'off'", "policy: checkpoint", "policy: hold, file_size: 100MB", "policy: hold, file_size: 1KB"}
	for k := 5; k < watch.Ops()-4; k += 13 * stride() {
		mem := memfs.New()
		fs := faultfs.New(mem)
		fs.CrashAt(k, true)
		s := newSim()
		if err := s.run(t, fs, nil); !errors.Is(err, faultfs.ErrCrashed) {
			t.Fatalf("operation %d: the crash did not stop the run: %v", k, err)
		}
		image := mem.Kill()
		to := changes[k%len(changes)]
		r := &sim{yaml: strings.Replace(simYAML, "policy: hold, file_size: 3KB", to, 1), rounds: s.rounds, now: s.now, bits: s.bits}
		if err := r.run(t, image, nil); err != nil {
			t.Fatalf("operation %d, %s: restart: %v", k, to, err)
		}
		r.checkDone(t, image)
	}
}
