package source

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/hivesink/hivesink/hivetype"
	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/record"
)

const (
	// datagenPrefix begins the ID of every datagen split; its number follows.
	datagenPrefix = "datagen-"
	// datagenSplits is how many there are, however many readers: split k has
	// the rows k, k+8, k+16 … of all (S9).
	datagenSplits = 8
	// pacesPerSecond is how many batches a second a limited rate is cut into.
	pacesPerSecond = 10 * datagenSplits
)

type datagen struct {
	d    DatagenOptions
	o    Options
	pace *pace                       // nil: no limit
	at   [datagenSplits]atomic.Int64 // next local row of each split
}

// NewDatagen makes records up. Values depend on the seed, the row's number
// over all splits, and the column's name (S9). Errors: class config.
//
// A bigint column without Values is the row's number, so the ids of a whole run
// are 0 to Rows-1. The time column (TimeColumn, else the first timestamp column)
// goes evenly from 2026-01-01T00:00:00Z over 10 days; its Values is another
// number of days, and its Skew makes the first days the fuller ones. Without
// end (Rows 0) it goes on by 1 ms a row, and begins again after Values days. A
// late row's time is 2 days earlier. Other columns have Values different values,
// and about 3 % nulls when they are nullable, neither bigint nor an identity
// partition column.
func NewDatagen(d DatagenOptions, o Options) (Source, error) {
	o = o.withDefaults()
	if d.Rows < 0 || d.Rate < 0 || d.Late < 0 || d.Late > 1 {
		return nil, fault.New(fault.Config, "rows and rate are not negative, late is from 0 to 1",
			"source.datagen: rows %d, rate %d, late %v", d.Rows, d.Rate, d.Late)
	}
	isColumn := func(name string) bool {
		return slices.ContainsFunc(o.Schema.Columns, func(c hivetype.Field) bool { return c.Name == name })
	}
	names := make([]string, 0, len(d.Columns))
	for name := range d.Columns {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		c := d.Columns[name]
		if !isColumn(name) {
			return nil, fault.New(fault.Config, "name a column of the table", "source.datagen.columns.%s is not a column", name)
		}
		if c.Values < 0 || c.Skew < 0 {
			return nil, fault.New(fault.Config, "values and skew are not negative", "source.datagen.columns.%s: values %d, skew %v", name, c.Values, c.Skew)
		}
	}
	if d.TimeColumn != "" && !isColumn(d.TimeColumn) {
		return nil, fault.New(fault.Config, "name a column of the table", "source.event_time.column %s is not a column", d.TimeColumn)
	}
	s := &datagen{d: d, o: o}
	if d.Rate > 0 {
		s.pace = &pace{rate: d.Rate, now: time.Now, wait: waitFor}
	}
	return s, nil
}

// rowsOf is how many rows split k has; -1 without end.
func (s *datagen) rowsOf(k int) int64 {
	if s.d.Rows == 0 {
		return -1
	}
	return (s.d.Rows - int64(k) + datagenSplits - 1) / datagenSplits
}

// datagenPosition is where a reader goes on. Its JSON text is in ledgers.
type datagenPosition struct {
	Row int64 `json:"r"` // next local row
}

func parseDatagenPosition(id string, from ledger.Source) (datagenPosition, error) {
	p := datagenPosition{Row: from.NextRow}
	if from.Position == "" {
		return p, nil
	}
	p.Row = -1 // a position without a row is none of ours
	if err := json.Unmarshal([]byte(from.Position), &p); err != nil || p.Row != from.NextRow || p.Row < 0 {
		return p, fault.New(fault.Halt, "was the table written by another version or another kind of source?",
			"resume %s at row %d: the ledger's position %q is not one of this source", id, from.NextRow, from.Position)
	}
	return p, nil
}

// Splits implements Source.
func (s *datagen) Splits(_ context.Context, known map[string]ledger.Source) ([]Split, error) {
	var splits []Split
	for k := range datagenSplits {
		id := datagenPrefix + strconv.Itoa(k)
		from, ok := known[id]
		p, err := parseDatagenPosition(id, from)
		if err != nil {
			return nil, err
		}
		rows := s.rowsOf(k)
		s.at[k].Store(p.Row)
		if rows >= 0 && p.Row >= rows && (from.Ended || !ok) {
			continue
		}
		splits = append(splits, Split{ID: id, Name: id})
	}
	return splits, nil
}

