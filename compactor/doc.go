// Package compactor is stage 3 of the chain: it turns the hidden inputs of a
// unit into one target and makes that target visible.
//
// Choose picks the cheapest mode that gives a good file. Build writes the
// target into the staging directory (or, in mode publish, takes the one input
// as it is) and verifies it. Publish makes it visible under the name the plan
// drew, and decides what a repeated Publish finds. Nobody here writes to the
// log: the owner of the ledger appends the plan before Build and the published
// fact after Publish.
//
// Invariants:
//
//   - C1: a target becomes visible only by a rename of a durable, verified file
//     to its final name, which never overwrites.
//   - C2: an input is touched only by Publish in mode publish (it moves); all
//     others stay until the log says that the target is visible.
//   - C3: a file found under a target's name counts as ours only if its footer
//     names exactly the unit's leaf ids and partition; anything else halts.
//   - C4: a target holds the rows of its inputs in the order of the plan, and
//     its audit footer is the sum of theirs.
//   - C5: however many inputs a unit has, few of them are open at once.
//   - C6: a part that is an upload to its target is published by completing that
//     very upload, and by nothing else. Nobody aborts it, or takes it for done
//     but by the target.
//   - C7: no value of an accepted row is lost to a change of table.columns. Inputs
//     of other columns become the table's where that loses nothing: columns that
//     are new are null, types widen. Else the target has the inputs' own columns,
//     as the files that were published before the change have.
//
// Crash story: dying before the rename leaves garbage under an attempt's name,
// and the redo builds the target anew; dying after it leaves a visible target
// that the redo recognises (C3) and notes as published.
package compactor
