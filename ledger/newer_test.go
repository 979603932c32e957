package ledger

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/internal/kv"
	"github.com/hivesink/hivesink/storage/memfs"
)

// TestNewerMember: a record or snapshot with a member that is not known here was
// written by a newer hivesink. It is refused as such, and not as damage, which
// would have somebody restore a copy and lose what came after it (T1, T4).
func TestNewerMember(t *testing.T) {
	w := newWorld()
	whole := memfs.New()
	o := w.options(whole)
	o.SnapshotEvery = 5
	if err := (&script{l: mustOpen(t, o), fsys: whole}).run(0, steps, nil); err != nil {
		t.Fatal(err)
	}
	for name, do := range map[string]func(f *memfs.FS){
		"record": func(f *memfs.FS) {
			data, err := f.ReadFile(recordPath(testTable, 8))
			if err != nil {
				t.Fatal(err)
			}
			r, _, err := Decode("", data)
			if err != nil {
				t.Fatal(err)
			}
			later, _, err := sealJSON(struct {
				Record
				Later int `json:"later"`
			}{*r, 1})
			if err != nil {
				t.Fatal(err)
			}
			rewrite(t, f, recordPath(testTable, 8), later)
		},
		"snapshot": func(f *memfs.FS) {
			st, err := readSnapshot(f, testTable, 5)
			if err != nil {
				t.Fatal(err)
			}
			later, _, err := sealJSON(struct {
				snapshotFile
				Later int `json:"later"`
			}{snapshotFile{Version: formatVersion, State: st}, 1})
			if err != nil {
				t.Fatal(err)
			}
			rewrite(t, f, snapshotPath(testTable, 5), later)
			for seq := uint64(1); seq <= 5; seq++ { // else they say the same
				if err := f.Remove(recordPath(testTable, seq)); err != nil {
					t.Fatal(err)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			fsys := whole.Kill()
			do(fsys)
			refused(t, fsys, w.options(fsys), fault.Halt, `the member "later"`, "newer hivesink")
			_, err := Read(fsys, testTable)
			if err == nil {
				t.Fatal("read without complaint")
			}
			for _, word := range []string{"damaged", "restore", "affected"} {
				if strings.Contains(err.Error(), word) {
					t.Errorf("%v: it is not %s", err, word)
				}
			}
		})
	}
}

// TestIndexOfNewer: an index of which something is not known here is of no use,
// although it is whole: the log decides what that means (T8).
func TestIndexOfNewer(t *testing.T) {
	disk := memfs.New()
	o, store := memIndex(newWorld().options(disk))
	if err := (&script{l: mustOpen(t, o), fsys: disk}).run(0, 4, nil); err != nil {
		t.Fatal(err)
	}
	const key = prefPartition + ":dt=1"
	change := func(version int, value func([]byte) []byte) *kv.Mem {
		c := store.Clone()
		var h head
		var was []byte
		err := c.View(func(r kv.Reader) error {
			data, err := r.Get(keyHead)
			if err == nil {
				err = json.Unmarshal(data, &h)
			}
			if err == nil {
				was, err = r.Get(key)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if version != 0 {
			h.Version = version
		}
		var x hasher
		is := value(was)
		h.Digest += x.entity(key, is) - x.entity(key, was)
		err = c.Update(func(w kv.Writer) error {
			data, err := json.Marshal(h)
			if err == nil {
				err = w.Set(keyHead, data)
			}
			if err == nil {
				err = w.Set(key, is)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	same := func(v []byte) []byte { return v }
	if indexed(disk, change(0, same)) == nil {
		t.Fatal("the test makes an index that is of no use by itself")
	}
	later := func(v []byte) []byte { return append(v[:len(v)-1:len(v)-1], `,"later":1}`...) }
	for name, c := range map[string]*kv.Mem{"a member": change(0, later), "version 1": change(1, same), "a later version": change(indexVersion+1, same)} {
		if indexed(disk, c) != nil {
			t.Errorf("%s: the index passes for one of ours", name)
		}
		reopened(t, disk.Kill(), c)
	}
}
