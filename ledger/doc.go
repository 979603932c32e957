// Package ledger is the truth about a table: a log of small records in the
// table itself, who may append to it, and a local index of what it says.
//
// Read the log with Read and ReadLog, beside a run; own it with Open and
// Append. What the records say is in facts.go; State.Apply is the one place
// where they change anything.
//
// # Places
//
//	<table>/.hivesink/
//	  lock                       local file systems only
//	  log/000000000042           one record: a JSON object, its checksum last
//	  log/000000000040.snapshot  the state up to and including record 40
//	  history/<first>-<last>.records
//	                             records that snapshots cover, one line each
//	  claim-<hex>/<hex>/         a claim being made
//	  epoch-7/<hex>/             the live owner's staging: parts, targets,
//	                             records being written, deletions
//	  fenced-5/<hex>/ …          staging of former owners, until the log names
//	                             nothing in it
//
// # Taking ownership
//
//	step 0  read the log; refuse another pipeline's table, another identity, a
//	        newer format, a place with foreign files. Take the lock.
//	step 1  claim: a fresh directory is renamed to epoch-<n>, n being above all
//	        that is to be seen. One claimant of a number wins.
//	step 2  look: whoever sees a higher epoch leaves.
//	step 3  fence: lower epoch-<k> are renamed to fenced-<k>; step 0 once more.
//	step 4  seal: append the epoch record at the next sequence.
//	then    adopt what the log names where it lies, remove the rest.
//
// On an object store, which has no renames, steps 1 to 4 are one: the epoch
// record is the claim, and its sequence, taken, is the fence (objects.go). The
// staging of former owners keeps its name there.
//
// # Invariants
//
//	T1  A record is durable and complete, or absent; a changed byte is noticed.
//	T2  Records form a chain: sequence + 1, the checksum of the record before,
//	    epochs that never fall. Anything else is damage, and named.
//	T3  Every path of an owner runs through epoch-<n>/<hex>. Once that is
//	    renamed away it can append, publish and delete nothing.
//	T4  A refusal (step 0) touches nothing.
//	T5  Before the seal nothing is adopted, planned, published or removed.
//	T6  State changes in Apply only. A refused record changes nothing, and never
//	    gets into the log.
//	T7  A snapshot is a function of the records up to it. A record leaves the log
//	    when two snapshots cover it (the newest was read back), and the history
//	    when it is older than Options.History; the record of the current epoch
//	    never goes.
//	T8  The index is never the only copy of a fact: whatever is missing, older,
//	    alien or mixed in it is noticed and rebuilt, and an error of it loses
//	    no fact.
//	T9  An append of unknown outcome is decided by reading back. Undecided, the
//	    ledger takes nothing more (the next owner decides). One that is said to
//	    be done counts when the record is seen to be there.
//	T10 Deleting is a rename into the staging directory, then an unlink.
//	T11 Nothing is adopted from a directory listing: the log names it, or it is
//	    garbage.
//	T12 What opening, appending and reading the state cost follows the work in
//	    flight, the partitions and the source partitions, never the files in the
//	    table or the records in the history: nothing lists or reads those. A
//	    record leaves the log directory only when its file in the history is
//	    durable and was read back.
//	T13 On an object store an append counts only when nothing stands behind its
//	    record after it was made (objects.go).
//	T14 A part that is an upload to its final name (Part.Upload) has in its own
//	    checkpoint the unit that completes it: whatever the policy is later, it is
//	    published as it is, and the upload is never aborted. An upload that no
//	    record names is never completed, and found by a note (uploads.go).
//	T15 A unit is given up only by whoever could not build it, has aborted its
//	    uploads and has seen that its target is not there; and only in the record
//	    that has, for each of its inputs, a unit with nothing else.
//
// # Crash story
//
// Die before the claim is renamed: a claim-* directory, removed by the next
// owner. Die before the seal: an epoch without record; the next owner takes a
// higher number and fences it, and the state is as it was. Die inside Append:
// the record is there or not, and the next owner goes by that. Die after an
// append and before the visible thing: the redo belongs to whoever reads the
// record. Die between record and index, or within the index: it is behind or
// mixed, which its head tells (T8). Die while old records are removed: fewer of
// them, none that a reader needs. Die while records move into the history: some
// are in both places, which ReadLog passes over. Die between the note
// of uploads and the record that names them: the next owner aborts them, after
// its seal. Die inside Trash: the file is in the staging directory, which the
// next owner sweeps.
package ledger
