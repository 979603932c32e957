// Package faultfs wraps a storage.FS to make it fail: at the n-th operation, on
// some path, before or after the operation took effect, or by lying. It counts
// and records operations, so that a test can assert their order and can stop a
// run before and after every single one.
//
// # Invariants
//
//	X1  Operations are numbered from 1 in the order they begin; each operation of
//	    FS, File.Write, Sync, Close and Reader.ReadAt is one. Closing a reader or
//	    a lock is none.
//	X2  A crash is exact: operations begun earlier finish, the chosen one takes
//	    effect or not, and nothing after it reaches the file system below. Only
//	    then Crashed is closed.
//	X3  A crash releases the locks that were taken through the wrapper, as the
//	    kernel does for a dead process. Open files stay open below, unfinished.
//	X4  A write, sync or close that was made to fail condemns the file (S5).
//	X5  A rule counts how often it fired; a test whose rule did not fire has
//	    tested nothing, and MustFire fails it.
package faultfs
