package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// results is what compaction.json holds.
type results struct {
	Rounds    int      `json:"rounds"`
	Short     bool     `json:"short,omitempty"`
	CPUs      int      `json:"cpus"`
	Go        string   `json:"go"`
	Start     outcome  `json:"start_of_python_and_duckdb"`
	Scenarios []result `json:"scenarios"`
	Checks    []check  `json:"targets"`
}

// result is what came of a scenario.
type result struct {
	scenario
	Rows       int               `json:"rows"`
	BytesIn    int64             `json:"bytes_in"`
	GroupBytes int64             `json:"bytes_per_row_group"` // of the inputs, footers included
	Modes      map[string]figure `json:"modes"`
}

// figure is what a mode took: medians over the rounds.
type figure struct {
	Seconds     float64 `json:"seconds"`
	SyncSeconds float64 `json:"sync_seconds"`
	CPUSeconds  float64 `json:"cpu_seconds"`
	ProcessCPU  float64 `json:"process_cpu_seconds"`
	MBPerSecond float64 `json:"mb_per_second"` // of the inputs
	RowsPerSec  float64 `json:"rows_per_second"`
	RowsPerCPU  float64 `json:"rows_per_cpu_second"`
	PeakRSSMB   float64 `json:"peak_rss_mb"`
	BytesOut    int64   `json:"bytes_out"`
	WriteAmp    float64 `json:"write_amplification"` // bytes written ÷ bytes of the inputs
	OfFresh     float64 `json:"size_of_fresh_encode"`
	// Ratios: how many times the time and CPU of the plain copy, and how many
	// times the rows per CPU second of the others.
	WallOfPlain float64 `json:"wall_of_plain_copy"`
	CPUOfPlain  float64 `json:"cpu_of_plain_copy"`
	OfRows      float64 `json:"speed_of_parquet_go_rows"`
	OfDuckDB    float64 `json:"speed_of_duckdb"` // of the thread count that is cheaper

	QuarterRSSMB float64            `json:"peak_rss_mb_of_a_quarter,omitempty"`
	Counted      bool               `json:"counted"` // DuckDB found the rows, values and order of the inputs
	Scans        map[string]float64 `json:"scan_cpu_ms,omitempty"`

	outputs []string
}

func summarize(s scenario, inputs [][]string, bytes int64, runs map[string][]outcome) result {
	r := result{scenario: s, Rows: s.rows(), BytesIn: bytes, GroupBytes: bytes / int64(s.Files*s.Groups), Modes: map[string]figure{}}
	for name, all := range runs {
		f := figure{
			Seconds:     median(all, func(o outcome) float64 { return o.Seconds }),
			SyncSeconds: median(all, func(o outcome) float64 { return o.SyncSeconds }),
			CPUSeconds:  median(all, func(o outcome) float64 { return o.CPUSeconds }),
			ProcessCPU:  median(all, func(o outcome) float64 { return o.ProcessCPUSeconds }),
			PeakRSSMB:   median(all, func(o outcome) float64 { return o.PeakRSSMB }),
			WriteAmp:    median(all, func(o outcome) float64 { return float64(o.Written) }) / float64(bytes),
			outputs:     all[len(all)-1].Outputs,
		}
		f.MBPerSecond = float64(bytes) / 1e6 / f.Seconds
		f.RowsPerSec = float64(r.Rows) / f.Seconds
		f.RowsPerCPU = float64(r.Rows) / max(f.CPUSeconds, 1e-4)
		for _, name := range f.outputs {
			if st, err := os.Stat(name); err == nil {
				f.BytesOut += st.Size()
			}
		}
		r.Modes[name] = f
	}
	plain, rows := r.Modes[modePlain], r.Modes[modeRows]
	duck := max(r.Modes[modeDuck1].RowsPerCPU, r.Modes[modeDuck2].RowsPerCPU)
	for name, f := range r.Modes {
		f.WallOfPlain = f.Seconds / plain.Seconds
		f.CPUOfPlain = f.CPUSeconds / max(plain.CPUSeconds, 1e-4)
		f.OfRows, f.OfDuckDB = f.RowsPerCPU/rows.RowsPerCPU, f.RowsPerCPU/duck
		f.OfFresh = float64(f.BytesOut) / float64(r.Modes[modeRewrite].BytesOut)
		r.Modes[name] = f
	}
	return r
}

