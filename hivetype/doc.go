// Package hivetype knows Hive's column types as text: it parses and prints
// them, and knows nothing of Arrow, Parquet or files.
//
// Invariants:
//
//   - H1: names are lower case at every level, as Hive keeps them, and no two
//     fields of a struct have one name.
//   - H2: what String prints, Parse reads back as the same type.
//   - H3: a type that is accepted can be written: lengths, precisions and map
//     keys are within Hive's limits, no struct is empty, nothing is nested
//     deeper than 32.
//   - H4: a name cannot be mistaken for a path: no dots, colons or brackets.
package hivetype
