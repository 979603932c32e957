package coordinator

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hivesink/hivesink/layout"
	"github.com/hivesink/hivesink/ledger"
)

// Policies: when parts become units.
const (
	PolicyHold       = "hold"       // across checkpoints, until a target is filled or a limit is reached
	PolicyCheckpoint = "checkpoint" // each checkpoint by itself, at once
	PolicyOff        = "off"        // each part by itself, at once
)

// Options are the user's choices.
type Options struct {
	Policy         string // one of the Policy constants; empty: PolicyHold
	FileSize       int64  // target size in bytes
	MaxDelay       int64  // hold: how long a row may wait, in microseconds
	MaxCheckpoints int    // hold: how many checkpoints a part may wait, its own included; 0: no limit
	MaxInputs      int    // parts of a unit, whose footers are in memory together; 0: no limit
}

// pack puts parts into bins, which MaxInputs of them fill, however small they
// are (C8). target is what fills a bin: FileSize, less what division leaves.
func (o *Options) pack(parts []*ledger.Part) (bins [][]int, weights []int64, target int64) {
	least := int64(0)
	target = o.FileSize
	if o.MaxInputs > 0 {
		least = max(1, target/int64(o.MaxInputs))
		target = least * int64(o.MaxInputs)
	}
	weights = make([]int64, len(parts))
	for i, p := range parts {
		weights[i] = max(p.Bytes, least)
	}
	return Pack(weights, target), weights, target
}

// all are the bins of parts that are not to wait.
func (o *Options) all(parts []*ledger.Part) [][]int {
	bins, _, _ := o.pack(parts)
	return bins
}

// Input is what else a plan depends on.
type Input struct {
	Now   int64 // wall clock, microseconds
	Flush bool  // drain or end of input: nothing is held
	// Closed says whether a partition's time is complete at the last
	// checkpoint. It is not asked for the side tables: dead letters have no
	// time, and late rows come after theirs. Nil: never.
	Closed func(p *ledger.Partition) bool
	Draw   func() uint64 // 64 random bits
	Epoch  uint64
}

// group is the parts of one partition and one schema that no unit names, oldest
// first.
type group struct {
	table, partition string
	parts            []*ledger.Part
}

// Plan makes units of the parts that can be merged now. next is when the
// earliest hold ends by time (wall clock, microseconds); 0: none is held.
func Plan(st *ledger.State, o Options, in Input) (units []ledger.Unit, next int64) {
	for _, g := range waiting(st) {
		switch o.Policy {
		case PolicyOff:
			for _, p := range g.parts {
				units = append(units, PublishUnit(p, in.Draw(), in.Epoch))
			}
		case PolicyCheckpoint:
			for _, same := range byCheckpoint(g.parts) {
				reason := fmt.Sprintf("checkpoint %d", same[0].Checkpoint)
				units = appendUnits(units, same, o.all(same), reason, o, in)
			}
		default:
			held := int64(0)
			if units, held = planHeld(units, st, g, o, in); held != 0 && (next == 0 || held < next) {
				next = held
			}
		}
	}
	return units, next
}

// waiting are the parts that no unit names (C1), in a stable order (C3).
func waiting(st *ledger.State) []group {
	planned := make(map[string]bool, len(st.Parts))
	for _, u := range st.Units {
		for _, id := range u.Inputs {
			planned[id] = true
		}
	}
	parts := make([]*ledger.Part, 0, len(st.Parts))
	for id, p := range st.Parts {
		if !planned[id] {
			parts = append(parts, p)
		}
	}
	slices.SortFunc(parts, func(a, b *ledger.Part) int {
		return cmp.Or(strings.Compare(a.Table, b.Table), strings.Compare(a.Partition, b.Partition), strings.Compare(a.Schema, b.Schema),
			cmp.Compare(a.Checkpoint, b.Checkpoint), strings.Compare(a.ID, b.ID))
	})
	var out []group
	for i, p := range parts {
		if i == 0 || p.Table != parts[i-1].Table || p.Partition != parts[i-1].Partition || p.Schema != parts[i-1].Schema {
			out = append(out, group{table: p.Table, partition: p.Partition})
		}
		g := &out[len(out)-1]
		g.parts = append(g.parts, p)
	}
	return out
}

func byCheckpoint(parts []*ledger.Part) [][]*ledger.Part {
	var out [][]*ledger.Part
	for i, p := range parts {
		if i == 0 || p.Checkpoint != parts[i-1].Checkpoint {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], p)
	}
	return out
}

// planHeld releases a group whole, or those of its bins that are filled. next
// is when the hold of the rest ends by time; 0: there is no rest.
func planHeld(units []ledger.Unit, st *ledger.State, g group, o Options, in Input) (_ []ledger.Unit, next int64) {
	if reason := release(st, g, o, in); reason != "" {
		return appendUnits(units, g.parts, o.all(g.parts), reason, o, in), 0
	}
	bins, held := filled(g.parts, &o)
	units = appendUnits(units, g.parts, bins, "", o, in)
	for i, at := range held {
		if end := g.parts[at].FirstWrite + o.MaxDelay; i == 0 || end < next {
			next = end
		}
	}
	return units, next
}

