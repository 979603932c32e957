package ledger

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/internal/kv"
	"github.com/hivesink/hivesink/storage"
)

// index keeps the state in a local key-value store, so that a restart need not
// read the whole log. Any doubt about what it holds rebuilds it (T8).
//
// Its head comes last in the last transaction of an application: sequence and
// checksum of the record, and a digest of all entities. A store of which only
// some transactions were made has entities that do not match the digest.
type index struct {
	store   kv.Store
	keys    int               // at most, in one transaction
	rebuild bool              // the store holds nothing of use
	pending map[string]bool   // keys that differ from the store
	hashes  map[string]uint64 // of what the store holds, by key
	digest  uint64            // their sum
	hash    hasher

	err    error // the last write did not work
	broken bool  // nothing more is written
}

const (
	keyHead       = "head"
	prefSource    = "source/"
	prefPart      = "part/"
	prefUnit      = "unit/"
	prefPartition = "partition/"
	prefReplace   = "replacement/"

	transactionKeys  = 2048
	transactionBytes = 512 << 10 // well below what Badger takes with its small memtable
)

// indexVersion is of what the store holds. Those who know version 1 pass over
// members that they do not know, and read none of the records that would have
// told: here they find another version, and go by the log.
const indexVersion = 2

// head is the index's own state, and the scalars of the ledger's.
type head struct {
	Version int    `json:"v"`
	Table   string `json:"table_id"`
	Digest  uint64 `json:"digest"`
	State   State  `json:"state"`
}

func newIndex(store kv.Store, keys int) *index {
	return &index{store: store, keys: keys, rebuild: true, pending: make(map[string]bool), hashes: make(map[string]uint64)}
}

// hasher hashes entities; its buffer is reused.
type hasher struct{ buf []byte }

func (h *hasher) entity(key string, value []byte) uint64 {
	h.buf = strconv.AppendInt(h.buf[:0], int64(len(key)), 10)
	h.buf = append(h.buf, ':')
	h.buf = append(h.buf, key...)
	h.buf = append(h.buf, value...)
	sum := sha256.Sum256(h.buf)
	return binary.LittleEndian.Uint64(sum[:])
}

// load returns the indexed state when it is this log's: whole, and its last
// record is in the log with the same checksum. Else nil, and the next update
// rebuilds the store.
func (x *index) load(fs storage.FS, table string) *State {
	var h head
	st := NewState()
	err := x.store.View(func(r kv.Reader) error {
		data, err := r.Get(keyHead)
		if err != nil {
			return err
		}
		if err := decodeStrictly(data, &h); err != nil {
			return err
		}
		return errors.Join(scan(x, r, prefSource, st.Sources), scan(x, r, prefPart, st.Parts),
			scan(x, r, prefUnit, st.Units), scan(x, r, prefPartition, st.Partitions), scan(x, r, prefReplace, st.Replacements))
	})
	whole := err == nil && h.Version == indexVersion && h.Digest == x.digest && h.State.Seq > 0
	if !whole || !holds(fs, table, h.State.Seq, h.State.Checksum) {
		x.forget()
		return nil
	}
	h.State.takeMaps(st)
	h.State.derive()
	x.rebuild = false
	return &h.State
}

// forget makes the next update rebuild the store.
func (x *index) forget() {
	x.rebuild, x.digest = true, 0
	clear(x.hashes)
	clear(x.pending)
}

// holds says whether the log has this record, or a snapshot up to just it.
func holds(fs storage.FS, table string, seq uint64, checksum string) bool {
	if _, sum, err := readRecord(fs, table, seq); err == nil {
		return sum == checksum
	}
	st, err := readSnapshot(fs, table, seq)
	return err == nil && st.Checksum == checksum
}

func scan[T any](x *index, r kv.Reader, prefix string, into map[string]*T) error {
	return r.Scan(prefix, func(key string, value []byte) error {
		v := new(T)
		if err := decodeStrictly(value, v); err != nil {
			return err
		}
		into[strings.TrimPrefix(key, prefix)] = v
		sum := x.hash.entity(key, value)
		x.hashes[key] = sum
		x.digest += sum
		return nil
	})
}

// note remembers what a record changed; nil means all.
func (x *index) note(t *Touched) {
	if t == nil {
		x.forget()
		return
	}
	noteKeys(x.pending, prefSource, t.Sources)
	noteKeys(x.pending, prefPart, t.Parts)
	noteKeys(x.pending, prefUnit, t.Units)
	noteKeys(x.pending, prefPartition, t.Partitions)
	noteKeys(x.pending, prefReplace, t.Replacements)
}

