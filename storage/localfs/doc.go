// Package localfs is storage.FS on the local file systems of Linux and macOS.
//
// It keeps the invariants of package storage with these means:
//
//   - S1: Create is O_EXCL; Rename is renameat2(RENAME_NOREPLACE), or
//     renamex_np(RENAME_EXCL). This is stricter than the interface asks: a
//     directory target is refused even when it is empty. Where the file system
//     lacks it, a directory is renamed by rename(2), which refuses a target
//     that is not empty, and a file by link(2) and unlink(2): still never
//     overwriting, but a crash in between leaves both names.
//   - S2: every call gives the kernel the full path; a File is the handle of
//     one new file, never of a directory.
//   - S5: a File remembers that it failed and refuses to go on.
//   - S7: flock(2). It ends with the process, also by kill -9 or a power cut.
//     Network file systems may keep such a lock to one machine: NetworkMount
//     tells, so that the owner of a table can refuse them.
//
// New files and directories get the user's umask. Where entries are links, Stat
// follows them and List does not.
package localfs
