package pipeline

import (
	"fmt"
	"slices"
	"testing"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/internal/kv"
	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/storage/memfs"
)

// TestIndexTrouble: that the index is behind is told once, each time it begins,
// and stops nothing.
func TestIndexTrouble(t *testing.T) {
	s := &sim{yaml: fmt.Sprintf(besideYAML, t.TempDir())}
	index := kv.NewMem()
	var told []Event
	p, err := Open(t.Context(), Options{Config: s.config(t), Version: "test", FS: memfs.New(), Index: index, NoLock: true, Inline: true,
		Now: s.clock, Random: s.random, catalog: newService(), Events: func(e Event) { told = append(told, e) }})
	if err != nil {
		t.Fatal(err)
	}
	fired := 0
	index.Hook = func(int, bool) error { fired++; return fault.New(fault.Retry, "", "no space for the index") }
	for n := range 3 {
		if err := p.c.append(&ledger.Record{Checkpoint: &ledger.Checkpoint{Number: uint64(n + 1), Watermark: int64(n)}}); err != nil {
			t.Fatal(err)
		}
	}
	if fired < 3 {
		t.Fatalf("the index was written %d times", fired)
	}
	told = slices.DeleteFunc(told, func(e Event) bool { return e.Kind != "index-behind" })
	if len(told) != 1 || told[0].Err == nil {
		t.Fatalf("told %d times: %+v", len(told), told)
	}
	if err := p.Release(); err != nil {
		t.Fatal(err)
	}
}
