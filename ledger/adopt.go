package ledger

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/layout"
	"github.com/hivesink/hivesink/storage"
)

// adopt keeps what the log names where it lies, and removes the rest of former
// owners' staging (T11). What cannot be removed is left to the next owner.
func (l *Ledger) adopt() error {
	l.keep.err = l.sweep()
	if l.keep.err != nil && fault.ClassOf(l.keep.err) == fault.Fenced {
		return l.keep.err
	}
	return nil
}

func (l *Ledger) sweep() error {
	meta := metaDir(l.o.Table)
	entries, err := l.o.FS.List(meta)
	if err != nil {
		return fmt.Errorf("look for leftovers: %w", err)
	}
	named := stagedFiles(l.st)
	for _, e := range entries {
		full := path.Join(meta, e.Name)
		if epoch, ok := l.former(e.Name); ok {
			err = l.sweepFenced(full, epoch, named)
		} else if isClaim(e.Name) {
			err = l.Trash(full) // its owner, if alive, comes too late
		} else if l.objects != nil && l.staleProbe(e) {
			err = l.Trash(full)
		}
		if err != nil {
			return storage.Classify(fmt.Errorf("remove leftovers in %s: %w", full, err))
		}
	}
	return nil
}

// stagedFiles are those that a state names.
func stagedFiles(st *State) map[StagedFile]bool {
	named := make(map[StagedFile]bool, len(st.Parts))
	for _, p := range st.Parts {
		named[p.File()] = true
	}
	for id, r := range st.Replacements { // a directory, and its description beside it
		named[StagedFile{r.Epoch, id}] = true
		named[StagedFile{r.Epoch, layout.UnitFile(id)}] = true
	}
	return named
}

// sweepFenced removes what the log does not name, and the whole directory when
// it names nothing.
func (l *Ledger) sweepFenced(dir string, epoch uint64, named map[StagedFile]bool) error {
	if l.objects == nil && !l.staged(epoch) {
		return l.Trash(dir)
	}
	subs, err := l.o.FS.List(dir)
	if err != nil {
		return err
	}
	for _, s := range subs {
		sub := path.Join(dir, s.Name)
		if l.objects != nil && s.Dir {
			if err := l.objects.AbortLeft(sub); err != nil {
				return err
			}
		}
		if !s.Dir {
			if err := l.Trash(sub); err != nil {
				return err
			}
			continue
		}
		files, err := l.o.FS.List(sub)
		if l.objects != nil && errors.Is(err, storage.ErrNotExist) {
			continue // nothing but an upload was in it
		}
		if err != nil {
			return err
		}
		for _, f := range files {
			if named[StagedFile{epoch, f.Name}] {
				continue
			}
			if err := l.abortNoted(path.Join(sub, f.Name), epoch, named); err != nil {
				return err
			}
			if err := l.Trash(path.Join(sub, f.Name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// Trash deletes a file or directory: it is renamed into our staging directory
// and then unlinked, so that a fenced owner deletes nothing (T10). What is gone
// already is fine. Outside of .hivesink the deletion is durable afterwards.
func (l *Ledger) Trash(name string) error {
	if l.objects != nil {
		// No need of T10: what a former owner deletes here, the log has done with.
		if err := l.objects.Remove(name); err != nil {
			return l.lost(fmt.Errorf("delete %s: %w", name, err))
		}
		return nil
	}
	aside := name
	if !strings.HasPrefix(name, l.staging+"/") {
		aside = path.Join(l.staging, "trash-"+layout.ID(l.o.Random()))
		if err := l.o.FS.Rename(name, aside); err != nil {
			gone, serr := l.gone()
			if errors.Is(err, storage.ErrNotExist) && serr == nil && !gone {
				return nil
			}
			return l.lost(fmt.Errorf("move %s aside to delete it: %w", name, err))
		}
		if !strings.HasPrefix(name, metaDir(l.o.Table)+"/") {
			if err := l.o.FS.SyncDir(path.Dir(name)); err != nil {
				return storage.Classify(fmt.Errorf("make the deletion of %s durable: %w", name, err))
			}
		}
	}
	if err := storage.RemoveAll(l.o.FS, aside); err != nil {
		return l.lost(fmt.Errorf("delete %s: %w", name, err))
	}
	return nil
}

// Locate returns the full path of a staged file that a part names: of ours
// without a look, of a former epoch where it is found. Not there is
// storage.ErrNotExist: deleted, published or lost.
func (l *Ledger) Locate(epoch uint64, name string) (string, error) {
	if epoch == l.epoch {
		return path.Join(l.staging, name), nil
	}
	dirs, known := l.places[epoch]
	if !known {
		var err error
		if dirs, err = stagingDirs(l.o.FS, l.o.Table, epoch); err != nil {
			return "", err
		}
		l.places[epoch] = dirs
	}
	return findIn(l.o.FS, dirs, epoch, name)
}

// FindStaged finds a staged file for those who only read: in the directory of
// its epoch, live or fenced. Not there is storage.ErrNotExist.
func FindStaged(fs storage.FS, table string, epoch uint64, name string) (string, error) {
	dirs, err := stagingDirs(fs, table, epoch)
	if err != nil {
		return "", err
	}
	return findIn(fs, dirs, epoch, name)
}

func findIn(fs storage.FS, dirs []string, epoch uint64, name string) (string, error) {
	for _, dir := range dirs {
		full := path.Join(dir, name)
		there, err := storage.Exists(fs, full)
		if err != nil {
			return "", storage.Classify(fmt.Errorf("look for staged file %s of epoch %d: %w", name, epoch, err))
		}
		if there {
			return full, nil
		}
	}
	return "", fmt.Errorf("staged file %s of epoch %d: %w", name, epoch, storage.ErrNotExist)
}

// stagingDirs are the directories in which files of an epoch may lie.
func stagingDirs(fs storage.FS, table string, epoch uint64) ([]string, error) {
	meta := metaDir(table)
	entries, err := fs.List(meta)
	if err != nil {
		return nil, storage.Classify(fmt.Errorf("look for the staging of epoch %d: %w", epoch, err))
	}
	var dirs []string
	for _, e := range entries {
		k, ok := layout.ParseEpochDir(e.Name)
		if !ok {
			k, ok = layout.ParseFencedDir(e.Name)
		}
		if !ok || k != epoch {
			continue
		}
		subs, err := fs.List(path.Join(meta, e.Name))
		if err != nil && !errors.Is(err, storage.ErrNotExist) { // fenced or swept meanwhile
			return nil, storage.Classify(fmt.Errorf("look for the staging of epoch %d: %w", epoch, err))
		}
		for _, s := range subs {
			if s.Dir {
				dirs = append(dirs, path.Join(meta, e.Name, s.Name))
			}
		}
	}
	return dirs, nil
}
