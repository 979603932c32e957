package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hivesink/hivesink/storage/localfs"
)

// held is a table with n rows from standard input that are durable and hidden,
// whose owner was killed.
func held(t *testing.T, n int) *table {
	t.Helper()
	tb := newTable(t, stdinYAML)
	p, _ := tb.feed(lines(n, nil), "--set", "compaction.max_delay=1h")
	tb.durable(p, int64(n))
	if !p.Kill(t) {
		t.Fatalf("the run ended before it was killed: %v", p.End())
	}
	if len(tb.log().Parts) == 0 {
		t.Fatal("nothing is in flight")
	}
	return tb
}

// rest are the records from to to-1, in a file.
func (tb *table) rest(name string, from, to int) string {
	tb.t.Helper()
	all := strings.SplitAfter(lines(to, nil), "\n")
	return tb.write(name, strings.Join(all[from:to], ""))
}

func filesOf(pattern string) []string {
	return []string{"--set", "source.stdin=", "--set", "source.files.paths=[" + pattern + "]"}
}

// TestSourceChanges: a table goes on from another source, with what was in flight
// from the one before, and back again to that.
func TestSourceChanges(t *testing.T) {
	tb := held(t, 500)
	tb.rest("in/a.ndjson", 500, 900)
	in := filesOf(tb.dir + "/in/*.ndjson")
	if s := tb.run(in...); s.RowsRead != 400 || s.RowsVisible != 900 {
		t.Fatalf("from files: %+v", s)
	}
	tb.wantIDs(900)
	tb.checkFinished()
	// The stream, from its first byte, goes on where it stood before the files.
	all := strings.SplitAfter(lines(1000, nil), "\n")
	p, w := tb.feed(strings.Join(all[:500], "")+strings.Join(all[900:], ""), "--resume")
	w.Close()
	if r := p.Wait(t); r.Code != exitDone {
		t.Fatal(r)
	}
	tb.wantIDs(1000)
	// Made-up records, and files again: nothing new there.
	tb.run("--set", "source.stdin=", "--set", "source.datagen={rows: 8}")
	if s := tb.run(in...); s.RowsRead != 0 || s.RowsVisible != 1008 {
		t.Fatalf("files again: %+v", s)
	}
	tb.checkFinished()
}

// TestPlaceChanges: the table's directory, the state directory and the pipeline's
// name are others at the next run.
func TestPlaceChanges(t *testing.T) {
	input := func(tb *table, from, to int) []string {
		tb.rest("in/a.ndjson", from, to)
		return filesOf(tb.dir + "/in/*.ndjson")
	}
	t.Run("the table was moved", func(t *testing.T) {
		tb := held(t, 300)
		moved := filepath.Join(tb.dir, "moved")
		rename(t, tb.root, moved)
		args := append(input(tb, 300, 400), "--set", "table.location="+moved)
		tb.root = moved
		tb.run(args...)
		tb.wantIDs(400)
		want(t, exitDone, "fsck", "-c", tb.config, "--set", "table.location="+moved)
	})
	t.Run("another place with the old state", func(t *testing.T) {
		tb := held(t, 300)
		other := *tb
		other.root = filepath.Join(tb.dir, "other")
		args := input(tb, 0, 400)
		other.run(append(args, "--set", "table.location="+other.root)...)
		other.wantIDs(400)
		if n := len(tb.ids()); n != 0 || len(tb.log().Parts) == 0 {
			t.Errorf("%d rows of the old table are visible, %d parts in flight", n, len(tb.log().Parts))
		}
		tb.rest("in2/a.ndjson", 300, 350) // and back, with the index of the other one
		tb.run(filesOf(tb.dir + "/in2/*.ndjson")...)
		tb.wantIDs(350)
		tb.checkFinished()
	})
	t.Run("state lost and moved and of another pipeline", func(t *testing.T) {
		tb := held(t, 300)
		if err := os.RemoveAll(tb.state); err != nil {
			t.Fatal(err)
		}
		other := newTable(t, strings.Replace(stdinYAML, "pipeline: stream", "pipeline: second", 1))
		p, _ := other.feed(lines(50, nil), "--set", "compaction.max_delay=1h", "--set", "state_dir="+tb.state)
		other.durable(p, 50)
		r := want(t, exitFenced, append([]string{"run", "-c", tb.config}, input(tb, 300, 400)...)...)
		if !strings.Contains(r.Err, "state_dir") || !strings.Contains(r.Err, "a state_dir of its own") {
			t.Errorf("two pipelines at once in one state_dir: %v", r)
		}
		if !p.Kill(t) {
			t.Fatal(p.End())
		}
		tb.run(filesOf(tb.dir + "/in/*.ndjson")...)
		tb.wantIDs(400)
		tb.checkFinished()
		p, w := other.feed(lines(60, nil), "--resume", "--set", "state_dir="+filepath.Join(tb.dir, "elsewhere"))
		w.Close()
		if r := p.Wait(t); r.Code != exitDone {
			t.Fatal(r)
		}
		other.wantIDs(60)
	})
	t.Run("another pipeline", func(t *testing.T) {
		tb := held(t, 300)
		was := tb.records()
		args := append(input(tb, 300, 400), "--set", "pipeline=second")
		r := want(t, exitFenced, append([]string{"run", "-c", tb.config}, args...)...)
		for _, word := range []string{`"stream"`, `"second"`, "hivesink drain"} {
			if !strings.Contains(r.Err, word) {
				t.Errorf("the refusal does not say %s: %v", word, r)
			}
		}
		if is := tb.records(); is != was {
			t.Fatalf("record %d was written, the refusal came after that", is)
		}
		want(t, exitDone, "drain", "-c", tb.config)
		tb.wantIDs(300)
		tb.run(args...)
		tb.wantIDs(400)
	})
}

