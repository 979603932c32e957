package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/ledger"
)

// found is a file that a pattern names.
type found struct {
	path string // absolute and clean
	name string // as the pattern says it, for people
	size int64
}

// expand finds the files that patterns name, each once, sorted by path.
//
// `*`, `?` and `[…]` stand for characters of one name, `**` for any number of
// directories. As in a shell, none of them matches a leading dot. Links are
// followed, save for directories below `**`. Directories a pattern matches are
// passed over; anything else that cannot be read as a file is an error (S7).
func expand(ctx context.Context, workingDir string, patterns []string) ([]found, error) {
	seen := make(map[string]bool)
	var files []found
	for _, p := range patterns {
		g := &glob{pattern: p}
		dir, name := workingDir, ""
		if dir == "" {
			dir = "."
		}
		if strings.HasPrefix(p, "/") {
			dir, name = "/", "/"
		}
		abs, err := filepath.Abs(dir)
		if err != nil {
			return nil, fmt.Errorf("find the working directory: %w", err)
		}
		segments := segmentsOf(p)
		if len(segments) == 0 {
			return nil, fault.New(fault.Config, "name files, such as in/*.ndjson", "source.files.paths: %q names no file", p)
		}
		if err := g.walk(ctx, abs, name, segments); err != nil {
			return nil, err
		}
		if len(g.files) == 0 {
			return nil, fault.New(fault.Config, "check source.files.paths; relative paths start at "+abs, "source.files.paths: no file matches %q", p)
		}
		for _, f := range g.files {
			if !seen[f.path] {
				seen[f.path] = true
				files = append(files, f)
			}
		}
	}
	slices.SortFunc(files, func(a, b found) int { return cmp.Compare(a.path, b.path) })
	return files, nil
}

// once leaves one path to each file: of a file and the links to it the one that
// the ledger knows, else the file itself, else the first. So current.ndjson
// beside the file it is a link to, or a link to a directory, doubles nothing.
func once(all []found, known map[string]ledger.Source) []found {
	type choice struct {
		at   int
		rank int // 2: known, 1: not a link
	}
	chosen := make(map[string]choice, len(all)) // by the path without links
	keep := make([]bool, len(all))
	for i, f := range all {
		real, err := filepath.EvalSymlinks(f.path)
		if err != nil {
			real = f.path // to be found out when it is opened
		}
		c := choice{at: i}
		if _, ok := known[filePrefix+f.path]; ok {
			c.rank = 2
		} else if real == f.path {
			c.rank = 1
		}
		before, ok := chosen[real]
		switch {
		case c.rank == 2: // both, when both have been read
			keep[i] = true
			if ok && before.rank < 2 {
				keep[before.at] = false
			}
		case !ok || c.rank > before.rank:
			keep[i] = true
			if ok {
				keep[before.at] = false
			}
		default:
			continue
		}
		chosen[real] = c
	}
	var out []found
	for i, f := range all {
		if keep[i] {
			out = append(out, f)
		}
	}
	return out
}

// matches says whether a pattern names the absolute path, whatever is on disk.
func matches(workingDir, pattern, file string) bool {
	dir := "/"
	if !strings.HasPrefix(pattern, "/") {
		abs, err := filepath.Abs(workingDir)
		if err != nil {
			return false
		}
		dir = abs
	}
	var segments []string
	for _, s := range segmentsOf(pattern) {
		switch n := len(segments); {
		case s != "..":
			segments = append(segments, s)
		case n == 0:
			dir = filepath.Dir(dir)
		default: // as walk goes there: by name, whatever links there are
			segments = segments[:n-1]
		}
	}
	rel, ok := strings.CutPrefix(file, strings.TrimSuffix(dir, "/")+"/")
	return ok && matchSegments(segments, strings.Split(rel, "/"))
}

func matchSegments(pattern, names []string) bool {
	switch {
	case len(pattern) == 0:
		return len(names) == 0
	case pattern[0] == "**":
		return matchSegments(pattern[1:], names) ||
			len(names) > 0 && !strings.HasPrefix(names[0], ".") && matchSegments(pattern, names[1:])
	case len(names) == 0:
		return false
	}
	ok, err := matchName(pattern[0], names[0])
	return err == nil && ok && matchSegments(pattern[1:], names[1:])
}

