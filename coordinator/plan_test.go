package coordinator

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/hivesink/hivesink/ledger"
)

// Scripts keep a ledger state:
//
//	part ID [table=] [partition=] mb= | bytes= checkpoint= written=5m [schema=] [rows=]
//	partition PATH [table=] [announced-cut=]
//	plan [policy=hold] [file-size=128] [max-delay=5m] [max-checkpoints=0] now=6m
//	     [flush] [input-ended] [closed=(p=1,…)] [apply]
//
// file-size is in MB. "plan" prints the units and when the earliest hold ends;
// apply puts the units into the state, as a plan record would.
func TestPlan(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s := newScript()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "new":
				s = newScript()
			case "parts":
				for line := range strings.Lines(d.Input) {
					s.part(t, strings.Fields(line))
				}
			case "partition":
				p := &ledger.Partition{Table: text(t, d, "table", ""), Path: text(t, d, "path", ""), AnnouncedCut: uint64(number(t, d, "announced-cut", 0))}
				s.st.Partitions[ledger.PartitionKey(p.Table, p.Path)] = p
			case "plan":
				return s.plan(t, d)
			default:
				t.Fatalf("no command %q", d.Cmd)
			}
			return ""
		})
	})
}

type script struct {
	st    *ledger.State
	drawn uint64
}

func newScript() *script {
	return &script{st: &ledger.State{Parts: map[string]*ledger.Part{}, Units: map[string]*ledger.Unit{}, Partitions: map[string]*ledger.Partition{}}}
}

func (s *script) part(t *testing.T, f []string) {
	t.Helper()
	p := &ledger.Part{ID: f[0], Partition: "p=1", Rows: 1, Schema: "s1"}
	for _, a := range f[1:] {
		key, value, _ := strings.Cut(a, "=")
		n, _ := strconv.ParseInt(value, 10, 64)
		switch key {
		case "table":
			p.Table = value
		case "partition":
			p.Partition = value
		case "mb":
			p.Bytes = n << 20
		case "bytes":
			p.Bytes = n
		case "rows":
			p.Rows = n
		case "schema":
			p.Schema = value
		case "checkpoint":
			p.Checkpoint = uint64(n)
		case "written":
			d, err := time.ParseDuration(value)
			if err != nil {
				t.Fatal(err)
			}
			p.FirstWrite = d.Microseconds()
		default:
			t.Fatalf("no key %q", key)
		}
	}
	s.st.Parts[p.ID] = p
	s.st.Checkpoint = max(s.st.Checkpoint, p.Checkpoint)
	key := ledger.PartitionKey(p.Table, p.Partition)
	if s.st.Partitions[key] == nil {
		s.st.Partitions[key] = &ledger.Partition{Table: p.Table, Path: p.Partition}
	}
}

func (s *script) plan(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	o := Options{Policy: text(t, d, "policy", PolicyHold), FileSize: number(t, d, "file-size", 128) << 20,
		MaxDelay: length(t, d, "max-delay", 5*time.Minute).Microseconds(), MaxCheckpoints: int(number(t, d, "max-checkpoints", 0))}
	closed := strings.Split(text(t, d, "closed", ""), ",")
	in := Input{Now: length(t, d, "now", 0).Microseconds(), Flush: d.HasArg("flush"), Epoch: 7,
		Draw:   func() uint64 { s.drawn++; return s.drawn },
		Closed: func(p *ledger.Partition) bool { return slices.Contains(closed, p.Path) },
	}
	s.st.InputEnded = d.HasArg("input-ended")
	if n := number(t, d, "checkpoint", 0); n > 0 {
		s.st.Checkpoint = uint64(n)
	}
	units, next := Plan(s.st, o, in)
	var b strings.Builder
	for _, u := range units {
		fmt.Fprintf(&b, "%s%s %v rows=%d checkpoint=%d", map[bool]string{true: u.Table + ":"}[u.Table != ""], u.Partition, u.Inputs, u.Rows, u.Checkpoint)
		if u.Mode != "" {
			fmt.Fprintf(&b, " mode=%s", u.Mode)
		}
		fmt.Fprintf(&b, ": %s\n", u.Reason)
		if want := fmt.Sprintf("part-7-%s.parquet", u.ID); u.Target != want {
			t.Errorf("target %s, want %s", u.Target, want)
		}
		if d.HasArg("apply") {
			s.st.Units[u.ID] = &u
		}
	}
	if next != 0 {
		fmt.Fprintf(&b, "next at %s\n", time.Duration(next)*time.Microsecond)
	}
	if b.Len() == 0 {
		return "nothing\n"
	}
	return b.String()
}

func text(t *testing.T, d *datadriven.TestData, key, otherwise string) string {
	t.Helper()
	a, ok := d.Arg(key)
	if !ok {
		return otherwise
	}
	return strings.Join(a.Vals, ",")
}

