package writer

import (
	"bufio"
	"fmt"
	"path"

	"github.com/hivesink/hivesink/format/parquet"
	"github.com/hivesink/hivesink/layout"
	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/record"
	"github.com/hivesink/hivesink/rolling"
	"github.com/hivesink/hivesink/storage"
)

// target is the table a bucket belongs to.
type target struct {
	table    string // ledger.MainTable, DeadTable, LateTable
	schema   *parquetfile.Schema
	schemaID string
}

// bucket is the rows of one partition of one lane that are in no closed part.
type bucket struct {
	target
	partition  *record.Partition // nil: unpartitioned
	cols       *parquetfile.Columns
	charged    int64 // bytes of cols charged to the budget
	part       *openPart
	sources    map[string]*ledger.Range
	lastSource string
	lastRange  *ledger.Range
	rows       int64
	minTime    int64
	maxTime    int64
	timed      bool
	firstWrite int64
	lastWrite  int64
	final      string // the final file name, once it is drawn (W7)
}

// openPart is a part file that has at least one row group already.
type openPart struct {
	id   string
	file storage.File
	room storage.Scratch // in place of file (W7)
	buf  *bufio.Writer
	enc  *parquetfile.Writer
	key  parquetKey
	kept bool // counted in Budget.open
}

func (b *bucket) path() string {
	if b.partition == nil {
		return ""
	}
	return b.partition.Path
}

// append adds the chosen rows (at least one, ascending) of a batch.
func (b *bucket) append(in *batch, rows []int32) {
	b.cols.Append(in.rec, rows)
	if b.rows == 0 {
		b.firstWrite = in.now
	}
	b.lastWrite = in.now
	b.rows += int64(len(rows))
	r := b.rangeOf(in.source)
	if r.Rows == 0 {
		r.First = in.numbers[rows[0]]
	}
	r.Last = in.numbers[rows[len(rows)-1]] // row numbers of a source partition only go up
	hash := r.Hash
	for _, i := range rows {
		hash += ledger.RowHash(in.numbers[i])
	}
	r.Hash = hash
	r.Rows += int64(len(rows))
	if in.times != nil {
		b.span(in, rows)
	}
}

// span widens the bucket's event-time span.
func (b *bucket) span(in *batch, rows []int32) {
	for _, i := range rows {
		t := in.times[i]
		switch {
		case t == noTime:
		case !b.timed:
			b.minTime, b.maxTime, b.timed = t, t, true
		default:
			b.minTime, b.maxTime = min(b.minTime, t), max(b.maxTime, t)
		}
	}
}

// rangeOf is what the bucket holds of a source partition.
func (b *bucket) rangeOf(source string) *ledger.Range {
	if b.lastRange != nil && b.lastSource == source {
		return b.lastRange
	}
	if b.sources == nil {
		b.sources = make(map[string]*ledger.Range, 1)
	}
	r := b.sources[source]
	if r == nil {
		r = new(ledger.Range)
		b.sources[source] = r
	}
	b.lastSource, b.lastRange = source, r
	return r
}

// age is what the rolling policy looks at.
func (b *bucket) age() rolling.File {
	return rolling.File{Rows: b.rows, Opened: b.firstWrite, LastWrite: b.lastWrite, Bytes: b.cols.Bytes() + b.written()}
}

// flushGroup writes the buffered rows as one row group, opening the part file
// when there is none.
func (o *Options) flushGroup(b *bucket, full bool) error {
	if b.cols.Rows() == 0 {
		return nil
	}
	if b.part == nil {
		p, err := o.openPart(b, full)
		if err != nil {
			return err
		}
		b.part = p
	}
	if err := b.part.enc.WriteRowGroup(b.cols); err != nil {
		return fmt.Errorf("encode part %s: %w", b.part.id, err)
	}
	b.cols.Reset()
	o.recharge(b)
	return nil
}

// recharge brings the budget in line with what the bucket buffers now.
func (o *Options) recharge(b *bucket) {
	if n := b.cols.Bytes(); n != b.charged {
		o.Budget.charge(n - b.charged)
		b.charged = n
	}
}

// openPart creates a part file. A large one gets the table's encoding: its
// pages are moved to the target, or it is published as it is. Of a small one
// the pages would be encoded again, so it gets the cheapest encoding.
func (o *Options) openPart(b *bucket, full bool) (*openPart, error) {
	p := &openPart{id: fmt.Sprintf("%016x", o.Random())}
	p.key = parquetKey{schema: b.schema, codec: o.Codec}
	if !full && o.small(b) {
		p.key.codec, p.key.hidden = o.HiddenCodec, true
	}
	if o.Direct != nil {
		p.room = o.Direct.Room()
		p.buf = bufio.NewWriterSize(p.room, 256<<10)
	} else {
		file, err := o.FS.Create(path.Join(o.Staging, layout.StagedPart(p.id)))
		if err != nil {
			return nil, fmt.Errorf("create part file: %w", err)
		}
		p.file = file
		p.buf = bufio.NewWriterSize(file, 256<<10)
	}
	p.enc = o.encoder(p.key, p.buf)
	return p, nil
}

