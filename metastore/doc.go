// Package metastore is what readers ask for partitions: the catalogue. Catalog
// is what hivesink needs of one; Embedded is the one that lives in the table
// itself.
//
// The embedded catalogue is a projection of the announced facts in the table
// log. Announcing to it therefore is appending the fact, which the owner of the
// ledger does once all policies have done their work; its policy has nothing to
// do and nothing that can fail. It follows that it is never ahead of the other
// policies and never behind the log.
//
// Invariants:
//
//   - M1: a partition is listed from its first announcement or registration on,
//     and never before.
//   - M2: counts are those of the last announcement, absolute, taken from the
//     ledger: what was published after it is not in them.
//   - M3: announcing is idempotent: the same number again changes nothing.
//   - M4: listings are sorted by path, and a filter means the same for every
//     catalogue: it compares values, not directory names.
//
// Any catalogue must pass metastoretest.
package metastore
