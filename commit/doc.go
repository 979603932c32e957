// Package commit is stage 4 of the chain: it decides when a partition is
// announced, and has the policies announce it.
//
// Core is pure: it reads the ledger's state and says which announcements are
// due. Runner executes policies (success file, catalogue, …) for them and hands
// back the facts, which the owner of the ledger appends. Neither writes to the
// log, neither has a clock or a goroutine of its own.
//
//	checkpoint c, watermark ──► trigger passed? ──► cut c ──► every file of checkpoints ≤ c
//	published, wall clock   ──►                               published? ──► policies ──► announced
//
// A trigger is evaluated against the last complete checkpoint and the
// watermark stored in it. What it fixes is a cut: without one, a partition with
// steady input would always have files that are not published yet and would
// never be announced.
//
// Process-time: first publication of what is not announced yet, plus delay; when
// the clock was set back, at most twice the delay.
// Partition-time: the watermark has reached the end of the partition's period
// plus delay; a partition without a known period (the default partition) waits
// for the end of input. One whose parts know of none has that of the
// configuration of now, so that a time extractor can be mended. A table without
// partition columns has no period: with partition-time (which only its dead-letter
// table can meet) it is announced as its files are published. The end of input,
// where it ends every trigger, passes all of them.
//
// Invariants:
//
//   - A1: no announcement before every file of checkpoints ≤ its cut is
//     published; and no cut beyond the last complete checkpoint.
//   - A2: a partition whose trigger has passed is announced however steadily
//     rows keep coming: its cut moves only when it was announced, or when the
//     input has ended.
//   - A3: only data that no announcement covers makes an announcement; and all
//     of it does, once its trigger has passed.
//   - A4: totals are absolute and come from the ledger, never from a listing.
//   - A5: what is due depends on state, time and nothing else; it is sorted by
//     table and path.
//   - A6: policies run in listed order, at least once, with the key (partition,
//     number); what all of them have done is reported even when others failed.
//   - A7: a policy that cannot do its work now (class retry) is tried again
//     with growing pauses, for ever. It stops announcing, nothing else.
//   - A8: the success file appears after the data, and is durable before the
//     announcement is a fact.
//
// Late rows need nothing special here: they are data that no announcement
// covers, so their partition is announced again. They do not end a hold (Closed
// speaks only of the rows up to the first cut), so they make no tiny files.
//
// Crash story: everything durable is in the ledger. Cuts are lost, and fixed
// anew at the checkpoint the next process finds: a later cut, never an earlier
// one than the data it has. A process-time delay starts anew with the process,
// because delays count only while the pipeline runs. A crash between a policy
// and the announced fact repeats the policies with the same number.
package commit
