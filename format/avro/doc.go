// Package avrorow decodes Avro's binary encoding into the columns of a table.
//
// The table's columns are the reader's schema: a writer's schema is compiled
// against them once (Compile), and a record is then read in one pass. Fields go
// by name, whatever its case; a column without a field is null, a field without
// a column is passed over and counted.
//
// Invariants:
//
//   - V1: a record is appended as a whole or not at all; bytes left over, or
//     missing, make it bad.
//   - V2: values convert without loss or make the record bad. Only times are
//     cut, down to the microsecond, and 64-bit integers in double columns are
//     rounded, as Avro's own rules do. Decimals of whatever precision, and of a
//     scale up to 1000, are kept where the column holds them (decimal.go).
//   - V3: no allocation per good record in the steady state.
//   - V4: whatever schema and bytes are, reading them ends, in time and memory in
//     proportion to the record. Where no bytes say how much there is, it costs
//     nothing or is bounded: fields passed over that take none are not looked at
//     (settle.go), arrays have at most 65536 items that take none, and a record
//     that has itself as a field, without end, is refused with its schema.
package avrorow
