// Package maintenance works on a table at rest: it compacts the files of a
// partition, whoever wrote them, and exchanges the partition's directory in one
// step, so that a reader who lists it sees the old files or the new ones.
//
// Run plans each directory that has data files (plan.go), builds what is to
// replace them beside it (build.go), and exchanges the two (replace.go). Settle
// finishes or undoes what a process that died has left (settle.go).
//
// # Places
//
//	<table>/.hivesink-compact/           a table without a log: there only meanwhile
//	<table>/.hivesink/epoch-<n>/<hex>/   a table with a log: the owner's staging
//	  <unit>.unit                        what the unit is about to do
//	  <unit>/                            the new directory; after the exchange the
//	                                     old one, which is emptied at once
//	<partition>/.hivesink-compact-unit   the marker: this directory was made by
//	                                     that unit; gone when the unit has ended
//
// # Invariants
//
//	MT1  The new directory holds, when it is exchanged, the rows of the old one,
//	     each once, and all its other files: durable, verified, and marked with
//	     the unit.
//	MT2  The exchange is one rename (storage.Exchanger). Where the directory
//	     cannot be exchanged (the table's root, a file system that has no such
//	     rename) nothing is done unless the user allows a window; in it both the
//	     new and the old files are visible, and none is ever missing.
//	MT3  Nothing of the old directory is removed before the exchange is durable
//	     and, in a table with a log, noted.
//	MT4  A redo decides by where the marker lies: in the partition, the exchange
//	     was done and is never done again; in the staging or nowhere, it was not,
//	     and the unit is given up.
//	MT5  A partition whose files changed since it was planned is left alone. What
//	     came between the last look and the exchange is moved into the new
//	     directory.
//	MT6  A file that cannot be read, or not without loss, leaves its partition as
//	     it is; the others go on.
//	MT7  Hidden names do not end in ".parquet", save for the moment of the
//	     exchange: from the last preparation of the new directory until the old
//	     one is emptied.
//	MT8  In a table with a log, what the log says of files, rows and leaves stays
//	     true (ledger.Replacement), and a file that the log does not know leaves
//	     its partition as it is.
//	MT9  A dry run writes nothing.
//	MT10 The unit's description is durable before the exchange, and gone after
//	     all else.
//	MT11 Files of which readers make other dates or times of the same bytes
//	     (reading) are never joined, and what made them do so is kept.
//
// # Crash story
//
// Die while building: a directory in the staging, removed by the next Settle.
// Die between the ledger's plan and the exchange: the same, and the plan is
// ended. Die after the exchange: the marker lies in the partition; Settle makes
// it durable, notes it, empties the old directory and takes the marker away. Die
// in a window: the commit marker in the staging makes Settle finish it.
package maintenance
