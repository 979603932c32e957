// Package kafka reads the topics of a Kafka cluster.
//
// A run assigns itself all partitions; readers share them (reader.go). Each
// reader asks the leaders of its partitions for messages, request by request
// (fetch.go), and turns them into columns (decode.go):
//
//	leader ─► fetch ─► queue ─► batches ─► window ─► messages ─► columns
//	                   bounded  aborted?   decompress            value and metadata
//
// The client library does connections, versions, encryption and authentication.
// Its consumer is not used: it does not tell where a log without messages ends,
// goes on reading a topic that was made again, and decompresses whole fetches
// (docs/decisions.md).
//
// Invariants:
//
//   - K1: the row number of a message is its offset (plus position.Shift).
//     Offsets without a message are gaps: a batch counts them and nothing else
//     depends on them.
//   - K2: positions are the ledger's. What is committed to the group is for lag
//     tools, comes after the checkpoint, and is never read.
//   - K3: only what is committed is read: below the last stable offset, without
//     aborted transactions and control markers. A position passes over these,
//     so that it reaches the end of the log.
//   - K4: fetched bytes are bounded by Options.Memory, whatever their codec: a
//     fetch is asked for only when there is room for it, and decompressed
//     through a window. One batch that is larger than its room is still read.
//     Leaders get room in turn, and those without messages little: however many
//     there are, none keeps it from another.
//   - K5: a partition is a partition of one topic of one cluster, by their ids;
//     of another one nothing is read, and the run halts, naming both: at the
//     start, when it comes while the run goes on, and when it replaces one.
//   - K6: where a partition without a position starts is decided once, and
//     durable with the next checkpoint; until then it is decided anew. One that
//     is added to a topic that is read starts at its first message.
//   - K7: messages that are gone are never passed over silently: the run halts,
//     or goes on where source.kafka.offset_out_of_range says, and logs it. What
//     the cluster did not tell is asked again, never taken for gone.
//   - K8: a partition is caught up only when its leader has just said that there
//     is nothing behind what was taken, up to the high watermark; of an empty
//     answer before it, when the leader has what would be there on its own
//     disks. What is fetched, fails, waits, moves or is in an open transaction
//     is not.
//   - K9: a position never passes over messages between the end of a bounded
//     run and what was fetched: the next run begins at the end. While the time
//     of source.kafka.until is still to come, the first message of that time
//     or after it is the end of its partition.
//   - K10: no message ends the process, now and in every run after it: one at
//     which decoding panics is a bad record, with its place (poison.go).
//   - K11: a message is bad for want of its schema only when every registry that
//     is configured says itself that it does not have it, and still does a few
//     seconds later, or refuses the question. Anything else is waited for. That
//     a schema is not there is believed for half a minute, a schema for ever.
//   - K12: a run that goes on with what was begun does so without partitions that
//     do not answer, after a third of source.kafka.start_timeout. One that has a
//     position goes on there; one that has none begins where it would have begun at
//     the start, or the run does not begin without it (muster.go, late.go). Until
//     then they hold the watermark, and what cannot be read for long is said
//     (silence.go). A bounded run, and a first one, wait for all.
//
// Crash story: a crash loses what is fetched and not in a checkpoint. The next
// run fetches it again, from the ledger's positions.
package kafka
