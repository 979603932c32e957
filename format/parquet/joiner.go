package parquetfile

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
)

// joiner writes a file out of row groups that are encoded already, by another
// file's writer or by merge. Their metadata are kept as they will be in the
// footer, save for the places of the page index, which comes last.
type joiner struct {
	out    counter
	rows   int64
	groups []joinedGroup
	copied int
	// The page index: all column indexes, then all offset indexes, each in the
	// order of the chunks. Readers count on that.
	columnIndexes []byte
	offsetIndexes []byte

	buf    []byte            // of copying
	chunks slab[joinedChunk] // of groups
	index  pageIndexes       // of the input at hand

	// Pages of the input at hand that are in the output already, and how far
	// they moved: row groups that follow one another are copied at once.
	run      extent
	runShift int64
}

// reset forgets the files and keeps the memory.
func (j *joiner) reset() {
	clear(j.groups)
	*j = joiner{groups: j.groups[:0], buf: j.buf, columnIndexes: j.columnIndexes[:0], offsetIndexes: j.offsetIndexes[:0], index: j.index}
}

type joinedGroup struct {
	fields  []rawField // of the RowGroup, all but columns, as they were
	at      int64      // where it begins now
	columns []joinedChunk
}

type joinedChunk struct {
	raw rawColumn
	places
}

// copyBytes is how much is copied at once. The buffer is used again: made anew
// for each chunk it costs more than the copying.
const copyBytes = 256 << 10

// begin writes the first bytes of the file.
func (j *joiner) begin() error {
	if j.out.n > 0 {
		return nil
	}
	_, err := j.out.Write(magic)
	return err
}

// copyRange copies n bytes of a file from an offset on.
func (j *joiner) copyRange(r io.ReaderAt, from, n int64) error {
	if j.buf == nil {
		j.buf = make([]byte, copyBytes)
	}
	for n > 0 {
		b := j.buf[:min(n, copyBytes)]
		if got, err := r.ReadAt(b, from); got < len(b) {
			return fmt.Errorf("read %d bytes at %d: %w", len(b), from, err)
		}
		if _, err := j.out.Write(b); err != nil {
			return err
		}
		from, n = from+int64(len(b)), n-int64(len(b))
	}
	return nil
}

// extent is where a column chunk lies.
type extent struct{ from, to int64 }

// copyFile copies the row groups of an input that have rows.
func (j *joiner) copyFile(ctx context.Context, f *File) error {
	x := &j.index
	if err := f.readPageIndex(x); err != nil {
		return err
	}
	j.run = extent{}
	j.groups = room(j.groups, len(f.groups()))
	j.columnIndexes, j.offsetIndexes = room(j.columnIndexes, len(x.b)), room(j.offsetIndexes, len(x.b))
	for k := range f.groups() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if f.groups()[k].rows == 0 {
			continue // F1
		}
		if why := f.stays(&f.groups()[k]); why != "" {
			return fmt.Errorf("row group %d: its pages, of %q, cannot be copied: %s; merge them", k, f.CreatedBy(), why)
		}
		if err := j.copyRun(f, k); err != nil {
			return fmt.Errorf("row group %d: %w", k, err)
		}
		if err := j.copyGroup(f, k); err != nil {
			return fmt.Errorf("row group %d: %w", k, err)
		}
	}
	return nil
}

// copyRun copies the pages of row group k and of all that follow it without a
// gap, if that was not done before. Row groups of a few kilobytes would cost a
// read each, on remote storage a round trip.
func (j *joiner) copyRun(f *File, k int) error {
	run, ok := f.groups()[k].together()
	if !ok || run.from < j.run.to {
		return nil
	}
	for k++; k < len(f.groups()); k++ {
		g := &f.groups()[k]
		next, ok := g.together()
		if !ok || next.from != run.to || g.rows == 0 {
			break
		}
		run.to = next.to
	}
	if err := j.begin(); err != nil {
		return err
	}
	j.run, j.runShift = run, j.out.n-run.from
	return j.copyRange(f.r, run.from, run.to-run.from)
}

// together is where the pages of a row group lie, if they follow one another.
func (g *rowGroup) together() (all extent, ok bool) {
	for i := range g.columns {
		e := g.columns[i].pages()
		if i == 0 {
			all = extent{e.from, e.from}
		}
		if e.from != all.to {
			return all, false
		}
		all.to = e.to
	}
	return all, len(g.columns) > 0
}

// copyGroup copies row group k of an input byte for byte: its pages, its page
// index and its bloom filters. j.index has the input's page index.
func (j *joiner) copyGroup(f *File, k int) error {
	if err := j.begin(); err != nil {
		return err
	}
	g := &f.groups()[k]
	out := joinedGroup{fields: g.fields, columns: j.chunks.take(len(g.columns))}
	var err error
	if out.at, err = j.copyPages(f, g, out.columns); err != nil {
		return err
	}
	for i := range g.columns {
		c := &out.columns[i]
		c.raw = g.columns[i].raw
		c.signed = g.columns[i].signed(f.typ.orders[i])
		if err := j.copyBloom(f, &g.columns[i], &c.places); err != nil {
			return err
		}
		before := len(j.columnIndexes)
		j.columnIndexes = append(j.columnIndexes, j.index.columnIndex(k, i)...)
		c.columnIndexLength = int32(len(j.columnIndexes) - before)
		before = len(j.offsetIndexes)
		j.offsetIndexes = appendOffsetIndex(j.offsetIndexes, j.index.offsetIndex(k, i), c.shift, g.columns[i].pages())
		c.offsetIndexLength = int32(len(j.offsetIndexes) - before)
		if c.offsetIndexLength == 0 { // the one is of no use without the other
			j.columnIndexes = j.columnIndexes[:len(j.columnIndexes)-int(c.columnIndexLength)]
			c.columnIndexLength = 0
		}
	}
	j.groups = append(j.groups, out)
	j.rows += g.rows
	j.copied++
	return nil
}

