package hivesink

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/hivesink/hivesink/config"
	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/pipeline"
	"github.com/hivesink/hivesink/record"
	"github.com/hivesink/hivesink/writer"
)

// Version of the library and the binary.
const Version = "0.1.0"

// Config is the configuration of a pipeline; see the fields' comments. A
// library user needs no Source section.
type Config = config.Config

// LoadConfig reads a configuration file (YAML, or JSON). Each of sets is a
// KEY=VALUE that replaces one option, as the command line's --set does. All
// problems are reported at once, with their lines.
func LoadConfig(path string, sets ...string) (*Config, error) {
	cfg, err := config.Load(path, sets)
	return cfg, classed(err)
}

// Sink is an open pipeline: the owner of its table.
type Sink struct {
	p      *pipeline.Pipeline
	schema *record.Schema
	mu     sync.Mutex
	open   map[string]*Writer
}

// Open takes ownership of the table, recovers, and starts the pipeline. It
// fails with ErrFenced when another process or pipeline owns the table. ctx
// ends the opening, not the sink.
func Open(ctx context.Context, cfg *Config) (*Sink, error) {
	if err := cfg.Validate(); err != nil {
		return nil, classed(err)
	}
	if err := pipeline.ReadColumns(ctx, cfg); err != nil {
		return nil, classed(err)
	}
	p, err := pipeline.Open(ctx, pipeline.Options{Config: cfg, Version: Version})
	if err != nil {
		return nil, classed(err)
	}
	s := &Sink{p: p, open: make(map[string]*Writer), schema: p.Schema()}
	for _, name := range cfg.Writers { // expected: they hold the watermark until they are opened
		if _, err := p.Own(ctx, name); err != nil {
			return nil, classed(errors.Join(err, p.Release()))
		}
	}
	return s, nil
}

// Schema is the Arrow schema of the batches a Writer takes.
func (s *Sink) Schema() *arrow.Schema { return s.schema.Arrow }

// Writer opens the writer of one source partition. There is one open Writer
// per name; different Writers may be used concurrently, one Writer serves one
// goroutine.
func (s *Sink) Writer(name string) (*Writer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case name == "":
		return nil, refused(errors.New("a writer needs a name: that of its source partition"))
	case !utf8.ValidString(name):
		return nil, refused(fmt.Errorf("writer %q: its name is not UTF-8 text", name)) // the table log is
	case s.open[name] != nil:
		return nil, refused(fmt.Errorf("writer %q is open already", name))
	}
	from, err := s.p.Own(context.Background(), name)
	if err != nil {
		return nil, classed(err)
	}
	lane, err := s.p.NewLane()
	if err != nil {
		return nil, classed(err)
	}
	lane.Adopt(name, from)
	w := &Writer{s: s, name: name, lane: lane, start: from}
	s.open[name] = w
	return w, nil
}

// Checkpoint makes all rows written so far durable: when it returns nil they
// will be published exactly once, whatever happens. It cuts each Writer between
// two writes. When ctx ends meanwhile the rows may be durable or not, as a later
// Checkpoint, cfg.OnCheckpoint or Writer.Position tells. Checkpoints also happen
// every checkpoint.interval.
func (s *Sink) Checkpoint(ctx context.Context) error { return classed(s.p.Checkpoint(ctx)) }

// Finish is the end of the input: a last checkpoint, everything is published,
// every partition announced. The sink must still be closed.
func (s *Sink) Finish(ctx context.Context) error { return classed(s.p.Finish(ctx, true)) }

// Close makes a last checkpoint, publishes everything held, announces what its
// trigger allows, and gives the table up. A poisoned sink is only given up; its
// error is returned. So is one whose ctx ends: what is not published then is when
// the table is opened again. A second Close does nothing and returns ErrClosed.
func (s *Sink) Close(ctx context.Context) error {
	err := s.p.Err()
	if err == nil {
		err = s.p.Stop(ctx)
	}
	return classed(errors.Join(err, s.p.Release()))
}

// Failed is closed when the sink is poisoned; Err then says why.
func (s *Sink) Failed() <-chan struct{} { return s.p.Failed() }

// Err is the error that poisoned the sink, nil while it works.
func (s *Sink) Err() error { return classed(s.p.Err()) }

// Writer takes the records of one source partition, in order.
type Writer struct {
	s     *Sink
	name  string
	lane  *writer.Lane
	start ledger.Source

	closed atomic.Bool // nobody cuts the lane any more
}

// Position is the durable position of this source partition when the Writer
// was opened: where to resume. "" when it is new.
func (w *Writer) Position() string { return w.start.Position }

// Write takes all rows of batch or, on any error, nothing. position is where
// the source partition stands after it; an empty batch with a new position is
// legal. Write blocks for back-pressure. The batch may be released when Write
// returns; it must not be changed while Write runs. Columns are matched by
// name; a missing nullable column is null. An error that is the batch's fault is
// ErrRefused: so is a value that its column cannot have (text that is not UTF-8
// or too long, a decimal of too many digits). One that is not, nor ctx's, poisons
// the sink.
func (w *Writer) Write(ctx context.Context, batch arrow.RecordBatch, position string) error {
	if err := w.s.p.Gate(ctx); err != nil {
		return classed(err)
	}
	switch {
	case w.closed.Load():
		return fmt.Errorf("writer %q: %w", w.name, ErrWriterClosed)
	case batch == nil:
		return refused(fmt.Errorf("writer %q: there is no batch; to move the position only, bring one without rows", w.name))
	case !utf8.ValidString(position): // the table log is
		return refused(fmt.Errorf("writer %q: position %q is not UTF-8 text", w.name, position))
	}
	rec, err := record.Conform(w.s.schema, batch)
	if err != nil {
		return refused(fmt.Errorf("writer %q: %w", w.name, err))
	}
	defer rec.Release()
	err = w.s.p.WriteBatch(ctx, w.lane, w.name, rec, position)
	if err != nil && w.lane.Err() == nil && w.s.p.Err() == nil && fault.ClassOf(err) != fault.Fenced {
		return refused(err)
	}
	return classed(err)
}

// Advance says that no row earlier than t is to come, for a source partition
// whose rows do not say so themselves.
func (w *Writer) Advance(t time.Time) { w.lane.Advance(w.name, t.UnixMicro()) }

// Idle says that the source partition has nothing to read at present: after
// source.event_time.idle_timeout it no longer holds the watermark, until the
// next Write.
func (w *Writer) Idle() error { return classed(w.s.p.CaughtUp(w.name)) }

// Close makes a checkpoint of all that was written, by other Writers as well, and
// closes the Writer; its name may be opened again then. After an error the Writer
// is as before. A second Close does nothing. The source partition goes on holding
// the watermark, since its rows may go on elsewhere: one that is over says so by
// Idle before, or by Advance.
func (w *Writer) Close(ctx context.Context) error {
	if w.closed.Load() {
		return nil
	}
	if err := w.s.p.Checkpoint(ctx); err != nil {
		return classed(err)
	}
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	if w.closed.Swap(true) {
		return nil
	}
	delete(w.s.open, w.name)
	return classed(w.s.p.CloseLane(w.lane))
}
