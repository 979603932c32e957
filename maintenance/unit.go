package maintenance

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/layout"
	"github.com/hivesink/hivesink/storage"
)

// unit is what one replacement is about to do, as it is written down beside its
// directory (MT10). With it a successor can finish or undo it.
type unit struct {
	Version   int    `json:"v"`
	ID        string `json:"id"`
	Partition string `json:"partition"`
	// Window: new files are moved in and old ones removed one by one.
	Window bool     `json:"window,omitempty"`
	Old    []entry  `json:"old"` // all that is in the partition; in a window what is to be removed
	Add    []string `json:"add"` // names of the new files
}

const unitVersion = 1

// place is where a unit lies: its directory, its description, its partition.
type place struct {
	fs      storage.FS
	root    string // of the table
	staging string
	unit
}

func (p *place) dir() string  { return path.Join(p.staging, p.ID) }
func (p *place) file() string { return path.Join(p.staging, layout.UnitFile(p.ID)) }

// partition is the directory that readers look into.
func (p *place) partition() string { return path.Join(p.root, p.Partition) }

// staged is the hidden name of a new file (MT7).
func (p *place) staged(name string) string { return path.Join(p.dir(), name+".target") }

func marker(dir string) string { return path.Join(dir, layout.CompactMarker) }

// writeDown makes the description durable, but for its entry in staging.
func (p *place) writeDown() error {
	data, err := json.Marshal(p.unit)
	if err != nil {
		return fmt.Errorf("describe unit %s: %w", p.ID, err)
	}
	return storage.WriteFile(p.fs, p.file(), append(data, '\n'))
}

// readUnit reads a description back. nil: there is none, or one that was never
// finished; nothing was done then (MT10).
func readUnit(fs storage.FS, root, staging, id string) (*place, error) {
	p := &place{fs: fs, root: root, staging: staging}
	p.ID = id
	data, err := fs.ReadFile(p.file())
	if errors.Is(err, storage.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, storage.Classify(fmt.Errorf("read what unit %s was to do: %w", id, err))
	}
	if err := json.Unmarshal(data, &p.unit); err != nil {
		return nil, nil
	}
	if p.Version > unitVersion { // whole, and what it means is not known here
		return nil, fault.New(fault.Halt, "use the hivesink that began it, or a newer one; nothing was changed",
			"%s has format version %d, this hivesink reads version %d", p.file(), p.Version, unitVersion)
	}
	if p.Version != unitVersion || p.ID != id || !local(p.Partition) {
		return nil, nil
	}
	return p, nil
}

// local: a path that stays below the table.
func local(rel string) bool {
	return rel == "" || path.Clean("/"+rel) == "/"+rel && !strings.Contains(rel, "\x00")
}

// mark puts the marker into a directory. It has its name only when its bytes
// are durable: a successor of a process that was killed in between would go by
// what a power cut then takes away.
func (p *place) mark(dir string) error {
	tmp := marker(dir) + ".new"
	if err := storage.WriteFile(p.fs, tmp, []byte(p.ID+"\n")); err != nil {
		return err
	}
	return p.fs.Rename(tmp, marker(dir))
}

// marked says whether this unit's marker lies in a directory.
func (p *place) marked(dir string) (bool, error) {
	data, err := p.fs.ReadFile(marker(dir))
	if errors.Is(err, storage.ErrNotExist) {
		return false, nil
	}
	return strings.TrimSpace(string(data)) == p.ID, err
}

// unmark takes the marker out of the partition.
func (p *place) unmark() error {
	here, err := p.marked(p.partition())
	if err != nil || !here {
		return err
	}
	err = p.fs.Remove(marker(p.partition()))
	if errors.Is(err, storage.ErrNotExist) {
		return nil
	}
	return err
}

// settleExchange makes an exchange that was done durable.
func (p *place) settleExchange() error {
	for _, dir := range []string{path.Dir(p.partition()), p.staging} {
		if err := p.fs.SyncDir(dir); err != nil {
			return &storage.UnsyncedError{Name: p.partition(), Err: err}
		}
	}
	return nil
}

// rescue moves what came into the old directory between the last look and the
// exchange into the new one (MT5), which is the partition now.
func (p *place) rescue() error {
	known := make(map[string]bool, len(p.Old))
	for _, e := range p.Old {
		known[e.Name] = true
	}
	moved := false
	err := p.newcomers("", known, func(name string) error {
		moved = true
		to := path.Join(p.partition(), name)
		if err := p.fs.Rename(path.Join(p.dir(), name), to); err != nil {
			return fmt.Errorf("%s came to partition %s in the last moment, and cannot be moved to its new directory: %w", name, p.Partition, err)
		}
		return p.fs.SyncDir(path.Dir(to))
	})
	if err != nil || !moved {
		return err
	}
	return p.fs.SyncDir(p.dir())
}

func (p *place) newcomers(rel string, known map[string]bool, fn func(name string) error) error {
	infos, err := p.fs.List(path.Join(p.dir(), rel))
	if errors.Is(err, storage.ErrNotExist) {
		return nil // emptied and removed before
	}
	if err != nil {
		return err
	}
	for _, info := range infos {
		name := path.Join(rel, info.Name)
		switch {
		case name == layout.CompactMarker: // a former unit's
		case !known[name]:
			err = fn(name)
		case info.Dir:
			err = p.newcomers(name, known, fn)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// moveIn makes a window's new files visible, then removes the old ones. It may
// be repeated (MT2).
func (p *place) moveIn() error {
	for _, name := range p.Add {
		err := p.fs.Rename(p.staged(name), path.Join(p.partition(), name))
		if errors.Is(err, storage.ErrNotExist) {
			if there, serr := storage.Exists(p.fs, path.Join(p.partition(), name)); serr == nil && there {
				continue
			}
		}
		if err != nil {
			return err
		}
	}
	for _, dir := range []string{p.partition(), p.dir()} {
		if err := p.fs.SyncDir(dir); err != nil {
			return &storage.UnsyncedError{Name: dir, Err: err}
		}
	}
	for _, e := range p.Old {
		name := path.Join(p.partition(), e.Name)
		info, err := p.fs.Stat(name)
		if err == nil && (info.Dir || info.Size != e.Size || info.ModTime.UnixNano() != e.Time) {
			continue // another program has put its own there, maybe long after a crash
		}
		if err == nil {
			err = p.fs.Remove(name)
		}
		if err != nil && !errors.Is(err, storage.ErrNotExist) {
			return err
		}
	}
	if err := p.fs.SyncDir(p.partition()); err != nil {
		return &storage.UnsyncedError{Name: p.partition(), Err: err}
	}
	return nil
}