// Open implements Source.
func (s *datagen) Open(ctx context.Context, split Split, from ledger.Source) (Reader, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	number, _ := strings.CutPrefix(split.ID, datagenPrefix)
	k, err := strconv.Atoi(number)
	if err != nil || k < 0 || k >= datagenSplits || split.ID != datagenPrefix+number {
		return nil, fault.New(fault.Halt, "", "open %q: no source partition of datagen has this name", split.ID)
	}
	p, err := parseDatagenPosition(split.ID, from)
	if err != nil {
		return nil, err
	}
	s.at[k].Store(p.Row)
	rb := array.NewRecordBuilder(memory.DefaultAllocator, s.o.Schema.Arrow)
	cols, rowBytes := s.columns(rb)
	return &datagenReader{s: s, k: k, row: p.Row, end: s.rowsOf(k), rb: rb, cols: cols, rowBytes: rowBytes}, nil
}

// Progress implements Source.
func (s *datagen) Progress() float64 {
	if s.d.Rows == 0 {
		return 0
	}
	made := int64(0)
	for k := range s.at {
		made += s.at[k].Load()
	}
	return min(1, float64(made)/float64(s.d.Rows))
}

// datagenReader makes up the rows of one split.
type datagenReader struct {
	s        *datagen
	k        int
	row      int64 // next local row
	end      int64 // local rows; -1 without end
	rb       *array.RecordBuilder
	cols     []column
	rowBytes int64 // of a row, about
	err      error // final
}

// Read implements Reader. With a limited rate it waits for its turn; when ctx
// ends meanwhile nothing was consumed and Read may be called again.
func (r *datagenReader) Read(ctx context.Context) (*record.Batch, error) {
	if r.err != nil {
		return nil, r.err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	n := max(1, min(int64(r.s.o.BatchRows), r.s.o.BatchBytes/r.rowBytes))
	if r.end >= 0 {
		n = max(0, min(n, r.end-r.row))
	}
	if p := r.s.pace; p != nil && n > 0 {
		n = min(n, max(1, p.rate/pacesPerSecond))
		if err := p.take(ctx, n); err != nil {
			return nil, err
		}
	}
	b := &record.Batch{FirstRow: r.row, Count: n, Bytes: n * r.rowBytes}
	if n > 0 {
		r.rb.Reserve(int(n))
		first := r.row*datagenSplits + int64(r.k)
		for i := range r.cols {
			r.cols[i].fill(first, n)
		}
		b.Record = r.rb.NewRecordBatch()
	}
	r.row += n
	r.s.at[r.k].Store(r.row)
	b.Position = `{"r":` + strconv.FormatInt(r.row, 10) + `}`
	if r.end >= 0 && r.row >= r.end {
		b.End = true
		r.err = io.EOF
	}
	return b, nil
}

// Close implements Reader.
func (r *datagenReader) Close() error {
	if r.rb != nil {
		r.rb.Release()
		r.rb = nil
	}
	if r.err == nil {
		r.err = fmt.Errorf("read %s%d: the reader is closed", datagenPrefix, r.k)
	}
	return nil
}

// pace spreads rows evenly over time, for all readers of a source. Time that
// was not used is not made up for.
type pace struct {
	rate int64 // rows per second
	now  func() time.Time
	wait func(context.Context, time.Duration) error

	mu   sync.Mutex
	next time.Time // when the next rows are due
}

// take waits until n rows are due.
func (p *pace) take(ctx context.Context, n int64) error {
	p.mu.Lock()
	now := p.now()
	due := p.next
	if due.Before(now) {
		due = now
	}
	p.next = due.Add(time.Duration(float64(n) / float64(p.rate) * float64(time.Second)))
	p.mu.Unlock()
	if due.After(now) {
		return p.wait(ctx, due.Sub(now))
	}
	return nil
}

// waitFor waits for d to pass or ctx to end.
func waitFor(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
