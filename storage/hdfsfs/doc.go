// Package hdfsfs is storage.FS on HDFS, over the client colinmarc/hdfs.
//
// The client leaves four things to its user, and this package is mostly about
// them: it has no pipeline recovery, so a lost data node condemns the file; its
// Rename overwrites; its connections have no deadlines; and a connection whose
// answer was lost is out of step for ever.
//
// # Invariants
//
//	H1  Rename never overwrites, whoever else renames to the same name: the name
//	    node is asked for a rename without replacement (call.go), not for a look
//	    and a rename.
//	H2  Close is called once for each file written; only its success makes the
//	    file one that may be named. After an error of Write or Close the file is
//	    condemned and removed, and Put writes the bytes again under another name.
//	    ("Replication in progress" alone is asked again: all bytes are there.)
//	H3  Put: the bytes are under the name whole and durable, or the name is as it
//	    was. A try has a name of its own (name~<64 bits in hex>).
//	H4  Every read and write of every connection has a deadline, and a connection
//	    that has failed once is never used again (conn.go).
//	H5  An operation is repeated only when that cannot do it twice: reading ones,
//	    those the name node has answered ("safe mode", "standby"), and those
//	    whose outcome was looked up. A rename of unknown outcome is decided by
//	    the number of the file's inode: it moves with the file.
//	H6  What passes by itself (no name node, safe mode, no data node) is waited
//	    for with bounded back-off, at most Options.StartTimeout before the first
//	    success and Options.Patience later, and Options.Notify is told.
//	H7  Nothing but Mkdir makes a directory: a writer whose directory was renamed
//	    away (fenced) fails with storage.ErrNotExist and brings nothing back.
//
// # Durability
//
// A change of the namespace is durable when it was acknowledged; Sync and
// SyncDir have nothing to add (SyncDir looks whether the directory is there).
// Bytes are durable when Close succeeded: they are on as many data nodes as
// dfs.namenode.replication.min says, and in most cases on all.
//
// # Crash story
//
// Die inside Put: a file name~<hex> in the directory, of any length, perhaps
// still open for writing, which the next owner of the table sweeps. Its lease
// is never waited for: no name is opened twice for writing.
package hdfsfs
