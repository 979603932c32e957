package commit

import (
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/hivesink/hivesink/ledger"
)

// script is the table log of a datadriven test: records applied to a state.
type script struct {
	t    *testing.T
	o    Options
	core *Core
	st   *ledger.State
}

// TestCore runs the scripts. Commands:
//
//	options trigger=T delay=D register=first-file   new log, new process
//	restart now=T [options]   a new process on the same log
//	checkpoint [watermark=T] [ended] [complete]     lines: ID PARTITION [table=T] [closes=T] [rows=N]
//	plan                      lines: UNIT ID...
//	publish now=T             lines: UNIT, or UNIT ID... to plan it first
//	delete                    lines: UNIT, whose inputs are deleted
//	due now=T [flush]         what is due
//	announce now=T [flush]    the same, and it is done
//	closed                    the partitions whose holds end
//
// A time is RFC 3339, or HH:MM:SS of 2026-01-31 UTC.
func TestCore(t *testing.T) {
	files, err := filepath.Glob("testdata/core/*")
	if err != nil || len(files) == 0 {
		t.Fatalf("scripts: %v %v", files, err)
	}
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) {
			s := &script{t: t}
			datadriven.RunTest(t, f, func(t *testing.T, d *datadriven.TestData) string {
				s.t = t
				return s.run(d)
			})
		})
	}
}

func (s *script) run(d *datadriven.TestData) string {
	switch d.Cmd {
	case "options":
		return s.options(d)
	case "restart":
		s.set(d)
		s.core = New(s.o)
		s.core.Start(s.at(d, "now"))
	case "checkpoint":
		s.checkpoint(d)
	case "plan":
		for _, line := range lines(d) {
			s.plan(line)
		}
	case "publish":
		for _, line := range lines(d) {
			if len(line) > 1 {
				s.plan(line)
			}
			s.publish(s.st.Units[line[0]], s.at(d, "now"), ledger.ModeRewrite)
		}
	case "delete":
		for _, line := range lines(d) {
			s.append(&ledger.Record{InputsDeleted: line})
		}
	case "due", "announce":
		return s.due(d)
	case "closed":
		var out []string
		for _, key := range slices.Sorted(maps.Keys(s.st.Partitions)) {
			if s.core.Closed(s.st, s.st.Partitions[key]) {
				out = append(out, key)
			}
		}
		if len(out) == 0 {
			return "none\n"
		}
		return strings.Join(out, "\n") + "\n"
	default:
		d.Fatalf(s.t, "unknown command %s", d.Cmd)
	}
	return "ok\n"
}

func (s *script) options(d *datadriven.TestData) string {
	s.o = Options{Trigger: ProcessTime, Policies: []string{PolicyMetastore, PolicySuccessFile}}
	s.set(d)
	s.begin()
	return "ok\n"
}

// begin starts a log and a process.
func (s *script) begin() {
	s.st = ledger.NewState()
	s.append(&ledger.Record{NewEpoch: &ledger.Epoch{Table: "0123456789abcdef", Pipeline: "p"}})
	s.core = New(s.o)
}

func (s *script) append(r *ledger.Record) {
	s.t.Helper()
	r.Seq, r.Epoch = s.st.Seq+1, 1
	if r.Checkpoint != nil {
		for i := range r.Checkpoint.Parts {
			p := &r.Checkpoint.Parts[i]
			p.Epoch, p.Name = 1, p.ID+".part"
		}
	}
	if _, err := s.st.Apply(r, ""); err != nil {
		s.t.Fatal(err)
	}
}

func (s *script) set(d *datadriven.TestData) {
	for _, a := range d.CmdArgs {
		switch a.Key {
		case "trigger":
			s.o.Trigger = a.Vals[0]
		case "delay":
			delay, err := time.ParseDuration(a.Vals[0])
			if err != nil {
				d.Fatalf(s.t, "%v", err)
			}
			s.o.Delay = delay
		case "register":
			s.o.RegisterFirstFile = a.Vals[0] == "first-file"
		case "policies":
			s.o.Policies = a.Vals
		}
	}
}

