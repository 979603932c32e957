// Package parquetfile writes, reads and rewrites Parquet, columnar and typed:
// Arrow batches are shredded into leaf columns (Columns), a Columns is one row
// group, and a rewrite moves leaf columns from file to file without ever
// building a row.
//
// Invariants:
//
//   - F1: a file has no empty row group and no empty page; every row group but
//     a file's last is full.
//   - F2: rows keep their order: of Append, of the row groups, of the inputs.
//   - F3: columns are optional, named as the table names them, matched by name
//     when read; a column that a file does not have is null.
//   - F4: timestamps are INT64 microseconds adjusted to UTC, decimals INT32,
//     INT64 or FIXED_LEN_BYTE_ARRAY by precision, lists have three levels, map
//     keys are required; no nanoseconds, no unsigned numbers.
//   - F5: memory is bounded by a row group and a page per column and input,
//     whatever the size of the file.
//   - F6: no allocation per row, writing or rewriting.
//
// What it costs, a row of 7 columns on one core, from BenchmarkWrite and
// BenchmarkRewrite: zstd 3.0 M rows/s and 21 bytes a row, snappy 3.3 M and 30,
// hidden and not compressed 17 M and 79; hidden parts to zstd 2.6 M rows/s.
package parquetfile
