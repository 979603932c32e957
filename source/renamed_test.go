package source

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/storage/localfs"
)

// TestRenamedFiles: a file under another name is the same split, read to its end
// or in part, and what was appended since is read once (S10).
func TestRenamedFiles(t *testing.T) {
	needIdentity(t)
	line := func(n string) string { return `{"id":` + n + `,"name":"n"}` + "\n" }
	for _, c := range []struct {
		name   string
		part   bool // read one of two lines only
		change func(t *testing.T, at func(string) string)
		ids    string // read then
	}{
		{"renamed", false, func(t *testing.T, at func(string) string) { move(t, at("in/a"), at("in/b")) }, ""},
		{"renamed when read in part", true, func(t *testing.T, at func(string) string) { move(t, at("in/a"), at("in/b")) }, "2"},
		{"moved", true, func(t *testing.T, at func(string) string) { move(t, at("in/a"), at("in/done/b")) }, "2"},
		{"renamed and grown", false, func(t *testing.T, at func(string) string) {
			move(t, at("in/a"), at("in/b"))
			write(t, at("in/b"), []byte(line("1")+line("2")+line("3")))
		}, "3"},
		{"a link more", false, func(t *testing.T, at func(string) string) { link(t, at("in/a"), at("in/b")) }, ""},
		{"two links, and the old name gone", true, func(t *testing.T, at func(string) string) {
			link(t, at("in/a"), at("in/b"))
			move(t, at("in/a"), at("in/c"))
		}, "2"},
		{"the same bytes in a file of their own", false, func(t *testing.T, at func(string) string) {
			write(t, at("in/b"), []byte(line("1")+line("2")))
		}, "1 2"},
		{"replaced by the same bytes", false, func(t *testing.T, at func(string) string) {
			tick(t, at("probe"))
			if err := os.Remove(at("in/a")); err != nil { // the inode may be used again
				t.Fatal(err)
			}
			write(t, at("in/b"), []byte(line("1")+line("2")))
		}, "1 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			at := func(name string) string { return filepath.Join(dir, name) }
			write(t, at("in/a"), []byte(line("1")+line("2")))
			o := Options{Schema: schemaOf(t, "id bigint", "name string"), Format: FormatJSON, BatchRows: 1}
			known := map[string]ledger.Source{}
			s := fileSource(t, o, dir, "in/**")
			split := only(t, s, known)
			steps, err := readAll(t, s, split, ledger.Source{})
			if err != nil {
				t.Fatal(err)
			}
			stop := steps[len(steps)-1]
			if c.part {
				stop = steps[0]
			}
			known[split.ID] = stop.pos
			c.change(t, at)
			for run := range 2 { // and so it stays
				s := fileSource(t, o, dir, "in/**")
				splits, err := s.Splits(t.Context(), known)
				if err != nil {
					t.Fatal(err)
				}
				var ids []string
				for _, split := range splits {
					steps, err := readAll(t, s, split, known[split.ID])
					if err != nil {
						t.Fatal(err)
					}
					for _, row := range values(steps) {
						id, _, _ := strings.Cut(row, "|")
						ids = append(ids, id)
					}
					known[split.ID] = steps[len(steps)-1].pos
				}
				want := c.ids
				if run == 1 {
					want = ""
				}
				if got := strings.Join(ids, " "); got != want {
					t.Fatalf("run %d: read %q, want %q", run, got, want)
				}
			}
		})
	}
}

// TestAnotherWay: the directory of files that were read is named by a link to it.
func TestAnotherWay(t *testing.T) {
	needIdentity(t)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "real/a"), []byte(`{"id":1}`+"\n"))
	if err := os.Symlink("real", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	o := Options{Schema: schemaOf(t, "id bigint"), Format: FormatJSON}
	s := fileSource(t, o, dir, "link/*")
	split := only(t, s, nil)
	steps, err := readAll(t, s, split, ledger.Source{})
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]ledger.Source{split.ID: steps[len(steps)-1].pos}
	if splits, err := fileSource(t, o, dir, "real/*").Splits(t.Context(), known); err != nil || len(splits) != 0 {
		t.Fatalf("it is read again: %v, %v", splits, err)
	}
}

func needIdentity(t *testing.T) {
	t.Helper()
	file, err := os.Open(write(t, filepath.Join(t.TempDir(), "probe"), nil))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if localfs.Identity(file) == "" {
		t.Skip("the file system does not say when a file was made")
	}
}

// tick waits until the file system's clock, which is coarse, has moved.
func tick(t *testing.T, probe string) {
	t.Helper()
	made := func() string {
		file, err := os.Open(write(t, probe, nil))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		_, at, _ := strings.Cut(localfs.Identity(file), ":")
		if err := os.Remove(probe); err != nil {
			t.Fatal(err)
		}
		return at
	}
	for first := made(); made() == first; {
	}
}

func move(t *testing.T, from, to string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

func link(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Link(from, to); err != nil {
		t.Fatal(err)
	}
}