func number(t *testing.T, d *datadriven.TestData, key string, otherwise int64) int64 {
	t.Helper()
	s := text(t, d, key, "")
	if s == "" {
		return otherwise
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func length(t *testing.T, d *datadriven.TestData, key string, otherwise time.Duration) time.Duration {
	t.Helper()
	s := text(t, d, key, "")
	if s == "" {
		return otherwise
	}
	l, err := time.ParseDuration(s)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// randomState has parts of several tables, partitions and checkpoints, some of
// them planned already.
func randomState(r *rand.Rand) *ledger.State {
	s := newScript()
	for i := range 1 + r.IntN(60) {
		p := &ledger.Part{
			ID: fmt.Sprintf("%04x", i), Table: []string{ledger.MainTable, ledger.DeadTable, ledger.LateTable}[r.IntN(3)],
			Partition: fmt.Sprintf("p=%d", r.IntN(3)), Bytes: r.Int64N(40), Rows: 1 + r.Int64N(9), FirstWrite: r.Int64N(1000),
			Checkpoint: 1 + r.Uint64N(5), Schema: fmt.Sprint(r.IntN(2)),
		}
		s.st.Parts[p.ID] = p
		s.st.Checkpoint = 5
		s.st.Partitions[ledger.PartitionKey(p.Table, p.Partition)] = &ledger.Partition{Table: p.Table, Path: p.Partition, AnnouncedCut: r.Uint64N(3)}
		if r.IntN(4) == 0 {
			s.st.Units["planned"+p.ID] = &ledger.Unit{Inputs: []string{p.ID}}
		}
	}
	return s.st
}

func randomInput(r *rand.Rand) (Options, func() Input) {
	o := Options{Policy: []string{PolicyHold, PolicyCheckpoint, PolicyOff, ""}[r.IntN(4)], FileSize: 1 + r.Int64N(100),
		MaxDelay: r.Int64N(1500), MaxCheckpoints: r.IntN(7)}
	now, flush, closed, seed := r.Int64N(2500), r.IntN(4) == 0, r.IntN(2) == 0, r.Uint64()
	return o, func() Input {
		draws := rand.New(rand.NewPCG(seed, 0))
		return Input{Now: now, Flush: flush, Closed: func(*ledger.Partition) bool { return closed }, Draw: draws.Uint64, Epoch: 3}
	}
}

// C1 to C5 and C7: on random states.
func TestPlanProperties(t *testing.T) {
	planned, held := 0, 0
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 2))
		st := randomState(r)
		o, input := randomInput(r)
		before := fmt.Sprint(len(st.Parts), len(st.Units))
		units, next := Plan(st, o, input())
		if again, n := Plan(st, o, input()); n != next || !reflect.DeepEqual(again, units) {
			t.Fatalf("seed %d: planned twice, differently", seed)
		}
		if fmt.Sprint(len(st.Parts), len(st.Units)) != before {
			t.Fatalf("seed %d: the state was changed", seed)
		}
		taken := map[string]bool{}
		for _, u := range st.Units {
			taken[u.Inputs[0]] = true
		}
		waiting := len(st.Parts) - len(taken)
		for _, u := range units {
			checkUnit(t, st, o, u, taken)
			waiting -= len(u.Inputs)
		}
		if waiting > 0 && (input().Flush || o.Policy == PolicyCheckpoint || o.Policy == PolicyOff) {
			t.Fatalf("seed %d: %d parts wait although nothing may", seed, waiting)
		}
		if (next != 0) != (waiting > 0) && o.MaxDelay > 0 {
			t.Fatalf("seed %d: %d parts wait, next is %d", seed, waiting, next)
		}
		// C5: planning again when told to ends a hold.
		if next != 0 {
			held++
			for _, u := range units {
				st.Units[u.ID] = &u
			}
			in := input()
			in.Now = next
			if more, _ := Plan(st, o, in); len(more) == 0 {
				t.Fatalf("seed %d: nothing to do at %d", seed, next)
			}
		}
		planned += len(units)
	}
	if planned == 0 || held == 0 {
		t.Fatalf("%d units, %d holds", planned, held)
	}
}

