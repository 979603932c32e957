// Package record maps Hive's columns to Arrow: the schema of a table, batches
// of records, and the partition each record belongs to.
package record

import "github.com/apache/arrow-go/v18/arrow"

// Batch is what a reader hands to a writer: the records
// [FirstRow, FirstRow+Count) of one source partition, in order. Row numbers
// are ordinals since the source partition's first start, bad records included.
type Batch struct {
	// Record holds the accepted records as columns (all columns of the table,
	// identity partition columns included); nil when none was accepted.
	Record arrow.RecordBatch
	// Rows has the row number of each row of Record; nil means consecutive
	// from FirstRow.
	Rows []int64
	// FirstRow and Count are the row numbers this batch consumed.
	FirstRow, Count int64
	// Gaps is how many of them no record has: offsets of control markers, of
	// aborted transactions, of what compaction has removed.
	Gaps int64
	// Skipped lists row numbers the source's rules passed over (tombstones).
	Skipped []int64
	// Bad lists the records that could not be decoded.
	Bad []BadRecord
	// UnknownKeys counts the keys that no column matched.
	UnknownKeys int64
	// Position is where to resume after this batch.
	Position string
	// Bytes is how many bytes of the source this batch consumed.
	Bytes int64
	// End says that the source partition has ended with this batch.
	End bool
}

// BadRecord is a record that could not be decoded or routed.
type BadRecord struct {
	Row    int64  // row number
	Place  string // for people: "in/a.ndjson line 17", "topic clicks partition 3 offset 99"
	Class  string // one of the Class constants
	Reason string // what is wrong, naming the column
	Raw    []byte // the record's bytes as read, possibly cut (Class too_long)
}

// Error classes of bad records, as written to the dead-letter table.
const (
	ClassSyntax      = "syntax"                   // not JSON, wrong number of CSV fields
	ClassType        = "type"                     // a value that is not of its column's type
	ClassRange       = "range"                    // a number, decimal or date out of range
	ClassNull        = "null"                     // null in a not null column
	ClassTooLong     = "too_long"                 // longer than source.max_record
	ClassPartition   = "partition_value_too_long" // directory name over 255 bytes, or path over what the storage takes
	ClassTime        = "time"                     // time cannot be parsed for partitioning
	ClassUnsupported = "unsupported"
)
