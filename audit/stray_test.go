package audit

import (
	"bytes"
	"context"
	"fmt"
	"path"
	"strings"
	"testing"

	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/storage"
	"github.com/hivesink/hivesink/storage/memobj"
)

// stray is a bucket with a key that no name is for, in one directory.
type stray struct {
	storage.Objects
	dir, key string
}

func (s stray) List(dir string) ([]storage.Info, error) {
	infos, err := s.Objects.List(dir)
	if err == nil && dir == s.dir {
		err = &storage.Error{Op: storage.OpList, Name: dir, Err: &storage.StrayError{Keys: []string{s.key}}}
	}
	return infos, err
}

// TestStrayKey: a key that no name is for is reported, since readers that go by
// prefix see it, and what else is there is audited.
func TestStrayKey(t *testing.T) {
	view := memobj.New().View(nil)
	l, err := ledger.Open(context.Background(), ledger.Options{FS: view, Table: "/t", Pipeline: "p"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := view.Make("/t/day=1/alien.csv", []byte("1,2,3")); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"/t", "/t/day=1"} {
		key := strings.TrimPrefix(dir, "/") + "//"
		rep, err := Run(context.Background(), stray{view, dir, key}, "/t")
		if err != nil {
			t.Fatalf("%s: %v", key, err)
		}
		var found []string
		for _, f := range rep.Faults {
			found = append(found, f.Kind+" "+f.File)
		}
		if want := []string{Unknown + " " + key, Unknown + " " + path.Join("/t/day=1", "alien.csv")}; fmt.Sprint(found) != fmt.Sprint(want) {
			t.Errorf("%s: faults %v, want %v", key, found, want)
		}
		var said bytes.Buffer
		rep.Print(&said)
		if !strings.Contains(said.String(), key) {
			t.Errorf("it says: %s", &said)
		}
	}
}
