package kv

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Mem is a Store in memory, for tests and simulations. Use NewMem.
type Mem struct {
	mu      sync.Mutex
	data    map[string][]byte
	updates int
	// Hook, when set, is called before (after false) and after every update
	// with its number from 1; an error from it ends the update: before it took
	// effect, or after. It must not use the store.
	Hook func(n int, after bool) error
}

var _ Store = (*Mem)(nil)

// NewMem makes an empty store.
func NewMem() *Mem { return &Mem{data: make(map[string][]byte)} }

// Clone copies the store as it is now, without the hook.
func (m *Mem) Clone() *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	return &Mem{data: maps.Clone(m.data)}
}

// Updates is the number of updates so far, refused ones included.
func (m *Mem) Updates() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.updates
}

// View reads.
func (m *Mem) View(fn func(Reader) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return fn(memReader(m.data))
}

// Update writes: all of fn's changes or, on an error, none.
func (m *Mem) Update(fn func(Writer) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.updates++
	if m.Hook != nil {
		if err := m.Hook(m.updates, false); err != nil {
			return err
		}
	}
	changes := make(memWriter)
	if err := fn(changes); err != nil {
		return err
	}
	for key, value := range changes { // each key by itself: the order does not matter
		if value == nil {
			delete(m.data, key)
		} else {
			m.data[key] = value
		}
	}
	if m.Hook != nil {
		return m.Hook(m.updates, true)
	}
	return nil
}

// Close does nothing.
func (m *Mem) Close() error { return nil }

type memReader map[string][]byte

func (r memReader) Get(key string) ([]byte, error) {
	v, ok := r[key]
	if !ok {
		return nil, ErrNotFound
	}
	return slices.Clone(v), nil
}

func (r memReader) Scan(prefix string, fn func(string, []byte) error) error {
	for _, key := range slices.Sorted(maps.Keys(r)) {
		if strings.HasPrefix(key, prefix) {
			if err := fn(key, r[key]); err != nil {
				return err
			}
		}
	}
	return nil
}

// memWriter collects changes; nil deletes.
type memWriter map[string][]byte

var errEmptyKey = errors.New("empty key")

func (w memWriter) Set(key string, value []byte) error {
	if key == "" {
		return errEmptyKey
	}
	w[key] = append([]byte{}, value...)
	return nil
}

func (w memWriter) Delete(key string) error {
	if key == "" {
		return errEmptyKey
	}
	w[key] = nil
	return nil
}
