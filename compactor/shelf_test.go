package compactor

import (
	"fmt"
	"testing"

	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/storage"
)

// counted is a file system that counts the files that are open for reading.
type counted struct {
	storage.FS
	open, most int
}

type countedReader struct {
	storage.Reader
	fs *counted
}

func (c *counted) Open(name string) (storage.Reader, error) {
	r, err := c.FS.Open(name)
	if err != nil {
		return nil, err
	}
	c.open++
	c.most = max(c.most, c.open)
	return countedReader{r, c}, nil
}

func (r countedReader) Close() error {
	r.fs.open--
	return r.Reader.Close()
}

// TestManyInputs: however many inputs a unit has, few of them are open at once,
// and the target has all of them, in order (C4, C5).
func TestManyInputs(t *testing.T) {
	manyInputs(t, 0, OpenInputs)
	manyInputs(t, 4, 4) // a process that may have few descriptors
}

func manyInputs(t *testing.T, set, most int) {
	for name, final := range map[string]func(i int) bool{
		"rewrite": func(int) bool { return false },
		"merge":   func(i int) bool { return i%2 == 0 },
	} {
		t.Run(fmt.Sprint(name, most), func(t *testing.T) {
			b := newBench(t)
			fs := &counted{FS: b.o.FS}
			b.o.FS, b.o.OpenInputs = fs, set
			j := Job{Unit: ledger.Unit{ID: "0000000000000001", Target: "part-1-0000000000000001.parquet", Mode: name}}
			for i := range 5 * OpenInputs {
				in := b.part(t, 1+i%3, final(i))
				j.Inputs = append(j.Inputs, in)
				j.Unit.Inputs = append(j.Unit.Inputs, in.ID)
				j.Unit.Rows += in.Rows
			}
			built, err := b.o.Build(t.Context(), j)
			if err != nil {
				t.Fatal(err)
			}
			if fs.most > most+1 || fs.open != 0 { // and the target, which is verified
				t.Errorf("%d files open at once, %d at the end", fs.most, fs.open)
			}
			b.check(t, built)
		})
	}
}
