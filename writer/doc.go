// Package writer is stage 1 of the chain: it routes records to buckets, keeps
// them as columns and closes them as hidden part files.
//
// A Lane is one writer: it serves one source reader (or one library Writer) at
// a time and owns the buckets that reader's records fall into. A bucket is one
// partition directory of one lane. Its rows are kept as columns in memory; a
// full row group goes to the bucket's part file at once, the rest when the
// part is closed: by the rolling policy, under memory pressure, when too many
// files are open, or by a checkpoint, which closes every part (Parquet cannot
// be resumed). The small buckets that are closed together share a file, a
// bundle (bundle.go), in which each part is a whole Parquet file of its own. A
// part lies in the owner's staging directory, outside every
// partition directory, and its name does not end in ".parquet".
//
// Invariants:
//
//   - W1: Write takes all of a batch or, on an error it returns before
//     touching a bucket (bad records over the limit, the end of a wait for
//     memory), nothing. An I/O error poisons the lane: nothing of it is ever cut
//     again.
//   - W2: a cut falls between two batches. The parts of a cut hold exactly the
//     accepted records up to the positions of the cut that no earlier cut's
//     parts hold.
//   - W3: a part handed out by Cut.Flush is durable: synced, closed, and its
//     directory entry synced.
//   - W4: a closed part is a whole Parquet file, or such a file's bytes within
//     a bundle, whose footer says what it holds of which source partition
//     (ledger.Footer).
//   - W5: buffered bytes stay within the budget plus one batch per lane; open
//     part files stay within limits.open_files. What must go is closed as a
//     whole part, never dropped.
//   - W6: a bundle holds parts of one schema in the hidden encoding only, end to
//     end, and of one cut: none of them can be published as it is.
//   - W7: with Options.Direct a part is an upload to its final name instead of a
//     file: sent whole, once, after its name was noted, and completed by nobody
//     here.
//
// Crash story: a part that no checkpoint record names is garbage in the staging
// directory of a former epoch, and the next owner removes it; an upload that none
// names is aborted by its note. The positions in the log make its records be read
// again.
package writer
