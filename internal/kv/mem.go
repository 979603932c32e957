package kv

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Mem is a Store in memory. The zero value is not ready; use NewMem.
type Mem struct {
	mu   sync.Mutex
	data map[string][]byte
	txns int
	// Hook, when set, is called before (after false) and after every update
	// with its number from 1; an error from it ends the update: before it took
	// effect, or after.
	Hook func(n int, after bool) error
}

// NewMem makes an empty store.
func NewMem() *Mem { return &Mem{data: make(map[string][]byte)} }

// Clone copies the store as it is now, without the hook.
func (m *Mem) Clone() *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	return &Mem{data: maps.Clone(m.data)}
}

// Transactions is the number of updates so far.
func (m *Mem) Transactions() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.txns
}

// View reads.
func (m *Mem) View(fn func(Reader) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return fn(memTxn{m.data})
}

// Update writes: all of fn's changes or, on an error, none.
func (m *Mem) Update(fn func(Writer) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.txns++
	if m.Hook != nil {
		if err := m.Hook(m.txns, false); err != nil {
			return err
		}
	}
	next := maps.Clone(m.data)
	if err := fn(memTxn{next}); err != nil {
		return err
	}
	m.data = next
	if m.Hook != nil {
		return m.Hook(m.txns, true)
	}
	return nil
}

// Close does nothing.
func (m *Mem) Close() error { return nil }

type memTxn struct{ data map[string][]byte }

func (t memTxn) Get(key string) ([]byte, error) {
	v, ok := t.data[key]
	if !ok {
		return nil, ErrNotFound
	}
	return slices.Clone(v), nil
}

func (t memTxn) Scan(prefix string, fn func(string, []byte) error) error {
	for _, k := range slices.Sorted(maps.Keys(t.data)) {
		if strings.HasPrefix(k, prefix) {
			if err := fn(k, t.data[k]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t memTxn) Set(key string, value []byte) error {
	if key == "" {
		return errors.New("empty key")
	}
	t.data[key] = slices.Clone(value)
	return nil
}

func (t memTxn) Delete(key string) error {
	delete(t.data, key)
	return nil
}
