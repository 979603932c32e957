package ledger

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"sync"

	"github.com/hivesink/hivesink/layout"
	"github.com/hivesink/hivesink/storage"
)

// Uploads are those of parts that go to their final names at once (Part.Upload).
// From its beginning until a checkpoint names it nobody but this process knows
// of such an upload. So its name is noted in the staging directory before: many
// names in one note, which goes when a record has named them all. Whoever takes
// the table over aborts, after its seal, what was noted and never named. Under
// exact names every store lists its uploads, below a prefix not all do; and
// where none are listed they take room, and nothing else (storage O4).
//
// It may be used beside the ledger, by several goroutines.
type Uploads struct {
	objects storage.Objects
	staging string
	random  func() uint64

	mu    sync.Mutex
	of    map[string]string // name of an upload → its note
	names map[string]int    // note → names that no record has named
}

// Uploads is where the owner notes uploads; nil where there are none.
func (l *Ledger) Uploads() *Uploads {
	if l.objects != nil && l.uploads == nil {
		l.uploads = &Uploads{objects: l.objects, staging: l.staging, random: l.o.Random, of: make(map[string]string), names: make(map[string]int)}
	}
	return l.uploads
}

// Note says that uploads to these names, full paths, may begin from now on.
func (u *Uploads) Note(names []string) error {
	data, err := json.Marshal(names)
	if err != nil {
		return err
	}
	note := path.Join(u.staging, layout.UploadsNote(layout.ID(u.random())))
	if err := u.objects.Put(note, bytes.NewReader(data), int64(len(data))); err != nil {
		return storage.Classify(fmt.Errorf("note %d uploads: %w", len(names), err))
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, name := range names {
		u.of[name] = note
	}
	u.names[note] = len(names)
	return nil
}

// Named says that a record names the uploads to these names. Notes that are of
// no more use go, as far as that goes: the next owner removes what stays.
func (u *Uploads) Named(names []string) {
	u.mu.Lock()
	var spent []string
	for _, name := range names {
		note := u.of[name]
		delete(u.of, name)
		if u.names[note]--; u.names[note] == 0 {
			delete(u.names, note)
			spent = append(spent, note)
		}
	}
	u.mu.Unlock()
	for _, note := range spent {
		_ = u.objects.Remove(note) // what it says is harmless: names that are taken have no uploads
	}
}

// abandon aborts our own uploads that no record names and none will any more. It
// goes by what we know, not by the notes: a successor may have removed those
// before the uploads began.
func (l *Ledger) abandon(st *State) error {
	if l.uploads == nil {
		return nil
	}
	named := stagedFiles(st)
	l.uploads.mu.Lock()
	names := sortedKeys(l.uploads.of)
	l.uploads.mu.Unlock()
	for _, name := range names {
		if err := l.abortUnnamed(name, l.epoch, named); err != nil {
			return err
		}
	}
	return nil
}

// abortUnnamed aborts the uploads to a name, unless the log names it: those are
// to be completed, never to be aborted (T14).
func (l *Ledger) abortUnnamed(name string, epoch uint64, named map[StagedFile]bool) error {
	if named[StagedFile{epoch, path.Base(name)}] {
		return nil
	}
	return l.objects.AbortAt(name)
}

// abortNoted aborts the uploads that a note of an epoch has and the log does not
// name. Any other file has none.
func (l *Ledger) abortNoted(file string, epoch uint64, named map[StagedFile]bool) error {
	if _, ok := layout.ParseUploadsNote(path.Base(file)); !ok || l.objects == nil {
		return nil
	}
	data, err := l.objects.ReadFile(file)
	if errors.Is(err, storage.ErrNotExist) {
		return nil // its owner has done with it
	}
	var names []string
	if err == nil {
		err = json.Unmarshal(data, &names)
	}
	if err != nil {
		return fmt.Errorf("read the note of uploads %s: %w", file, err)
	}
	for _, name := range names {
		if err := l.abortUnnamed(name, epoch, named); err != nil {
			return err
		}
	}
	return nil
}
