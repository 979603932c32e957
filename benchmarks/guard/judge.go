package main

import (
	"fmt"
	"io"
	"runtime"

	"github.com/hivesink/hivesink/benchmarks/hotpath"
)

// tolerance is by how much a figure may exceed the committed one: a share of
// it, and some more where it is small. One allocation in a hundred rows is
// found, one in a thousand is not.
type tolerance struct{ share, more float64 }

var tolerances = map[string]tolerance{
	"allocations":     {0.2, 5},
	"allocated bytes": {0.2, 2000}, // of 80,000 and more that the rows are
	"made bytes":      {0.01, 0},
	"instructions":    {0.05, 0},
}

// grown is a figure beyond its tolerance.
type grown struct {
	stage, figure string
	was, is       float64
}

// compare finds what has grown. A stage that nobody committed figures of is
// grown too, or the guard would pass by silence.
func compare(stages []hotpath.Stage, now map[string]cost, old committed) (out []grown) {
	for _, s := range stages {
		is := now[s.Name]
		was, known := old.Stages[s.Name]
		if !known {
			out = append(out, grown{s.Name, "no figures", 0, 0})
			continue
		}
		figures := []grown{
			{s.Name, "allocations", was.Allocations, is.Allocations},
			{s.Name, "allocated bytes", was.Allocated, is.Allocated},
			{s.Name, "made bytes", was.Made, is.Made},
		}
		a, counted := was.Instructions[runtime.GOARCH]
		if b, here := is.Instructions[runtime.GOARCH]; counted && here {
			figures = append(figures, grown{s.Name, "instructions", a, b})
		}
		for _, f := range figures {
			if t := tolerances[f.figure]; f.is > f.was*(1+t.share)+t.more {
				out = append(out, f)
			}
		}
	}
	return out
}

func report(w io.Writer, stages []hotpath.Stage, now map[string]cost, old committed) error {
	fmt.Fprintf(w, "%-14s %22s %26s %24s   (per thousand rows, committed in brackets)\n", "stage", "allocations", "allocated bytes", "made bytes")
	for _, s := range stages {
		a, b := now[s.Name], old.Stages[s.Name]
		fmt.Fprintf(w, "%-14s %10.2f (%9.2f) %12.0f (%11.0f) %11.0f (%10.0f)\n", s.Name,
			a.Allocations, b.Allocations, a.Allocated, b.Allocated, a.Made, b.Made)
	}
	bad := compare(stages, now, old)
	for _, g := range bad {
		if g.figure == "no figures" {
			fmt.Fprintf(w, "GROWN %s: it has no committed figures; run `go run ./benchmarks/guard -write`\n", g.stage)
			continue
		}
		fmt.Fprintf(w, "GROWN %s: %s were %.2f and are %.2f per thousand rows\n", g.stage, g.figure, g.was, g.is)
	}
	if len(bad) > 0 {
		return fmt.Errorf("%d figures have grown; mend the path, or commit new figures (-write) with the reason", len(bad))
	}
	return nil
}
