package kv

import "errors"

// ErrNotFound: no such key.
var ErrNotFound = errors.New("key not found")

// Store keeps keys and values.
type Store interface {
	// View calls fn with one consistent state.
	View(fn func(Reader) error) error
	// Update makes fn's changes, all of them durably or, on an error, none
	// (K1). No space is an error of class Retry (K2). fn may be called once
	// only and must not use the store otherwise.
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

// Writer changes the state within one transaction. The value must not be
// changed before the transaction ends.
type Writer interface {
	Set(key string, value []byte) error
	Delete(key string) error
}
