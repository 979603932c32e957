package storage_test

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/storage"
)

func TestClassify(t *testing.T) {
	full := &storage.Error{Op: storage.OpWrite, Name: "/f", Err: &storage.NoSpaceError{Err: syscall.ENOSPC}}
	locked := &storage.Error{Op: storage.OpLock, Name: "/lock", Err: fmt.Errorf("%w (process 1)", storage.ErrLocked)}
	broken := &storage.Error{Op: storage.OpSync, Name: "/f", Err: syscall.EIO}
	denied := &storage.Error{Op: storage.OpCreate, Name: "/f", Err: syscall.EACCES}
	for _, c := range []struct {
		err  error
		want fault.Class
		says string
	}{
		{full, fault.Retry, "free some space"},
		{fmt.Errorf("write a part: %w", full), fault.Retry, ""},
		{storage.ErrNoSpace, fault.Retry, ""},
		{errors.Join(full, full), fault.Retry, ""},
		{errors.Join(full, broken), fault.Halt, ""},
		{errors.Join(broken, locked), fault.Fenced, ""},
		{&storage.UnsyncedError{Name: "/f", Err: full}, fault.Halt, "/f is in place, but not known to be durable"},
		{locked, fault.Fenced, "stop the other one"},
		{broken, fault.Halt, "sync /f: "},
		{denied, fault.Halt, "check owner and mode"},
		{&storage.Error{Op: storage.OpOpen, Name: "/f", Err: fs.ErrNotExist}, fault.Halt, ""},
		{fault.Wrap(fault.Config, "", full), fault.Config, ""},
	} {
		got := storage.Classify(c.err)
		if class := fault.ClassOf(got); class != c.want {
			t.Errorf("%v: class is %s, want %s", c.err, class, c.want)
		}
		if !errors.Is(got, c.err) || !strings.Contains(got.Error(), c.says) {
			t.Errorf("%v became %q, want it to say %q", c.err, got, c.says)
		}
	}
	if storage.Classify(nil) != nil {
		t.Error("nil was classed")
	}
}

func TestErrorText(t *testing.T) {
	err := &storage.Error{Op: storage.OpRename, Name: "/a", To: "/b", Err: fs.ErrExist}
	if got, want := err.Error(), "rename /a to /b: file already exists"; got != want {
		t.Errorf("error is %q, want %q", got, want)
	}
}

func TestCheckName(t *testing.T) {
	for name, ok := range map[string]bool{
		"/": true, "/a": true, "/a/b=%2F/.c": true, "": false, "a": false, "/a/": false, "//a": false, "/a/../b": false, "/\x00": false,
	} {
		if got := storage.CheckName(name) == nil; got != ok {
			t.Errorf("%q is a name: %v, want %v", name, got, ok)
		}
	}
}
