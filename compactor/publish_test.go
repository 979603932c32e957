package compactor

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/storage"
)

// unit builds the target of parts of 10 and 20 rows.
func (b *bench) unit(t *testing.T, id string) *Built {
	t.Helper()
	j := Job{Unit: ledger.Unit{ID: id, Target: "part-1-" + id + ".parquet", Mode: ledger.ModeRewrite}}
	for _, n := range []int{10, 20} {
		in := b.part(t, n, false)
		j.Inputs = append(j.Inputs, in)
		j.Unit.Inputs = append(j.Unit.Inputs, in.ID)
		j.Unit.Rows += in.Rows
	}
	built, err := b.o.Build(context.Background(), j)
	if err != nil {
		t.Fatal(err)
	}
	return built
}

// TestPublishedMeanwhile: a former owner's rename of the same unit is carried out
// when the new owner's is on its way. It finds its work done (C3).
func TestPublishedMeanwhile(t *testing.T) {
	t.Run("of the same file", func(t *testing.T) {
		b := newBench(t)
		built := b.unit(t, "0000000000000001")
		if err := b.o.FS.Rename(built.Path, b.o.TargetPath(&built.Unit)); err != nil {
			t.Fatal(err)
		}
		if _, err := b.o.Publish(built); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("of a file of its own", func(t *testing.T) {
		b := newBench(t)
		built := b.unit(t, "0000000000000001")
		copied, err := b.o.FS.ReadFile(built.Path)
		if err != nil {
			t.Fatal(err)
		}
		b.put(t, b.o.TargetPath(&built.Unit), copied)
		if _, err := b.o.Publish(built); err != nil {
			t.Fatal(err)
		}
		if _, err := b.o.FS.Stat(built.Path); !errors.Is(err, storage.ErrNotExist) {
			t.Errorf("what was built again is left: %v", err)
		}
	})
	t.Run("of something else", func(t *testing.T) {
		b := newBench(t)
		built := b.unit(t, "0000000000000001")
		b.put(t, b.o.TargetPath(&built.Unit), []byte("somebody else's"))
		_, err := b.o.Publish(built)
		var classed *fault.Error
		if !errors.As(err, &classed) || classed.Class != fault.Halt || !strings.Contains(err.Error(), "is not that unit's") {
			t.Fatalf("got %v", err)
		}
		if got, err := b.o.FS.ReadFile(b.o.TargetPath(&built.Unit)); err != nil || string(got) != "somebody else's" {
			t.Fatalf("the file in the way: %q, %v", got, err)
		}
	})
	t.Run("of nothing", func(t *testing.T) {
		b := newBench(t)
		built := b.unit(t, "0000000000000001")
		if err := b.o.FS.Remove(built.Path); err != nil {
			t.Fatal(err)
		}
		if _, err := b.o.Publish(built); !errors.Is(err, storage.ErrNotExist) {
			t.Fatalf("published what is not there: %v", err)
		}
	})
}

func (b *bench) put(t *testing.T, name string, text []byte) {
	t.Helper()
	f, err := b.o.FS.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		t.Fatal(err)
	}
}
