package ledger

import (
	"fmt"
	"testing"

	"github.com/hivesink/hivesink/storage/localfs"
)

// BenchmarkSnapshot is what a snapshot of 10,000 partitions costs: the append
// that begins it waits for the copy only, the rest is done beside it.
func BenchmarkSnapshot(b *testing.B) {
	w := newWorld()
	o := w.options(localfs.New())
	o.Table = b.TempDir() + "/table"
	l, err := Open(b.Context(), o)
	if err != nil {
		b.Fatal(err)
	}
	st := l.State()
	for i := range 10_000 {
		p := &Partition{Path: fmt.Sprintf("dt=2026-%04d/hr=%02d", i/24, i%24), Closes: 1_700_000_000_000_000, Files: 100, Rows: 1_000_000, Bytes: 1 << 30,
			Announced: 99, AnnouncedCut: 4711, AnnouncedFiles: 100, AnnouncedRows: 1_000_000, AnnouncedBytes: 1 << 30, Registered: true}
		st.Partitions[PartitionKey("", p.Path)] = p
	}
	b.Run("copy", func(b *testing.B) {
		for b.Loop() {
			st.shallow()
		}
	})
	b.Run("beside", func(b *testing.B) {
		for b.Loop() {
			if err := l.Append(&Record{}); err != nil {
				b.Fatal(err)
			}
			if _, err := l.snapshot(l.st.shallow()); err != nil {
				b.Fatal(err)
			}
		}
	})
}
