package storage

import (
	"context"
	"errors"
	"io"
)

// Objects is an FS without renames and directories: an object store. What is
// exclusive there is making an object, in one step, under its final name (O1);
// so whoever writes the ledger or publishes asks for this interface first, and
// goes by a rename only where it is not to be had. As an FS it has no Rename,
// Replace and Lock (errors.ErrUnsupported); a directory is there when something
// is in it, so that Mkdir and SyncDir have nothing to do.
//
// # Invariants
//
//	O1  Make, Put and Complete make an object whole, durable, and only if there is
//	    none of its name. Each is one step of the store. ErrExist of Make
//	    may mean the object of an earlier try of the same call, whose answer
//	    was lost; Put finds that out by itself.
//	O2  An error of Make, Put or Complete that is neither ErrExist nor ErrNotExist
//	    leaves it open whether the object was made, or will be: who asked looks.
//	O3  An upload is invisible until it is completed, and can be completed only
//	    by who knows its id. After Abort has returned nil it never can.
//	O4  Nothing depends on a listing of uploads: stores differ in what they list.
type Objects interface {
	Putter
	// Probe finds out whether the store keeps O1, by objects that it makes
	// below dir and removes. A store that does not is an error of class Config.
	Probe(ctx context.Context, dir string) error
	// Make is Put of little in one request: nothing but the object itself is
	// ever to be seen in its directory.
	Make(name string, data []byte) error
	// Overwrite makes an object, or replaces one: markers only.
	Overwrite(name string, data []byte) error
	// ListAfter describes the first n objects in dir whose names sort after
	// this one.
	ListAfter(dir, after string, n int) ([]Info, error)
	// Upload sends content to a hidden upload with the final name name (O3).
	// After an error nothing of it is left, as far as that goes.
	Upload(ctx context.Context, name string, content io.ReaderAt, size int64) (id string, err error)
	// UploadCopy is Upload of the bytes of another object, which the store
	// copies by itself.
	UploadCopy(ctx context.Context, name, from string, size int64) (id string, err error)
	// Complete makes an upload visible (O1). ErrExist: the name is taken.
	// ErrNotExist: there is no such upload, since it was completed, by a try
	// whose answer was lost, or aborted. ErrConflict: it came in the way of
	// another change of that name; it has to be uploaded anew.
	Complete(name, id string) error
	// Uploaded is the size of an upload that waits to be completed. ErrNotExist:
	// there is none, since it was completed or aborted.
	Uploaded(name, id string) (size int64, err error)
	// Abort ends an upload for good (O3); one that is gone is fine.
	Abort(name, id string) error
	// AbortLeft aborts the uploads that a process has left unfinished in a
	// directory when it died, of which Create keeps a note there.
	AbortLeft(dir string) error
	// AbortAt aborts the uploads to this very name that the store lists: those
	// that a process had begun, and died before it told anybody. It is for room
	// only (O4): they are never completed.
	AbortAt(name string) error
	// RemoveTree removes an object and everything below the directory of the
	// same name. What is gone already is fine.
	RemoveTree(name string) error
}

// ProbePrefix begins the names of the objects that Probe makes.
const ProbePrefix = "probe-"

// ErrConflict: a conditional change met another one, and neither is done.
var ErrConflict = errors.New("in conflict with another change of the same object")

// Scratch is room of this process for bytes on their way to an object store:
// memory while they are few, else a local file. Close gives it back.
type Scratch interface {
	io.Writer
	io.ReaderAt
	io.Closer
	Size() int64
}

// PutExclusive makes a small file that is complete and durable, or absent,
// under its final name: on an object store in one step, else written as tmp
// first and published. ErrExist: the name is taken, and tmp is left.
func PutExclusive(fsys FS, tmp, name string, data []byte) error {
	if o, ok := fsys.(Objects); ok {
		return o.Make(name, data)
	}
	if err := WriteFile(fsys, tmp, data); err != nil {
		return err
	}
	return Publish(fsys, tmp, name)
}
