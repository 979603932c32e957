package mainjob

import (
	"fmt"
	"sync"
	"time"

	"github.com/hivesink/hivesink/storage"
)

// watcher is a reader of the table that goes on looking.
type watcher struct {
	fs   storage.FS
	root string
	seen map[string]bool
	ids  map[int64]string
	// looks is how often it has listed the table.
	looks int
}

// watch looks until stop is called, which returns the first thing wrong.
func watch(fs storage.FS, root string) (w *watcher, stop func() error) {
	w = &watcher{fs: fs, root: root, seen: make(map[string]bool), ids: make(map[int64]string)}
	quit := make(chan struct{})
	var err error
	var wg sync.WaitGroup
	wg.Go(func() {
		for err == nil {
			select {
			case <-quit:
				err = w.look()
				return
			case <-time.After(20 * time.Millisecond): // leave the servers some time for others
				err = w.look()
			}
		}
	})
	return w, sync.OnceValue(func() error { close(quit); wg.Wait(); return err })
}

// look lists the table once and reads each file that it sees for the first
// time: no file vanishes, every file is whole, no id is there twice.
func (w *watcher) look() error {
	names, err := files(w.fs, w.root)
	if err != nil {
		return err
	}
	w.looks++
	now := make(map[string]bool, len(names))
	for _, name := range names {
		now[name] = true
		if w.seen[name] {
			continue
		}
		ids, err := readIDs(w.fs, name)
		if err != nil {
			return err
		}
		if len(ids) == 0 {
			return fmt.Errorf("%s is visible and has no row", name)
		}
		for _, id := range ids {
			if other, twice := w.ids[id]; twice {
				return fmt.Errorf("id %d of %s is in %s too", id, name, other)
			}
			w.ids[id] = name
		}
		w.seen[name] = true
	}
	for name := range w.seen {
		if !now[name] {
			return fmt.Errorf("%s was visible and is gone", name)
		}
	}
	return nil
}
