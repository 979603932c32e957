package maintenance

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/layout"
	"github.com/hivesink/hivesink/storage"
)

// directory is one that has files that may be data.
type directory struct {
	rel   string // below the table, "" for its root
	depth int
	// mixed: there are visible directories in it as well. It is compacted after
	// all others, for they lie in it.
	mixed bool
	marks bool // a marker lies in it
	// summary is a summaryFile in it or above it, below the table; "": none.
	summary string
}

// summaryFile is where some writers put the footers of all files below it.
// Readers that go by it look for those.
const summaryFile = "_metadata"

// scanner walks a table for directories with visible files.
type scanner struct {
	ctx   context.Context
	fs    storage.FS
	root  string
	want  []selection
	found []directory
	odd   []Partition // left alone or failed without a plan
}

// maxDepth bounds the levels of directories.
const maxDepth = 64

func (s *scanner) walk(rel string, depth int, summary string) error {
	if err := s.ctx.Err(); err != nil {
		return err
	}
	if depth > maxDepth {
		return fmt.Errorf("%s: more than %d levels of directories", path.Join(s.root, rel), maxDepth)
	}
	entries, err := s.fs.List(path.Join(s.root, rel))
	if err != nil {
		if rel == "" {
			return storage.Classify(fmt.Errorf("list the table: %w", err))
		}
		s.fail(rel, err)
		return nil
	}
	if slices.ContainsFunc(entries, func(e storage.Info) bool { return e.Name == summaryFile && !e.Dir }) {
		summary = path.Join(rel, summaryFile)
	}
	d := directory{rel: rel, depth: depth, summary: summary}
	files := 0
	for _, e := range entries {
		below := path.Join(rel, e.Name)
		switch {
		case e.Name == layout.CompactMarker:
			d.marks = true
		case layout.Hidden(e.Name):
		case e.Dir:
			d.mixed = true
			if !s.leads(below) {
				continue
			}
			if err := s.walk(below, depth+1, summary); err != nil {
				return err
			}
		case e.Irregular:
			s.link(below)
		default:
			files++
		}
	}
	if (files > 0 || d.marks) && s.selected(rel) {
		s.found = append(s.found, d)
	}
	return nil
}

// link reports a symbolic link to a directory: what lies behind it belongs to
// somebody else. One to a file is its directory's affair.
func (s *scanner) link(rel string) {
	info, err := s.fs.Stat(path.Join(s.root, rel))
	if err == nil && info.Dir && s.selected(rel) {
		s.odd = append(s.odd, Partition{Path: rel, Outcome: LeftAlone, Reason: "it is a symbolic link; compact the table that it leads to"})
	}
}

func (s *scanner) fail(rel string, err error) {
	if s.selected(rel) {
		s.odd = append(s.odd, Partition{Path: rel, Outcome: Failed, Reason: err.Error()})
	}
}

// selection is one --partition: components of a path, k=v each.
type selection struct {
	text  string
	parts []string
	hit   bool
}

func parseSelections(texts []string) ([]selection, error) {
	out := make([]selection, 0, len(texts))
	for _, text := range texts {
		parts := strings.Split(strings.Trim(text, "/"), "/")
		for _, p := range parts {
			if name, value, ok := strings.Cut(p, "="); !ok || name == "" || value == "" || p == "." || p == ".." {
				return nil, fault.New(fault.Config, "such as --partition dt=2026-01-31 or dt=2026-01-31/hr=07", "partition %q: %q is not name=value", text, p)
			}
		}
		out = append(out, selection{text: text, parts: parts})
	}
	return out, nil
}

// fits says whether a directory's component is what the user wrote: as it is on
// disk, or unescaped.
func fits(component, want string) bool {
	if component == want {
		return true
	}
	name, value, ok := strings.Cut(component, "=")
	wantName, wantValue, _ := strings.Cut(want, "=")
	return ok && strings.EqualFold(layout.Unescape(name), wantName) && layout.Unescape(value) == wantValue
}

// selected: the directory is, or lies in, one that was asked for.
func (s *scanner) selected(rel string) bool {
	if len(s.want) == 0 {
		return true
	}
	parts := strings.Split(rel, "/")
	for i := range s.want {
		w := &s.want[i]
		if len(parts) >= len(w.parts) && slices.EqualFunc(parts[:len(w.parts)], w.parts, fits) {
			w.hit = true
			return true
		}
	}
	return false
}

// leads: the directory is on the way to one that was asked for, or in it.
func (s *scanner) leads(rel string) bool {
	if len(s.want) == 0 {
		return true
	}
	parts := strings.Split(rel, "/")
	return slices.ContainsFunc(s.want, func(w selection) bool {
		n := min(len(parts), len(w.parts))
		return slices.EqualFunc(parts[:n], w.parts[:n], fits)
	})
}

// missing names the partitions that were asked for and are not there.
func (s *scanner) missing() error {
	var names []string
	for i := range s.want {
		if !s.want[i].hit {
			names = append(names, s.want[i].text)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return fault.New(fault.Config, "partitions are named as their directories are", "%s has no data files in partition %s", s.root, strings.Join(names, ", "))
}

// managed refuses a table whose files are listed one by one in another system's
// metadata: readers would look for the files that compaction took away.
func managed(fs storage.FS, root string) error {
	for _, m := range []struct{ dir, what string }{
		{"_delta_log", "Delta Lake"}, {".hoodie", "Hudi"}, {"_spark_metadata", "a Spark streaming sink"},
	} {
		there, err := storage.Exists(fs, path.Join(root, m.dir))
		if err != nil {
			return storage.Classify(fmt.Errorf("look at the table: %w", err))
		}
		if there {
			return fault.New(fault.Config, "use that system's own compaction", "%s is managed by %s (%s): its metadata name each file", root, m.what, m.dir)
		}
	}
	if info, err := fs.Stat(path.Join(root, summaryFile)); err == nil && !info.Dir {
		return fault.New(fault.Config, "if no reader goes by it, remove it", "%s has a summary file (%s): it names each file and row group", root, summaryFile)
	}
	if entries, err := fs.List(path.Join(root, "metadata")); err == nil {
		for _, e := range entries {
			if strings.HasSuffix(e.Name, ".metadata.json") {
				return fault.New(fault.Config, "use that system's own compaction", "%s is managed by Iceberg (metadata/%s): its metadata name each file", root, e.Name)
			}
		}
	}
	return nil
}

// atWork says why a name means that another program is writing.
func atWork(name string) bool {
	for _, prefix := range []string{"_temporary", ".hive-staging", ".spark-staging", "_hive-staging"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return strings.Contains(name, ".inprogress") || strings.HasSuffix(name, "._COPYING_")
}
