// Package jsonrow reads records that are one JSON object each, such as lines
// of NDJSON, straight into the columns of a table.
//
// Invariants (those of textval, T1 to T5, hold as well):
//
//   - J1: a record is one JSON object by RFC 8259, or it is bad (class syntax).
//     There is nothing before or after it but white space, and it is at most
//     64 levels deep.
//   - J2: a missing key is null. A key no column matches is counted and passed
//     over, but it must be JSON.
//   - J3: a key spelled as the column wins over one that differs in case, and of
//     two of equal rank the last one wins. So it is in structs.
//   - J4: the splitter looks at each byte once, however the stream is cut.
package jsonrow
