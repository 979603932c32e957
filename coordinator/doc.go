// Package coordinator is stage 2 of the chain: it decides which hidden part
// files are merged into which published file, and when. It is pure: it reads
// the ledger's state and returns units; the log makes them true.
//
// Invariants:
//
//   - C1: a part is planned once: parts that any unit of the state names are
//     passed over, and no part is in two units of one plan.
//   - C2: a unit has parts of one table, one partition and one schema only; with
//     policy checkpoint of one checkpoint only. What of the parts of before the
//     columns were changed is no part of the new columns, keeps its own.
//   - C3: the plan is a function of state, options and input: no clock, no map
//     order. Parts are taken by checkpoint, then id; draws are taken in the
//     order of the units.
//   - C4: packing is first-fit as in Pack, and every part of a released group
//     is in a unit, also when it is alone.
//   - C5: no hold outlasts max_delay of the oldest row (at most twice that when
//     the clock was set back), max_checkpoints, the partition's time, or a
//     flush. A process-time trigger ends no hold.
//   - C6: rows of a partition that was announced already are late, and so are
//     those of the late table: they are held like others, and the partition's
//     time does not release them.
//   - C7: a unit that no limit forced out has more than half the target size, or
//     as much of MaxInputs.
//   - C8: a unit has at most MaxInputs inputs.
//
// Crash story: a plan that did not reach the log never was; the next one draws
// other names. A plan that did is never made again (C1), whatever the options
// have become since.
package coordinator
