// Package hivesink writes record streams into Hive-partitioned Parquet tables,
// exactly once, and announces each partition when it is ready.
//
//	source ──► writer ×P ──► coordinator ×1 ──► compactor ×C ──► committer ×1
//	           bucketed      packs hidden       rewrites each     triggers →
//	           part files    part files of      unit into one     policies
//	           (hidden)      checkpoints        published file
//	              └──────────────┴───────┬──────────┴──────────────────┘
//	                  table log (the truth, in the table) + local index
//
// A library user opens a Sink, opens a Writer for each source partition of his
// own, resumes his input from Writer.Position, and writes Arrow record batches,
// each with the position after it:
//
//	cfg, err := hivesink.LoadConfig("sink.yaml")
//	sink, err := hivesink.Open(ctx, cfg)
//	w, err := sink.Writer("orders-0")
//	pos := w.Position()
//	err = w.Write(ctx, batch, "offset after batch")
//	err = sink.Checkpoint(ctx)
//	err = sink.Close(ctx)
//
// The promise: for every source partition, each accepted record below the last
// complete checkpoint is published exactly once, or counted as dead-lettered or
// dropped by a policy the user chose; no other record is visible. After a crash
// at any instant, also with the state directory lost, Open goes on.
package hivesink
