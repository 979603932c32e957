// Package textval turns text into the columns of a table: the scalars as Hive
// users write them, JSON values of any type, and the Arrow batch they go to.
// The decoders of line formats (JSON, CSV) are thin layers over its Rows.
//
// A record is first decoded into slots, one for each column and for each
// element below it, and goes to the builders only when every slot is good.
//
// Invariants:
//
//   - T1: a record is appended as a whole or not at all.
//   - T2: what is stored is exactly what was written, or the record is bad:
//     integers, decimals and times are never rounded through a double. Only
//     times are cut, down to the microsecond.
//   - T3: a value that a later or better named key replaces never makes a
//     record bad, unless it is not JSON: the order of keys does not matter.
//   - T4: no allocation per good record in the steady state.
//   - T5: every string stored is valid UTF-8; the bytes of a bad sequence, and
//     each surrogate without its other half, become U+FFFD.
package textval
