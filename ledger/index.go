package ledger

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"

	"github.com/hivesink/hivesink/internal/kv"
	"github.com/hivesink/hivesink/layout"
	"github.com/hivesink/hivesink/storage"
)

// index keeps the state in a local key-value store, so that a restart need not
// read the log. It is never the only copy of a fact: any doubt rebuilds it.
type index struct {
	store kv.Store
	fresh bool  // everything must be written
	err   error // it is behind: no more is written until the next Open
}

const (
	keyHead       = "head"
	prefSource    = "source/"
	prefPart      = "part/"
	prefUnit      = "unit/"
	prefPartition = "partition/"
	batchKeys     = 1000 // of one transaction
)

// load returns the indexed state when it is one of this log's: same table, and
// the record it ends with is in the log with the same checksum. Else nil.
func (x *index) load(fs storage.FS, table string) *State {
	st := NewState()
	err := x.store.View(func(r kv.Reader) error {
		data, err := r.Get(keyHead)
		if err != nil {
			return err
		}
		if err := json.Unmarshal(data, st); err != nil {
			return err
		}
		st.Sources, st.Parts = make(map[string]*Source), make(map[string]*Part)
		st.Units, st.Partitions = make(map[string]*Unit), make(map[string]*Partition)
		return errors.Join(scan(r, prefSource, st.Sources), scan(r, prefPart, st.Parts),
			scan(r, prefUnit, st.Units), scan(r, prefPartition, st.Partitions))
	})
	if err == nil && st.Version == formatVersion && st.Seq > 0 {
		_, sum, rerr := readRecord(fs, path.Join(logDir(table), layout.LogFile(st.Seq)))
		if rerr == nil && sum == st.Checksum {
			return st
		}
	}
	x.fresh = true
	return nil
}

func scan[T any](r kv.Reader, prefix string, into map[string]*T) error {
	return r.Scan(prefix, func(key string, value []byte) error {
		v := new(T)
		if err := json.Unmarshal(value, v); err != nil {
			return err
		}
		into[key[len(prefix):]] = v
		return nil
	})
}

// change is one key to write; a nil value deletes it.
type change struct {
	key   string
	value any
}

// update writes what a record changed: absolute values, the head last, so that
// a crash in between leaves an index that is merely behind.
func (x *index) update(st *State, t Touched) {
	if x.err != nil {
		return
	}
	if x.fresh {
		if x.err = x.rebuild(st); x.err == nil {
			x.fresh = false
		}
		return
	}
	var todo []change
	todo = collect(todo, prefSource, t.Sources, st.Sources)
	todo = collect(todo, prefPart, t.Parts, st.Parts)
	todo = collect(todo, prefUnit, t.Units, st.Units)
	todo = collect(todo, prefPartition, t.Partitions, st.Partitions)
	x.err = x.write(todo, st)
}

func collect[T any](todo []change, prefix string, keys map[string]bool, from map[string]*T) []change {
	for _, k := range sortedKeys(keys) {
		if v := from[k]; v != nil {
			todo = append(todo, change{prefix + k, v})
		} else {
			todo = append(todo, change{prefix + k, nil})
		}
	}
	return todo
}

// rebuild replaces whatever is in the store. The head goes first and comes
// last: a store without it is empty.
func (x *index) rebuild(st *State) error {
	var todo []change
	if err := x.store.Update(func(w kv.Writer) error { return w.Delete(keyHead) }); err != nil {
		return fmt.Errorf("rebuild the index: %w", err)
	}
	err := x.store.View(func(r kv.Reader) error {
		return r.Scan("", func(key string, _ []byte) error {
			todo = append(todo, change{key, nil})
			return nil
		})
	})
	if err != nil {
		return fmt.Errorf("rebuild the index: %w", err)
	}
	todo = addAll(todo, prefSource, st.Sources)
	todo = addAll(todo, prefPart, st.Parts)
	todo = addAll(todo, prefUnit, st.Units)
	todo = addAll(todo, prefPartition, st.Partitions)
	return x.write(todo, st)
}

func addAll[T any](todo []change, prefix string, from map[string]*T) []change {
	for _, k := range sortedKeys(from) {
		todo = append(todo, change{prefix + k, from[k]})
	}
	return todo
}

func (x *index) write(todo []change, st *State) error {
	head := *st
	head.Sources, head.Parts, head.Units, head.Partitions = nil, nil, nil, nil
	for len(todo) > 0 {
		n := min(len(todo), batchKeys)
		if err := x.store.Update(func(w kv.Writer) error { return put(w, todo[:n]) }); err != nil {
			return fmt.Errorf("write the index: %w", err)
		}
		todo = todo[n:]
	}
	if err := x.store.Update(func(w kv.Writer) error { return put(w, []change{{keyHead, &head}}) }); err != nil {
		return fmt.Errorf("write the index: %w", err)
	}
	return nil
}

func put(w kv.Writer, todo []change) error {
	for _, c := range todo {
		if c.value == nil {
			if err := w.Delete(c.key); err != nil {
				return err
			}
			continue
		}
		data, err := json.Marshal(c.value)
		if err != nil {
			return err
		}
		if err := w.Set(c.key, data); err != nil {
			return err
		}
	}
	return nil
}
