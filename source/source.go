package source

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/record"
)

// Source is something to read from.
type Source interface {
	// Splits lists what there is to read, in the order to read it. known is
	// what the ledger says of each source partition, by ID. Splits that were
	// read to their end and have not changed are left out.
	Splits(ctx context.Context, known map[string]ledger.Source) ([]Split, error)
	// Open makes a reader of a split that goes on exactly after from: the
	// position and next row of the last checkpoint, zero for a new split.
	// Different splits may be opened and read at the same time.
	Open(ctx context.Context, s Split, from ledger.Source) (Reader, error)
	// Progress is about the share of what Splits listed that has been read, 0
	// to 1; 0 when it is not known. It may be called at any time.
	Progress() float64
}

// Split is one source partition.
type Split struct {
	ID   string // the source partition's name in the ledger, the same for ever
	Name string // for people
	Size int64  // bytes on disk; 0: not known
}

// Reader reads one split. It serves one goroutine.
type Reader interface {
	// Read returns the next batch. The last one has End set; after it comes
	// io.EOF. The records before an error are delivered first. Errors are
	// final, save for the end of ctx: a later Read goes on. The receiver owns
	// the batch and releases its Record.
	Read(ctx context.Context) (*record.Batch, error)
	// Close gives the reader's resources back. Batches stay valid.
	Close() error
}

// Defaults of Options.
const (
	DefaultMaxRecord  = 1 << 20
	DefaultBatchRows  = 8192
	DefaultBatchBytes = 1 << 20
)

// Options are what every source needs to make batches.
type Options struct {
	Schema       *record.Schema // of the records; required
	Format       string         // FormatJSON (default) or FormatCSV; datagen ignores it
	CSVHeader    bool           // the first record names the columns; else fields are in the schema's order
	CSVDelimiter byte           // 0: a comma
	CSVQuote     byte           // 0: no quoting
	CSVNull      string         // an unquoted field of this text is null
	Timestamps   string         // rfc3339 (default), or a number of s, ms, us or ns since 1970
	Zone         *time.Location // of timestamps without offset; nil: UTC
	// NullOnBadTime names the date and timestamp columns whose unreadable values
	// become null instead of making the record bad.
	NullOnBadTime map[string]bool
	MaxRecord     int64  // a record of more bytes is bad; 0: DefaultMaxRecord
	BatchRows     int    // most records of a batch; 0: DefaultBatchRows
	BatchBytes    int64  // about the most bytes of a batch; 0: DefaultBatchBytes
	WorkingDir    string // where relative paths start; "": the process's
	// BadBudget is how many more bad records the run admits, over all readers.
	// A batch ends before a record that is one too many, so that what comes
	// before it can be kept; nil: as many as there are.
	BadBudget *atomic.Int64
}

// WithDefaults is o with defaults in place of zeros.
func (o Options) WithDefaults() Options { return o.withDefaults() }

func (o Options) withDefaults() Options {
	if o.Format == "" {
		o.Format = FormatJSON
	}
	if o.CSVDelimiter == 0 {
		o.CSVDelimiter = ','
	}
	if o.Timestamps == "" {
		o.Timestamps = "rfc3339"
	}
	if o.Zone == nil {
		o.Zone = time.UTC
	}
	if o.MaxRecord <= 0 {
		o.MaxRecord = DefaultMaxRecord
	}
	if o.BatchRows <= 0 {
		o.BatchRows = DefaultBatchRows
	}
	if o.BatchBytes <= 0 {
		o.BatchBytes = DefaultBatchBytes
	}
	return o
}

// DatagenOptions say what records are made up.
type DatagenOptions struct {
	Rows    int64   // over all splits; 0: without end
	Rate    int64   // records per second over all splits; 0: no limit
	Seed    int64   // another seed makes other records
	Late    float64 // share of the records whose time is late, 0 to 1
	Columns map[string]DatagenColumn
	// TimeColumn is the event-time column; "": the first timestamp column.
	TimeColumn string
}

// DatagenColumn says how a column's values are drawn.
type DatagenColumn struct {
	Values int64   // distinct values; 0: by the column's type
	Skew   float64 // Zipf exponent of their frequencies; 0: all alike
}
