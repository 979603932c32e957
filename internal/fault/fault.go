// Package fault classes errors by what a caller may do about them.
//
//   - Retry: the outcome is known to be "not done" and a later try may work
//     (disk full, a service that is down). Nothing is lost.
//   - Halt: an invariant or data is at risk, or only a person can decide. The
//     process stops and changes nothing more.
//   - Fenced: another process owns the table. Exit code 3.
//   - Config: what the user asked for is wrong. Exit code 2.
//
// An error without a class halts.
package fault

import (
	"errors"
	"fmt"
)

// Class is what may be done about an error.
type Class string

// The classes.
const (
	Retry  Class = "retry"
	Halt   Class = "halt"
	Fenced Class = "fenced"
	Config Class = "config"
)

// Error is an error with a class and, for people, a remedy.
type Error struct {
	Class Class
	Err   error
	Hint  string // what to do about it; may be empty
}

func (e *Error) Error() string {
	if e.Hint == "" {
		return e.Err.Error()
	}
	return e.Err.Error() + " (" + e.Hint + ")"
}

func (e *Error) Unwrap() error { return e.Err }

// New makes a classed error; hint may be empty.
func New(c Class, hint, format string, args ...any) error {
	return &Error{Class: c, Err: fmt.Errorf(format, args...), Hint: hint}
}

// Wrap classes an existing error; nil stays nil.
func Wrap(c Class, hint string, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Class: c, Err: err, Hint: hint}
}

// ClassOf finds the class of err. Of a joined error the gravest counts:
// fenced, then halt, then config; it is retry only when every part is.
func ClassOf(err error) Class {
	if err == nil {
		return ""
	}
	if j, ok := err.(interface{ Unwrap() []error }); ok {
		worst := Retry
		for _, e := range j.Unwrap() {
			if c := ClassOf(e); rank(c) > rank(worst) {
				worst = c
			}
		}
		return worst
	}
	if e, ok := err.(*Error); ok {
		return e.Class
	}
	if u := errors.Unwrap(err); u != nil {
		return ClassOf(u)
	}
	return Halt
}

func rank(c Class) int {
	switch c {
	case Fenced:
		return 3
	case Halt:
		return 2
	case Config:
		return 1
	}
	return 0
}
