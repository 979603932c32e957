package pipeline

import (
	"slices"
	"testing"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/storage"
	"github.com/hivesink/hivesink/storage/faultfs"
	"github.com/hivesink/hivesink/storage/memfs"
)

// TestPolicyOutage: a policy that goes on failing stops announcing, never
// publishing, and does not keep a run from ending; the next run announces.
func TestPolicyOutage(t *testing.T) {
	mem := memfs.New()
	fs := faultfs.New(mem)
	fs.Inject(faultfs.Rule{Kind: storage.OpReplace, Glob: "_SUCCESS", Times: faultfs.Always, Err: storage.ErrNoSpace}).MustFire(t)
	s := newSim()
	err := s.run(t, fs, nil)
	if fault.ClassOf(err) != fault.Retry {
		t.Fatalf("class %s: %v", fault.ClassOf(err), err)
	}
	want, _ := s.wantRows()
	if got, _ := visible(t, mem, simTable); !slices.Equal(got, want) {
		t.Fatalf("%d rows visible in the outage, want %d", len(got), len(want))
	}
	again := &sim{yaml: s.yaml, rounds: s.rounds, now: s.now, bits: s.bits}
	if err := again.run(t, mem, nil); err != nil {
		t.Fatal(err)
	}
	again.checkDone(t, mem)
}
