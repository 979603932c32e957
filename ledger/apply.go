package ledger

import (
	"maps"
	"slices"

	"github.com/hivesink/hivesink/internal/fault"
)

// Touched lists what a record changed, for the index.
type Touched struct {
	Sources, Parts, Units, Partitions map[string]bool
}

func newTouched() Touched {
	return Touched{make(map[string]bool), make(map[string]bool), make(map[string]bool), make(map[string]bool)}
}

// NewState is the state before the first record.
func NewState() *State {
	return &State{Version: formatVersion, Watermark: NoWatermark, Sources: make(map[string]*Source), Parts: make(map[string]*Part),
		Units: make(map[string]*Unit), Partitions: make(map[string]*Partition)}
}

// Clone copies a state.
func (s *State) Clone() *State {
	c := *s
	c.Sources, c.Parts, c.Units, c.Partitions = cloneMap(s.Sources), cloneMap(s.Parts), cloneMap(s.Units), cloneMap(s.Partitions)
	return &c
}

func cloneMap[T any](m map[string]*T) map[string]*T {
	out := make(map[string]*T, len(m))
	for k, v := range m {
		c := *v
		out[k] = &c
	}
	return out
}

// Apply is the one place where a record changes the state. It refuses a record
// that cannot follow; the state is then unusable.
func (s *State) Apply(r *Record, checksum string) (Touched, error) {
	t := newTouched()
	if r.Seq != s.Seq+1 {
		return t, contradiction(r, "it follows record %d", s.Seq)
	}
	if s.Seq > 0 && r.Previous != s.Checksum {
		return t, contradiction(r, "its predecessor's checksum is %.12s…, record %d has %.12s…", r.Previous, s.Seq, s.Checksum)
	}
	if r.Epoch < s.Epoch {
		return t, contradiction(r, "it is of epoch %d, after epoch %d", r.Epoch, s.Epoch)
	}
	if r.Epoch > s.Epoch && r.NewEpoch == nil {
		return t, contradiction(r, "epoch %d was never opened", r.Epoch)
	}
	steps := []func(*Record, *Touched) error{s.applyEpoch, s.applyCheckpoint, s.applyPlan, s.applyPublished, s.applyDeleted, s.applyAnnounced}
	for _, step := range steps {
		if err := step(r, &t); err != nil {
			return t, err
		}
	}
	if r.Released {
		s.Released = true
	}
	s.Seq, s.Checksum, s.Epoch = r.Seq, checksum, r.Epoch
	return t, nil
}

func contradiction(r *Record, format string, args ...any) error {
	return fault.New(fault.Halt, "the log is damaged from this record on; nothing was changed", "log record %d: "+format, append([]any{r.Seq}, args...)...)
}

func (s *State) applyEpoch(r *Record, _ *Touched) error {
	e := r.NewEpoch
	if e == nil {
		return nil
	}
	if s.Owner.Table != "" && e.Table != s.Owner.Table {
		return contradiction(r, "it is of table %s, the log of table %s", e.Table, s.Owner.Table)
	}
	s.Owner = *e
	s.Released = false
	return nil
}

func (s *State) applyCheckpoint(r *Record, t *Touched) error {
	c := r.Checkpoint
	if c == nil {
		return nil
	}
	if c.Number != s.Checkpoint+1 {
		return contradiction(r, "checkpoint %d follows checkpoint %d", c.Number, s.Checkpoint)
	}
	for name, src := range c.Sources {
		if old := s.Sources[name]; old != nil && (src.NextRow < old.NextRow || src.Accepted.Rows < old.Accepted.Rows) {
			return contradiction(r, "source partition %q goes back from row %d to %d", name, old.NextRow, src.NextRow)
		}
		s.Sources[name] = &src
		t.Sources[name] = true
	}
	for _, p := range c.Parts {
		if s.Parts[p.ID] != nil {
			return contradiction(r, "part %s is there twice", p.ID)
		}
		s.Parts[p.ID] = &p
		t.Parts[p.ID] = true
		key := PartitionKey(p.Table, p.Partition)
		if s.Partitions[key] == nil {
			s.Partitions[key] = &Partition{Table: p.Table, Path: p.Partition}
		}
		s.Partitions[key].Closes = max(s.Partitions[key].Closes, p.Closes)
		t.Partitions[key] = true
	}
	s.PartFiles += int64(len(c.Parts))
	s.Checkpoint, s.Watermark = c.Number, c.Watermark
	s.InputEnded, s.Complete = c.InputEnded, c.Complete
	return s.addUnits(r, c.Units, t)
}

