package compactor

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/storage"
	"github.com/hivesink/hivesink/storage/memobj"
)

// answering is a store whose first completions are answered by the test.
type answering struct {
	storage.Objects
	answers []func(done func() error) error
	aborted bool
}

func (a *answering) Complete(name, id string) error {
	done := func() error { return a.Objects.Complete(name, id) }
	if len(a.answers) == 0 {
		return done()
	}
	next := a.answers[0]
	a.answers = a.answers[1:]
	return next(done)
}

func (a *answering) Abort(name, id string) error {
	a.aborted = true
	return a.Objects.Abort(name, id)
}

// TestReady: an upload that is a part is completed whatever the store says to
// it, or is left as it is (C6).
func TestReady(t *testing.T) {
	is := func(err error) func(func() error) error { return func(func() error) error { return err } }
	then := func(err error) func(func() error) error {
		return func(done func() error) error { _ = done(); return err }
	}
	cut := errors.New("the connection was cut")
	for name, c := range map[string]struct {
		answers []func(func() error) error
		gone    bool   // somebody has aborted the upload
		foreign bool   // the name is taken by another file
		want    string // of the error; "": published
	}{
		"at once":                     {},
		"the answer lost":             {answers: []func(func() error) error{then(cut)}},
		"done, and no such upload":    {answers: []func(func() error) error{then(storage.ErrNotExist)}},
		"done, and the name is taken": {answers: []func(func() error) error{then(storage.ErrExist)}},
		"not done, a conflict":        {answers: []func(func() error) error{is(storage.ErrConflict)}},
		"not done, a lie":             {answers: []func(func() error) error{is(storage.ErrNotExist)}},
		"not done, no answer":         {answers: []func(func() error) error{is(cut)}, want: "start again"},
		"gone":                        {gone: true, want: "is gone"},
		"another file":                {foreign: true, want: "is not that unit's"},
	} {
		t.Run(name, func(t *testing.T) {
			store, b := memobj.New(), newBench(t)
			in := b.part(t, 10, true)
			data, err := b.o.FS.ReadFile(in.Path)
			if err != nil {
				t.Fatal(err)
			}
			a := &answering{Objects: store.View(nil), answers: c.answers}
			b.o.FS, b.o.Objects = a, a
			in.Name = "part-1-0000000000000001.parquet"
			in.Upload, err = a.Upload(context.Background(), "/t/"+in.Name, bytes.NewReader(data), int64(len(data)))
			if err != nil {
				t.Fatal(err)
			}
			if c.gone {
				if err := a.AbortAt("/t/" + in.Name); err != nil {
					t.Fatal(err)
				}
			}
			if c.foreign {
				if err := a.Make("/t/"+in.Name, []byte("something else")); err != nil {
					t.Fatal(err)
				}
			}
			u := &ledger.Unit{ID: "u", Inputs: []string{in.ID}, Target: in.Name, Mode: ledger.ModePublish, Rows: in.Rows}
			err = b.o.PublishReady(b.o.Ready(u, &in.Part))
			if a.aborted {
				t.Error("the only copy of the rows was aborted")
			}
			if c.want != "" {
				if fault.ClassOf(err) != fault.Halt || !strings.Contains(err.Error(), c.want) {
					t.Fatalf("the error is %v, want %q", err, c.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got, err := a.ReadFile("/t/" + in.Name); err != nil || !bytes.Equal(got, data) {
				t.Fatalf("%d bytes are there, %v", len(got), err)
			}
		})
	}
}
