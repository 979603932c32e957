package faultfs

import (
	"path"
	"strings"
	"sync/atomic"

	"github.com/hivesink/hivesink/storage"
)

// Op is one operation as the trace has it.
type Op struct {
	Kind storage.OpKind
	Name string
	To   string // target of a rename or replace
}

func (o Op) String() string {
	if o.To != "" {
		return string(o.Kind) + " " + o.Name + " " + o.To
	}
	return string(o.Kind) + " " + o.Name
}

// When says whether a failing operation took effect.
type When int

// Before: it did not. After: it did, and the caller is told that it failed.
const (
	Before When = iota
	After
)

// Always as Rule.Times: every match from the Nth on.
const Always = -1

// Rule says which operations fail, and how. Conditions left empty match all.
type Rule struct {
	Kind  storage.OpKind   // operation
	Match func(op Op) bool // any condition; called under a lock, must not use the FS
	Glob  string           // path.Match on Name or To: whole with a slash, else the base name
	Nth   int              // the first match that fires, from 1; 0 means 1
	Times int              // how many matches fire; 0 means 1, or Always
	When  When             // for Err: before or after taking effect
	Err   error            // what the caller gets, with operation and path added
	Do    func(op Op)      // called when it fires, first; may block (a hang) or change things

	// NoEffect with no Err is a lie: the caller is told that it was done. Not
	// for reading operations, which have nothing to answer then.
	NoEffect bool
	// Short, for write: the first half of the bytes is written before Err.
	Short bool
}

// Injected is a rule at work.
type Injected struct {
	rule  Rule
	seen  int // matches; guarded by FS.mu
	fired atomic.Int64
	off   atomic.Bool
	first chan struct{} // closed when it first fires
}

// Fired is how often the rule fired (X5).
func (i *Injected) Fired() int { return int(i.fired.Load()) }

// FirstFired is closed when the rule fires for the first time.
func (i *Injected) FirstFired() <-chan struct{} { return i.first }

// Heal ends the rule; its count stays.
func (i *Injected) Heal() { i.off.Store(true) }

// TB is what MustFire needs of a test.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
	Cleanup(func())
}

// MustFire makes the test fail at its end when the rule has not fired (X5).
func (i *Injected) MustFire(t TB) *Injected {
	t.Helper()
	t.Cleanup(func() {
		t.Helper()
		if i.Fired() == 0 {
			t.Errorf("injected fault did not fire: %s %s nth %d", i.rule.Kind, i.rule.Glob, i.rule.Nth)
		}
	})
	return i
}

// reading operations cannot lie.
var reading = map[storage.OpKind]bool{
	storage.OpOpen: true, storage.OpReadAt: true, storage.OpReadFile: true, storage.OpStat: true, storage.OpList: true,
}

func (r *Rule) check() string {
	switch {
	case r.Err == nil && r.NoEffect && (r.Kind == "" || reading[r.Kind]):
		return "a lie needs the kind of an operation that changes something"
	case r.Err == nil && !r.NoEffect && r.Do == nil:
		return "a rule without Err, NoEffect or Do does nothing"
	case r.Short && (r.Kind != storage.OpWrite || r.Err == nil):
		return "Short is for OpWrite with an Err"
	}
	if _, err := path.Match(r.Glob, ""); err != nil {
		return "bad Glob " + r.Glob
	}
	return ""
}

func (r *Rule) matches(op Op) bool {
	if r.Kind != "" && r.Kind != op.Kind {
		return false
	}
	if r.Glob != "" && !globs(r.Glob, op.Name) && (op.To == "" || !globs(r.Glob, op.To)) {
		return false
	}
	return r.Match == nil || r.Match(op)
}

func globs(glob, name string) bool {
	if !strings.Contains(glob, "/") {
		name = path.Base(name)
	}
	ok, _ := path.Match(glob, name)
	return ok
}

// due counts a match and says whether it fires.
func (i *Injected) due(op Op) bool {
	if i.off.Load() || !i.rule.matches(op) {
		return false
	}
	i.seen++
	nth, times := max(i.rule.Nth, 1), i.rule.Times
	if times == 0 {
		times = 1
	}
	if i.seen < nth || times != Always && i.seen >= nth+times {
		return false
	}
	if i.fired.Add(1) == 1 {
		close(i.first)
	}
	return true
}