func (s *script) checkpoint(d *datadriven.TestData) {
	c := &ledger.Checkpoint{Number: s.st.Checkpoint + 1, Watermark: s.st.Watermark, InputEnded: d.HasArg("ended"), Complete: d.HasArg("complete")}
	if d.HasArg("watermark") {
		c.Watermark = s.at(d, "watermark")
	}
	for _, line := range lines(d) {
		part := ledger.Part{ID: line[0], Partition: strings.TrimSuffix(line[1], "."), Rows: 10, Bytes: 100, Checkpoint: c.Number}
		for _, arg := range line[2:] {
			key, value, _ := strings.Cut(arg, "=")
			switch key {
			case "table":
				part.Table = value
			case "closes":
				part.Closes = s.parse(value)
			case "rows":
				part.Rows, _ = strconv.ParseInt(value, 10, 64)
			}
		}
		c.Parts = append(c.Parts, part)
	}
	s.append(&ledger.Record{Checkpoint: c})
}

func (s *script) plan(line []string) {
	u := ledger.Unit{ID: line[0], Inputs: line[1:], Target: line[0] + ".parquet"}
	for _, id := range u.Inputs {
		part := s.st.Parts[id]
		if part == nil {
			s.t.Fatalf("no part %s", id)
		}
		u.Table, u.Partition = part.Table, part.Partition
		u.Checkpoint = max(u.Checkpoint, part.Checkpoint)
		u.Rows += part.Rows
	}
	s.append(&ledger.Record{Plan: []ledger.Unit{u}})
}

func (s *script) publish(u *ledger.Unit, now int64, mode string) {
	s.t.Helper()
	if u == nil {
		s.t.Fatal("no such unit")
	}
	s.append(&ledger.Record{Published: []ledger.Published{{Unit: u.ID, Table: u.Table, Path: path.Join(u.Partition, u.Target), Leaves: u.Inputs, Mode: mode,
		Rows: u.Rows, Bytes: 100 * int64(len(u.Inputs)), Time: now}}})
}

// due prints what is due; announce applies the facts too.
func (s *script) due(d *datadriven.TestData) string {
	now := s.at(d, "now")
	due, next := s.core.Due(s.st, now, d.HasArg("flush"))
	again, next2 := s.core.Due(s.st, now, d.HasArg("flush"))
	if fmt.Sprint(due, next) != fmt.Sprint(again, next2) {
		s.t.Fatalf("asked again, got %v %d, was %v %d", again, next2, due, next)
	}
	var out strings.Builder
	for _, a := range due {
		what := fmt.Sprintf("announce %s cut=%d", ledger.PartitionKey(a.Table, a.Partition), a.Cut)
		if a.Register {
			what = "register " + ledger.PartitionKey(a.Table, a.Partition)
		}
		fmt.Fprintf(&out, "%s number=%d files=%d rows=%d bytes=%d values=%q\n", what, a.Number, a.Files, a.Rows, a.Bytes, a.Values)
		s.check(&a)
		if d.Cmd == "announce" {
			s.append(&ledger.Record{Announced: []ledger.Announced{a.Fact(now)}})
		}
	}
	if len(due) == 0 {
		out.WriteString("nothing\n")
	}
	if next != 0 {
		fmt.Fprintf(&out, "next %s\n", time.UnixMicro(next).UTC().Format("15:04:05.000000"))
	}
	return out.String()
}

// check holds an announcement against A1 and A3.
func (s *script) check(a *Announcement) {
	if a.Register {
		return
	}
	if a.Cut > s.st.Checkpoint {
		s.t.Errorf("A1: %s is cut at %d, the last checkpoint is %d", a.Partition, a.Cut, s.st.Checkpoint)
	}
	visible := map[string]bool{}
	for _, u := range s.st.Units {
		for _, id := range u.Inputs {
			visible[id] = u.Published
		}
	}
	for id, part := range s.st.Parts {
		if part.Table == a.Table && part.Partition == a.Partition && part.Checkpoint <= a.Cut && !visible[id] {
			s.t.Errorf("A1: %s is announced up to %d before part %s of checkpoint %d", a.Partition, a.Cut, id, part.Checkpoint)
		}
	}
	p := s.st.Partitions[ledger.PartitionKey(a.Table, a.Partition)]
	if p.Announced > 0 && p.AnnouncedFiles == a.Files {
		s.t.Errorf("A3: %s is announced again with nothing new", a.Partition)
	}
}

