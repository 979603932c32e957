package main

import (
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/hivesink/hivesink/internal/testproc"
)

const stdinYAML = `
pipeline: stream
state_dir: {dir}/state
source:
  stdin: {}
table:
  name: events
  location: {dir}/table
  columns: [id bigint, ts timestamp, name string]
  partitioned_by: [{dt: date(ts)}]
checkpoint: {interval: 50ms}
`

// feed starts a run whose standard input stays open after text.
func (tb *table) feed(text string, args ...string) (*testproc.Process, *os.File) {
	tb.t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		tb.t.Fatal(err)
	}
	p := start(tb.t, r, binary, append([]string{"run", "-c", tb.config, "--json"}, args...)...)
	r.Close()
	tb.t.Cleanup(func() { w.Close() })
	if _, err := io.WriteString(w, text); err != nil {
		tb.t.Fatalf("%v: %v", err, p.End())
	}
	return p, w
}

// durable waits until the log has n accepted rows.
func (tb *table) durable(p *testproc.Process, n int64) {
	tb.t.Helper()
	accepted := func() (rows int64) {
		if tb.records() == 0 {
			return 0
		}
		for _, s := range tb.log().Sources {
			rows += s.Accepted.Rows
		}
		return rows
	}
	if !p.Until(tb.t, "the checkpoint", func() bool { return accepted() >= n }) {
		tb.t.Fatal(p.End())
	}
}

// TestStdin: a stream that pauses is durable and visible after SIGTERM, and
// after SIGKILL --resume goes on with the same stream from its first byte.
func TestStdin(t *testing.T) {
	all := strings.SplitAfter(lines(3000, nil), "\n")
	part := func(to int) string { return strings.Join(all[:to], "") }
	tb := newTable(t, stdinYAML)

	p, _ := tb.feed(part(1000))
	tb.durable(p, 1000)
	if s := tb.terminate(p); s.RowsRead != 1000 || s.RowsVisible != 1000 || !s.Stopped {
		t.Fatalf("after SIGTERM: %+v", s)
	}
	tb.wantIDs(1000)

	p, _ = tb.feed(part(2000), "--resume")
	tb.durable(p, 2000)
	if !p.Kill(t) {
		t.Fatalf("the run ended before it was killed: %v", p.End())
	}
	tb.fsck(exitDone)

	p, w := tb.feed(part(3000), "--resume")
	w.Close()
	if r := p.Wait(t); r.Code != exitDone {
		t.Fatal(r)
	} else if s := lastLine(t, r); s.RowsRead != 1000 || s.RowsVisible != 3000 || s.Stopped {
		t.Fatalf("resumed: %+v", s)
	}
	tb.wantIDs(3000)
	tb.checkFinished()

	// Without --resume a run is a new stream.
	p, w = tb.feed(part(10))
	w.Close()
	if r := p.Wait(t); r.Code != exitDone {
		t.Fatal(r)
	}
	if ids := tb.ids(); len(ids) != 3010 || len(slices.Compact(ids)) != 3000 {
		t.Fatalf("%d ids are visible after ten rows of a new stream", len(ids))
	}

	// Another stream is not the last one.
	p, w = tb.feed(strings.Replace(part(10), `"id":0`, `"id":7`, 1), "--resume")
	w.Close()
	if r := p.Wait(t); r.Code != exitDone && r.Code != exitFailed {
		t.Fatal(r)
	}
	tb.fsck(exitDone)
	if ids := tb.ids(); len(ids) != 3010 {
		t.Fatalf("%d ids are visible after another stream with --resume", len(ids))
	}
}
