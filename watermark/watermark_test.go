package watermark

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
)

// Scripts run one command a line; times are durations since 1970:
//
//	new out_of_orderness=30s idle_timeout=1m max_future=1h
//	restore AT            expect NAME           own NAME [AT]
//	observe NAME AT now=  caught-up NAME now=   hold NAME   idle NAME
//	polled NAME now=
//	ended NAME            disown NAME
//	of NAME               now AT
//
// "of" and "now" print a watermark, the others nothing.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		var tr *Tracker
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var out strings.Builder
			if d.Cmd != "run" {
				t.Fatalf("no command %q", d.Cmd)
			}
			for line := range strings.Lines(d.Input) {
				f := strings.Fields(line)
				if f[0] == "new" {
					tr = New(options(t, f[1:]))
					continue
				}
				if text := step(t, tr, f); text != "" {
					fmt.Fprintf(&out, "%s: %s\n", strings.TrimSpace(line), text)
				}
			}
			return out.String()
		})
	})
}

func options(t *testing.T, args []string) (o Options) {
	t.Helper()
	for _, a := range args {
		key, value, _ := strings.Cut(a, "=")
		switch key {
		case "out_of_orderness":
			o.OutOfOrderness = at(t, value)
		case "idle_timeout":
			o.IdleTimeout = at(t, value)
		case "max_future":
			o.MaxFuture = at(t, value)
		default:
			t.Fatalf("no option %q", key)
		}
	}
	return o
}

func step(t *testing.T, tr *Tracker, f []string) string {
	t.Helper()
	arg := func(i int) string { return strings.TrimPrefix(f[i], "now=") }
	switch f[0] {
	case "restore":
		tr.Restore(at(t, f[1]))
	case "expect":
		tr.Expect(f[1])
	case "own":
		restored := int64(NoWatermark)
		if len(f) > 2 {
			restored = at(t, f[2])
		}
		tr.Own(f[1], restored)
	case "observe":
		tr.Observe(f[1], at(t, f[2]), at(t, arg(3)))
	case "caught-up":
		tr.CaughtUp(f[1], at(t, arg(2)))
	case "polled":
		tr.Polled(f[1], at(t, arg(2)))
	case "hold":
		tr.Hold(f[1])
	case "idle":
		tr.Idle(f[1])
	case "ended":
		tr.Ended(f[1])
	case "disown":
		tr.Disown(f[1])
	case "of":
		return show(tr.Of(f[1]))
	case "now":
		return show(tr.Current(at(t, f[1])))
	default:
		t.Fatalf("no step %q", f[0])
	}
	return ""
}

func at(t *testing.T, text string) int64 {
	t.Helper()
	if text == "none" {
		return NoWatermark
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d.Microseconds()
}

func show(w int64) string {
	if w == NoWatermark {
		return "none"
	}
	return (time.Duration(w) * time.Microsecond).String()
}

// T1, and T2 as far as it binds: random steps never take Current back, and
// Current never passes an active source partition unless it was past it before.
func TestCurrentNeverGoesBack(t *testing.T) {
	names := []string{"a", "b", "c"}
	moved := 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		tr := New(Options{OutOfOrderness: r.Int64N(10), IdleTimeout: r.Int64N(20), MaxFuture: r.Int64N(30)})
		now, last := int64(1000), int64(NoWatermark)
		holds := map[string]bool{} // sure not to be idle or ended
		for range 200 {
			now += r.Int64N(8)
			n := names[r.IntN(len(names))]
			switch r.IntN(9) {
			case 0:
				tr.Own(n, NoWatermark)
				holds[n] = true
			case 1:
				tr.Disown(n)
				delete(holds, n)
			case 2:
				tr.CaughtUp(n, now)
				delete(holds, n)
			case 3:
				tr.Ended(n)
				delete(holds, n)
			case 4:
				tr.Idle(n)
				delete(holds, n)
			case 5:
				tr.Hold(n)
			default:
				tr.Observe(n, now-r.Int64N(100)+r.Int64N(60), now)
			}
			w := tr.Current(now)
			if w < last {
				t.Fatalf("seed %d: from %d back to %d", seed, last, w)
			}
			for n := range holds {
				if of := tr.Of(n); w > last && w > of {
					t.Fatalf("seed %d: advanced to %d, but %s is at %d", seed, w, n, of)
				}
			}
			if w > last {
				moved++
			}
			last = w
		}
	}
	if moved == 0 {
		t.Fatal("nothing ever advanced")
	}
}

// T5: an event beyond max_future moves nothing, wherever it stands.
func TestFarFutureMovesNothing(t *testing.T) {
	o := Options{MaxFuture: 3600_000_000}
	for _, far := range []int64{3600_000_001 + 5, 1 << 62, 1<<63 - 1} {
		tr := New(o)
		tr.Own("a", NoWatermark)
		tr.Observe("a", far, 5)
		if w := tr.Current(5); w != NoWatermark {
			t.Errorf("an event at %d moved the watermark to %d", far, w)
		}
	}
	tr := New(o)
	tr.Own("a", NoWatermark)
	tr.Observe("a", 5+3600_000_000, 5) // exactly the limit counts
	if tr.Current(5) != 5+3600_000_000 {
		t.Errorf("watermark %d", tr.Current(5))
	}
}
