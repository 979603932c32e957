package main

import (
	"archive/zip"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestTablesOfOldVersions: what older versions had in flight when they were killed
// is published, and what they had not read is read, each row once.
func TestTablesOfOldVersions(t *testing.T) {
	all, err := filepath.Glob("testdata/old/*.zip")
	if err != nil || len(all) == 0 {
		t.Fatal(all, err)
	}
	for _, name := range all {
		t.Run(filepath.Base(name), func(t *testing.T) {
			tb := newTable(t, "")
			unzip(t, name, tb.dir)
			data, err := os.ReadFile(tb.config)
			if err != nil {
				t.Fatal(err)
			}
			tb.write("sink.yaml", string(data))
			before := tb.log()
			if len(before.Parts) == 0 {
				t.Fatal("nothing is in flight")
			}
			tb.fsck(exitDone)
			input, err := os.ReadFile(filepath.Join(tb.dir, "input.ndjson"))
			if err != nil { // made-up records
				tb.run("--set", "source.datagen.rate=0")
				tb.wantIDs(600)
			} else {
				p, w := tb.feed(string(input), "--resume")
				w.Close()
				if r := p.Wait(t); r.Code != exitDone {
					t.Fatal(r)
				}
				late := *tb
				late.root += "_late"
				got := slices.Sorted(slices.Values(append(tb.ids(), late.ids()...)))
				if want := goodIDs(input); !slices.Equal(got, want) {
					t.Fatalf("%d ids are visible, want %d, each once", len(got), len(want))
				}
				if rows := tb.log().Sources["stdin:1"].DeadLettered.Rows; rows != int64(bytes.Count(input, []byte("what"))) {
					t.Errorf("%d rows are dead-lettered", rows)
				}
			}
			tb.checkFinished()
			if st := tb.log(); st.Epoch <= before.Epoch || len(st.Parts)+len(st.Units) > 0 {
				t.Errorf("epoch %d after %d, %d parts and %d units are in flight", st.Epoch, before.Epoch, len(st.Parts), len(st.Units))
			}
		})
	}
}

// goodIDs are the ids of the lines that are records: their numbers.
func goodIDs(input []byte) (ids []int64) {
	for i, text := range strings.Split(strings.TrimSuffix(string(input), "\n"), "\n") {
		if !strings.Contains(text, "what") {
			ids = append(ids, int64(i))
		}
	}
	return ids
}

func unzip(t *testing.T, name, dir string) {
	t.Helper()
	z, err := zip.OpenReader(name)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	for _, f := range z.File {
		full := filepath.Join(dir, filepath.FromSlash(f.Name))
		if strings.HasSuffix(f.Name, "/") {
			if err := os.MkdirAll(full, 0o777); err != nil {
				t.Fatal(err)
			}
			continue
		}
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		r.Close()
		if err := os.MkdirAll(filepath.Dir(full), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
}
