package pipeline

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/hivesink/hivesink/audit"
	"github.com/hivesink/hivesink/internal/kv"
	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/storage"
	"github.com/hivesink/hivesink/storage/faultfs"
	"github.com/hivesink/hivesink/storage/memfs"
)

// TestPublishedEncoding: a hidden part's cheap encoding never becomes visible,
// not even when the table's codec is that of hidden parts. A single input is
// where it might.
func TestPublishedEncoding(t *testing.T) {
	for _, codec := range []string{"none", "zstd"} {
		s := newSim()
		s.yaml = strings.Replace(simYAML, "  name: t\n", "  name: t\n  compression: "+codec+"\n", 1)
		s.yaml = strings.Replace(s.yaml, "file_size: 3KB", "file_size: 1KB", 1) // a part fills a target
		fs := memfs.New()
		if err := s.run(t, fs, kv.NewMem()); err != nil {
			t.Fatal(err)
		}
		s.checkDone(t, fs)
		_, files := visible(t, fs, simTable)
		for _, name := range files {
			data, err := fs.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			f, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
			if err != nil {
				t.Fatal(err)
			}
			for _, g := range f.Metadata().RowGroups {
				if c := &g.Columns[0].MetaData; len(c.Statistics.MinValue) == 0 || c.Codec.String() != map[string]string{"none": "UNCOMPRESSED", "zstd": "ZSTD"}[codec] {
					t.Errorf("%s, table's codec %s: column id has codec %s and minimum %v: a hidden part's encoding", name, codec, c.Codec, c.Statistics.MinValue)
				}
			}
		}
	}
}

// bundlesOf are the bundles of a state, with the parts in each.
func bundlesOf(st *ledger.State) map[ledger.StagedFile][]*ledger.Part {
	out := make(map[ledger.StagedFile][]*ledger.Part)
	for _, p := range st.Parts {
		if p.Bundle {
			out[p.File()] = append(out[p.File()], p)
		}
	}
	return out
}

// TestBundlesInTheSim: the crash tests of this package run with bundles, whose
// parts are published at different times.
func TestBundlesInTheSim(t *testing.T) {
	mem := memfs.New()
	fs := faultfs.New(mem)
	largest, partly := 0, 0
	seen := make(map[ledger.StagedFile]int)
	fs.Inject(faultfs.Rule{Times: faultfs.Always, Err: errNever, Match: func(faultfs.Op) bool {
		st, err := ledger.Read(mem, simTable)
		if err != nil {
			return false // not made yet
		}
		for file, parts := range bundlesOf(st) {
			largest = max(largest, len(parts))
			if seen[file] > len(parts) {
				partly++ // some of its parts are published and noted, others wait
			}
			seen[file] = max(seen[file], len(parts))
			where, err := ledger.FindStaged(mem, simTable, file.Epoch, file.Name)
			published := 0
			for _, u := range st.Units {
				for _, p := range parts {
					if u.Published && slices.Contains(u.Inputs, p.ID) {
						published++
					}
				}
			}
			if err != nil && published < len(parts) {
				t.Errorf("%s is gone, %d of its %d parts are published: %v", file.Name, published, len(parts), err)
			}
			if where != "" && strings.HasSuffix(where, ".parquet") {
				t.Errorf("bundle %s", where)
			}
		}
		return false
	}})
	s := newSim()
	if err := s.run(t, fs, kv.NewMem()); err != nil {
		t.Fatal(err)
	}
	s.checkDone(t, mem)
	if len(seen) < 3 || largest < 3 || partly == 0 {
		t.Fatalf("%d bundles, the largest of %d parts, %d looks at one that is partly published: they test too little", len(seen), largest, partly)
	}
}

// TestFsckOfBundles: parts in a bundle are pending work; a bundle that is cut
// short or gone is a fault that says how many rows of which source are missing.
func TestFsckOfBundles(t *testing.T) {
	clean := faultfs.New(memfs.New())
	if err := newSim().run(t, clean, kv.NewMem()); err != nil {
		t.Fatal(err)
	}
	tested := 0
	for k := 1; k <= clean.Ops(); k += 5 {
		mem := memfs.New()
		fs := faultfs.New(mem)
		fs.CrashAt(k, true)
		_ = newSim().run(t, fs, kv.NewMem()) // the crash ends it
		image := mem.Kill()
		st, err := ledger.Read(image, simTable)
		if err != nil {
			continue // before the first record
		}
		for file, parts := range bundlesOf(st) {
			where, err := ledger.FindStaged(image, simTable, file.Epoch, file.Name)
			planned := slices.ContainsFunc(slices.Collect(maps.Values(st.Units)), func(u *ledger.Unit) bool {
				return slices.ContainsFunc(parts, func(p *ledger.Part) bool { return slices.Contains(u.Inputs, p.ID) })
			})
			if err != nil || planned {
				continue // its parts may be visible already
			}
			slices.SortFunc(parts, func(a, b *ledger.Part) int { return int(a.Offset - b.Offset) })
			last := parts[len(parts)-1]
			wantFaults(t, image, 0, 0)
			data, err := image.ReadFile(where)
			if err != nil {
				t.Fatal(err)
			}
			replaceFile(t, image, where, data[:len(data)-1])
			wantFaults(t, image, 1, last.Rows)
			replaceFile(t, image, where, data)
			wantFaults(t, image, 0, 0)
			if err := image.Remove(where); err != nil {
				t.Fatal(err)
			}
			rows := int64(0)
			for _, p := range parts {
				rows += p.Rows
			}
			wantFaults(t, image, len(parts), rows)
			tested++
			break
		}
	}
	if tested < 3 {
		t.Fatalf("%d images had a bundle: the test tests too little", tested)
	}
}

func replaceFile(t *testing.T, fs storage.FS, name string, data []byte) {
	t.Helper()
	if err := fs.Remove(name); err != nil {
		t.Fatal(err)
	}
	if err := storage.WriteFile(fs, name, data); err != nil {
		t.Fatal(err)
	}
}

// wantFaults counts hidden parts that are gone, and their rows.
func wantFaults(t *testing.T, fs storage.FS, parts int, rows int64) {
	t.Helper()
	rep, err := audit.Run(context.Background(), fs, simTable)
	if err != nil {
		t.Fatal(err)
	}
	gone, short := 0, int64(0)
	for _, f := range rep.Faults {
		if f.Kind == audit.Vanished {
			gone++
			short += f.Rows
		}
	}
	if gone != parts || short != rows || parts == 0 && (len(rep.Faults) > 0 || rep.PendingParts == 0) {
		t.Fatalf("%d hidden parts with %d rows are gone, want %d with %d: %+v", gone, short, parts, rows, rep)
	}
}
