package pipeline

import "sync/atomic"

// Stats count what a process has done since it was opened.
type Stats struct {
	RowsRead       atomic.Int64 // records taken from the source, bad ones included
	BytesRead      atomic.Int64
	RowsAccepted   atomic.Int64
	RowsBad        atomic.Int64 // dead-lettered or dropped as bad
	RowsDead       atomic.Int64
	RowsDropped    atomic.Int64
	RowsLate       atomic.Int64
	RowsSkipped    atomic.Int64 // passed over by a rule of the source: tombstones
	UnknownKeys    atomic.Int64
	PartFiles      atomic.Int64
	PublishedFiles atomic.Int64
	PublishedRows  atomic.Int64
	UnitsUnmerged  atomic.Int64 // units that could not be built, whose parts are published one by one
	Announced      atomic.Int64
	Checkpoints    atomic.Int64
	Waits          atomic.Int64 // times a reader had to wait because limits.staging was exceeded
}

// Event is something that happened, for logs. The chain reports one after the
// other; first-record comes from a reader, beside them.
type Event struct {
	// first-record, checkpoint, published, announced, unit-retry, unit-unmerged,
	// announce-retry, partition-without-time, metastore-down, index-behind, index-rebuilt,
	// upkeep-failed, moved;
	// storage-waiting and storage-recovered may come from any goroutine.
	Kind       string
	Source     string // first-record: the source partition
	Checkpoint uint64
	Files      int
	Watermark  int64
	Unit       string
	Path       string // published: the file; storage-…: what is waited for
	Mode       string
	Table      string
	Partition  string
	Number     int64
	Rows       int64
	Bytes      int64
	Err        error
}
