// Package csvrow reads records of delimited text into the columns of a table.
//
// Invariants (those of textval, T1 to T5, hold as well):
//
//   - C1: a record has as many fields as the header, or it is bad (class
//     syntax).
//   - C2: an unquoted field that is empty or spelled as the null text is null;
//     a quoted one never is.
//   - C3: a quote opens a field at its start or is inside quotes, doubled;
//     anywhere else the record is bad, and no other one: there it does not
//     hide the end of the record. Splitter and decoder agree on it.
//   - C4: the splitter looks at each byte a bounded number of times, however
//     the stream is cut and however long the record is.
//   - C5: a table column the header does not name is null; a field of the
//     header that no column matches is counted and passed over.
package csvrow
