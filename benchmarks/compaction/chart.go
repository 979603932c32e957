package main

import (
	"bytes"
	"fmt"
	"html"
	"math"
	"slices"
)

// Where things are in the chart, in pixels.
const (
	chartWidth  = 860
	plotLeft    = 310
	plotRight   = 830
	plotTop     = 92
	rowHeight   = 24
	chartFooter = 34
)

// marker is how a mode looks: a class of the style sheet and a form, so that
// colour is not needed to tell them apart.
type marker struct{ mode, class, form string }

var markers = []marker{
	{modePlain, "plain", "ring"}, {modeCopy, "copy", "disc"}, {modeMerge, "merge", "diamond"},
	{modeRewrite, "rewrite", "square"}, {modeCommand, "command", "cross"}, {modeRows, "rows", "triangle"},
}

const chartStyle = `
  .paper{fill:#fff} text{fill:#1f2328;font:12px system-ui,-apple-system,"Segoe UI",Helvetica,Arial,sans-serif}
  .title{font-size:15px;font-weight:600} .muted{fill:#59636e} .grid{stroke:#d1d9e0} .one{stroke:#59636e;stroke-dasharray:4 3}
  .plain{fill:none;stroke:#59636e;stroke-width:1.6} .copy{fill:#8250df} .merge{fill:#0969da} .rewrite{fill:#bc4c00} .rows{fill:#818b98} .command{fill:none;stroke:#1a7f37;stroke-width:2}
  @media (prefers-color-scheme:dark){
  .paper{fill:#0d1117} text{fill:#f0f6fc} .muted{fill:#9198a1} .grid{stroke:#3d444d} .one{stroke:#9198a1}
  .plain{stroke:#9198a1} .copy{fill:#ab7df8} .merge{fill:#4493f8} .rewrite{fill:#f0883e} .rows{fill:#656c76} .command{stroke:#3fb950}}
`

// chart draws every scenario's rows per CPU second, with DuckDB's as 1, on a
// logarithmic axis. The picture is readable on light and dark pages.
func chart(r results) []byte {
	lowest, highest := 0.5, 2.0
	for _, s := range r.Scenarios {
		for _, m := range markers {
			if f, ok := s.Modes[m.mode]; ok && f.OfDuckDB > 0 {
				lowest, highest = min(lowest, f.OfDuckDB), max(highest, f.OfDuckDB)
			}
		}
	}
	from, to := math.Floor(math.Log2(lowest)), math.Ceil(math.Log2(highest))
	x := func(ratio float64) float64 { return plotLeft + (math.Log2(ratio)-from)/(to-from)*(plotRight-plotLeft) }
	bottom := plotTop + rowHeight*len(r.Scenarios)
	height := bottom + chartFooter

	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-labelledby="title">`+"\n",
		chartWidth, height, chartWidth, height)
	fmt.Fprintf(&b, "<title id=\"title\">Rows per CPU second of compaction, of DuckDB's, by scenario and mode</title>\n<style>%s</style>\n", chartStyle)
	fmt.Fprintf(&b, `<rect class="paper" width="%d" height="%d" rx="6"/>`+"\n", chartWidth, height)
	fmt.Fprintf(&b, `<text class="title" x="20" y="30">Compaction: rows per CPU second, DuckDB doing the same job = 1</text>`+"\n")
	legend(&b, r.Scenarios)
	for p := from; p <= to; p++ {
		at, class := x(math.Exp2(p)), "grid"
		if p == 0 {
			class = "one"
		}
		fmt.Fprintf(&b, `<line class="%s" x1="%.1f" x2="%.1f" y1="%d" y2="%d"/>`, class, at, at, plotTop-8, bottom)
		fmt.Fprintf(&b, `<text class="muted" x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n", at, bottom+18, tick(p))
	}
	for i, s := range r.Scenarios {
		y := plotTop + rowHeight*i + rowHeight/2
		fmt.Fprintf(&b, `<text x="20" y="%d">%s</text><text class="muted" x="%d" y="%d" text-anchor="end">%d × %s</text>`+"\n",
			y+4, html.EscapeString(s.Name), plotLeft-18, y+4, s.Files, size(float64(s.BytesIn)/float64(s.Files)))
		points(&b, s, x, float64(y))
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

// legend names the modes that were measured.
func legend(b *bytes.Buffer, all []result) {
	at := 20.0
	for _, m := range markers {
		if !slices.ContainsFunc(all, func(r result) bool { return r.Modes[m.mode].OfDuckDB > 0 }) {
			continue
		}
		m.draw(b, at+6, 56)
		fmt.Fprintf(b, `<text x="%.0f" y="60">%s</text>`+"\n", at+18, m.mode)
		at += 40 + 6.6*float64(len(m.mode))
	}
	fmt.Fprintf(b, `<text class="muted" x="%.0f" y="60">inputs: files × bytes each</text>`+"\n", at+4)
}

// points draws a scenario's modes, those of ours on top; a mouse over one shows
// its numbers.
func points(b *bytes.Buffer, s result, x func(float64) float64, y float64) {
	inOrder := slices.Clone(markers)
	slices.Reverse(inOrder)
	for _, m := range inOrder {
		if f, ok := s.Modes[m.mode]; ok && f.OfDuckDB > 0 {
			fmt.Fprintf(b, "<g><title>%s: %.2f M rows per CPU second, %.1f × DuckDB</title>", m.mode, f.RowsPerCPU/1e6, f.OfDuckDB)
			m.draw(b, x(f.OfDuckDB), y)
			b.WriteString("</g>\n")
		}
	}
}

func (m marker) draw(b *bytes.Buffer, x, y float64) {
	switch m.form {
	case "ring", "disc":
		fmt.Fprintf(b, `<circle class="%s" cx="%.1f" cy="%.1f" r="5"/>`, m.class, x, y)
	case "square":
		fmt.Fprintf(b, `<rect class="%s" x="%.1f" y="%.1f" width="9" height="9"/>`, m.class, x-4.5, y-4.5)
	case "diamond":
		fmt.Fprintf(b, `<path class="%s" d="M%.1f %.1fl6 6-6 6-6-6z"/>`, m.class, x, y-6)
	case "cross":
		fmt.Fprintf(b, `<path class="%s" d="M%.1f %.1fl9 9m0-9l-9 9"/>`, m.class, x-4.5, y-4.5)
	case "triangle":
		fmt.Fprintf(b, `<path class="%s" d="M%.1f %.1fl5.5 9.5h-11z"/>`, m.class, x, y-5.5)
	}
}

// tick is a power of two as people read it.
func tick(power float64) string {
	if power < 0 {
		return fmt.Sprintf("1/%.0f", math.Exp2(-power))
	}
	return fmt.Sprintf("%.0f", math.Exp2(power))
}

func size(bytes float64) string {
	if bytes >= 1e6 {
		return fmt.Sprintf("%.1f MB", bytes/1e6)
	}
	return fmt.Sprintf("%.0f KB", bytes/1e3)
}
