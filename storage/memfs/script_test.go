package memfs

import (
	"bytes"
	"fmt"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/hivesink/hivesink/storage"
)

// TestScripts runs testdata: what survives, in words.
//
//	do [model=hdfs] [keep]   lines of operations, on a new file system unless keep;
//	                         prints errors, then the tree
//	crash mode=…             the tree of that image
//	random seeds=N           every tree that N random images show, bytes left out
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s := &script{}
		datadriven.RunTest(t, path, s.run)
	})
}

type script struct {
	fsys *FS
	open map[string]storage.File
}

func (s *script) run(t *testing.T, d *datadriven.TestData) string {
	switch d.Cmd {
	case "do":
		if !d.HasArg("keep") {
			var model string
			d.MaybeScanArgs(t, "model", &model)
			s.fsys, s.open = NewWith(Options{Model: map[string]Model{"hdfs": HDFS}[model]}), map[string]storage.File{}
		}
		var out strings.Builder
		for line := range strings.Lines(d.Input) {
			if err := s.do(strings.Fields(line)); err != nil {
				fmt.Fprintln(&out, err)
			}
		}
		return out.String() + tree(s.fsys)
	case "crash":
		var name string
		d.ScanArgs(t, "mode", &name)
		for _, mode := range Modes {
			if mode.String() == name {
				return tree(s.fsys.Crash(mode, 1))
			}
		}
		d.Fatalf(t, "no mode %s", name)
	case "random":
		var seeds int
		d.ScanArgs(t, "seeds", &seeds)
		seen := map[string]int{}
		for seed := range seeds {
			seen[names(s.fsys.Crash(Random, uint64(seed)), "/")]++
		}
		var all []string
		for names := range seen {
			all = append(all, names)
		}
		sort.Strings(all)
		return strings.Join(all, "\n") + "\n"
	default:
		d.Fatalf(t, "no command %s", d.Cmd)
	}
	return ""
}

func (s *script) do(words []string) error {
	name := words[1]
	switch words[0] {
	case "create":
		f, err := s.fsys.Create(name)
		s.open[name] = f
		return err
	case "write":
		n, _ := strconv.Atoi(words[2])
		_, err := s.open[name].Write(bytes.Repeat([]byte("x"), n))
		return err
	case "sync":
		return s.open[name].Sync()
	case "close":
		return s.open[name].Close()
	case "file": // complete and synced
		return storage.WriteFile(s.fsys, name, []byte("xxx"))
	case "mkdir":
		return s.fsys.Mkdir(name)
	case "syncdir":
		return s.fsys.SyncDir(name)
	case "remove":
		return s.fsys.Remove(name)
	case "rename":
		return s.fsys.Rename(name, words[2])
	case "replace":
		return s.fsys.Replace(name, words[2])
	case "publish":
		return storage.Publish(s.fsys, name, words[2])
	}
	return fmt.Errorf("no operation %q", words[0])
}

func tree(m *FS) string {
	if tree := m.Tree("/"); tree != "" {
		return tree
	}
	return "(empty)\n"
}

// names is a tree in one line.
func names(m *FS, root string) string {
	var all []string
	_ = storage.Walk(m, root, func(name string, info storage.Info) error {
		if info.Dir {
			name += "/"
		}
		all = append(all, name)
		return nil
	})
	if len(all) == 0 {
		return "(empty)"
	}
	return strings.Join(all, " ")
}
