package main

import (
	"bytes"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/hivesink/hivesink/benchmarks/hotpath"
)

// committedFile is what `make guard` compares with.
var committedFile = filepath.Join("..", "guard.json")

// raced: the race detector makes pools forget and allocates by itself.
var raced bool

// TestGuardFindsRegressions spoils a stage in each way the guard looks for,
// compares with the committed figures, and wants just that to be found. The
// unspoilt stages must pass: their costs are measured, not made up.
func TestGuardFindsRegressions(t *testing.T) {
	if raced {
		t.Skip("allocations are other ones under the race detector")
	}
	old, err := load(committedFile)
	if err != nil {
		t.Fatal(err)
	}
	var kept [][]byte
	for _, c := range []struct {
		name, stage, figure string
		spoil               func(hotpath.Stage) func() (int64, error)
	}{
		{"nothing", "", "", nil},
		{"an allocation a hundred rows", "decode", "allocations", func(s hotpath.Stage) func() (int64, error) {
			return func() (int64, error) {
				kept = kept[:0]
				for range s.Rows / 100 {
					kept = append(kept, make([]byte, 16))
				}
				return s.Run()
			}
		}},
		{"one copy of all rows", "shred", "allocated bytes", func(s hotpath.Stage) func() (int64, error) {
			return func() (int64, error) {
				kept = append(kept[:0], make([]byte, s.Text))
				return s.Run()
			}
		}},
		{"two per cent larger files", "encode zstd", "made bytes", func(s hotpath.Stage) func() (int64, error) {
			return func() (int64, error) {
				n, err := s.Run()
				return n + n/50, err
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			lines, fields := hotpath.Lines(rows)
			stages, err := hotpath.New(lines, fields)
			if err != nil {
				t.Fatal(err)
			}
			for i := range stages {
				if stages[i].Name == c.stage {
					stages[i].Run = c.spoil(stages[i])
				}
			}
			now, _, err := measureAll(stages)
			if err != nil {
				t.Fatal(err)
			}
			bad := compare(stages, now, old)
			switch {
			case c.stage == "" && len(bad) > 0:
				t.Errorf("unspoilt: %v", bad)
			case c.stage != "" && (len(bad) != 1 || bad[0].stage != c.stage || bad[0].figure != c.figure):
				t.Errorf("found %v, want %s of %s", bad, c.figure, c.stage)
			}
		})
	}
}

// TestGuardFindsMoreInstructions: where the machine does not count them there
// is no figure to measure, so the comparison is given two.
func TestGuardFindsMoreInstructions(t *testing.T) {
	stages := []hotpath.Stage{{Name: "decode"}}
	at := func(n float64) map[string]cost {
		return map[string]cost{"decode": {Instructions: byArch(n)}}
	}
	old := committed{Stages: at(1000)}
	if bad := compare(stages, at(1040), old); len(bad) > 0 {
		t.Errorf("4 %% more: %v", bad)
	}
	if bad := compare(stages, at(1100), old); len(bad) != 1 || bad[0].figure != "instructions" {
		t.Errorf("10 %% more: %v", bad)
	}
	if bad := compare(stages, map[string]cost{"decode": {}}, old); len(bad) > 0 {
		t.Errorf("not counted here: %v", bad)
	}
}

func TestGuardWantsFiguresOfEveryStage(t *testing.T) {
	var out bytes.Buffer
	err := report(&out, []hotpath.Stage{{Name: "new"}}, map[string]cost{"new": {}}, committed{})
	if err == nil || !strings.Contains(out.String(), "GROWN new: it has no committed figures") {
		t.Errorf("%v: %s", err, out.String())
	}
}

func byArch(n float64) map[string]float64 { return map[string]float64{runtime.GOARCH: n} }
