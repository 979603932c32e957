package ledger

import (
	"maps"
	"slices"

	"github.com/hivesink/hivesink/internal/fault"
)

// Touched is what a record changed: by key, the entity as it was before, nil
// when it is new.
type Touched struct {
	Sources    map[string]*Source
	Parts      map[string]*Part
	Units      map[string]*Unit
	Partitions map[string]*Partition

	Replacements map[string]*Replacement

	head State // the scalar fields as they were
}

// NewState is the state before the first record.
func NewState() *State {
	return &State{Version: formatVersion, Watermark: NoWatermark, Sources: make(map[string]*Source), Parts: make(map[string]*Part),
		Units: make(map[string]*Unit), Partitions: make(map[string]*Partition), Replacements: make(map[string]*Replacement),
		unannounced: make(map[string]struct{})}
}

// Clone copies a state. What a part or unit refers to (its sources, its
// inputs) is shared: nobody changes it.
func (s *State) Clone() *State {
	c := *s
	c.Sources, c.Parts, c.Units, c.Partitions = cloneMap(s.Sources), cloneMap(s.Parts), cloneMap(s.Units), cloneMap(s.Partitions)
	c.Replacements = cloneMap(s.Replacements)
	c.unannounced = maps.Clone(s.unannounced)
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

// Apply is the one place where facts change the state (T6). A record that
// cannot follow is refused with an error of class Halt and changes nothing.
// Entities are replaced, never changed in place: a pointer that somebody took
// out of the state stays as it was.
func (s *State) Apply(r *Record, checksum string) (Touched, error) {
	a := application{s: s, r: r, touched: Touched{head: s.scalars()}}
	if err := a.follows(); err != nil {
		return Touched{}, err
	}
	// Facts of one record apply in the order of its fields.
	steps := []func() error{a.newEpoch, a.checkpoint, a.givenUp, a.plan, a.uploading, a.published, a.inputsDeleted, a.announced,
		a.replacing, a.replaced, a.replacementsEnded, a.released}
	for _, step := range steps {
		if err := step(); err != nil {
			s.revert(a.touched)
			return Touched{}, err
		}
	}
	s.Seq, s.Checksum, s.Epoch = r.Seq, checksum, r.Epoch
	return a.touched, nil
}

// scalars is the state without its maps.
func (s *State) scalars() State {
	head := *s
	head.takeMaps(&State{})
	return head
}

// takeMaps lets s have the maps of from.
func (s *State) takeMaps(from *State) {
	s.Sources, s.Parts, s.Units, s.Partitions, s.Replacements = from.Sources, from.Parts, from.Units, from.Partitions, from.Replacements
	s.unannounced = from.unannounced
}

// revert takes one application back, the last one.
func (s *State) revert(t Touched) {
	putBack(s.Sources, t.Sources)
	putBack(s.Parts, t.Parts)
	putBack(s.Units, t.Units)
	putBack(s.Partitions, t.Partitions)
	putBack(s.Replacements, t.Replacements)
	for key, p := range t.Partitions { // each by itself: the order does not matter
		s.watch(key, p)
	}
	was := t.head
	was.takeMaps(s)
	*s = was
}

func putBack[T any](m, before map[string]*T) {
	for key, v := range before { // each key by itself: the order does not matter
		if v == nil {
			delete(m, key)
		} else {
			m[key] = v
		}
	}
}

// application is one record on its way into the state.
type application struct {
	s       *State
	r       *Record
	touched Touched
}

// put replaces an entity, or removes it when v is nil, and keeps what was there
// before the record.
func put[T any](m map[string]*T, before *map[string]*T, key string, v *T) {
	if *before == nil {
		*before = make(map[string]*T)
	}
	if _, known := (*before)[key]; !known {
		(*before)[key] = m[key]
	}
	if v == nil {
		delete(m, key)
	} else {
		m[key] = v
	}
}

func (a *application) putPartition(p Partition) {
	key := PartitionKey(p.Table, p.Path)
	put(a.s.Partitions, &a.touched.Partitions, key, &p)
	a.s.watch(key, &p)
}

func (a *application) refuse(format string, args ...any) error {
	return fault.New(fault.Halt, "it contradicts what the table log says; run `hivesink fsck`, nothing was changed",
		"log record %d: "+format, append([]any{a.r.Seq}, args...)...)
}

// follows keeps T2.
func (a *application) follows() error {
	s, r := a.s, a.r
	switch {
	case r.Seq != s.Seq+1:
		return a.refuse("it does not follow record %d", s.Seq)
	case r.Previous != s.Checksum:
		return a.refuse("it follows a record with checksum %q, record %d has %q", r.Previous, s.Seq, s.Checksum)
	case r.Epoch < s.Epoch:
		return a.refuse("it is of epoch %d, after one of epoch %d", r.Epoch, s.Epoch)
	case r.NewEpoch == nil && (r.Epoch > s.Epoch || s.Seq == 0):
		return a.refuse("it is of epoch %d, which was never opened", r.Epoch)
	case r.NewEpoch == nil && s.Released:
		return a.refuse("the table was released before")
	}
	return nil
}

func (a *application) newEpoch() error {
	s, e := a.s, a.r.NewEpoch
	switch {
	case e == nil:
		return nil
	case a.r.Epoch <= s.Epoch:
		return a.refuse("epoch %d is opened after epoch %d", a.r.Epoch, s.Epoch)
	case e.Table == "" || s.Owner.Table != "" && e.Table != s.Owner.Table:
		return a.refuse("table id %q, the log has %q", e.Table, s.Owner.Table)
	case s.Seq > 0 && e.Pipeline != s.Owner.Pipeline && !s.Released:
		return a.refuse("pipeline %q takes a table that pipeline %q has not released", e.Pipeline, s.Owner.Pipeline)
	}
	s.Owner = *e
	s.Released = false
	return nil
}

func (a *application) checkpoint() error {
	s, c := a.s, a.r.Checkpoint
	if c == nil {
		return nil
	}
	if c.Number != s.Checkpoint+1 {
		return a.refuse("checkpoint %d follows checkpoint %d", c.Number, s.Checkpoint)
	}
	for _, name := range sortedKeys(c.Sources) {
		next := c.Sources[name]
		if err := a.forward(name, s.Sources[name], &next); err != nil {
			return err
		}
		put(s.Sources, &a.touched.Sources, name, &next)
	}
	for i := range c.Parts {
		if err := a.addPart(c.Parts[i], c.Number); err != nil {
			return err
		}
	}
	if err := a.checkBundles(c.Parts); err != nil {
		return err
	}
	s.PartFiles += int64(len(c.Parts))
	s.Checkpoint, s.Watermark = c.Number, c.Watermark
	s.InputEnded, s.Complete = c.InputEnded, c.Complete // more input takes the end back
	if err := a.addUnits(c.Units); err != nil {
		return err
	}
	return a.checkReady(c)
}

// checkReady refuses a part that is an upload to its final name and has no unit
// (T14): a plan could only read it, and there is nothing that can be read.
func (a *application) checkReady(c *Checkpoint) error {
	ready := make(map[string]bool)
	for i := range c.Units {
		if p := a.s.Ready(&c.Units[i]); p != nil {
			ready[p.ID] = true
		}
	}
	for i := range c.Parts {
		if p := &c.Parts[i]; p.Upload != "" && !ready[p.ID] {
			return a.refuse("part %s is an upload to %s, and no unit completes it", p.ID, p.Name)
		}
	}
	return nil
}

// forward refuses counters that go back: rows would be read twice.
func (a *application) forward(name string, was, is *Source) error {
	if was == nil {
		was = new(Source)
	}
	counters := []struct {
		what    string
		was, is int64
	}{
		{"next row", was.NextRow, is.NextRow},
		{"accepted rows", was.Accepted.Rows, is.Accepted.Rows},
		{"dead-lettered rows", was.DeadLettered.Rows, is.DeadLettered.Rows},
		{"dropped rows", was.Dropped.Rows, is.Dropped.Rows},
		{"skipped rows", was.Skipped.Rows, is.Skipped.Rows},
	}
	for _, c := range counters {
		if c.is < c.was {
			return a.refuse("source partition %q goes back: %s from %d to %d", name, c.what, c.was, c.is)
		}
	}
	return nil
}

func (a *application) addPart(p Part, checkpoint uint64) error {
	s := a.s
	switch {
	case p.ID == "" || p.Name == "":
		return a.refuse("a part of partition %q without id or name", p.Partition)
	case s.Parts[p.ID] != nil:
		return a.refuse("part %s is there already", p.ID)
	case p.Epoch != a.r.Epoch:
		return a.refuse("part %s lies in the staging of epoch %d", p.ID, p.Epoch)
	case p.Checkpoint != checkpoint:
		return a.refuse("part %s is of checkpoint %d, not %d", p.ID, p.Checkpoint, checkpoint)
	case p.Upload != "" && (!p.Final || p.Bundle):
		return a.refuse("part %s is an upload to %s and may not be published as it is", p.ID, p.Name)
	}
	put(s.Parts, &a.touched.Parts, p.ID, &p)
	next := Partition{Table: p.Table, Path: p.Partition}
	if known := s.Partitions[PartitionKey(p.Table, p.Partition)]; known != nil {
		next = *known
	}
	next.Closes = max(next.Closes, p.Closes)
	a.putPartition(next)
	return nil
}

// givenUp takes units back, for others that this record has (T15).
func (a *application) givenUp() error {
	if len(a.r.GivenUp) == 0 {
		return nil
	}
	alone := make(map[string]bool)
	for i := range a.r.Plan {
		if u := &a.r.Plan[i]; len(u.Inputs) == 1 {
			alone[u.Inputs[0]] = true
		}
	}
	for _, id := range a.r.GivenUp {
		u := a.s.Units[id]
		switch {
		case u == nil || u.Published:
			return a.refuse("unit %s is given up, which is not planned or is published", id)
		case a.s.Ready(u) != nil:
			return a.refuse("unit %s is given up, whose part is an upload to its target", id)
		}
		for _, in := range u.Inputs {
			if !alone[in] {
				return a.refuse("unit %s is given up, and none takes its part %s by itself", id, in)
			}
		}
		put(a.s.Units, &a.touched.Units, id, nil)
	}
	return nil
}

func (a *application) plan() error { return a.addUnits(a.r.Plan) }

func (a *application) addUnits(units []Unit) error {
	if len(units) == 0 {
		return nil
	}
	taken := make(map[string]string)   // part → unit
	targets := make(map[string]string) // path of a target → unit
	for id, u := range a.s.Units {
		targets[targetKey(u)] = id
		for _, in := range u.Inputs {
			taken[in] = id
		}
	}
	for i := range units {
		u := units[i]
		if err := a.checkUnit(&u, taken); err != nil {
			return err
		}
		if other, ok := targets[targetKey(&u)]; ok {
			return a.refuse("units %s and %s have the same target %s", other, u.ID, u.Target)
		}
		targets[targetKey(&u)] = u.ID
		put(a.s.Units, &a.touched.Units, u.ID, &u)
	}
	return nil
}

func targetKey(u *Unit) string { return PartitionKey(u.Table, u.Partition) + "/" + u.Target }

// checkUnit takes the unit's inputs, which must be there and free.
func (a *application) checkUnit(u *Unit, taken map[string]string) error {
	switch {
	case u.ID == "" || u.Target == "" || len(u.Inputs) == 0:
		return a.refuse("a unit of partition %q without id, target or inputs", u.Partition)
	case a.s.Units[u.ID] != nil:
		return a.refuse("unit %s is there already", u.ID)
	case u.Published:
		return a.refuse("unit %s is planned as published", u.ID)
	case len(u.Uploads) > 0:
		return a.refuse("unit %s is planned with uploads", u.ID)
	case u.Mode == ModePublish && len(u.Inputs) != 1:
		return a.refuse("unit %s is to publish %d inputs as they are", u.ID, len(u.Inputs))
	case u.Mode == ModePublish && a.bundled(u.Inputs[0]):
		return a.refuse("unit %s is to publish part %s as it is, which shares its file with others", u.ID, u.Inputs[0])
	}
	if p := a.s.Ready(u); p != nil && (u.Mode != ModePublish || u.Target != p.Name) {
		return a.refuse("unit %s is to make %s of part %s by mode %q, which is an upload to %s", u.ID, u.Target, p.ID, u.Mode, p.Name)
	}
	var rows int64
	for _, in := range u.Inputs {
		p := a.s.Parts[in]
		if p == nil {
			return a.refuse("unit %s takes part %s, which is not there", u.ID, in)
		}
		if p.Upload != "" && len(u.Inputs) > 1 {
			return a.refuse("unit %s merges part %s, which is an upload to %s", u.ID, in, p.Name)
		}
		if p.Table != u.Table || p.Partition != u.Partition {
			return a.refuse("unit %s of partition %q takes part %s of partition %q", u.ID, u.Partition, in, p.Partition)
		}
		if other, ok := taken[in]; ok {
			return a.refuse("units %s and %s both take part %s", other, u.ID, in)
		}
		taken[in] = u.ID
		rows += p.Rows
	}
	if rows != u.Rows {
		return a.refuse("unit %s has %d rows, its inputs have %d", u.ID, u.Rows, rows)
	}
	return nil
}

func (a *application) uploading() error {
	for _, up := range a.r.Uploading {
		u := a.s.Units[up.Unit]
		switch {
		case u == nil || u.Published:
			return a.refuse("upload %s is of unit %s, which is not planned or is published", up.ID, up.Unit)
		case up.ID == "" || slices.Contains(u.Uploads, up.ID):
			return a.refuse("unit %s has no upload id, or upload %s twice", up.Unit, up.ID)
		case a.s.Ready(u) != nil:
			return a.refuse("upload %s is of unit %s, whose part is an upload already", up.ID, up.Unit)
		}
		next := *u
		next.Uploads = append(slices.Clip(next.Uploads), up.ID)
		put(a.s.Units, &a.touched.Units, up.Unit, &next)
	}
	return nil
}

func (a *application) published() error {
	s := a.s
	for i := range a.r.Published {
		f := &a.r.Published[i]
		u := s.Units[f.Unit]
		if u == nil {
			return a.refuse("unit %s is published and was never planned", f.Unit)
		}
		if err := a.checkPublished(u, f); err != nil {
			return err
		}
		p := *s.Partitions[PartitionKey(u.Table, u.Partition)] // its parts made it
		p.Files++
		p.Rows += f.Rows
		p.Bytes += f.Bytes
		if p.FirstPublished == 0 {
			p.FirstPublished = f.Time
		}
		a.putPartition(p)
		s.PublishedFiles++
		s.PublishedRows += f.Rows
		if f.Mode == ModePublish { // the input itself has moved: nothing is left to delete
			a.dropUnit(u)
			continue
		}
		done := *u
		done.Published = true
		put(s.Units, &a.touched.Units, u.ID, &done)
	}
	return nil
}

func (a *application) checkPublished(u *Unit, f *Published) error {
	path := u.Target
	if u.Partition != "" {
		path = u.Partition + "/" + u.Target
	}
	switch {
	case u.Published:
		return a.refuse("unit %s is published twice", u.ID)
	case f.Table != u.Table || f.Path != path:
		return a.refuse("unit %s is published as %q, its target is %q", u.ID, f.Path, path)
	case f.Mode == ModePublish && len(u.Inputs) != 1:
		return a.refuse("unit %s: %d inputs are published as they are", u.ID, len(u.Inputs))
	case f.Mode == ModePublish && a.bundled(u.Inputs[0]):
		return a.refuse("unit %s: part %s is published as it is and shares its file with others", u.ID, u.Inputs[0])
	case f.Mode != ModePublish && a.s.Ready(u) != nil:
		return a.refuse("unit %s is published by mode %q, its part is an upload to the target", u.ID, f.Mode)
	case f.Rows != u.Rows:
		return a.refuse("unit %s is published with %d rows, it has %d", u.ID, f.Rows, u.Rows)
	case !SameLeaves(f.Leaves, u.Inputs):
		return a.refuse("unit %s is published with parts %v, it has %v", u.ID, f.Leaves, u.Inputs)
	}
	return nil
}

func (a *application) dropUnit(u *Unit) {
	for _, in := range u.Inputs {
		put(a.s.Parts, &a.touched.Parts, in, nil)
	}
	put(a.s.Units, &a.touched.Units, u.ID, nil)
}

func (a *application) inputsDeleted() error {
	for _, id := range a.r.InputsDeleted {
		u := a.s.Units[id]
		if u == nil || !u.Published {
			return a.refuse("the inputs of unit %s are deleted, which is not published", id)
		}
		a.dropUnit(u)
	}
	return nil
}

func (a *application) announced() error {
	for i := range a.r.Announced {
		f := &a.r.Announced[i]
		known := a.s.Partitions[PartitionKey(f.Table, f.Partition)]
		if known == nil {
			return a.refuse("partition %q is announced and was never written", f.Partition)
		}
		p := *known
		p.Registered = true
		if !f.Register {
			if err := a.checkAnnounced(&p, f); err != nil {
				return err
			}
			p.Announced, p.AnnouncedCut, p.AnnouncedTime = f.Number, f.Cut, f.Time
			p.AnnouncedFiles, p.AnnouncedRows, p.AnnouncedBytes = f.Files, f.Rows, f.Bytes
			if !p.Unannounced() {
				p.FirstPublished = 0
			}
		}
		a.putPartition(p)
	}
	return nil
}

func (a *application) checkAnnounced(p *Partition, f *Announced) error {
	switch {
	case f.Number != p.Announced+1:
		return a.refuse("partition %q: announcement %d follows %d", p.Path, f.Number, p.Announced)
	case f.Cut < p.AnnouncedCut || f.Cut > a.s.Checkpoint:
		return a.refuse("partition %q is announced up to checkpoint %d, after %d, the last is %d", p.Path, f.Cut, p.AnnouncedCut, a.s.Checkpoint)
	case f.Files > p.Files || f.Files < p.AnnouncedFiles:
		return a.refuse("partition %q is announced with %d files, after %d, it has %d", p.Path, f.Files, p.AnnouncedFiles, p.Files)
	}
	return nil
}

// released keeps a pipeline from handing over what it has not published.
func (a *application) released() error {
	if !a.r.Released {
		return nil
	}
	if len(a.s.Parts) > 0 || len(a.s.Units) > 0 {
		return a.refuse("the table is released with %d parts and %d units in flight", len(a.s.Parts), len(a.s.Units))
	}
	if n := len(a.s.Replacements); n > 0 {
		return a.refuse("the table is released with %d replacements of files that have not ended", n)
	}
	a.s.Released = true
	return nil
}

func sortedKeys[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }
