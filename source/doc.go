// Package source is where records enter the chain: files, standard input and
// made-up records. A source lists its splits (source partitions); a reader
// turns one split into batches, in order.
//
//	bytes ─► decompress ─► buffer ─► split into records ─► decode into columns ─► record.Batch
//
// A batch says what it consumed: the row numbers, the bad records, and the
// position to resume after it. Readers keep nothing durable; the ledger stores
// the position, and a later reader continues exactly there.
//
// Invariants:
//
//   - S1: a split's ID is the same for ever: the absolute path that a file had when
//     it was first read, the number of a stream, the number of a datagen split.
//   - S2: row numbers count every record once, bad ones included; blank lines
//     and CSV headers are no records. The records of a split and their numbers
//     depend on its bytes and the options only, never on how those bytes arrive
//     or where batches end.
//   - S3: opened after any batch, a reader delivers what the first one would
//     have delivered after it: same rows, numbers, places and bad records.
//   - S4: what cannot be continued halts and says why: a file that is shorter or
//     begins otherwise than before, a last line that was continued, a stream
//     that is another one, a damaged compressed file. Everything before the
//     damage was delivered first.
//   - S5: memory is bounded: a reader buffers at most max_record plus a chunk,
//     a batch ends at its limit of rows or bytes, bad records included, and a
//     record longer than max_record leaves no more than its first 4 KB.
//   - S6: a file that was read to its end is looked at again only when its size
//     has changed; what was appended to a plain file is read then, and a
//     compressed one halts.
//   - S7: no input that the patterns name is passed over in silence: an
//     unreadable directory, a dangling link or a pipe is an error, and so is a
//     file that was read in part and is gone.
//   - S8: a batch belongs to who got it. The path from bytes to columns
//     allocates per batch and per bad record, never per row.
//   - S9: made-up records are a function of seed, row number and column: a
//     resume costs nothing, and readers or batch sizes change nothing.
//   - S10: a file that was renamed, moved within its file system, or that another
//     link or way leads to, is the same split as before, where the file system tells
//     one file from another (localfs.Identity).
//
// Crash story: a crash loses the reader and what it buffered. The next one
// opens the split after the last checkpoint's position: a plain file by
// seeking, a compressed one or a stream by decompressing and discarding.
package source