func noteKeys[T any](pending map[string]bool, prefix string, keys map[string]T) {
	for key := range keys { // each key by itself: the order does not matter
		pending[prefix+key] = true
	}
}

// flush writes what was noted. No space (class Retry) is tried again with the
// next record; after any other error nothing more is written, since what the
// store holds is unknown, and the next Open looks.
func (x *index) flush(st *State) {
	if x.broken {
		return
	}
	x.err = x.write(st)
	x.broken = x.err != nil && fault.ClassOf(x.err) != fault.Retry
}

func (x *index) write(st *State) error {
	if x.rebuild {
		if err := x.empty(); err != nil {
			return fmt.Errorf("empty the index: %w", err)
		}
		noteKeys(x.pending, prefSource, st.Sources)
		noteKeys(x.pending, prefPart, st.Parts)
		noteKeys(x.pending, prefUnit, st.Units)
		noteKeys(x.pending, prefPartition, st.Partitions)
		noteKeys(x.pending, prefReplace, st.Replacements)
		x.rebuild = false
	}
	keys := slices.Sorted(maps.Keys(x.pending))
	for last := false; !last; {
		b, err := x.cut(keys, st)
		if err != nil {
			return err
		}
		keys = keys[len(b.keys):]
		if last = len(keys) == 0; last {
			if err := b.addHead(x, st); err != nil {
				return err
			}
		}
		if err := x.store.Update(b.write); err != nil {
			return fmt.Errorf("write record %d to the index: %w", st.Seq, err)
		}
		x.took(&b)
	}
	clear(x.pending)
	return nil
}

// empty removes everything, the head first: a store without it holds nothing.
func (x *index) empty() error {
	if err := x.store.Update(func(w kv.Writer) error { return w.Delete(keyHead) }); err != nil {
		return err
	}
	var keys []string
	err := x.store.View(func(r kv.Reader) error {
		return r.Scan("", func(key string, _ []byte) error {
			keys = append(keys, key)
			return nil
		})
	})
	if err != nil {
		return err
	}
	for some := range slices.Chunk(keys, x.keys) {
		err := x.store.Update(func(w kv.Writer) error {
			for _, key := range some {
				if err := w.Delete(key); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	clear(x.hashes)
	x.digest = 0
	return nil
}

// batch is one transaction.
type batch struct {
	keys   []string
	values [][]byte // nil: delete
	sums   []uint64
	head   []byte
	digest uint64 // after it
}

// cut takes as many keys as go into one transaction.
func (x *index) cut(keys []string, st *State) (batch, error) {
	b := batch{digest: x.digest}
	size := 0
	for _, key := range keys {
		if len(b.keys) == x.keys || size > transactionBytes {
			break
		}
		value, err := st.entity(key)
		if err != nil {
			return b, err
		}
		var sum uint64
		if value != nil {
			sum = x.hash.entity(key, value)
		}
		b.keys, b.values, b.sums = append(b.keys, key), append(b.values, value), append(b.sums, sum)
		b.digest += sum - x.hashes[key]
		size += len(key) + len(value)
	}
	return b, nil
}

func (b *batch) addHead(x *index, st *State) error {
	data, err := json.Marshal(head{Version: indexVersion, Table: st.Owner.Table, Digest: b.digest, State: st.scalars()})
	b.head = data
	return err
}

func (b *batch) write(w kv.Writer) error {
	for i, key := range b.keys {
		if b.values[i] == nil {
			if err := w.Delete(key); err != nil {
				return err
			}
		} else if err := w.Set(key, b.values[i]); err != nil {
			return err
		}
	}
	if b.head == nil {
		return nil
	}
	return w.Set(keyHead, b.head)
}

// took notes what the store holds now.
func (x *index) took(b *batch) {
	x.digest = b.digest
	for i, key := range b.keys {
		if b.values[i] == nil {
			delete(x.hashes, key)
		} else {
			x.hashes[key] = b.sums[i]
		}
	}
}

// entity is what the index holds of a key, nil when there is none.
func (s *State) entity(key string) ([]byte, error) {
	prefix, name, _ := strings.Cut(key, "/")
	switch prefix + "/" {
	case prefSource:
		return encodeEntity(s.Sources[name])
	case prefPart:
		return encodeEntity(s.Parts[name])
	case prefUnit:
		return encodeEntity(s.Units[name])
	case prefReplace:
		return encodeEntity(s.Replacements[name])
	default:
		return encodeEntity(s.Partitions[name])
	}
}

func encodeEntity[T any](v *T) ([]byte, error) {
	if v == nil {
		return nil, nil
	}
	return json.Marshal(v)
}
