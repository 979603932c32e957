// Package pipeline runs the chain: it owns the goroutines, the barriers, the
// back-pressure and the shutdown, and hands values from stage to stage.
//
//	readers ──batches──► lanes ──cut──► checkpoint ──► plan ──► pool ──► publish ──► announce
//	                                        └────────────┴── one goroutine, the ledger's ──┘
//
// The chain is one goroutine's: it alone reads and appends to the ledger.
// Readers write to lanes beside it; the pool builds targets, and the policies
// announce, beside it. Each step of the chain is an ordinary method (chain.go,
// announce.go), so that a test can run a whole pipeline in one goroutine,
// operation by operation.
//
// Invariants:
//
//   - P1: nothing is acknowledged (OnCheckpoint, Checkpoint's return) before the
//     checkpoint record is durable.
//   - P2: nothing becomes visible before the record that plans it is durable,
//     and no input is deleted before the record that its target is visible.
//   - P3: no partition is announced before every file up to its cut is
//     published and the log says so.
//   - P4: a checkpoint never waits for compaction; ingestion waits only when bytes
//     of hidden files and of the spool pass limits.staging.
//   - P5: after a storage or ledger error nothing more is appended, published
//     or announced by this process: every call returns that error.
//   - P6: a policy runs beside the chain, one batch at a time: however slow it
//     is or how long its service is down, reading, checkpoints and publishing
//     go on, and what has become due meanwhile is announced afterwards.
//   - P7: on an object store, with policy off, a part is an upload to its final
//     name (ledger T14). It is completed, and noted as published, before its
//     checkpoint is acknowledged: what is acknowledged is nowhere but in objects,
//     which no rule for unfinished uploads touches.
//   - P8: a unit that cannot be built, though storage and inputs are sound, is
//     given up, and its parts are published one by one.
//
// Crash story: there is no clean-shutdown state. Open redoes whatever the log
// has planned and not noted as done, in any order, and then goes on as if
// nothing had happened.
package pipeline
