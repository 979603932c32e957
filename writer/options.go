package writer

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hivesink/hivesink/format/parquet"
	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/layout"
	"github.com/hivesink/hivesink/record"
	"github.com/hivesink/hivesink/rolling"
	"github.com/hivesink/hivesink/storage"
)

// Late policies.
const (
	LateAppend = "append" // late rows are written like others; their partition is announced again
	LateDrop   = "drop"   // late rows are counted and dropped
	LateSide   = "side"   // late rows go to the table <name>_late
)

// Bad record policies.
const (
	BadDeadLetter = "dead-letter"
	BadFail       = "fail"
	BadDrop       = "drop"
)

// Options are what the lanes of a process share.
type Options struct {
	FS       storage.FS
	Staging  string // the owner's staging directory, full path
	Epoch    uint64
	Pipeline string
	TableID  string

	Schema    *record.Schema
	Transform []layout.Transform
	Zone      *time.Location
	Extractor *layout.TimeExtractor
	Limits    layout.Limits // of partition paths

	// Codec is the table's; small parts, which will be merged, get HiddenCodec
	// and a cheap encoding unless Final is set (compaction off).
	Codec       string
	HiddenCodec string
	Final       bool
	SmallBytes  int64 // what a small part may buffer, default 1 MB
	// Direct, not nil: parts do not go to the staging directory (W7). With Final
	// only.
	Direct        *Direct
	CreatedBy     string
	RowGroupRows  int   // default 131072
	RowGroupBytes int64 // default 64 MB
	Rolling       rolling.Policy
	Budget        *Budget

	EventTime      int   // index of the event-time column in Schema.Columns; -1: none
	OutOfOrderness int64 // microseconds
	MaxFuture      int64 // microseconds; 0: no limit
	// LateDelay is the commit delay in microseconds: a row is late when its
	// partition's period ended that long before the watermark. Negative: no
	// row is late (process-time trigger).
	LateDelay int64
	Late      string

	Bad *BadPolicy
	// Known says whether a checkpoint has named a partition; nil: none has.
	Known func(table, partition string) bool

	Random func() uint64
	Now    func() int64 // wall clock, microseconds

	parquet *parquetfile.Schema
	dead    *parquetfile.Schema
	deadID  string
	mu      sync.Mutex
	writers map[parquetKey][]*parquetfile.Writer // idle encoders
	columns map[*parquetfile.Schema][]*parquetfile.Columns
	// idleBytes is the memory of the idle columns.
	idleBytes int64
	hidden    hiddenTotal
}

type parquetKey struct {
	schema *parquetfile.Schema
	codec  string
	hidden bool
}

// Init compiles the schemas and sets defaults. It must be called once before
// the first NewLane.
func (o *Options) Init() error {
	var err error
	if o.parquet, err = parquetfile.NewSchema(o.Schema); err != nil {
		return fmt.Errorf("compile the table's schema: %w", err)
	}
	ds, err := DeadSchema()
	if err != nil {
		return err
	}
	if o.dead, err = parquetfile.NewSchema(ds); err != nil {
		return fmt.Errorf("compile the dead-letter schema: %w", err)
	}
	o.deadID = ds.ID
	if o.RowGroupRows == 0 {
		o.RowGroupRows = 128 << 10
	}
	if o.RowGroupBytes == 0 {
		o.RowGroupBytes = 64 << 20
	}
	if o.SmallBytes == 0 {
		o.SmallBytes = sliceBytes
	}
	o.writers = make(map[parquetKey][]*parquetfile.Writer)
	o.columns = make(map[*parquetfile.Schema][]*parquetfile.Columns)
	return nil
}

// BadPolicy decides what becomes of bad records, over all lanes of a run.
type BadPolicy struct {
	Policy string // BadDeadLetter, BadFail or BadDrop
	Limit  int64  // dead-lettered or dropped records per run; 0: none allowed
	count  atomic.Int64
}

// Count is the number of bad records of this run so far.
func (b *BadPolicy) Count() int64 { return b.count.Load() }

// admit takes bad records into account, or refuses them all.
func (b *BadPolicy) admit(bad []record.BadRecord) error {
	if len(bad) == 0 {
		return nil
	}
	first := bad[0]
	switch b.Policy {
	case BadFail:
		return fault.New(fault.Halt, "mend the record, or set source.bad_records.policy to dead-letter",
			"bad record at %s: %s", first.Place, first.Reason)
	default:
		n := b.count.Load()
		if n+int64(len(bad)) > b.Limit {
			last := bad[max(0, min(int64(len(bad))-1, b.Limit-n))]
			remedy := "mend the input, or raise source.bad_records.limit"
			if b.Policy == BadDeadLetter {
				remedy = "look into the dead-letter table, " + remedy
			}
			return fault.New(fault.Halt, remedy,
				"more than %d bad records in this run; the next one is at %s: %s", b.Limit, last.Place, last.Reason)
		}
	}
	b.count.Add(int64(len(bad)))
	return nil
}
