package main

import (
	"context"
	"testing"

	"github.com/hivesink/hivesink/config"
	"github.com/hivesink/hivesink/internal/kv"
	"github.com/hivesink/hivesink/pipeline"
	"github.com/hivesink/hivesink/storage/memfs"
)

// cost is what opening a table and a fixed amount of work in it asks of the
// storage and of the index.
type cost struct {
	open, lost, rounds         ops
	openKeys, lostKeys, worked int64
}

// past makes a history and measures the table it leaves: opened with its index,
// worked in, and opened without.
func past(t *testing.T, h history) (c cost) {
	t.Helper()
	ctx := context.Background()
	mem, index := memfs.New(), kv.NewMem()
	if _, err := h.make(ctx, mem, index, "/bench/table"); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Parse("growth.yaml", []byte(configOf("/bench", "1h")), nil)
	if err != nil {
		t.Fatal(err)
	}
	open := func(store kv.Store) (*pipeline.Pipeline, *counter, *keys) {
		fs, k := &counter{FS: mem}, &keys{Store: store}
		p, err := pipeline.Open(ctx, pipeline.Options{Config: cfg, Version: "test", FS: fs, Index: k, NoLock: true, Inline: true})
		if err != nil {
			t.Fatal(err)
		}
		return p, fs, k
	}
	p, fs, k := open(index)
	c.open, c.openKeys = fs.seen(), k.read.Load()
	lane, err := p.NewLane()
	if err != nil {
		t.Fatal(err)
	}
	from, err := p.Own(ctx, "bench")
	if err != nil {
		t.Fatal(err)
	}
	lane.Adopt("bench", from)
	before, beforeKeys := fs.seen(), k.read.Load()+k.written.Load()
	for round := range 3 {
		if err := write(ctx, p, lane, round, h.partitions); err != nil {
			t.Fatal(err)
		}
		if err := p.Checkpoint(ctx); err != nil {
			t.Fatal(err)
		}
		for range 3 { // plan; publish; announce
			if err := p.Advance(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := p.Stats.PublishedFiles.Load(); n != 3*partsEach {
		t.Fatalf("%d files were published, want %d", n, 3*partsEach)
	}
	if p.Stats.Announced.Load() == 0 {
		t.Fatal("nothing was announced")
	}
	c.rounds, c.worked = fs.seen().minus(before), k.read.Load()+k.written.Load()-beforeKeys
	if err := p.Release(); err != nil {
		t.Fatal(err)
	}
	p, fs, k = open(kv.NewMem())
	c.lost, c.lostKeys = fs.seen(), k.written.Load()
	if err := p.Release(); err != nil {
		t.Fatal(err)
	}
	return c
}

// The histories have a multiple of 16 checkpoints, 64 records, so that all of
// them end at the same distance from their last snapshot.
const eachCheckpoint = 10

// TestPastCostsNothing: with ten and with a hundred times the files in the
// table's past, opening it, with its index and without, and working in it ask the
// same of the storage and of the index, and never for a data directory's entries.
func TestPastCostsNothing(t *testing.T) {
	small := past(t, history{files: 480, partitions: 50, each: eachCheckpoint})
	checkListings(t, small)
	for _, files := range []int{4_800, 48_000} {
		if testing.Short() && files > 4_800 {
			continue
		}
		big := past(t, history{files: files, partitions: 50, each: eachCheckpoint})
		checkListings(t, big)
		same(t, files, "opening", small.open, big.open)
		same(t, files, "opening without the index", small.lost, big.lost)
		same(t, files, "the same work", small.rounds, big.rounds)
		if big.openKeys != small.openKeys || big.lostKeys != small.lostKeys || big.worked != small.worked {
			t.Errorf("%d files: opening reads %d keys of the index, or writes %d; work takes %d: with few files it was %d, %d, %d",
				files, big.openKeys, big.lostKeys, big.worked, small.openKeys, small.lostKeys, small.worked)
		}
	}
}

// same compares what was asked of the storage. Numbers of more digits make
// records longer by some bytes.
func same(t *testing.T, files int, what string, small, big ops) {
	t.Helper()
	bytes, limit := big.BytesRead-small.BytesRead, 150*small.FilesRead
	small.BytesRead, big.BytesRead = 0, 0
	if small != big || bytes > limit {
		t.Errorf("%s with %d files takes %+v and %d bytes more, with few files %+v", what, files, big, bytes, small)
	}
}

// TestPartitionsCostNoWork: with ten times the partitions the same work asks
// the same, of storage and index, and opening more keys only.
func TestPartitionsCostNoWork(t *testing.T) {
	few := past(t, history{files: 960, partitions: 30, each: eachCheckpoint})
	many := past(t, history{files: 960, partitions: 210, each: eachCheckpoint})
	checkListings(t, many)
	if many.rounds != few.rounds || many.worked != few.worked {
		t.Errorf("the same work takes %+v and %d keys, with few partitions %+v and %d", many.rounds, many.worked, few.rounds, few.worked)
	}
	if many.open.All != few.open.All || many.openKeys != few.openKeys+180 {
		t.Errorf("opening takes %+v and %d keys, with few partitions %+v and %d", many.open, many.openKeys, few.open, few.openKeys)
	}
}

func checkListings(t *testing.T, c cost) {
	t.Helper()
	if n := c.open.DataListings + c.rounds.DataListings + c.lost.DataListings; n != 0 {
		t.Errorf("%d listings of data directories", n)
	}
	if c.open.LogListings == 0 || c.rounds.All == 0 {
		t.Errorf("nothing was counted: %+v", c)
	}
}
