package storage

import "errors"

var (
	// ErrNoSpace: the device or quota is full.
	ErrNoSpace = errors.New("no space left")
	// ErrLocked: another process holds the lock.
	ErrLocked = errors.New("locked by another process")
)
