package source

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/hivesink/hivesink/ledger"
)

func cancelled(t testing.TB) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

func isCancelled(err error) bool { return errors.Is(err, context.Canceled) }

// TestStreamResume proves S2 and S3 for streams, however their bytes come.
func TestStreamResume(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for form, data := range awkward() {
		for _, compression := range []string{plain, gz, zst} {
			t.Run(form+" "+compression, func(t *testing.T) {
				o := optionsFor(t, form)
				packed := compressAs(t, compression, []byte(data))
				open := func(resume bool) Source {
					return streamOf(t, o, &dribble{data: slices.Clone(packed), sizes: func() int { return rnd.IntN(200) }}, resume)
				}
				s := open(false)
				whole, err := readAll(t, s, only(t, s, nil), ledger.Source{})
				if err != nil {
					t.Fatal(err)
				}
				want := rowsOf(whole)
				if len(want) != 51 {
					t.Fatalf("%d rows", len(want))
				}
				o.BatchRows = 5
				s = open(false)
				steps, err := readAll(t, s, only(t, s, nil), ledger.Source{})
				if err != nil {
					t.Fatal(err)
				}
				for i, st := range steps {
					s := open(true)
					splits, err := s.Splits(t.Context(), map[string]ledger.Source{"stdin:1": st.pos})
					if err != nil {
						t.Fatal(err)
					}
					var rest []step
					if len(splits) > 0 {
						if rest, err = readAll(t, s, splits[0], st.pos); err != nil {
							t.Fatal(err)
						}
					}
					equalLines(t, "resumed", append(rowsOf(steps[:i+1]), rowsOf(rest)...), want)
				}
			})
		}
	}
}

// TestStreamNumbers looks at which stream a run reads (S1).
func TestStreamNumbers(t *testing.T) {
	two := map[string]ledger.Source{"stdin:1": {}, "stdin:10": {}, "file:/x": {}}
	ended := map[string]ledger.Source{"stdin:3": {Position: `{"o":5,"end":true}`, NextRow: 1, Ended: true}}
	for _, test := range []struct {
		known  map[string]ledger.Source
		resume bool
		want   string
	}{
		{nil, false, "stdin:1"}, {nil, true, "stdin:1"},
		{two, false, "stdin:11"}, {two, true, "stdin:10"},
		{ended, false, "stdin:4"}, {ended, true, ""},
	} {
		splits, err := streamOf(t, optionsFor(t, "json"), strings.NewReader(""), test.resume).Splits(t.Context(), test.known)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, s := range splits {
			got += s.ID
		}
		if got != test.want {
			t.Errorf("known %v, resume %v: %q, want %q", test.known, test.resume, got, test.want)
		}
	}
}

// TestStreamIsAnother proves S4 for streams.
func TestStreamIsAnother(t *testing.T) {
	o := optionsFor(t, "json")
	o.BatchRows = 10
	s := streamOf(t, o, strings.NewReader(string(lines(0, 30))), false)
	steps, err := readAll(t, s, only(t, s, nil), ledger.Source{})
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]ledger.Source{"stdin:1": steps[0].pos}
	for _, other := range []string{string(lines(1, 30)), string(lines(0, 3)), ""} {
		s := streamOf(t, o, strings.NewReader(other), true)
		_, err = readAll(t, s, only(t, s, known), steps[0].pos)
		mustHalt(t, err, "stdin")
	}
	s = streamOf(t, o, strings.NewReader(string(lines(0, 30))), true)
	split := only(t, s, known)
	if _, err := readAll(t, s, split, steps[0].pos); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Open(t.Context(), split, steps[0].pos); err == nil {
		t.Error("a stream was opened twice")
	}
}

// TestStreamBlocked: a Read that waits for bytes ends with its context, and the
// bytes that come later are not lost.
func TestStreamBlocked(t *testing.T) {
	pr, pw := io.Pipe()
	s := streamOf(t, optionsFor(t, "json"), pr, false)
	r, err := s.Open(t.Context(), only(t, s, nil), ledger.Source{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := r.Read(ctx)
		done <- err
	}()
	cancel()
	if err := <-done; !isCancelled(err) {
		t.Fatalf("cancelled: %v", err)
	}
	go pw.Write(lines(0, 2))
	got := int64(0)
	for got < 2 { // a stream that pauses delivers what there is
		b, err := r.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got += b.Count
		if b.Record != nil {
			b.Record.Release()
		}
	}
	pw.Close()
	b, err := r.Read(t.Context())
	if err != nil || !b.End || b.Count != 0 {
		t.Fatalf("at the end: %+v, %v", b, err)
	}
}

// TestStreamFails: the error of a stream comes after its records.
func TestStreamFails(t *testing.T) {
	broken := errors.New("the cable is cut")
	pr, pw := io.Pipe()
	go func() {
		pw.Write(lines(0, 2))
		pw.CloseWithError(broken)
	}()
	s := streamOf(t, optionsFor(t, "json"), pr, false)
	steps, err := readAll(t, s, only(t, s, nil), ledger.Source{})
	mustHalt(t, err, "stdin", "offset", "--resume")
	if !errors.Is(err, broken) || len(rowsOf(steps)) != 2 {
		t.Errorf("%d rows, then %v", len(rowsOf(steps)), err)
	}
}
