// Package rolling decides when a part file is closed. It is pure: what it knows
// of a file is counted by the writer, never asked of a file system, and the
// time is handed in.
//
// Invariants:
//
//   - O1: the comparisons are the reference sink's: a file is due when it is
//     larger than Bytes, and when its age or inactivity has reached its limit.
//   - O2: a file without rows is never due: there are no empty part files.
//   - O3: nothing depends on the clock's value, only on differences, so that a
//     writer that counts with a monotonic clock keeps its pace when the wall
//     clock steps.
//   - O4: a file that is not due at Next(f)-1 for its size or rows is not due
//     by time either, and it is due at Next(f).
package rolling
