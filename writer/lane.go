package writer

import (
	"context"
	"fmt"
	"math"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/record"
)

// Lane is one writer. Write, Tick and Cut may be called from different
// goroutines; each holds the lane for its length.
type Lane struct {
	o *Options

	mu      sync.Mutex
	part    *record.Partitioner
	main    []*bucket // by partition number
	late    []*bucket
	dead    *bucket
	live    []*bucket // all buckets of this cut, in the order they were opened
	closed  []ledger.Part
	sources map[string]*source
	hidden  hidden
	fresh   int   // partitions opened since the last cut that were not known
	broken  error // W1: an I/O error poisons the lane
	scratch scratch
}

// source is the working state of one source partition.
type source struct {
	ledger.Source
	maxTime int64 // largest event time seen that may advance the watermark; NoWatermark
	moved   bool  // since the last cut
}

// scratch is reused from batch to batch.
type scratch struct {
	assign  []int32
	numbers []int64
	times   []int64
	isLate  []bool
	counts  []int32 // per partition number; all zero between batches
	starts  []int32
	touched []int32
	order   []int32
}

// batch is a record batch on its way into buckets.
type batch struct {
	source  string
	rec     arrow.RecordBatch
	numbers []int64 // row number of each row
	times   []int64 // event time of each row, noTime where null; nil: no event time
	now     int64
}

const noTime = math.MinInt64

// NewLane makes a writer.
func (o *Options) NewLane() (*Lane, error) {
	l := &Lane{o: o, sources: make(map[string]*source)}
	if len(o.Transform) > 0 {
		p, err := record.NewPartitioner(o.Schema, o.Transform, o.Zone, o.Extractor)
		if err != nil {
			return nil, err
		}
		p.Limit(o.Limits)
		l.part = p
	}
	return l, nil
}

// Adopt hands a source partition to this lane, in the state the last complete
// checkpoint left it in.
func (l *Lane) Adopt(name string, s ledger.Source) {
	l.mu.Lock()
	defer l.mu.Unlock()
	st := &source{Source: s, maxTime: ledger.NoWatermark}
	if s.Watermark != ledger.NoWatermark {
		st.maxTime = later(s.Watermark, l.o.OutOfOrderness)
	}
	l.sources[name] = st
}

// Disown gives a source partition up, after a cut that has all that was written
// of it.
func (l *Lane) Disown(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.sources, name)
}

// Source is the working state of a source partition that was adopted.
func (l *Lane) Source(name string) (ledger.Source, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, ok := l.sources[name]
	if !ok {
		return ledger.Source{}, false
	}
	return s.Source, true
}

// Err is the error that poisoned the lane, nil while it works (W1).
func (l *Lane) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.broken
}

// Outcome says what became of a batch's records.
type Outcome struct {
	Accepted, Bad, Dead, Dropped, Late int64
	// NewPartitions is how many partitions this lane has met since the last cut
	// that were not known.
	NewPartitions int
}

// Write takes a batch of an adopted source partition (W1). It blocks while the
// memory budget is exceeded: before it takes anything, since a wait may end with
// ctx, and a caller who is told of an error will bring the batch again.
func (l *Lane) Write(ctx context.Context, name string, b *record.Batch) (Outcome, error) {
	if err := l.waitForRoom(ctx); err != nil {
		return Outcome{}, err
	}
	out, err := l.write(name, b)
	if err != nil {
		return out, err
	}
	return out, l.makeRoom()
}

func (l *Lane) write(name string, b *record.Batch) (Outcome, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out Outcome
	if l.broken != nil {
		return out, l.broken
	}
	src := l.sources[name]
	if src == nil {
		return out, fmt.Errorf("source partition %q was not adopted by this writer", name)
	}
	if b.FirstRow != src.NextRow {
		return out, fmt.Errorf("source partition %q: batch starts at row %d, the next row is %d", name, b.FirstRow, src.NextRow)
	}
	in := batch{source: name, rec: b.Record, now: l.o.Now()}
	bad := b.Bad
	if b.Record != nil && b.Record.NumRows() > 0 {
		bad = l.route(&in, b)
	}
	if err := l.o.Bad.admit(bad); err != nil {
		return out, err
	}
	if in.rec != nil && in.rec.NumRows() > 0 {
		if err := l.scatter(&in, src, &out); err != nil {
			l.broken = err
			return out, err
		}
	}
	if err := l.bury(&in, src, bad, &out); err != nil {
		l.broken = err
		return out, err
	}
	for _, n := range b.Skipped {
		src.Skipped.Row(n)
	}
	src.NextRow += b.Count
	src.Position = b.Position
	src.Ended = b.End
	src.moved = true
	out.NewPartitions = l.fresh
	return out, nil
}

