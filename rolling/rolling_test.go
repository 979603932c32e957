package rolling

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
)

// The script sets a policy and then describes one file a line:
//
//	policy bytes=100 rows=0 age=30m inactivity=10m
//	file bytes=50 rows=3 opened=0s written=5m now=12m
func TestPolicy(t *testing.T) {
	var p Policy
	datadriven.RunTest(t, "testdata/policy", func(t *testing.T, d *datadriven.TestData) string {
		switch d.Cmd {
		case "policy":
			p = Policy{Bytes: number(t, d, "bytes"), Rows: number(t, d, "rows"), Age: length(t, d, "age"), Inactivity: length(t, d, "inactivity")}
			return ""
		case "file":
			f := File{Bytes: number(t, d, "bytes"), Rows: number(t, d, "rows"), Opened: length(t, d, "opened").Microseconds(), LastWrite: length(t, d, "written").Microseconds()}
			reason, due := p.Due(f, length(t, d, "now").Microseconds())
			if due != (reason != "") {
				t.Errorf("due %v, reason %q", due, reason)
			}
			next := "never"
			if n := p.Next(f); n != 0 {
				next = (time.Duration(n) * time.Microsecond).String()
			}
			if due {
				return fmt.Sprintf("due: %s (by time: %s)\n", reason, next)
			}
			return fmt.Sprintf("open (by time: %s)\n", next)
		}
		t.Fatalf("no command %q", d.Cmd)
		return ""
	})
}

func number(t *testing.T, d *datadriven.TestData, key string) int64 {
	t.Helper()
	text := ""
	if !d.MaybeScanArgs(t, key, &text) {
		return 0
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func length(t *testing.T, d *datadriven.TestData, key string) time.Duration {
	t.Helper()
	text := ""
	if !d.MaybeScanArgs(t, key, &text) {
		return 0
	}
	l, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// O4: time makes a file due at Next, not before; O3: also on a shifted clock.
func TestNextIsWhenDue(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	timed := 0
	for range 20000 {
		p := Policy{Age: time.Duration(r.Int64N(5)) * 700, Inactivity: time.Duration(r.Int64N(5)) * 900}
		f := File{Rows: 1, Opened: 1 + r.Int64N(1000)}
		f.LastWrite = f.Opened + r.Int64N(3)
		next := p.Next(f)
		if next == 0 {
			if _, due := p.Due(f, 1<<60); due {
				t.Fatalf("%+v %+v: due, but Next is never", p, f)
			}
			continue
		}
		timed++
		shift := r.Int64N(1e15) - 5e14
		g := File{Rows: 1, Opened: f.Opened + shift, LastWrite: f.LastWrite + shift}
		for _, c := range []struct {
			f   File
			now int64
			due bool
		}{{f, next - 1, false}, {f, next, true}, {g, next + shift - 1, false}, {g, next + shift, true}} {
			if _, due := p.Due(c.f, c.now); due != c.due {
				t.Fatalf("%+v %+v at %d: due %v, next %d", p, c.f, c.now, due, next)
			}
		}
	}
	if timed == 0 {
		t.Fatal("no policy had a limit of time")
	}
}