func (s *script) at(d *datadriven.TestData, key string) int64 {
	var text string
	d.ScanArgs(s.t, key, &text)
	return s.parse(text)
}

func (s *script) parse(text string) int64 {
	if !strings.Contains(text, "T") {
		text = "2026-01-31T" + text + "Z"
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		s.t.Fatal(err)
	}
	return at.UnixMicro()
}

func lines(d *datadriven.TestData) (out [][]string) {
	for line := range strings.SplitSeq(d.Input, "\n") {
		if f := strings.Fields(line); len(f) > 0 {
			out = append(out, f)
		}
	}
	return out
}

// TestIsLate: partition-time alone knows late rows, from the period's end plus
// delay on (L: at or past, not only past).
func TestIsLate(t *testing.T) {
	const hour = int64(3_600_000_000)
	for _, c := range []struct {
		name              string
		o                 Options
		closes, watermark int64
		want              bool
	}{
		{"before the end", Options{Trigger: PartitionTime}, hour, hour - 1, false},
		{"at the end", Options{Trigger: PartitionTime}, hour, hour, true},
		{"within delay", Options{Trigger: PartitionTime, Delay: time.Hour}, hour, 2*hour - 1, false},
		{"after delay", Options{Trigger: PartitionTime, Delay: time.Hour}, hour, 2 * hour, true},
		{"no period", Options{Trigger: PartitionTime}, 0, hour, false},
		{"no watermark", Options{Trigger: PartitionTime}, -hour, ledger.NoWatermark, false},
		{"before 1970", Options{Trigger: PartitionTime}, -hour, -hour, true},
		{"a period at the end of time", Options{Trigger: PartitionTime, Delay: time.Hour}, 1<<63 - 2, 1<<63 - 2, false},
		{"process-time", Options{Trigger: ProcessTime}, hour, hour, false},
	} {
		if got := c.o.IsLate(c.closes, c.watermark); got != c.want {
			t.Errorf("%s: IsLate(%d, %d) = %v, want %v", c.name, c.closes, c.watermark, got, c.want)
		}
	}
}

// TestClosesOfNow: a partition whose parts know of no period is complete when
// the configuration of now says so, also by a process that finds it there.
func TestClosesOfNow(t *testing.T) {
	const hour = int64(3_600_000_000)
	s := &script{t: t, o: Options{Trigger: PartitionTime, Policies: []string{PolicySuccessFile}}}
	s.begin()
	s.append(&ledger.Record{Checkpoint: &ledger.Checkpoint{Number: 1, Watermark: 5 * hour, Parts: []ledger.Part{
		{ID: "a1", Partition: "dt=a", Rows: 10, Checkpoint: 1}, {ID: "b1", Partition: "dt=b", Rows: 10, Checkpoint: 1, Closes: 9 * hour}}}})
	for i, id := range []string{"a1", "b1"} {
		unit := fmt.Sprintf("u%d", i)
		s.plan([]string{unit, id})
		s.publish(s.st.Units[unit], hour, ledger.ModeRewrite)
	}
	if due, _ := s.core.Due(s.st, hour, false); len(due) != 0 {
		t.Fatalf("due without a period: %v", due)
	}
	for now, want := range map[int64]int{5*hour + 1: 0, 5 * hour: 1} {
		o := s.o
		o.Closes = func(path string, recorded int64) int64 {
			if recorded != 0 {
				return recorded
			}
			return now
		}
		due, _ := New(o).Due(s.st, hour, false)
		if len(due) != want || want == 1 && due[0].Partition != "dt=a" {
			t.Errorf("period until %d, watermark %d: due %v, want %d", now, s.st.Watermark, due, want)
		}
	}
}