func median(all []outcome, of func(outcome) float64) float64 {
	values := make([]float64, len(all))
	for i, o := range all {
		values[i] = of(o)
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// short rounds what is kept to four digits: more are noise.
func short(v float64) float64 {
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	unit := math.Pow(10, math.Floor(math.Log10(math.Abs(v)))-3)
	if unit >= 1 {
		return math.Round(v/unit) * unit
	}
	return math.Round(v/unit) / math.Round(1/unit)
}

// MarshalJSON keeps the figures short.
func (f figure) MarshalJSON() ([]byte, error) {
	for _, v := range []*float64{&f.Seconds, &f.SyncSeconds, &f.CPUSeconds, &f.ProcessCPU, &f.MBPerSecond, &f.RowsPerSec, &f.RowsPerCPU,
		&f.PeakRSSMB, &f.WriteAmp, &f.OfFresh, &f.WallOfPlain, &f.CPUOfPlain, &f.OfRows, &f.OfDuckDB, &f.QuarterRSSMB} {
		*v = short(*v)
	}
	scans := make(map[string]float64, len(f.Scans))
	for query, ms := range f.Scans {
		scans[query] = short(ms)
	}
	f.Scans = scans
	type plain figure
	return json.Marshal(plain(f))
}

// MarshalJSON keeps the figures short.
func (c check) MarshalJSON() ([]byte, error) {
	c.Got = short(c.Got)
	type plain check
	return json.Marshal(plain(c))
}

func (r result) show(w io.Writer) {
	fmt.Fprintf(w, "\n%s: %s (%s)\n", r.Name, r.Why, r.Shape)
	fmt.Fprintf(w, "  %d %s files, %d rows, %.1f MB (%s, row groups of %.0f KB) into %d (%s)\n",
		r.Files, r.Writer, r.Rows, float64(r.BytesIn)/1e6, r.From, float64(r.GroupBytes)/1e3, r.Targets, r.To)
	fmt.Fprintf(w, "  %-22s %7s %7s %7s %9s %7s %6s %6s %6s %6s %7s %7s\n", "",
		"MB/s", "M row/s", "CPU s", "M row/CPU", "RSS MB", "w. amp", "size", "wall/a", "CPU/a", "/rows", "/DuckDB")
	for _, m := range allModes {
		f, ok := r.Modes[m.name]
		if !ok {
			continue
		}
		size := fmt.Sprintf("%.2f", f.OfFresh)
		if m.name == modePlain || m.name == modePlainFiles {
			size = "-"
		}
		fmt.Fprintf(w, "  %-22s %7.0f %7.2f %7.3f %9.2f %7.0f %6.2f %6s %6.2f %6.2f %7.2f %7.2f\n", m.name,
			f.MBPerSecond, f.RowsPerSec/1e6, f.CPUSeconds, f.RowsPerCPU/1e6, f.PeakRSSMB, f.WriteAmp, size, f.WallOfPlain, f.CPUOfPlain, f.OfRows, f.OfDuckDB)
	}
	for _, m := range allModes {
		f := r.Modes[m.name]
		if f.QuarterRSSMB > 0 {
			fmt.Fprintf(w, "  peak memory of %s: %.0f MB, of a quarter of the inputs %.0f MB\n", m.name, f.PeakRSSMB, f.QuarterRSSMB)
		}
		if len(f.Scans) > 0 {
			var parts []string
			for _, q := range queries {
				parts = append(parts, fmt.Sprintf("%s %.1f", q, f.Scans[q]))
			}
			fmt.Fprintf(w, "  DuckDB scans what %s left, CPU ms: %s\n", m.name, strings.Join(parts, ", "))
		}
	}
}

// queries are the readers' queries of duck.py.
var queries = []string{"count + sum", "point filter", "id range", "count(*)"}

func (r results) keep(dir string) error {
	if dir == "" {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return cmp.Or(
		os.WriteFile(filepath.Join(dir, "compaction.json"), append(text, '\n'), 0o644),
		os.WriteFile(filepath.Join(dir, "compaction.svg"), chart(r), 0o644))
}