// copyPages copies the pages of a row group, unless they lie in the run: at
// once when its chunks follow one another, else chunk by chunk. It returns where
// the row group begins.
func (j *joiner) copyPages(f *File, g *rowGroup, out []joinedChunk) (start int64, err error) {
	start = j.out.n
	if all, ok := g.together(); ok {
		shift := start - all.from
		if all.from >= j.run.from && all.to <= j.run.to {
			shift = j.runShift
		} else if err := j.copyRange(f.r, all.from, all.to-all.from); err != nil {
			return 0, err
		}
		for i := range out {
			out[i].shift = shift
		}
		return all.from + shift, nil
	}
	for i := range g.columns {
		e := g.columns[i].pages()
		out[i].shift = j.out.n - e.from
		if err := j.copyRange(f.r, e.from, e.to-e.from); err != nil {
			return 0, err
		}
	}
	return start, nil
}

// bloomHeaderBytes is more than a bloom filter's header has.
const bloomHeaderBytes = 64

// copyBloom copies a bloom filter. Old writers do not say how long it is; its
// header does. One that makes no sense is left behind.
func (j *joiner) copyBloom(f *File, c *columnChunk, p *places) error {
	at, n := c.bloom, int64(c.bloomLength)
	if at <= 0 {
		return nil
	}
	if n <= 0 {
		head := make([]byte, min(bloomHeaderBytes, max(0, f.size-at)))
		if got, err := f.r.ReadAt(head, at); got < len(head) {
			return fmt.Errorf("read the bloom filter at %d: %w", at, err)
		}
		w := walker{b: head}
		for id, typ := range w.fields {
			if id == 1 && typ == thriftI32 {
				n = w.int()
			} else {
				w.skip(typ)
			}
		}
		if w.bad || n <= 0 {
			return nil
		}
		n += int64(w.at)
	}
	if at > f.size-tailBytes-n {
		return nil
	}
	p.bloom = j.out.n
	return j.copyRange(f.r, at, n)
}

// close writes the page index and the footer.
func (j *joiner) close(f footer) (Info, error) {
	if err := j.begin(); err != nil {
		return Info{}, err
	}
	columnIndexAt := j.out.n
	offsetIndexAt := columnIndexAt + int64(len(j.columnIndexes))
	f.rows, f.count = j.rows, len(j.groups)
	f.groups = make([]byte, 0, j.encodedSize())
	for i := range j.groups {
		g := &j.groups[i]
		var err error
		if f.groups, err = g.appendTo(f.groups, i, &columnIndexAt, &offsetIndexAt); err != nil {
			return Info{}, err
		}
	}
	end := f.encode()
	if len(end) > math.MaxInt32 {
		return Info{}, fmt.Errorf("the footer of %d row groups has %d bytes, more than any reader takes: merge fewer files into one", f.count, len(end))
	}
	length := binary.LittleEndian.AppendUint32(nil, uint32(len(end)))
	for _, b := range [][]byte{j.columnIndexes, j.offsetIndexes, end, length, magic} {
		if _, err := j.out.Write(b); err != nil {
			return Info{}, err
		}
	}
	return Info{Rows: j.rows, Bytes: j.out.n, RowGroups: len(j.groups), Copied: j.copied}, nil
}

// encodedSize is about what the row groups take in the footer, or a little more.
func (j *joiner) encodedSize() (n int) {
	for i := range j.groups {
		g := &j.groups[i]
		for k := range g.columns {
			n += len(g.columns[k].raw) + moreOfPlaces
		}
		for _, f := range g.fields {
			n += len(f.value) + moreOfPlaces
		}
	}
	return n
}

// moreOfPlaces is how much longer a struct gets whose places are larger numbers.
const moreOfPlaces = 16

// appendTo appends the RowGroup, number ordinal of the file. The places of the
// page index advance.
func (g *joinedGroup) appendTo(dst []byte, ordinal int, columnIndexAt, offsetIndexAt *int64) ([]byte, error) {
	out := thriftStructOf{dst: dst}
	out.header(1, thriftList)
	out.dst = appendListHeader(out.dst, thriftStruct, len(g.columns))
	for i := range g.columns {
		c := &g.columns[i]
		c.columnIndex, c.offsetIndex = *columnIndexAt, *offsetIndexAt
		*columnIndexAt += int64(c.columnIndexLength)
		*offsetIndexAt += int64(c.offsetIndexLength)
		var err error
		if out.dst, err = c.raw.appendTo(out.dst, &c.places); err != nil {
			return nil, err
		}
	}
	for _, f := range g.fields {
		switch {
		case f.id == 5: // file_offset
			out.int(f.id, f.typ, g.at)
		case f.id == 7: // ordinal: a number of 16 bits
			if ordinal <= math.MaxInt16 {
				out.int(f.id, f.typ, int64(ordinal))
			}
		default:
			out.raw(f.id, f.typ, f.value)
		}
	}
	return out.end(), nil
}
