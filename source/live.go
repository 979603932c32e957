package source

import (
	"context"

	"github.com/hivesink/hivesink/format"
	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/record"
)

// Live is a source whose splits grow for ever and are read side by side: a
// message queue. A reader has many splits; a split changes its reader only
// between two checkpoints.
type Live interface {
	// Splits connects and lists what there is to read. known is what the ledger
	// says of each source partition, by ID. It fails within a bounded time.
	Splits(ctx context.Context, known map[string]ledger.Source) ([]Split, error)
	// Grown waits for splits that have come since. An error ends the run; a
	// bounded source has none and waits for the end of ctx.
	Grown(ctx context.Context) ([]Split, error)
	// Bounded says whether every split comes to an end.
	Bounded() bool
	// Reader makes a reader that has no splits yet. What it learns of them, it
	// tells w at once.
	Reader(w Watch) (LiveReader, error)
	// Durable tells what a complete checkpoint has: the positions of the splits
	// that moved. It does not block.
	Durable(positions map[string]string)
	// Progress is about the share that has been read of a bounded source, 0 to 1.
	Progress() float64
	// Close gives everything back, readers apart.
	Close() error
}

// Watch is told what only the reader of a split knows. Its functions do not
// block.
type Watch struct {
	// CaughtUp says that just now the split had nothing to read and everything
	// before was taken.
	CaughtUp func(split string)
	// Hold says that there is something to read.
	Hold func(split string)
	// AtHead says that what was fetched of the split reaches to the end of what
	// there is to read just now. It is said again and again, also of a split that
	// is written to without a pause; of one that lags, or whose fetches fail, it is
	// not.
	AtHead func(split string)
}

// LiveReader reads splits side by side. Read and Close are one goroutine's, Add
// and Remove anybody's.
type LiveReader interface {
	// Add begins a split, exactly after from.
	Add(s Split, from ledger.Source) error
	// Remove ends a split: an Event says when nothing more of it will come.
	Remove(split string)
	// Read returns what comes next of any split. A call says that the batch
	// before it was taken. Errors are final, save for the end of ctx.
	Read(ctx context.Context) (Event, error)
	Close() error
}

// Event is a batch of a split, or the end of a Remove.
type Event struct {
	Split   string
	Batch   *record.Batch
	Removed bool
}

// NewDecoder makes a decoder of records that have no header: the fields of csv
// are in the order of the schema's columns.
func (o Options) NewDecoder() (format.RowDecoder, error) {
	form, err := o.recordFormat()
	if err != nil {
		return nil, err
	}
	return form.decoder(nil)
}
