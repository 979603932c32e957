// Package storage is the one seam between hivesink and file systems: the
// interface FS, its errors, and the recipes (WriteFile, Publish, MkdirAllSync,
// RemoveAll, Walk) that keep the order of writing, syncing and renaming in one
// place. Backends are subpackages; storagetest holds the rules they all keep
// and memfs shows what a power cut leaves behind.
//
// # Invariants
//
//	S1  Nothing is overwritten: Create and Rename refuse a taken name. Replace
//	    alone overwrites, and only markers are replaced.
//	S2  Every call resolves its full path anew. There is no handle of a
//	    directory: one would follow a renamed (fenced) directory.
//	S3  An error names operation and path (Error) and satisfies errors.Is with
//	    ErrNotExist, ErrExist, ErrPermission, ErrNoSpace, ErrLocked.
//	S4  A published name means complete and durable bytes: write, sync, close,
//	    then Publish; each of them checked.
//	S5  A failed write, sync or close condemns the file. It is never synced
//	    again: the kernel marks the pages clean although they were not written,
//	    and the second sync lies. A failed SyncDir is no different.
//	S6  A directory entry is durable only after SyncDir of its directory; a
//	    rename across directories needs both, a new directory its parent. That a
//	    directory exists does not say that its entry was synced: a process
//	    killed in between leaves just that.
//	S7  A lock has one holder, and ends with Close or with the process.
//	S8  Listings are sorted by name.
//	S9  Names are absolute and cleaned; anything else is refused. What a store
//	    has that no name is for, a listing reports (StrayError).
//	S10 RemoveAll never follows a link out of its directory.
//	S11 Exchange (Exchanger) is one step, before and after a crash: both
//	    directories are where they were, or both where the other was.
//
// # Crash story
//
// Die inside WriteFile: a file under a name nobody was told about, of any
// length. Die inside Publish: the old name or the new one, never neither, never
// part of the bytes; whether the new name stands is for the redo to look up.
// Die inside MkdirAllSync: some levels exist; the next call syncs them again.
package storage
