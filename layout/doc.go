// Package layout knows the words hivesink puts on disk: partition paths, file
// and directory names, and the text a moment in time has as a partition value.
// It is pure, allocates no files and reads no clock.
//
// Invariants:
//
//   - L1: Escape is Hive's escapePathName, byte for byte, and Unescape takes
//     back whatever Escape wrote.
//   - L2: null and the empty string are DefaultPartition, and no other value
//     gets a directory of another value: for values that are not
//     DefaultPartition itself, ParsePath takes back what PartitionPath wrote.
//   - L3: every name has exactly one parser, which accepts only what the
//     constructor writes: Parse(x) ok means constructor(Parse(x)) == x.
//   - L4: nothing that lies under MetaDir has a name that ends in ".parquet".
//   - L5: time text is proleptic Gregorian in the given zone; instants are
//     microseconds since 1970 and always rounded down, before 1970 too.
//   - L6: Period never ends before the last instant whose partition values
//     are the given ones (the later one where local time repeats).
package layout

// The binary must behave the same on a host without a zone database.
import _ "time/tzdata"
