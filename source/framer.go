package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/hivesink/hivesink/format"
	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/record"
)

// chunkBytes is how much is read at a time, and the first size of a buffer.
const chunkBytes = 256 << 10

// rawBytes is how much is kept of a record that is too long.
const rawBytes = 4 << 10

// terminatorBytes is how long a line end is at most.
const terminatorBytes = 2

// errQuiet says that no bytes have come for a while.
var errQuiet = errors.New("source: no bytes have come for a while")

// input delivers the decompressed bytes of a split.
type input interface {
	// read reads into p. At the end it returns io.EOF without bytes. Unless
	// patient it may return errQuiet. When ctx ends it returns its error, and
	// may be called again.
	read(ctx context.Context, p []byte, patient bool) (int, error)
	// seek goes to a decompressed offset; ok is false when that cannot be done.
	seek(offset int64) (ok bool, err error)
	// mark completes the position of a batch: size and fingerprint.
	mark(p *position)
	// resumed checks, at p, that this is the input that p was taken from.
	resumed(p position) error
	close() error
}

// framer is the reader of bytes: it finds the records and decodes them.
//
//	buf:   ...consumed... | r: not framed yet ... | w: free
type framer struct {
	name string // for people
	in   input
	o    Options
	form recordFormat
	from position
	stop string // what to do about a damaged input

	split format.Splitter
	dec   format.RowDecoder // nil before start, and when there is no header

	buf     []byte
	r, w    int
	counted int   // the line ends before buf[counted] are in line
	line    int64 // line ends before buf[counted]
	offset  int64 // decompressed offset of buf[r], or of the long record being passed over
	row     int64 // number of the next record
	eof     bool
	readErr error // of the input, reported when all before it is delivered
	open    bool  // the last record had no line end

	started bool
	long    *longRecord
	batch   *record.Batch // being filled
	rows    []int64       // its row numbers, from its first bad record on
	begun   int64         // offset at its start
	cut     bool          // it ends here: the next record is a bad one too many
	err     error         // final
}

// longRecord is a record of more than max_record bytes of which the end has
// not been seen yet.
type longRecord struct {
	raw   []byte // its first bytes
	place string
	size  int64
	lines int64
	end   recordEnd
}

func newFramer(name, remedy string, in input, o Options, form recordFormat, from position, nextRow int64) *framer {
	return &framer{
		name: name, stop: remedy, in: in, o: o, form: form, from: from, row: nextRow,
		split: form.splitter(), buf: make([]byte, chunkBytes),
	}
}

// Read implements Reader.
func (f *framer) Read(ctx context.Context) (*record.Batch, error) {
	if f.err != nil {
		return nil, f.err
	}
	b, err := f.next(ctx)
	if err != nil && ctx.Err() == nil {
		f.err = err
	}
	return b, err
}