// route fills the scratch columns: row numbers, event times, partition
// numbers. It changes nothing else. It returns the batch's bad records with
// those that cannot be routed, and leaves -1 in assign for those.
func (l *Lane) route(in *batch, b *record.Batch) []record.BadRecord {
	n := int(in.rec.NumRows())
	s := &l.scratch
	s.assign = grow(s.assign, n)
	if in.numbers = b.Rows; in.numbers == nil {
		s.numbers = grow(s.numbers, n)
		for i := range s.numbers {
			s.numbers[i] = b.FirstRow + int64(i)
		}
		in.numbers = s.numbers
	}
	if l.o.EventTime >= 0 {
		s.times = eventTimes(in.rec.Column(l.o.EventTime), s.times)
		in.times = s.times
	}
	if l.part == nil {
		clear(s.assign)
		return b.Bad
	}
	bad := b.Bad
	for _, e := range l.part.Assign(in.rec, s.assign) {
		bad = append(bad[:len(bad):len(bad)], record.BadRecord{
			Row: in.numbers[e.Row], Place: fmt.Sprintf("%s row %d", in.source, in.numbers[e.Row]),
			Class: e.Class, Reason: e.Reason, Raw: rowText(in.rec, e.Row),
		})
	}
	return bad
}

// scatter appends each row to its bucket, bucket by bucket.
func (l *Lane) scatter(in *batch, src *source, out *Outcome) error {
	late := l.judge(in, src, out)
	l.group(late)
	s := &l.scratch
	for _, key := range s.touched {
		end := s.starts[key]
		rows := s.order[end-s.counts[key] : end]
		s.counts[key] = 0
		b := l.bucket(int(key)>>1, key&1 == 1)
		b.append(in, rows)
		for _, i := range rows {
			src.Accepted.Row(in.numbers[i])
		}
		out.Accepted += int64(len(rows))
		if err := l.after(b); err != nil {
			return err
		}
	}
	return nil
}

// group sorts the batch's rows by bucket into scratch.order without
// allocating: a counting sort over the buckets this batch touches. A bucket's
// key is twice its partition number, plus one in the late table. After it,
// starts[key] is the end of the key's rows in order.
func (l *Lane) group(late []bool) {
	s := &l.scratch
	keys := 2
	if l.part != nil {
		keys = 2 * max(1, l.part.Len())
	}
	for len(s.counts) < keys {
		s.counts = append(s.counts, 0)
		s.starts = append(s.starts, 0)
	}
	s.touched = s.touched[:0]
	s.order = grow(s.order, len(s.assign))
	side := l.o.Late == LateSide
	for i, p := range s.assign {
		if p < 0 {
			continue
		}
		key := 2 * p
		if side && late != nil && late[i] {
			key++
		}
		if s.counts[key] == 0 {
			s.touched = append(s.touched, key)
		}
		s.counts[key]++
	}
	at := int32(0)
	for _, key := range s.touched {
		s.starts[key] = at
		at += s.counts[key]
	}
	for i, p := range s.assign {
		if p < 0 {
			continue
		}
		key := 2 * p
		if side && late != nil && late[i] {
			key++
		}
		s.order[s.starts[key]] = int32(i)
		s.starts[key]++
	}
}

// bucket finds or opens the bucket of a partition number.
func (l *Lane) bucket(n int, late bool) *bucket {
	list, table := &l.main, ledger.MainTable
	if late {
		list, table = &l.late, ledger.LateTable
	}
	for len(*list) <= n {
		*list = append(*list, nil)
	}
	b := (*list)[n]
	if b == nil {
		b = &bucket{target: target{table: table, schema: l.o.parquet, schemaID: l.o.Schema.ID}}
		if l.part != nil {
			b.partition = l.part.Partition(int32(n))
		}
		(*list)[n] = b
		l.live = append(l.live, b)
		if l.o.Known == nil || !l.o.Known(table, b.path()) {
			l.fresh++
		}
	}
	if b.cols == nil {
		b.cols = l.o.newColumns(b.schema)
	}
	return b
}

// bury writes bad records to the dead-letter table, or counts them as dropped.
func (l *Lane) bury(in *batch, src *source, bad []record.BadRecord, out *Outcome) error {
	if len(bad) == 0 {
		return nil
	}
	out.Bad += int64(len(bad))
	if l.o.Bad.Policy == BadDrop {
		for _, r := range bad {
			src.Dropped.Row(r.Row)
		}
		out.Dropped += int64(len(bad))
		return nil
	}
	sortBad(bad)
	ds, err := DeadSchema()
	if err != nil {
		return err
	}
	rec := deadBatch(ds.Arrow, in.source, bad, in.now)
	defer rec.Release()
	rows := make([]int32, len(bad))
	numbers := make([]int64, len(bad))
	for i, r := range bad {
		rows[i], numbers[i] = int32(i), r.Row
		src.DeadLettered.Row(r.Row)
	}
	if l.dead == nil {
		l.dead = &bucket{target: target{table: ledger.DeadTable, schema: l.o.dead, schemaID: l.o.deadID}}
		l.live = append(l.live, l.dead)
	}
	if l.dead.cols == nil {
		l.dead.cols = l.o.newColumns(l.dead.schema)
	}
	l.dead.append(&batch{source: in.source, rec: rec, numbers: numbers, now: in.now}, rows)
	out.Dead += int64(len(bad))
	return l.after(l.dead)
}

// Advance raises a source partition's watermark to t (microseconds): no
// earlier row is to come.
func (l *Lane) Advance(name string, t int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.sources[name]
	if s == nil || later(t, l.o.OutOfOrderness) <= s.maxTime {
		return
	}
	s.maxTime = later(t, l.o.OutOfOrderness)
	s.Watermark = t
	s.moved = true
}
