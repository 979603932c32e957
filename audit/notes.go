package audit

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/hivesink/hivesink/layout"
	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/storage"
)

// leftovers notes what dead epochs have left behind (AU-3).
func (a *auditor) leftovers(st *ledger.State) error {
	entries, err := a.fs.List(path.Join(a.root, layout.MetaDir))
	if err != nil {
		return fmt.Errorf("list the table's own directory: %w", err)
	}
	named := make(map[uint64]bool)
	for _, p := range st.Parts {
		named[p.Epoch] = true
	}
	for _, e := range entries {
		if n, ok := layout.ParseFencedDir(e.Name); ok && !named[n] {
			a.rep.note("%s holds nothing the log names; the next run removes it", e.Name)
		}
	}
	units := 0
	for _, u := range st.Units {
		if !u.Published {
			units++
		}
	}
	if n := len(st.Replacements); n > 0 {
		a.rep.note("%d partitions are being compacted, or a compaction was interrupted; the next `hivesink compact` or `run` settles that", n)
	}
	if units > 0 {
		a.rep.note("%d planned units are not published yet", units)
	}
	return nil
}

// behind is what a link leads to, which readers follow. What is neither a file
// nor a directory, and does not lead to one, is a fault, and irregular: to open a
// pipe would be to wait for ever.
func (a *auditor) behind(full string) (storage.Info, error) {
	info, err := a.fs.Stat(full)
	switch {
	case errors.Is(err, storage.ErrNotExist):
		info.Irregular = true
		a.rep.fault(Unknown, full, "", 0, "%s is a link to nothing; remove it, or bring back what it leads to", full)
	case errors.Is(err, syscall.ELOOP): // after some turns
		info.Irregular = true
		a.rep.fault(Unknown, full, "", 0, "%s is a link that leads back to where it lies; remove it", full)
	case err != nil:
		return info, fmt.Errorf("look behind a link: %w", err)
	case info.Irregular:
		a.rep.fault(Unknown, full, "", 0, "%s is neither a file nor a directory; move it out of the table", full)
	}
	return info, nil
}

func place(table, partition string) string {
	name := "the table"
	if table != ledger.MainTable {
		name = "side table " + table
	}
	if partition == "" {
		return name
	}
	return "partition " + partition + " of " + name
}

func oneSource(f *ledger.Footer) string {
	for _, name := range slices.Sorted(maps.Keys(f.Sources)) {
		return name
	}
	return ""
}

// sourceNames lists a few source partitions with the rows a file has of them.
func sourceNames(f *ledger.Footer) string {
	var b strings.Builder
	names := slices.Sorted(maps.Keys(f.Sources))
	for i, name := range names {
		if i == 3 {
			fmt.Fprintf(&b, " and %d more", len(names)-i)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		r := f.Sources[name]
		fmt.Fprintf(&b, "%s (%d rows between %d and %d)", name, r.Rows, r.First, r.Last)
	}
	return b.String()
}

func abs(n int64) int64 {
	if n < 0 {
		return -n
	}
	return n
}