// closePart closes the bucket's part file and returns it as a durable part
// (its directory entry is synced by Cut.Flush). The bucket is left empty.
func (o *Options) closePart(b *bucket) (*ledger.Part, error) {
	if b.rows == 0 {
		return nil, nil
	}
	full := b.part != nil
	if err := o.flushGroup(b, false); err != nil {
		return nil, err
	}
	p := b.part
	out, meta, err := o.describe(b, p.id, p.key)
	if err != nil {
		return nil, err
	}
	out.Name, out.Full, out.Final = layout.StagedPart(p.id), full, !p.key.hidden
	if o.Direct != nil {
		out.Name = b.final
	}
	if err := o.finish(p, meta, out); err != nil {
		return nil, fmt.Errorf("close part %s of partition %q: %w", p.id, out.Partition, err)
	}
	b.clear()
	return out, nil
}

// clear forgets the rows, which are in a closed part.
func (b *bucket) clear() {
	*b = bucket{target: b.target, partition: b.partition, cols: b.cols, charged: b.charged}
}

// describe is the fact of a part with all of the bucket's rows, but for where
// its bytes are, and what its footer says (W4).
func (o *Options) describe(b *bucket, id string, key parquetKey) (*ledger.Part, map[string]string, error) {
	out := &ledger.Part{
		ID: id, Table: b.table, Partition: b.path(), Epoch: o.Epoch,
		Rows: b.rows, FirstWrite: b.firstWrite, Schema: b.schemaID, Codec: key.codec,
		Sources: make(map[string]ledger.Range, len(b.sources)),
	}
	if b.timed {
		out.MinTime, out.MaxTime = b.minTime, b.maxTime
	}
	if b.partition != nil {
		out.Closes = b.partition.Closes
	}
	for name, r := range b.sources {
		out.Sources[name] = *r
	}
	meta, err := (&ledger.Footer{Pipeline: o.Pipeline, TableID: o.TableID, Epoch: o.Epoch, Table: b.table,
		Partition: out.Partition, Leaves: []string{id}, Sources: out.Sources}).Encode()
	return out, meta, err
}

// finish makes a part's bytes durable (W3, W4). A failed sync condemns the
// file: it is never tried again.
func (o *Options) finish(p *openPart, meta map[string]string, out *ledger.Part) error {
	info, err := p.enc.Close(meta)
	if err == nil && info.Rows != out.Rows {
		err = fmt.Errorf("the file has %d rows, %d were written", info.Rows, out.Rows)
	}
	switch {
	case o.Direct == nil:
		err = p.seal(err)
	case err == nil:
		out.Upload, err = p.upload(o.Direct, o.Direct.Path(out.Table, out.Partition, out.Name))
	default:
		_ = p.room.Close() // the first error is the one that counts
	}
	if p.kept {
		o.Budget.closed()
		p.kept = false
	}
	if err != nil {
		return err
	}
	o.idle(p)
	out.Bytes = info.Bytes
	return nil
}

// seal makes the file durable, unless something has gone wrong before, and
// closes it in any case.
func (p *openPart) seal(err error) error {
	if err == nil {
		err = p.buf.Flush()
	}
	if err == nil {
		err = p.file.Sync()
	}
	if cerr := p.file.Close(); err == nil {
		err = cerr
	}
	return err
}

// encoder takes an idle encoder or makes one.
func (o *Options) encoder(key parquetKey, w *bufio.Writer) *parquetfile.Writer {
	o.mu.Lock()
	list := o.writers[key]
	if n := len(list); n > 0 {
		enc := list[n-1]
		o.writers[key] = list[:n-1]
		o.mu.Unlock()
		enc.Reset(w)
		return enc
	}
	o.mu.Unlock()
	return key.schema.NewWriter(w, parquetfile.WriterOptions{Codec: key.codec, CreatedBy: o.CreatedBy, Hidden: key.hidden})
}

// maxIdle bounds how many encoders are kept for reuse.
const maxIdle = 8

func (o *Options) idle(p *openPart) {
	o.mu.Lock()
	if list := o.writers[p.key]; len(list) < maxIdle {
		o.writers[p.key] = append(list, p.enc)
	}
	o.mu.Unlock()
}

func (o *Options) newColumns(s *parquetfile.Schema) *parquetfile.Columns {
	o.mu.Lock()
	defer o.mu.Unlock()
	list := o.columns[s]
	if n := len(list); n > 0 {
		o.columns[s] = list[:n-1]
		o.idleBytes -= list[n-1].Memory()
		return list[n-1]
	}
	return s.NewColumns()
}

// idleShare is the part of the budget that column buffers between two buckets
// may take: what grew to the size of a bucket need not grow again.
const idleShare = 8

// releaseColumns gives a bucket's buffer back.
func (o *Options) releaseColumns(b *bucket) {
	if b.cols == nil {
		return
	}
	o.Budget.charge(-b.charged)
	b.charged = 0
	b.cols.Reset()
	o.mu.Lock()
	if n := b.cols.Memory(); o.idleBytes+n <= o.Budget.limit/idleShare {
		o.columns[b.schema] = append(o.columns[b.schema], b.cols)
		o.idleBytes += n
	}
	o.mu.Unlock()
	b.cols = nil
}
