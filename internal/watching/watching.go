// Package watching is, for tests, a reader of a table that goes on looking while
// others write it, are killed and start again.
package watching

import (
	"fmt"
	"sync"
	"time"
)

// Reader looks at a table as one who lists directories does. No file that it
// has seen vanishes, every file is whole, no id is there twice.
type Reader struct {
	Files func() ([]string, error)           // lists what is visible
	IDs   func(name string) ([]int64, error) // reads the column id of a file

	Seen  map[string]bool  // files
	Row   map[int64]string // the file in which each id is
	Looks int              // how often it has listed the table
}

// Look lists the table once and reads each file that it sees for the first
// time.
func (r *Reader) Look() error {
	names, err := r.Files()
	if err != nil {
		return err
	}
	if r.Seen == nil {
		r.Seen, r.Row = make(map[string]bool), make(map[int64]string)
	}
	r.Looks++
	now := make(map[string]bool, len(names))
	for _, name := range names {
		now[name] = true
		if r.Seen[name] {
			continue
		}
		if err := r.read(name); err != nil {
			return err
		}
		r.Seen[name] = true
	}
	for name := range r.Seen {
		if !now[name] {
			return fmt.Errorf("%s was visible and is gone", name)
		}
	}
	return nil
}

func (r *Reader) read(name string) error {
	ids, err := r.IDs(name)
	if err != nil {
		return err
	}
	if len(ids) == 0 {
		return fmt.Errorf("%s is visible and has no row", name)
	}
	for _, id := range ids {
		if other, twice := r.Row[id]; twice {
			return fmt.Errorf("id %d of %s is in %s too", id, name, other)
		}
		r.Row[id] = name
	}
	return nil
}

// breath is how long a look may take before the others get as much time.
const breath = 10 * time.Millisecond

// Keep calls look again and again, pause after pause, until stop is called,
// which returns the first error: then, and after a last look. It leaves the
// machine to others for as long as a look takes.
func Keep(pause time.Duration, look func() error) (stop func() error) {
	quit := make(chan struct{})
	var err error
	var wg sync.WaitGroup
	wg.Go(func() {
		for began := time.Now(); err == nil; {
			select {
			case <-quit:
				err = look()
				return
			case <-time.After(pause):
				err = look()
			}
			if busy := time.Since(began); busy > breath {
				time.Sleep(busy)
				began = time.Now()
			}
		}
	})
	return sync.OnceValue(func() error { close(quit); wg.Wait(); return err })
}
