// Package watermark follows event time: for each source partition the largest
// event time seen, and over all of them how far time has surely come. It is
// pure: times are handed in, nothing runs by itself.
//
// A source partition is in one of these states:
//
//	expected ──Own──► holding ──CaughtUp──► waiting ──idle_timeout──► idle
//	                     ▲                     │                       │
//	                     └──────── Observe, Hold ◄─────────────────────┘
//	any state ──Ended──► ended          any state ──Disown──► forgotten
//
// Invariants:
//
//   - T1: Current never goes back, whatever is observed, owned or given up.
//   - T2: the watermark of a source partition is its largest event time less
//     out_of_orderness. Current is the minimum over the owned ones that are
//     neither ended nor idle.
//   - T3: a name that is expected but not opened, and one that is owned but
//     has seen nothing, is not idle and hence holds Current where it is.
//   - T4: only CaughtUp and then idle_timeout without a record make a source
//     partition idle: one that fails, waits or moves holds Current.
//     One that is polled (Polled) is idle only as of its last empty answer, and
//     only while such answers keep coming: when they stop, for whatever reason,
//     it holds Current again. When the clock is set back the timeout begins
//     anew.
//   - T5: an event later than now + max_future never advances anything.
//   - T6: when all have ended, Current is the largest of their watermarks, so
//     that a bounded run does not stop at its slowest file; when all that have
//     not ended are idle, it is the wall clock (of polled ones: that of
//     the earliest of their last empty answers) less out_of_orderness and
//     idle_timeout.
//   - T7: the watermark of a checkpoint speaks of the rows in it: who became idle
//     after they were cut may have had others in between.
//
// After a restart Current starts from the checkpoint (Restore), and each
// source partition from its own checkpointed watermark (Own).
package watermark
