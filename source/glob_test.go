package source

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/ledger"
)

func TestPatterns(t *testing.T) {
	dir := t.TempDir()
	for _, f := range []string{"a.json", "b.json", "x/a.json", "x/y/c.json", "x/y/z/d.json", ".hidden.json", ".git/e.json", "odd[1].json", "x/skip.txt"} {
		write(t, filepath.Join(dir, f), nil)
	}
	if err := os.Symlink("a.json", filepath.Join(dir, "link.json")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		patterns, want string
	}{
		{"*.json", "a.json b.json link.json odd[1].json"},
		{"b.json a.json", "a.json b.json"},
		{"./a.json a.* " + dir + "/a.json", "a.json"},
		{"*/*.json", "x/a.json"},
		{"**/*.json", "a.json b.json link.json odd[1].json x/a.json x/y/c.json x/y/z/d.json"},
		{"x/**", "x/a.json x/skip.txt x/y/c.json x/y/z/d.json"},
		{"x/**/y/**/*.json", "x/y/c.json x/y/z/d.json"},
		{"[ab].json", "a.json b.json"},
		{`odd\[1\].json`, "odd[1].json"},
		{".h*", ".hidden.json"},
		{"x/../b.json", "b.json"},
		{"../" + filepath.Base(dir) + "/x/y/./../*.json", "x/a.json"},
		{dir + "/x/../x/*.json", "x/a.json"},
		{"x/*/../a.json", "x/a.json"},
	} {
		patterns := strings.Fields(c.patterns)
		files, err := expand(t.Context(), dir, patterns)
		if err != nil {
			t.Errorf("%s: %v", c.patterns, err)
			continue
		}
		var got []string
		for _, f := range files {
			rel, _ := filepath.Rel(dir, f.path)
			got = append(got, rel)
			named := false
			for _, p := range patterns {
				named = named || matches(dir, p, f.path)
			}
			if !named {
				t.Errorf("%s: matches denies %s", c.patterns, f.path)
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.patterns, strings.Join(got, " "), c.want)
		}
	}
}

// A file and the links to it are one file, whichever name has been read.
func TestLinksDoubleNothing(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "in", "b.json"), []byte("{\"id\":1}\n"))
	write(t, filepath.Join(dir, "in", "c.json"), []byte("{\"id\":2}\n"))
	write(t, filepath.Join(dir, "other", "d.json"), []byte("{\"id\":3}\n"))
	for link, to := range map[string]string{"in/a.json": "b.json", "in/z.json": "a.json", "last": "in", "in/d.json": "../other/d.json", "in/e.json": "d.json"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	in := func(names ...string) map[string]ledger.Source {
		known := make(map[string]ledger.Source)
		for _, n := range names {
			known[filePrefix+filepath.Join(dir, n)] = ledger.Source{Position: position{Offset: 9, Size: 9}.String(), NextRow: 1}
		}
		return known
	}
	for _, c := range []struct {
		patterns []string
		known    map[string]ledger.Source
		want     string
	}{
		{[]string{"*/*.json"}, nil, "in/b.json in/c.json other/d.json"},
		{[]string{"in/*.json"}, nil, "in/b.json in/c.json in/d.json"},
		{[]string{"last/[abc].json"}, nil, "last/a.json last/c.json"},
		{[]string{"in/*.json"}, in("in/z.json"), "in/c.json in/d.json in/z.json"},
		{[]string{"in/[abz].json"}, in("in/a.json", "in/b.json"), "in/a.json in/b.json"},
		{[]string{"in/[abz].json"}, in("in/a.json", "in/z.json"), "in/a.json in/z.json"},
	} {
		src := fileSource(t, Options{Schema: schemaOf(t, "id bigint")}, dir, c.patterns...)
		splits, err := src.Splits(t.Context(), c.known)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range splits {
			rel, _ := filepath.Rel(dir, strings.TrimPrefix(s.ID, filePrefix))
			got = append(got, rel)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s, known %d:\n got %s\nwant %s", c.patterns, len(c.known), strings.Join(got, " "), c.want)
		}
	}
}

// S7: what a pattern names and cannot be read is an error that names it. The
// faults hold for every user, root included.
func TestUnreadablePlaces(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "plain.txt"), nil)
	write(t, filepath.Join(dir, "sub", "a.json"), nil)
	write(t, filepath.Join(dir, "caf\xe9.json"), nil)
	for from, to := range map[string]string{"loop": "loop", "dangling": "nowhere"} {
		if err := os.Symlink(to, filepath.Join(dir, from)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	for pattern, c := range map[string]struct {
		class fault.Class
		says  string
	}{
		"nothing*.json":        {fault.Config, "nothing*.json"},
		"nothing.json":         {fault.Config, "nothing.json"},
		"no/such/dir/*.json":   {fault.Config, "no/such/dir/*.json"},
		"sub":                  {fault.Config, "directory"},
		"s*":                   {fault.Config, "no file"},
		"[a":                   {fault.Config, "not a pattern"},
		"/":                    {fault.Config, "names no file"},
		"loop/*.json":          {fault.Halt, "loop"},
		"lo*":                  {fault.Halt, "loop"},
		"dang*":                {fault.Halt, "dangling"},
		"plain.txt/*.json":     {fault.Halt, "plain.txt"},
		"plain.txt/sub/a.json": {fault.Halt, "plain.txt"},
		"pi*":                  {fault.Halt, "pipe"},
		"caf*":                 {fault.Halt, `caf\xe9.json`},
	} {
		src := fileSource(t, Options{Schema: schemaOf(t, "id bigint")}, dir, pattern)
		_, err := src.Splits(t.Context(), nil)
		if err == nil {
			t.Errorf("%s: no error", pattern)
			continue
		}
		mustFail(t, c.class, err, c.says, pattern)
	}
}