func (f *framer) next(ctx context.Context) (*record.Batch, error) {
	if !f.started {
		if err := f.start(ctx); err != nil {
			return nil, err
		}
		f.started = true
	}
	if f.batch == nil {
		f.batch, f.rows, f.begun = &record.Batch{FirstRow: f.row}, nil, f.offset
	}
	for !f.full() {
		took, err := f.step()
		if err != nil {
			return nil, err
		}
		if took {
			continue
		}
		if f.cut {
			f.cut = false
			break
		}
		if f.eof {
			f.batch.End = true
			f.err = io.EOF
			break
		}
		if f.readErr != nil { // S4: only now that all before it is in
			if f.row == f.batch.FirstRow {
				return nil, f.readErr
			}
			break
		}
		err = f.fill(ctx, f.row == f.batch.FirstRow)
		if errors.Is(err, errQuiet) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	return f.deliver(), nil
}

// full says whether the batch has reached a limit (S5). The bytes read are the
// measure; columns that take more memory than their text are asked now and
// then.
func (f *framer) full() bool {
	rows := f.row - f.batch.FirstRow
	return rows >= int64(f.o.BatchRows) || f.offset-f.begun >= f.o.BatchBytes ||
		rows%sizeEvery == sizeEvery-1 && f.dec != nil && f.dec.Size() >= f.o.BatchBytes
}

// sizeEvery is how many rows go by between two questions for the size of the
// columns.
const sizeEvery = 64

func (f *framer) deliver() *record.Batch {
	b := f.batch
	f.batch = nil
	b.Count = f.row - b.FirstRow
	b.Bytes = f.offset - f.begun
	if f.dec != nil {
		b.UnknownKeys = f.dec.UnknownKeys()
		b.Record = f.dec.NewBatch()
	}
	if b.Record != nil {
		b.Rows = f.rows
	}
	p := position{Offset: f.offset, Line: f.lineAt(f.r), Open: f.open, End: b.End}
	f.in.mark(&p)
	b.Position = p.String()
	return b
}

// step consumes one record, or part of a long one, from the buffer. took is
// false when it needs more bytes.
func (f *framer) step() (took bool, err error) {
	if f.long != nil {
		return f.passLong(), nil
	}
	rec, n := f.frame()
	switch {
	case n == 0 && f.tooLong():
		if f.cutBeforeBad() {
			return false, nil
		}
		f.beginLong()
		return true, nil
	case n == 0:
		return false, nil
	case int64(len(rec)) > f.o.MaxRecord:
		if f.cutBeforeBad() {
			return false, nil
		}
		f.bad(record.BadRecord{Place: f.place(), Class: record.ClassTooLong,
			Reason: f.longReason(), Raw: bytes.Clone(rec[:min(f.o.MaxRecord, rawBytes)])})
	case len(rec) > 0:
		if err := f.decode(rec); err != nil || f.cut {
			return false, err
		}
	}
	f.r += n
	f.offset += int64(n)
	return true, nil
}

// frame finds the record at buf[r]. The splitter never sees more than a record
// of the longest length and its line end, so that what is too long does not
// depend on how the bytes arrived (S2).
func (f *framer) frame() (rec []byte, n int) {
	view, whole := f.buf[f.r:f.w], f.eof
	if limit := int(f.o.MaxRecord) + terminatorBytes; len(view) > limit {
		view, whole = view[:limit], false
	}
	if len(view) == 0 {
		return nil, 0
	}
	rec, n = f.split.Next(view, whole)
	if n == 0 && whole {
		rec, n = view, len(view)
	}
	if n > 0 {
		f.open = whole && view[n-1] != '\n'
	}
	return rec, n
}

// tooLong says that frame was shown a record of the longest length and found
// no end.
func (f *framer) tooLong() bool {
	return f.w-f.r >= int(f.o.MaxRecord)+terminatorBytes
}

// decode appends one record to the batch, as a row or as a bad record.
func (f *framer) decode(rec []byte) error {
	if err := f.dec.Append(rec); err != nil {
		e, ok := err.(*format.Error)
		if !ok && !errors.As(err, &e) {
			return fault.Wrap(fault.Halt, "", fmt.Errorf("decode %s: %w", f.place(), err))
		}
		if !f.cutBeforeBad() {
			f.bad(record.BadRecord{Place: f.place(), Class: e.Class, Reason: e.Error(), Raw: bytes.Clone(rec)})
		}
		return nil
	}
	if f.rows != nil {
		f.rows = append(f.rows, f.row)
	}
	f.row++
	return nil
}

// cutBeforeBad ends the batch before a bad record that the run does not admit.
// It is then the first of the next batch.
func (f *framer) cutBeforeBad() bool {
	f.cut = f.o.BadBudget != nil && f.o.BadBudget.Load() <= 0 && f.row > f.batch.FirstRow
	if f.cut {
		f.open = false // the record before had a line end, as another follows
	}
	return f.cut
}

// bad takes the next row number for a bad record.
func (f *framer) bad(b record.BadRecord) {
	if f.o.BadBudget != nil {
		f.o.BadBudget.Add(-1)
	}
	if f.rows == nil {
		f.rows = make([]int64, f.row-f.batch.FirstRow, f.o.BatchRows)
		for i := range f.rows {
			f.rows[i] = f.batch.FirstRow + int64(i)
		}
	}
	b.Row = f.row
	f.row++
	f.batch.Bad = append(f.batch.Bad, b)
}

// place is where the record at buf[r] is, for people.
func (f *framer) place() string {
	return fmt.Sprintf("%s line %d", f.name, f.lineAt(f.r)+1)
}

// lineAt is the number of line ends before buf[i]. Lines are counted when
// somebody asks, and before bytes leave the buffer.
func (f *framer) lineAt(i int) int64 {
	if i > f.counted {
		f.line += int64(bytes.Count(f.buf[f.counted:i], newline))
		f.counted = i
	}
	return f.line
}

var newline = []byte{'\n'}

// fill reads more bytes. An error of the input goes to readErr, because what
// came before it is to be delivered first; only errQuiet and the end of ctx
// are returned.
func (f *framer) fill(ctx context.Context, patient bool) error {
	if f.w == len(f.buf) {
		f.lineAt(f.r)
		if f.r == 0 { // one record fills it: at most max_record + a chunk (S5)
			grown := make([]byte, min(2*len(f.buf), int(f.o.MaxRecord)+terminatorBytes+chunkBytes))
			copy(grown, f.buf[:f.w])
			f.buf = grown
		} else {
			f.w = copy(f.buf, f.buf[f.r:f.w])
			f.r, f.counted = 0, 0
		}
	}
	n, err := f.in.read(ctx, f.buf[f.w:], patient)
	f.w += n
	switch {
	case err == nil:
	case errors.Is(err, errQuiet):
		return err
	case errors.Is(err, io.EOF):
		f.eof = true
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return err
	default:
		at := f.offset + int64(f.w-f.r)
		if f.long != nil {
			at += f.long.size
		}
		f.readErr = fault.Wrap(fault.Halt, remedyOr(err, f.stop), fmt.Errorf("read %s at offset %d of its decompressed bytes: %w", f.name, at, err))
	}
	return nil
}

// remedyOr is remedy, unless err has one of its own.
func remedyOr(err error, remedy string) string {
	var known *fault.Error
	if errors.As(err, &known) && known.Hint != "" {
		return ""
	}
	return remedy
}

// Close implements Reader.
func (f *framer) Close() error {
	if f.dec != nil {
		f.dec.Release()
		f.dec = nil
	}
	if f.err == nil {
		f.err = fmt.Errorf("read %s: the reader is closed", f.name)
	}
	return f.in.close()
}
