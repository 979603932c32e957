package source

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/hivesink/hivesink/internal/fault"
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