func checkUnit(t *testing.T, st *ledger.State, o Options, u ledger.Unit, taken map[string]bool) {
	t.Helper()
	rows, highest, bytes := int64(0), uint64(0), int64(0)
	parts := make([]*ledger.Part, len(u.Inputs))
	for i, id := range u.Inputs {
		p := st.Parts[id]
		if taken[id] {
			t.Fatalf("part %s is in two units", id)
		}
		taken[id], parts[i] = true, p
		if p.Table != u.Table || p.Partition != u.Partition {
			t.Fatalf("unit of %s %s has a part of %s %s", u.Table, u.Partition, p.Table, p.Partition)
		}
		if o.Policy == PolicyCheckpoint && p.Checkpoint != u.Checkpoint {
			t.Fatalf("unit of checkpoint %d has a part of checkpoint %d", u.Checkpoint, p.Checkpoint)
		}
		rows, highest, bytes = rows+p.Rows, max(highest, p.Checkpoint), bytes+p.Bytes
	}
	if !slices.IsSortedFunc(parts, func(a, b *ledger.Part) int {
		return cmp.Or(cmp.Compare(a.Checkpoint, b.Checkpoint), strings.Compare(a.ID, b.ID))
	}) {
		t.Fatalf("inputs %v are out of order", u.Inputs)
	}
	if rows != u.Rows || highest != u.Checkpoint || bytes > o.FileSize && len(parts) > 1 || u.Reason == "" || len(u.ID) != 16 {
		t.Fatalf("unit %+v has %d rows, %d bytes up to checkpoint %d", u, rows, bytes, highest)
	}
	if strings.HasPrefix(u.Reason, "filled") && 2*bytes <= o.FileSize { // C7
		t.Fatalf("%d bytes are no filled unit of %d", bytes, o.FileSize)
	}
	if slices.ContainsFunc(parts, func(p *ledger.Part) bool { return p.Schema != parts[0].Schema }) {
		t.Fatalf("parts %v have different schemas", u.Inputs)
	}
}

func TestPublishUnit(t *testing.T) {
	p := &ledger.Part{ID: "00aa", Table: ledger.LateTable, Partition: "p=1", Rows: 9, Bytes: 77, Checkpoint: 4}
	want := ledger.Unit{ID: "00000000000000ff", Table: ledger.LateTable, Partition: "p=1", Inputs: []string{"00aa"},
		Target: "part-7-00000000000000ff.parquet", Mode: ledger.ModePublish, Reason: "compaction off", TargetSize: 77, Checkpoint: 4, Rows: 9}
	if got := PublishUnit(p, 0xff, 7); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestReasonText(t *testing.T) {
	for micros, want := range map[int64]string{300_000_000: "5m", 3_600_000_000: "1h", 90_000_000: "1m30s", 0: "0s", 30_000_000: "30s", 36_000_000_000: "10h", 1_500_000: "1.5s"} {
		if got := duration(micros); got != want {
			t.Errorf("duration(%d) = %s, want %s", micros, got, want)
		}
	}
	for bytes, want := range map[int64]string{900: "900 bytes", 1024: "1 kB", 128 << 20: "128 MB", 131<<20 + 1: "131 MB"} {
		if got := size(bytes); got != want {
			t.Errorf("size(%d) = %s, want %s", bytes, got, want)
		}
	}
}

// TestMaxInputs: however small parts are, so many fill a unit, and no unit has
// more; those that do not fill one are held like others (C8).
func TestMaxInputs(t *testing.T) {
	for _, c := range []struct {
		parts, max int
		bytes      int64
		flush      bool
		want       []int // inputs of the units
	}{
		{parts: 99, max: 100, bytes: 1000},
		{parts: 100, max: 100, bytes: 1000, want: []int{100}},
		{parts: 250, max: 100, bytes: 1000, want: []int{100, 100}},
		{parts: 250, max: 100, bytes: 1000, flush: true, want: []int{100, 100, 50}},
		{parts: 250, max: 0, bytes: 1000, flush: true, want: []int{250}},
		{parts: 7, max: 7, bytes: 0, want: []int{7}},
		{parts: 4, max: 3, bytes: 128 << 20, want: []int{1, 1, 1, 1}},
		{parts: 6, max: 1000, bytes: 100 << 20, flush: true, want: []int{1, 1, 1, 1, 1, 1}},
	} {
		s := newScript()
		for i := range c.parts {
			id := fmt.Sprintf("%016x", i+1)
			s.st.Parts[id] = &ledger.Part{ID: id, Bytes: c.bytes, Rows: 1, Checkpoint: uint64(i + 1), FirstWrite: 1}
		}
		s.st.Checkpoint = uint64(c.parts)
		draw := uint64(0)
		units, next := Plan(s.st, Options{Policy: PolicyHold, FileSize: 128 << 20, MaxDelay: 1 << 50, MaxInputs: c.max},
			Input{Now: 2, Flush: c.flush, Draw: func() uint64 { draw++; return draw }})
		var got []int
		left := c.parts
		for _, u := range units {
			got = append(got, len(u.Inputs))
			left -= len(u.Inputs)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%d parts of %d bytes, at most %d: units of %v, want %v", c.parts, c.bytes, c.max, got, c.want)
		}
		if (left > 0) != (next != 0) {
			t.Errorf("%d parts of %d: %d are left, and the next hold ends at %d", c.parts, c.max, left, next)
		}
	}
}
