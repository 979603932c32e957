// Package parquetfile writes, reads and rewrites Parquet, columnar and typed:
// Arrow batches are shredded into leaf columns (Columns), a Columns is one row
// group, and a rewrite moves leaf columns from file to file without ever
// building a row.
//
//	Arrow batch ─ Append ─► Columns ─ WriteRowGroup ─► pages, page index, footer
//	                           ▲
//	any Parquet file ─ Read ───┘   Rewrite = Read + WriteRowGroup, many files to one
//
//	row groups ─ Copy ─► the same bytes under one footer
//	row groups ─ Merge ─► large ones copied, small ones joined page by page
//
// Invariants:
//
//   - F1: a file has no empty row group and no empty page; every row group but
//     a file's last is full.
//   - F2: rows keep their order: of Append, of the row groups, of the inputs.
//   - F3: columns are optional, named as the table names them, matched by name
//     when read. A column or a field of a struct that a file does not have is
//     null; numbers and decimals widen; whatever would lose or reinterpret a
//     value is refused.
//   - F4: timestamps are INT64 microseconds adjusted to UTC, decimals INT32,
//     INT64 or FIXED_LEN_BYTE_ARRAY by precision, lists have three levels, map
//     keys are required; no nanoseconds, no unsigned numbers.
//   - F5: memory is bounded by a row group and a page per column, whatever the
//     size and the number of the files.
//   - F6: no allocation per row, writing or rewriting.
//   - F7: a damaged file is an error, never a panic, never memory without end:
//     what a footer, a page or a run claims is held against the bytes there are
//     before room is made for it, and a page is a gigabyte at most, decoded; a
//     column whose rows do not meet its row group's is an error, not a shift.
//   - F8: minima, maxima and the page index are true bounds: no NaN, both zeros
//     inside a zero, decimals by number, texts cut between characters. Those of
//     a column chunk are exact or absent.
//   - F9: a dictionary is written only where values repeat: texts twice, numbers
//     four times or more.
//   - F10: a copied column chunk is the input's, byte for byte, with its page
//     index, bloom filter and metadata, known to this program or not; only
//     places change, and deprecated bounds go that readers distrust by the
//     writer's name. What another writer did not say stays unsaid.
//   - F11: a merge moves pages as they are, and renumbers dictionaries, where
//     that can be; it decodes a column, or a page, only where not. What it says
//     of a moved page was said by its writer, or seen; that it has whole rows is
//     seen. Pages that readers have to know the writer of do not move (quirks.go).
//
// A crash leaves a file without its closing PAR1: Open refuses it.
//
// # What was measured
//
// One core, rows of bigint, timestamp, string (100,000 different), string
// (200), double, string of 30 bytes, boolean; from Arrow batch to file and, as
// parts of 5,000 rows, through Rewrite to zstd. Million rows per CPU second:
//
//	codec              write  bytes/row  rewrite from it
//	zstd                3.0      21          2.5
//	snappy              3.8      30          2.7
//	lz4                 4.0      31          2.4
//	none               11        72          2.9
//	hidden, snappy      4.0      32          2.6
//	hidden, lz4         4.5      33          2.3
//	hidden, none       19        79          2.9
//
// The library's ways in for the same rows: WriteRowValues 1.0 (zstd), reading
// back by values 0.7. So pages are assembled and taken apart here, and the
// library decodes encodings, compresses, and reads footers. zstd's next level
// costs half as much again for 4 % less. Hidden parts are cheapest without
// compression: written and read back they cost 0.40 µs of CPU a row, with
// snappy 0.64; compression pays only where the disk is slower than 200 MB/s a
// core.
package parquetfile
