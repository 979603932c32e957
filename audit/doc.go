// Package audit is fsck: it proves from storage and table log that every
// accepted row is in the table exactly once.
//
// The proof needs no source. Every data file's footer says how many rows of
// which source partition it holds and the sum of a hash of their row numbers
// (ledger.Footer); sums add through any merge. The log has the same sums of
// what was accepted. So a file that is missing, doubled, replaced, cut short
// or moved to another partition shows as a difference or as a broken footer.
//
// It works beside a run: it reads the log, lists the table, reads the log
// again, and lets everything that the second reading knows to be in flight be
// in either state (AU-1). It changes nothing and takes no lock.
//
// Invariants:
//
//   - AU-1: a run beside it causes no fault: rows of a part are counted once,
//     in the visible file that names the part's leaf id or else in the part.
//   - AU-2: a fault names the file, or else the source partition, and the rows.
//   - AU-3: unfinished work (hidden parts, planned units, leftovers of dead
//     epochs) is reported as a note, not as a fault.
package audit