// segmentsOf splits a pattern at its slashes. A `**` at the end means all
// files below.
func segmentsOf(pattern string) []string {
	var out []string
	for s := range strings.SplitSeq(pattern, "/") {
		if s == "" || s == "." || s == "**" && len(out) > 0 && out[len(out)-1] == "**" {
			continue
		}
		out = append(out, s)
	}
	if len(out) > 0 && out[len(out)-1] == "**" {
		out = append(out, "*")
	}
	return out
}

func matchName(pattern, name string) (bool, error) {
	if strings.HasPrefix(name, ".") && !strings.HasPrefix(strings.TrimPrefix(pattern, `\`), ".") {
		return false, nil
	}
	return path.Match(pattern, name)
}

func hasMeta(segment string) bool { return strings.ContainsAny(segment, `*?[\`) }

// glob walks directories for one pattern.
type glob struct {
	pattern string
	files   []found
}

// walk finds what segments name below dir, which people know as name.
func (g *glob) walk(ctx context.Context, dir, name string, segments []string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s, rest := segments[0], segments[1:]
	if !hasMeta(s) {
		return g.descend(ctx, filepath.Join(dir, s), join(name, s), rest, true)
	}
	if s == "**" {
		if err := g.walk(ctx, dir, name, rest); err != nil {
			return err
		}
	} else if _, err := path.Match(s, ""); err != nil {
		return fault.New(fault.Config, `close the [bracket], or write \[`, "source.files.paths: %q is not a pattern", g.pattern)
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // nothing there matches
	}
	if err != nil {
		return g.unreadable(err)
	}
	for _, e := range entries {
		at, as := filepath.Join(dir, e.Name()), join(name, e.Name())
		if s == "**" {
			if e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
				err = g.walk(ctx, at, as, segments)
			}
		} else if ok, _ := matchName(s, e.Name()); ok {
			err = g.descend(ctx, at, as, rest, false)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// descend goes on at a path that matches so far; literal says that the pattern
// spells its last name out.
func (g *glob) descend(ctx context.Context, at, name string, rest []string, literal bool) error {
	info, err := os.Stat(at)
	if errors.Is(err, fs.ErrNotExist) {
		if _, lerr := os.Lstat(at); errors.Is(lerr, fs.ErrNotExist) {
			return nil // not there, or gone since the directory was read
		}
		return g.unreadable(fmt.Errorf("%s is a link to nothing: %w", name, err))
	}
	if err != nil {
		return g.unreadable(err)
	}
	switch {
	case info.IsDir() && len(rest) > 0:
		return g.walk(ctx, at, name, rest)
	case info.IsDir() && literal:
		return fault.New(fault.Config, "name the files in it: "+join(name, "*"), "source.files.paths: %q is a directory", g.pattern)
	case info.IsDir():
		return nil
	case len(rest) > 0 && literal:
		return g.unreadable(fmt.Errorf("%s is not a directory", name))
	case len(rest) > 0:
		return nil
	case !info.Mode().IsRegular():
		return fault.New(fault.Halt, "read it with source.stdin, or narrow the pattern", "source.files.paths: %q names %s, which is not a regular file (%s)", g.pattern, name, info.Mode().Type())
	case !utf8.ValidString(at): // now, and not when the first checkpoint cannot write it down
		return fault.New(fault.Halt, "rename it, or narrow the pattern", "source.files.paths: %q names %q, which is not UTF-8: the table log cannot hold its name", g.pattern, at)
	}
	g.files = append(g.files, found{path: at, name: name, size: info.Size()})
	return nil
}

// unreadable is the one error of a place that cannot be looked at.
func (g *glob) unreadable(err error) error {
	return fault.New(fault.Halt, "make it readable, or narrow the pattern", "look for files of %q: %w", g.pattern, err)
}

func join(dir, name string) string {
	if dir == "" || strings.HasSuffix(dir, "/") {
		return dir + name
	}
	return dir + "/" + name
}