// TestInputFilesChange: files of the input are others at the next run. Each is
// read in part first, up to a record that stops the run.
func TestInputFilesChange(t *testing.T) {
	const yaml = `
pipeline: files
state_dir: {dir}/state
source:
  files: {paths: ["{dir}/in/**/*.ndjson"]}
  bad_records: {policy: fail}
table:
  name: events
  location: {dir}/table
  columns: [id bigint, ts timestamp, name string]
  partitioned_by: [{dt: date(ts)}]
checkpoint: {interval: 50ms}
`
	for _, c := range []struct {
		name string
		// change is what happens to in/a.ndjson, of whose 300 records 100 were
		// read, and to in/b.ndjson, which was read to its end.
		change func(tb *table)
		rows   int      // visible then
		says   []string // why the run stops; nil: it does not
	}{
		{"mended", func(*table) {}, 500, nil},
		{"grown", func(tb *table) {
			tb.rest("in/a.ndjson", 0, 300)
			tb.appendTo("in/b.ndjson", line(500)+"\n"+line(501)+"\n")
		}, 502, nil},
		{"renamed", func(tb *table) {
			tb.rename("in/a.ndjson", "in/z.ndjson")
			tb.rename("in/b.ndjson", "in/y.ndjson")
		}, 500, nil},
		{"moved", func(tb *table) {
			tb.rename("in/a.ndjson", "in/done/a.ndjson")
			tb.rename("in/b.ndjson", "in/done/b.ndjson")
		}, 500, nil},
		{"renamed and grown", func(tb *table) {
			tb.rename("in/b.ndjson", "in/y.ndjson")
			tb.appendTo("in/y.ndjson", line(500)+"\n")
		}, 501, nil},
		{"the read one removed", func(tb *table) { tb.remove("in/b.ndjson") }, 500, nil},
		{"the partly read one removed", func(tb *table) { tb.remove("in/a.ndjson") }, 300, []string{"in/a.ndjson", "read in part and is gone", "put it back"}},
		{"shorter", func(tb *table) { tb.rest("in/b.ndjson", 300, 310) }, 500, []string{"in/b.ndjson", "fewer than", "a new name"}},
		{"another one of the name", func(tb *table) { tb.rest("in/b.ndjson", 600, 900) }, 500, []string{"in/b.ndjson", "another file", "a new name"}},
		{"rotated", func(tb *table) {
			tb.rename("in/b.ndjson", "in/b.1.ndjson")
			tb.rest("in/b.ndjson", 600, 900)
		}, 500, []string{"in/b.ndjson", "another file", "a new name"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			tb := newTable(t, yaml)
			tb.rest("in/b.ndjson", 300, 500)
			if strings.Contains(c.name, "renamed") || c.name == "moved" {
				tb.needIdentity("in/b.ndjson")
			}
			tb.write("in/a.ndjson", lines(300, map[int]string{101: "{" + strings.Repeat(" ", len(line(100))-1)}))
			oneError(t, execute(t, "run", "-c", tb.config), "a.ndjson")
			// Mended in place: the inode stays, and so does what was read.
			text := lines(300, nil)
			f, err := os.OpenFile(filepath.Join(tb.dir, "in/a.ndjson"), os.O_WRONLY, 0)
			if err == nil {
				_, err = f.WriteAt([]byte(text), 0)
			}
			if err != nil {
				t.Fatal(err)
			}
			f.Close()
			tb.run("--set", "source.files.paths=["+tb.dir+"/in/b.ndjson]")
			c.change(tb)
			if c.says != nil {
				oneError(t, execute(t, "run", "-c", tb.config), c.says...)
				if ids := tb.ids(); len(ids) != c.rows || len(slices.Compact(ids)) != c.rows || ids[c.rows-1] >= 500 {
					t.Errorf("%d ids are visible after the halt, want %d each once", len(ids), c.rows)
				}
				tb.fsck(exitDone)
				return
			}
			tb.run()
			tb.wantIDs(c.rows)
			tb.checkFinished()
			if s := tb.run(); s.RowsRead != 0 {
				t.Errorf("%d rows are read once more", s.RowsRead)
			}
		})
	}
}

// needIdentity skips a test where a file is known by its name alone.
func (tb *table) needIdentity(name string) {
	tb.t.Helper()
	f, err := os.Open(filepath.Join(tb.dir, name))
	if err != nil {
		tb.t.Fatal(err)
	}
	defer f.Close()
	if localfs.Identity(f) == "" {
		tb.t.Skip("the file system does not say when a file was made")
	}
}

func (tb *table) appendTo(name, text string) {
	tb.t.Helper()
	f, err := os.OpenFile(filepath.Join(tb.dir, name), os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString(text)
	}
	if err != nil {
		tb.t.Fatal(err)
	}
	f.Close()
}

func (tb *table) rename(from, to string) {
	tb.t.Helper()
	from, to = filepath.Join(tb.dir, from), filepath.Join(tb.dir, to)
	if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
		tb.t.Fatal(err)
	}
	if err := os.Rename(from, to); err != nil {
		tb.t.Fatal(err)
	}
}

func (tb *table) remove(name string) {
	tb.t.Helper()
	if err := os.Remove(filepath.Join(tb.dir, name)); err != nil {
		tb.t.Fatal(fmt.Errorf("remove: %w", err))
	}
}
