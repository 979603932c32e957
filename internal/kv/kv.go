// Package kv is a small key-value store for the ledger's index: Badger on disk,
// or a map in memory for tests. What it holds can always be rebuilt.
package kv

import "errors"

// ErrNotFound: no such key.
var ErrNotFound = errors.New("key not found")

// Store keeps keys and values. Update is atomic and durable.
type Store interface {
	View(fn func(Reader) error) error
	Update(fn func(Writer) error) error
	Close() error
}

// Reader reads one consistent state.
type Reader interface {
	// Get returns a copy of a value, or ErrNotFound.
	Get(key string) ([]byte, error)
	// Scan calls fn for every key with the prefix, in order. The value is only
	// valid in the call.
	Scan(prefix string, fn func(key string, value []byte) error) error
}

// Writer changes the state within one transaction.
type Writer interface {
	Set(key string, value []byte) error
	Delete(key string) error
}