// filled are the bins that make a good file already, and the parts that still
// wait for company. A part of the target size needs none. Of the others, once
// they could fill a target, the last bin waits unless it is full, and so does
// a bin of at most half the target: first-fit leaves one of those when a large
// part came after small ones, and as it is it would be a small file (C7).
func filled(parts []*ledger.Part, o *Options) (bins [][]int, held []int) {
	var small []*ledger.Part
	var at []int // in parts
	for i, p := range parts {
		if p.Bytes >= o.FileSize {
			bins = append(bins, []int{i})
		} else {
			small, at = append(small, p), append(at, i)
		}
	}
	packed, w, target := o.pack(small)
	if sum(w) < target {
		return bins, at
	}
	for n, items := range packed {
		weight := int64(0)
		for i, item := range items {
			weight += w[item]
			items[i] = at[item]
		}
		if n == len(packed)-1 && weight < target || weight <= target/2 {
			held = append(held, items...)
		} else {
			bins = append(bins, items)
		}
	}
	return bins, held
}

// release says why a group is to be released whole; "": it is held (C5).
func release(st *ledger.State, g group, o Options, in Input) string {
	if in.Flush {
		if st.InputEnded {
			return "end of input"
		}
		return "drain"
	}
	if closed(st, g, in) {
		return "partition closed"
	}
	for _, p := range g.parts {
		// The other way round too: when the clock was set back, a row from
		// the future must not wait until then.
		if age := in.Now - p.FirstWrite; age >= o.MaxDelay || age < -o.MaxDelay {
			return "max_delay " + duration(o.MaxDelay)
		}
	}
	first := g.parts[0].Checkpoint
	if n := o.MaxCheckpoints; n > 0 && st.Checkpoint >= first && st.Checkpoint-first+1 >= uint64(n) {
		return fmt.Sprintf("max_checkpoints %d", n)
	}
	return ""
}

// closed says whether the partition's time is complete for rows that are not
// late (C6).
func closed(st *ledger.State, g group, in Input) bool {
	if in.Closed == nil || g.table != ledger.MainTable {
		return false
	}
	p := st.Partitions[ledger.PartitionKey(g.table, g.partition)]
	if p == nil || p.AnnouncedCut > 0 && g.parts[0].Checkpoint > p.AnnouncedCut {
		return false
	}
	return in.Closed(p)
}

// appendUnits makes a unit of each bin; an empty reason says how full it is.
func appendUnits(units []ledger.Unit, parts []*ledger.Part, bins [][]int, reason string, o Options, in Input) []ledger.Unit {
	for _, bin := range bins {
		bits := in.Draw()
		first := parts[bin[0]]
		u := ledger.Unit{
			ID: layout.ID(bits), Table: first.Table, Partition: first.Partition,
			Inputs: make([]string, 0, len(bin)), Target: layout.PartFile(in.Epoch, bits),
			Reason: reason, TargetSize: o.FileSize,
		}
		bytes := int64(0)
		for _, i := range bin {
			p := parts[i]
			u.Inputs = append(u.Inputs, p.ID)
			u.Rows += p.Rows
			u.Checkpoint = max(u.Checkpoint, p.Checkpoint)
			bytes += p.Bytes
		}
		switch {
		case u.Reason != "":
		case o.MaxInputs > 0 && len(bin) == o.MaxInputs:
			u.Reason = fmt.Sprintf("filled: %d parts, %s", len(bin), size(bytes))
		default:
			u.Reason = "filled: " + size(bytes) + " of " + size(o.FileSize)
		}
		units = append(units, u)
	}
	return units
}

// PublishUnit is a unit that makes one part visible as it is. With policy off
// a checkpoint carries one for each of its parts. One that is an upload to its
// final name has that name.
func PublishUnit(part *ledger.Part, draw, epoch uint64) ledger.Unit {
	target := layout.PartFile(epoch, draw)
	if part.Upload != "" {
		target = part.Name
	}
	return ledger.Unit{
		ID: layout.ID(draw), Table: part.Table, Partition: part.Partition, Inputs: []string{part.ID},
		Target: target, Mode: ledger.ModePublish, Reason: "compaction off",
		TargetSize: part.Bytes, Checkpoint: part.Checkpoint, Rows: part.Rows,
	}
}

func sum(w []int64) (n int64) {
	for _, v := range w {
		n += v
	}
	return n
}

// size prints bytes for people: MB is 2^20.
func size(n int64) string {
	switch {
	case n >= 1<<20:
		return fmt.Sprintf("%d MB", (n+1<<19)>>20)
	case n >= 1<<10:
		return fmt.Sprintf("%d kB", (n+1<<9)>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}

// duration prints microseconds as 5m, not 5m0s.
func duration(micros int64) string {
	s := (time.Duration(micros) * time.Microsecond).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
