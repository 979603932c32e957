package main

import (
	"fmt"
	"io"
)

// check is a target and what was measured.
type check struct {
	Scenario string  `json:"scenario"`
	What     string  `json:"what"`
	Bound    float64 `json:"bound"`
	Got      float64 `json:"got"`
	AtLeast  bool    `json:"at_least,omitempty"` // else at most
	Pass     bool    `json:"pass"`
}

func atMost(scenario, what string, got, bound float64) check {
	return check{Scenario: scenario, What: what, Bound: bound, Got: got, Pass: got <= bound}
}

func atLeast(scenario, what string, got, bound float64) check {
	return check{Scenario: scenario, What: what, Bound: bound, Got: got, AtLeast: true, Pass: got >= bound}
}

// growthBound is how much more memory four times the inputs may take, when they
// are not many.
const growthBound = 1.25

// footerKB is what an input of many may take: its footer, of three columns, with
// as much garbage. How many a unit has is bounded by limits.memory (coordinator
// C8, maintenance's keepFooters).
const footerKB = 6

// manyFiles must be joined in one run.
const manyFiles = 10_000

// querysOwn is the CPU in ms that a query takes on any file: below it, twice
// as much says nothing of the file.
const querysOwn = 2

// checks compares what was measured with what is wanted of each mode.
func checks(all []result) []check {
	var out []check
	for _, r := range all {
		if f, ok := r.Modes[modeCopy]; ok {
			out = append(out, atMost(r.Name, "copy: wall time of a plain copy", f.WallOfPlain, 1.5),
				atMost(r.Name, "copy: CPU of a plain copy", f.CPUOfPlain, 1.5))
		}
		out = append(out, mergeChecks(r)...)
		if f, ok := r.Modes[modeRewrite]; ok {
			out = append(out, atLeast(r.Name, "rewrite: speed of parquet-go rows", f.OfRows, 1.5),
				atLeast(r.Name, "rewrite: speed of DuckDB", f.OfDuckDB, 1))
		}
		if f, ok := r.Modes[modeCommand]; ok && r.command {
			out = append(out, atMost(r.Name, "hivesink compact: wall time of a plain copy", f.WallOfPlain, 3),
				atLeast(r.Name, "hivesink compact: speed of DuckDB", f.OfDuckDB, 2.5))
		}
		for _, m := range allModes {
			f := r.Modes[m.name]
			if r.Files >= manyFiles && m.ours && f.Counted {
				out = append(out, atLeast(r.Name, m.name+": files joined in one run", float64(r.Files), manyFiles))
			}
			switch {
			case f.QuarterRSSMB == 0:
			case r.Files >= manyFiles:
				more := (f.PeakRSSMB - f.QuarterRSSMB) * 1000 / (float64(r.Files) * 3 / 4)
				out = append(out, atMost(r.Name, m.name+": KB of memory for each input more", more, footerKB))
			default:
				out = append(out, atMost(r.Name, m.name+": memory for four times the inputs", f.PeakRSSMB/f.QuarterRSSMB, growthBound))
			}
		}
	}
	return out
}

func mergeChecks(r result) []check {
	f, ok := r.Modes[modeMerge]
	if !ok {
		return nil
	}
	var out []check
	bound := map[string]float64{mergeSixfold: 6, mergeSmall: 2.5}[r.class]
	if bound > 0 {
		out = append(out, atLeast(r.Name, "merge: speed of parquet-go rows", f.OfRows, bound),
			atLeast(r.Name, "merge: speed of DuckDB", f.OfDuckDB, bound))
	}
	out = append(out, atMost(r.Name, "merge: size of a fresh encode", f.OfFresh, 1.05))
	for _, q := range queries {
		got, fresh := f.Scans[q], r.Modes[modeRewrite].Scans[q]
		out = append(out, atMost(r.Name, "merge: CPU of a scan of a fresh file, "+q, max(got, querysOwn)/max(fresh, querysOwn), 1.1))
	}
	return out
}

// showChecks prints them all and returns how many were missed.
func showChecks(w io.Writer, all []check) (missed int) {
	fmt.Fprintf(w, "\ntargets\n")
	for _, c := range all {
		verdict, relation := "pass", "≤"
		if c.AtLeast {
			relation = "≥"
		}
		if !c.Pass {
			verdict = "MISS"
			missed++
		}
		fmt.Fprintf(w, "  %s  %-16s %-52s %6.2f  %s %.2f\n", verdict, c.Scenario, c.What, c.Got, relation, c.Bound)
	}
	fmt.Fprintf(w, "  %d of %d missed\n", missed, len(all))
	return missed
}
