package commit

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/hivesink/hivesink/ledger"
)

// TestCoreRandom walks through random histories. Script.check holds every
// announcement against A1 and A3; here the other half: what must be announced
// is (A2), and in the end nothing is left (A3).
func TestCoreRandom(t *testing.T) {
	for seed := range uint64(300) {
		w := newWalk(t, seed)
		for range 120 {
			w.step()
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		}
		w.finish()
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

type walk struct {
	script
	rng  *rand.Rand
	now  int64
	ids  int
	owed map[string]uint64 // partition → checkpoint up to which it is owed an announcement
}

const walkHour = int64(time.Hour / time.Microsecond)

func newWalk(t *testing.T, seed uint64) *walk {
	w := &walk{script: script{t: t}, rng: rand.New(rand.NewPCG(seed, 1)), now: walkHour * 1000, owed: map[string]uint64{}}
	w.o = Options{Trigger: []string{ProcessTime, PartitionTime}[w.rng.IntN(2)], Policies: []string{PolicyMetastore},
		Delay: time.Duration(w.rng.IntN(2)) * time.Minute, RegisterFirstFile: w.rng.IntN(2) == 0}
	w.begin()
	w.core.Start(w.now)
	return w
}

func (w *walk) step() {
	w.now += w.rng.Int64N(20_000_000)
	switch w.rng.IntN(10) {
	case 0, 1, 2:
		w.checkpoint(false)
	case 3, 4:
		w.planSome()
	case 5, 6:
		w.publishSome(w.rng.IntN(3) == 0)
	case 7:
		for _, id := range slices.Sorted(maps.Keys(w.st.Units)) {
			if u := w.st.Units[id]; u.Published && w.rng.IntN(2) == 0 {
				w.append(&ledger.Record{InputsDeleted: []string{id}})
			}
		}
	case 8:
		if w.rng.IntN(5) == 0 {
			w.core = New(w.o)
			w.core.Start(w.now)
			clear(w.owed)
		}
	}
	w.owe()
	w.announce(w.rng.IntN(2) == 0)
}

func (w *walk) checkpoint(last bool) {
	c := &ledger.Checkpoint{Number: w.st.Checkpoint + 1, Watermark: w.st.Watermark, InputEnded: last, Complete: last}
	if w.rng.IntN(2) == 0 {
		c.Watermark = max(c.Watermark, 0) + w.rng.Int64N(walkHour)
	}
	for range w.rng.IntN(4) {
		hour := w.rng.Int64N(6)
		part := ledger.Part{ID: w.id("p"), Partition: fmt.Sprintf("hr=%d", hour), Closes: (hour + 1) * walkHour, Checkpoint: c.Number, Rows: 1}
		switch w.rng.IntN(8) {
		case 0:
			part.Partition, part.Closes = "hr=__HIVE_DEFAULT_PARTITION__", 0
		case 1:
			part.Table, part.Partition, part.Closes = ledger.DeadTable, "", 0
		case 2:
			part.Table = ledger.LateTable
		}
		c.Parts = append(c.Parts, part)
	}
	w.append(&ledger.Record{Checkpoint: c})
}

func (w *walk) id(prefix string) string {
	w.ids++
	return fmt.Sprintf("%s%05d", prefix, w.ids)
}

// planSome makes units of a random partition's held parts, in any order of
// checkpoints.
func (w *walk) planSome() {
	planned := map[string]bool{}
	for _, u := range w.st.Units {
		for _, id := range u.Inputs {
			planned[id] = true
		}
	}
	groups := map[string][]string{}
	for _, id := range slices.Sorted(maps.Keys(w.st.Parts)) {
		part := w.st.Parts[id]
		if key := ledger.PartitionKey(part.Table, part.Partition); !planned[id] && w.rng.IntN(3) > 0 {
			groups[key] = append(groups[key], id)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		w.plan(append([]string{w.id("u")}, groups[key]...))
	}
}

func (w *walk) publishSome(all bool) {
	for _, id := range slices.Sorted(maps.Keys(w.st.Units)) {
		if u := w.st.Units[id]; !u.Published && (all || w.rng.IntN(2) == 0) {
			mode := ledger.ModeRewrite
			if len(u.Inputs) == 1 && w.rng.IntN(2) == 0 {
				mode = ledger.ModePublish // the part is gone with it
			}
			w.publish(u, w.now, mode)
		}
	}
}

// unpublished is the lowest checkpoint of the partition's unpublished parts.
func (w *walk) unpublished(key string) (lowest uint64, any bool) {
	visible := map[string]bool{}
	for _, u := range w.st.Units {
		for _, id := range u.Inputs {
			visible[id] = u.Published
		}
	}
	for id, part := range w.st.Parts {
		if ledger.PartitionKey(part.Table, part.Partition) == key && !visible[id] && (!any || part.Checkpoint < lowest) {
			lowest, any = part.Checkpoint, true
		}
	}
	return lowest, any
}

// owe notes what is owed: the trigger has passed and there is something that
// no announcement covers.
func (w *walk) owe() {
	for key, p := range w.st.Partitions {
		_, flying := w.unpublished(key)
		fresh := p.Files > p.AnnouncedFiles
		passed := w.o.IsLate(p.Closes, w.st.Watermark) && (flying || fresh)
		if w.o.Trigger == ProcessTime || p.Path == "" {
			delay := w.o.Delay.Microseconds()
			if w.o.Trigger == PartitionTime {
				delay = 0
			}
			passed = fresh && (delay == 0 || w.now > max(p.FirstPublished, w.core.started)+delay)
		}
		if _, known := w.owed[key]; passed && !known {
			w.owed[key] = w.st.Checkpoint
		}
	}
}

// announce asks what is due and, unless the policies are down, does it.
func (w *walk) announce(up bool) {
	due, _ := w.core.Due(w.st, w.now, false)
	listed := map[string]bool{}
	for i := range due {
		a := &due[i]
		w.check(a)
		key := ledger.PartitionKey(a.Table, a.Partition)
		listed[key] = !a.Register
		if up {
			w.append(&ledger.Record{Announced: []ledger.Announced{a.Fact(w.now)}})
			if !a.Register {
				delete(w.owed, key)
			}
		}
	}
	for key, cut := range w.owed {
		lowest, flying := w.unpublished(key)
		if (!flying || lowest > cut) && !listed[key] {
			w.t.Errorf("A2: %s has been owed an announcement since checkpoint %d, all of it is published, and it is not due", key, cut)
		}
	}
}

// finish ends the input: everything is announced, in one announcement each.
func (w *walk) finish() {
	w.checkpoint(true)
	clear(w.owed) // cuts move to the end
	before := map[string]int64{}
	for key, p := range w.st.Partitions {
		before[key] = p.Announced
	}
	for range 200 {
		w.planSome()
		w.publishSome(false)
		w.announce(true)
	}
	for key, p := range w.st.Partitions {
		if _, flying := w.unpublished(key); flying {
			w.t.Fatalf("%s: the walk has not published everything", key)
		}
		if p.AnnouncedFiles != p.Files || p.AnnouncedRows != p.Rows || p.Announced > before[key]+1 {
			w.t.Errorf("%s at the end: %+v, announced %d times before", key, *p, before[key])
		}
	}
}

// TestCoreLooksAtWork: a core that looks only at the partitions with work
// decides as one does that looks at all of them each time, also where an end of
// input is taken back.
func TestCoreLooksAtWork(t *testing.T) {
	cuts := 0
	for seed := range uint64(200) {
		w := newWalk(t, seed)
		some, all := New(w.o), New(w.o)
		some.Start(w.now)
		all.Start(w.now)
		for step := range 150 {
			w.step()
			if w.rng.IntN(25) == 0 {
				w.checkpoint(true)
				clear(w.owed) // cuts move to it
				w.announce(true)
			}
			if w.rng.IntN(3) == 0 {
				continue // several records between two looks
			}
			all.seen = version{} // it knows nothing of what it has seen
			flush := w.rng.IntN(2) == 0
			got, gotNext := some.Due(w.st, w.now, flush)
			want, wantNext := all.Due(w.st, w.now, flush)
			if fmt.Sprint(got, gotNext) != fmt.Sprint(want, wantNext) {
				t.Fatalf("seed %d, step %d: due %v, next %d, want %v, %d", seed, step, got, gotNext, want, wantNext)
			}
			if !maps.Equal(some.cuts, all.cuts) || !maps.Equal(some.open, all.open) {
				t.Fatalf("seed %d, step %d:\ncuts %v\nwant %v\nopen %v\nwant %v", seed, step, some.cuts, all.cuts, some.open, all.open)
			}
			cuts += len(all.cuts)
		}
	}
	if cuts == 0 {
		t.Error("no cut was ever fixed")
	}
}
