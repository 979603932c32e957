package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
)

// Every mode of this binary makes files with all rows, of every shape.
func TestModesKeepRows(t *testing.T) {
	for name := range shapes {
		t.Run(name, func(t *testing.T) {
			s := scenario{Shape: name, Writer: byTable, Files: 4, Groups: 2, GroupRows: 100, Targets: 2, From: "snappy", To: "snappy"}
			var made outcome
			work(t, job{Mode: "generate", Dir: t.TempDir(), Scenario: s}, &made)
			inputs := [][]string{made.Outputs[:2], made.Outputs[2:]}
			for _, mode := range []string{"copy", "merge", "rewrite", "rows"} {
				var o outcome
				work(t, job{Mode: mode, Dir: t.TempDir(), Shape: name, Codec: "snappy", Inputs: inputs}, &o)
				files, rows, closeAll, err := openAll(o.Outputs)
				closeAll()
				if err != nil || len(files) != 2 || rows != int64(s.rows()) {
					t.Errorf("%s: %d files, %d rows, %v; want 2 and %d", mode, len(files), rows, err, s.rows())
				}
			}
		})
	}
}

// A plain copy has the bytes of the inputs, in order.
func TestPlainCopyKeepsBytes(t *testing.T) {
	var made outcome
	work(t, job{Mode: "generate", Dir: t.TempDir(), Scenario: scenario{Shape: "narrow", Writer: byParts, Files: 3, Groups: 1, GroupRows: 50, From: "none"}}, &made)
	var want []byte
	for _, name := range made.Outputs {
		want = append(want, read(t, name)...)
	}
	var o outcome
	work(t, job{Mode: "plain", Dir: t.TempDir(), Inputs: [][]string{made.Outputs}}, &o)
	if got := read(t, o.Outputs[0]); !bytes.Equal(got, want) {
		t.Errorf("%d bytes came out, want the %d of the inputs", len(got), len(want))
	}
	work(t, job{Mode: "plain-files", Dir: t.TempDir(), Inputs: [][]string{made.Outputs}}, &o)
	if got := len(o.Outputs); got != 1+3 {
		t.Errorf("%d files of both ways, want 4", got)
	}
}

func work(t *testing.T, j job, o *outcome) {
	t.Helper()
	run, err := modes[j.Mode](j)
	if err == nil {
		err = run(o)
	}
	if err != nil {
		t.Fatalf("%s: %v", j.Mode, err)
	}
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestScenarios(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range scenarios {
		if seen[s.Name] {
			t.Errorf("two scenarios are called %s", s.Name)
		}
		seen[s.Name] = true
		if _, ok := shapes[s.Shape]; !ok {
			t.Errorf("%s: no shape %q", s.Name, s.Shape)
		}
		for _, s := range []scenario{s, s.scaled()} {
			if s.Targets < 1 || s.Files < s.Targets || s.rows() < 1 {
				t.Errorf("%s: %d files into %d targets", s.Name, s.Files, s.Targets)
			}
		}
	}
}

// Targets count what was measured, and miss what is worse.
func TestChecks(t *testing.T) {
	s := scenario{Name: "x", class: mergeSixfold}
	good := result{scenario: s, Modes: map[string]figure{
		modeMerge:   {OfRows: 7, OfDuckDB: 6, OfFresh: 1.04, Scans: map[string]float64{"count + sum": 1.9}},
		modeRewrite: {OfRows: 1.6, OfDuckDB: 1, Scans: map[string]float64{"count + sum": 0.5}},
	}}
	if missed := showChecks(io.Discard, checks([]result{good})); missed != 0 {
		t.Errorf("%d of good figures missed", missed)
	}
	bad := result{scenario: s, Modes: map[string]figure{
		modeCopy:    {WallOfPlain: 1.6, CPUOfPlain: 1.6},
		modeMerge:   {OfRows: 5.9, OfDuckDB: 5.9, OfFresh: 1.06, Scans: map[string]float64{"count + sum": 9}, PeakRSSMB: 13, QuarterRSSMB: 10},
		modeRewrite: {OfRows: 1.4, OfDuckDB: 0.9, Scans: map[string]float64{"count + sum": 8}},
	}}
	all := checks([]result{bad})
	// The three other queries took no time.
	if missed := showChecks(io.Discard, all); missed != len(all)-3 {
		t.Errorf("%d of %d missed, want all but three", missed, len(all))
	}
}

func TestChartIsXML(t *testing.T) {
	r := results{Scenarios: []result{{scenario: scenario{Name: "a<b & c", Files: 3}, BytesIn: 3000,
		Modes: map[string]figure{modeMerge: {OfDuckDB: 40}, modeRows: {OfDuckDB: 0.01}}}, {}}}
	text := chart(r)
	d, elements := xml.NewDecoder(bytes.NewReader(text)), 0
	for {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if _, ok := tok.(xml.StartElement); ok {
			elements++
		}
	}
	if !strings.Contains(string(text), ">merge<") || strings.Contains(string(text), ">copy<") {
		t.Errorf("the legend is not of the modes measured:\n%s", text)
	}
	if elements < 20 || !strings.Contains(string(text), "prefers-color-scheme:dark") {
		t.Errorf("%d elements:\n%s", elements, text)
	}
}
