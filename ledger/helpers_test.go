package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/hivesink/hivesink/internal/kv"
	"github.com/hivesink/hivesink/layout"
	"github.com/hivesink/hivesink/storage"
)

const testTable = "/data/web.db/clicks"

// world draws and ticks the same in every run.
type world struct {
	rng *rand.Rand
	now time.Time
}

func newWorld() *world {
	return &world{rng: rand.New(rand.NewPCG(1, 2)), now: time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)}
}

func (w *world) options(fsys storage.FS) Options {
	return Options{FS: fsys, Table: testTable, Pipeline: "clicks", Host: "a", Version: "test", PID: 7,
		Random: w.rng.Uint64, Now: func() time.Time {
			w.now = w.now.Add(time.Second)
			return w.now
		}}
}

func mustOpen(t *testing.T, o Options) *Ledger {
	t.Helper()
	l, err := Open(context.Background(), o)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return l
}

func mustAppend(t *testing.T, l *Ledger, r *Record) {
	t.Helper()
	if err := l.Append(r); err != nil {
		t.Fatalf("append: %v", err)
	}
}

// canon is a state as text.
func canon(t *testing.T, st *State) string {
	t.Helper()
	b, err := json.Marshal(st)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// script is a life of a table: each step makes the next record from what the
// ledger says, and the files that it names.
type script struct {
	l    *Ledger
	fsys storage.FS
}

// steps is how many different records a script has; step i+steps is like i.
const steps = 7

// next makes the i-th record.
func (s *script) next(i int) (*Record, error) {
	st := s.l.State()
	now := int64(1_000_000 * i)
	switch i % steps {
	case 0, 1: // two parts of two partitions
		n := st.Checkpoint + 1
		cp := &Checkpoint{Number: n, Watermark: int64(n), Sources: map[string]Source{}}
		row := st.source("in").NextRow
		src := Source{Position: fmt.Sprint("at ", row+20), NextRow: row + 20, Watermark: int64(n),
			Accepted: st.source("in").Accepted.Add(sumOf(row, row+20))}
		cp.Sources["in"] = src
		for k, dt := range []string{"dt=1", "dt=2"} {
			from := row + int64(10*k)
			id := layout.ID(uint64(s.l.Epoch())<<32 | uint64(i)<<8 | uint64(k))
			p := Part{ID: id, Partition: dt, Epoch: s.l.Epoch(), Name: layout.StagedPart(id), Rows: 10, Bytes: 100, FirstWrite: now,
				Schema: "s1", Codec: "zstd", Checkpoint: n, Sources: map[string]Range{"in": {First: from, Last: from + 9, Sum: sumOf(from, from+10)}}}
			where, err := s.l.Locate(p.Epoch, p.Name)
			if err != nil {
				return nil, err
			}
			if err := storage.WriteFile(s.fsys, where, []byte("part "+id)); err != nil {
				return nil, err
			}
			cp.Parts = append(cp.Parts, p)
		}
		return &Record{Checkpoint: cp}, s.fsys.SyncDir(s.l.Staging())
	case 2: // one unit for dt=1, of all its parts
		var u *Unit
		for _, id := range sortedKeys(st.Parts) {
			if p := st.Parts[id]; p.Partition == "dt=1" {
				if u == nil {
					u = &Unit{ID: "u" + id, Partition: p.Partition, Mode: ModeRewrite, Target: "part-" + id + ".parquet", Checkpoint: st.Checkpoint}
				}
				u.Inputs = append(u.Inputs, id)
				u.Rows += p.Rows
			}
		}
		return &Record{Plan: []Unit{*u}}, nil
	case 3: // publish dt=1, plan dt=2 one by one as it is
		r := &Record{}
		for _, id := range sortedKeys(st.Units) {
			r.Published = append(r.Published, s.published(st.Units[id], now))
		}
		for _, id := range sortedKeys(st.Parts) {
			if p := st.Parts[id]; p.Partition == "dt=2" {
				r.Plan = append(r.Plan, Unit{ID: "u" + id, Partition: p.Partition, Mode: ModePublish, Inputs: []string{id},
					Target: "part-" + id + ".parquet", Rows: p.Rows, Checkpoint: p.Checkpoint})
			}
		}
		return r, nil
	case 4: // publish dt=2, delete the inputs of dt=1
		r := &Record{}
		for _, id := range sortedKeys(st.Units) {
			u := st.Units[id]
			if !u.Published {
				r.Published = append(r.Published, s.published(u, now))
				continue
			}
			for _, in := range u.Inputs {
				where, err := s.l.Locate(st.Parts[in].Epoch, st.Parts[in].Name)
				if errors.Is(err, storage.ErrNotExist) {
					continue // deleted before a crash
				}
				if err != nil {
					return nil, err
				}
				if err := s.l.Trash(where); err != nil {
					return nil, err
				}
			}
			r.InputsDeleted = append(r.InputsDeleted, id)
		}
		return r, nil
	case 5:
		p := st.Partitions[":dt=1"]
		return &Record{Announced: []Announced{
			{Partition: "dt=1", Number: p.Announced + 1, Cut: st.Checkpoint, Files: p.Files, Rows: p.Rows, Bytes: p.Bytes, Time: now},
			{Partition: "dt=2", Number: 1, Register: true, Time: now}}}, nil
	default:
		return &Record{Checkpoint: &Checkpoint{Number: st.Checkpoint + 1, Watermark: st.Watermark + 1, InputEnded: true, Complete: true}}, nil
	}
}

func (s *script) published(u *Unit, now int64) Published {
	return Published{Unit: u.ID, Path: u.Partition + "/" + u.Target, Mode: u.Mode, Rows: u.Rows, Bytes: 10 * u.Rows, Leaves: u.Inputs, Time: now}
}

func (st *State) source(name string) Source {
	if s := st.Sources[name]; s != nil {
		return *s
	}
	return Source{Watermark: NoWatermark}
}

func sumOf(from, to int64) (s Sum) {
	for n := from; n < to; n++ {
		s.Row(n)
	}
	return s
}

// run appends n records from the i-th on; done is told the state after each.
func (s *script) run(i, n int, done func()) error {
	for k := i; k < i+n; k++ {
		r, err := s.next(k)
		if err != nil {
			return err
		}
		if err := s.l.Append(r); err != nil {
			return err
		}
		if done != nil {
			done()
		}
	}
	return nil
}

func memIndex(o Options) (Options, *kv.Mem) {
	m := kv.NewMem()
	o.Index = m
	return o, m
}
