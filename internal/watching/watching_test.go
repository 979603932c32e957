package watching

import (
	"errors"
	"strings"
	"testing"
)

// TestReader: what must not happen to a table is noticed.
func TestReader(t *testing.T) {
	table := map[string][]int64{"a": {1, 2}}
	r := &Reader{
		Files: func() (names []string, err error) {
			for name := range table {
				names = append(names, name)
			}
			return names, nil
		},
		IDs: func(name string) ([]int64, error) {
			if ids := table[name]; ids != nil {
				return ids, nil
			}
			return nil, errors.New(name + " cannot be read")
		},
	}
	look := func(want string) {
		t.Helper()
		err := r.Look()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Fatalf("%v, want %q", err, want)
		}
	}
	look("")
	table["b"] = []int64{3}
	look("")
	for _, bad := range []struct {
		ids  []int64
		want string
	}{{[]int64{4, 2}, "id 2 of c is in a too"}, {[]int64{}, "c is visible and has no row"}, {nil, "c cannot be read"}} {
		table["c"] = bad.ids
		look(bad.want)
		delete(table, "c")
	}
	delete(table, "b")
	look("b was visible and is gone")
	if r.Looks != 6 || len(r.Seen) != 2 {
		t.Errorf("%d looks, seen %v", r.Looks, r.Seen)
	}
}

// TestKeep: it looks until it is stopped, or something is wrong, which stop
// returns.
func TestKeep(t *testing.T) {
	looked := make(chan struct{})
	stop := Keep(0, func() error { looked <- struct{}{}; return nil })
	<-looked
	<-looked
	go func() { // the look at the end, and one that was on its way
		for range looked {
		}
	}()
	if err := stop(); err != nil {
		t.Error(err)
	}
	close(looked)

	wrong := errors.New("wrong")
	seen := make(chan struct{})
	stop = Keep(0, func() error { defer close(seen); return wrong }) // a second look would panic
	<-seen
	if err := stop(); !errors.Is(err, wrong) {
		t.Errorf("%v", err)
	}
}