func (s *State) applyPlan(r *Record, t *Touched) error { return s.addUnits(r, r.Plan, t) }

func (s *State) addUnits(r *Record, units []Unit, t *Touched) error {
	taken := make(map[string]string)
	for id, u := range s.Units {
		for _, in := range u.Inputs {
			taken[in] = id
		}
	}
	for _, u := range units {
		if s.Units[u.ID] != nil {
			return contradiction(r, "unit %s is planned twice", u.ID)
		}
		for _, in := range u.Inputs {
			if s.Parts[in] == nil {
				return contradiction(r, "unit %s names part %s, which is not there", u.ID, in)
			}
			if other, ok := taken[in]; ok {
				return contradiction(r, "part %s is in units %s and %s", in, other, u.ID)
			}
			taken[in] = u.ID
		}
		s.Units[u.ID] = &u
		t.Units[u.ID] = true
	}
	return nil
}

func (s *State) applyPublished(r *Record, t *Touched) error {
	for _, f := range r.Published {
		u := s.Units[f.Unit]
		if u == nil || u.Published {
			return contradiction(r, "unit %s was published and is not planned", f.Unit)
		}
		key := PartitionKey(u.Table, u.Partition)
		p := s.Partitions[key]
		if p == nil {
			return contradiction(r, "unit %s is of partition %q, which has no part", u.ID, u.Partition)
		}
		p.Files++
		p.Rows += f.Rows
		p.Bytes += f.Bytes
		if p.FirstPublished == 0 {
			p.FirstPublished = f.Time
		}
		t.Partitions[key] = true
		s.PublishedFiles++
		s.PublishedRows += f.Rows
		u.Published = true
		t.Units[u.ID] = true
		if f.Mode == ModePublish { // the input itself has become the target
			s.dropUnit(u, t)
		}
	}
	return nil
}

func (s *State) dropUnit(u *Unit, t *Touched) {
	for _, in := range u.Inputs {
		delete(s.Parts, in)
		t.Parts[in] = true
	}
	delete(s.Units, u.ID)
	t.Units[u.ID] = true
}

func (s *State) applyDeleted(r *Record, t *Touched) error {
	for _, id := range r.InputsDeleted {
		u := s.Units[id]
		if u == nil || !u.Published {
			return contradiction(r, "inputs of unit %s are deleted, which is not published", id)
		}
		s.dropUnit(u, t)
	}
	return nil
}

func (s *State) applyAnnounced(r *Record, t *Touched) error {
	for _, a := range r.Announced {
		key := PartitionKey(a.Table, a.Partition)
		p := s.Partitions[key]
		if p == nil {
			return contradiction(r, "partition %q is announced and was never written", a.Partition)
		}
		t.Partitions[key] = true
		if p.Registered = true; a.Register {
			continue
		}
		if a.Number != p.Announced+1 {
			return contradiction(r, "partition %q: announcement %d follows %d", a.Partition, a.Number, p.Announced)
		}
		p.Announced, p.AnnouncedCut = a.Number, a.Cut
		p.AnnouncedFiles, p.AnnouncedRows, p.AnnouncedBytes, p.AnnouncedTime = a.Files, a.Rows, a.Bytes, a.Time
		if !p.Unannounced() {
			p.FirstPublished = 0
		}
	}
	return nil
}

func sortedKeys[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }
