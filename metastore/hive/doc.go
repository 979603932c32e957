// Package hive announces to a Hive Metastore: versions 3 and 4, over Thrift.
//
// What a call is to do is compared with what is there, done in batches, and
// read back; that it stands there is what counts, not what the call answered.
// So a call that is repeated, answers late, or meets another job's call needs
// no rule of its own.
//
//	read the batch ──► add what is missing, alter what differs ──► read again
//	      ▲                                                            │
//	      └──────────────── not all of it is as wanted ────────────────┘
//
// Invariants:
//
//   - HM1: every call has a time limit and ends when its context ends.
//   - HM2: a connection is used again only after an answer. After a time-out
//     the answer may still be under way and would be taken for that of the next
//     call.
//   - HM3: nothing counts as announced before it was read back: location, the
//     announcement's number, numFiles, numRows and totalSize.
//   - HM4: a partition that is there with another location is never changed and
//     never taken for ours.
//   - HM5: no call is about more than Options.Batch partitions, and none lists
//     a table's partitions in order to announce.
//   - HM6: right before each call that changes something, and each repetition of
//     it, the owner is asked whether it still is one. So what a former owner
//     still has under way ends within one time limit.
//   - HM7: partition values are canonical for the types of the partition
//     columns: "09" for an int is 9. The server takes anything.
//   - HM8: what is not ours is kept: other parameters, the storage descriptor.
//     Column statistics are never marked accurate.
//   - HM9: a comparison with the table log reads the log first: what is noted as
//     announced stands in the metastore already. What it adds replaces nothing,
//     so that no run beside it loses an announcement.
//
// Crash story: the metastore holds nothing that the table log does not. A crash
// anywhere repeats the announcement with the same number.
package hive
