package storage

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"syscall"

	"github.com/hivesink/hivesink/internal/fault"
)

var (
	// ErrNoSpace: the device or quota is full.
	ErrNoSpace = errors.New("no space left")
	// ErrLocked: another process holds the lock.
	ErrLocked = errors.New("locked by another process")
	// ErrCondemned: an earlier write, sync or close of this file failed; what
	// it holds is unknown, and it must be written anew under another name.
	ErrCondemned = errors.New("file condemned by an earlier error")
)

// OpKind is a kind of file system operation, as errors and traces name it.
type OpKind string

// The operations. Write, Sync and Close are File's, ReadAt is Reader's.
const (
	OpCreate   OpKind = "create"
	OpWrite    OpKind = "write"
	OpSync     OpKind = "sync"
	OpClose    OpKind = "close"
	OpOpen     OpKind = "open"
	OpReadAt   OpKind = "read-at"
	OpReadFile OpKind = "read-file"
	OpRename   OpKind = "rename"
	OpReplace  OpKind = "replace"
	OpRemove   OpKind = "remove"
	OpMkdir    OpKind = "mkdir"
	OpStat     OpKind = "stat"
	OpList     OpKind = "list"
	OpSyncDir  OpKind = "sync-dir"
	OpLock     OpKind = "lock"
	OpExchange OpKind = "exchange"
	OpLink     OpKind = "link"
	OpMimic    OpKind = "mimic"
	OpLockDir  OpKind = "lock-dir"
)

// Error says which operation on which path met which cause (S3).
type Error struct {
	Op   OpKind
	Name string
	To   string // target of a rename or replace
	Err  error
}

func (e *Error) Error() string {
	if e.To != "" {
		return string(e.Op) + " " + e.Name + " to " + e.To + ": " + e.Err.Error()
	}
	return string(e.Op) + " " + e.Name + ": " + e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }

// NoSpaceError marks a backend's own error (ENOSPC, a quota) as ErrNoSpace
// while keeping it.
type NoSpaceError struct{ Err error }

func (e *NoSpaceError) Error() string { return e.Err.Error() }

func (e *NoSpaceError) Unwrap() error { return e.Err }

// Is makes errors.Is(e, ErrNoSpace) true.
func (e *NoSpaceError) Is(target error) bool { return target == ErrNoSpace }

// UnsyncedError: the entry was made, renamed or removed, but syncing its
// directory failed, so whether it survives a power cut is unknown (S5). The
// remedy is a restart: the redo looks at what is there.
type UnsyncedError struct {
	Name string // the entry
	Err  error
}

func (e *UnsyncedError) Error() string {
	return e.Name + " is in place, but not known to be durable: " + e.Err.Error()
}

func (e *UnsyncedError) Unwrap() error { return e.Err }

// StrayError: below a directory of an object store are keys that no name is for
// (S9), since an element of them is empty, "." or "..". List returns it beside
// all else that is there.
type StrayError struct {
	Keys []string // they, or what they begin with
}

func (e *StrayError) Error() string {
	return fmt.Sprintf("there are keys with an empty element, or . or .., which nothing of hivesink makes; remove them, or move them elsewhere: %q", e.Keys)
}

// CheckName refuses what is not an absolute, cleaned path (S9) with
// fs.ErrInvalid. Backends call it first thing.
func CheckName(name string) error {
	if !path.IsAbs(name) || path.Clean(name) != name || strings.IndexByte(name, 0) >= 0 {
		return fs.ErrInvalid
	}
	return nil
}

// Unanswered says that the storage failed to read, which proves nothing about the
// file: it may be down. A disk that cannot read a sector, and a file that is
// shorter than its name's entry says, have answered.
func Unanswered(err error) bool {
	var failed *Error
	return errors.As(err, &failed) && !errors.Is(err, syscall.EIO) && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF)
}

// Classify gives an error of this package its class (fault): no space → Retry,
// locked → Fenced, all else → Halt. An error that has a class keeps it. Of
// joined errors the gravest counts. nil stays nil.
func Classify(err error) error {
	if err == nil {
		return nil
	}
	var classed *fault.Error
	if errors.As(err, &classed) {
		return err
	}
	switch c := classOf(err); c {
	case fault.Retry:
		return fault.Wrap(c, "free some space or raise the quota; it is tried again", err)
	case fault.Fenced:
		return fault.Wrap(c, "one process at a time may own it; stop the other one first", err)
	default:
		if errors.Is(err, ErrPermission) {
			return fault.Wrap(c, "check owner and mode of the path", err)
		}
		if errors.Is(err, syscall.ENOTDIR) {
			return fault.Wrap(c, "a file is where a directory should be", err)
		}
		return fault.Wrap(c, "", err)
	}
}

// classOf looks at err itself before it looks below: a joined error of "no
// space" and "input/output error" must not pass for the milder one.
func classOf(err error) fault.Class {
	switch e := err.(type) {
	case nil:
		return fault.Halt
	case *NoSpaceError:
		return fault.Retry
	case *UnsyncedError:
		return fault.Halt // done or not done is unknown, so no retry
	case interface{ Unwrap() []error }:
		return classOfAll(e.Unwrap())
	}
	switch err {
	case ErrNoSpace:
		return fault.Retry
	case ErrLocked:
		return fault.Fenced
	}
	return classOf(errors.Unwrap(err))
}

func classOfAll(errs []error) fault.Class {
	worst := fault.Retry
	for _, e := range errs {
		switch c := classOf(e); {
		case c == fault.Fenced:
			return c
		case c == fault.Halt:
			worst = c
		}
	}
	return worst
}
