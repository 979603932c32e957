package parquetfile

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/parquet-go/parquet-go/compress/zstd"
)

// WriterOptions say how a file is encoded.
type WriterOptions struct {
	Codec     string // zstd, snappy, gzip, lz4 or none
	CreatedBy string // the footer's created_by
	// Hidden: a part that will soon be read back and rewritten: plain pages,
	// no dictionaries.
	Hidden bool
}

// Info describes a finished file.
type Info struct {
	Rows      int64
	Bytes     int64
	RowGroups int
}

// Writer encodes a file. It is reused through Reset.
type Writer struct {
	s      *Schema
	pq     *parquet.GenericWriter[any]
	out    counter
	values []parquet.Value
	info   Info
	keys   []string
}

type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

// zstdFastest is the level of published files: measured, the next one costs
// half as much again for 4 % less.
var zstdFastest = zstd.Codec{Level: zstd.SpeedFastest}

func codecOf(name string) (compress.Codec, error) {
	switch name {
	case "zstd":
		return &zstdFastest, nil
	case "snappy":
		return &parquet.Snappy, nil
	case "gzip":
		return &parquet.Gzip, nil
	case "lz4":
		return &parquet.Lz4Raw, nil
	case "none":
		return &parquet.Uncompressed, nil
	}
	return nil, fmt.Errorf("no codec %q; there are zstd, snappy, gzip, lz4 and none", name)
}

// pageBytes is the size of a data page before compression.
const pageBytes = 1 << 20

// valueChunk is how many values are handed to the encoder at once.
const valueChunk = 1024

// NewWriter starts a file. It panics on a codec that does not exist: the
// configuration has been validated.
func (s *Schema) NewWriter(w io.Writer, o WriterOptions) *Writer {
	codec, err := codecOf(o.Codec)
	if err != nil {
		panic(err)
	}
	schema := s.pq
	if o.Hidden {
		schema = s.plain
	}
	out := &Writer{s: s, values: make([]parquet.Value, valueChunk)}
	out.out.w = w
	out.pq = parquet.NewGenericWriter[any](&out.out, schema, parquet.Compression(codec),
		parquet.CreatedBy("hivesink", o.CreatedBy, ""), parquet.PageBufferSize(pageBytes), parquet.WriteBufferSize(0),
		parquet.DataPageStatistics(true))
	return out
}

// Reset starts another file with the same options.
func (w *Writer) Reset(to io.Writer) {
	w.out = counter{w: to}
	w.info = Info{}
	for _, k := range w.keys {
		w.pq.SetKeyValueMetadata(k, "")
	}
	w.pq.Reset(&w.out)
}

// Size is the number of bytes encoded so far.
func (w *Writer) Size() int64 { return w.out.n }

// WriteRowGroup writes the rows of c as one row group. No rows write nothing
// (F1).
func (w *Writer) WriteRowGroup(c *Columns) error {
	if c.rows == 0 {
		return nil
	}
	cols := w.pq.ColumnWriters()
	for i := range c.leaves {
		if err := w.writeLeaf(cols[i], i, &c.leaves[i]); err != nil {
			return fmt.Errorf("column %v: %w", c.leaves[i].path, err)
		}
	}
	if err := w.pq.Flush(); err != nil {
		return err
	}
	w.info.Rows += int64(c.rows)
	w.info.RowGroups++
	return nil
}

// writeLeaf hands a leaf's values to the encoder, chunk by chunk, cut between
// rows.
func (w *Writer) writeLeaf(cw *parquet.ColumnWriter, column int, l *leaf) error {
	var at cursor
	for at.level < len(l.defs) {
		n := min(valueChunk, len(l.defs)-at.level)
		if l.maxRep > 0 {
			n = wholeRows(l.reps[at.level:], n)
		}
		if n > len(w.values) {
			w.values = make([]parquet.Value, n)
		}
		values := w.values[:n]
		l.fill(values, column, &at)
		if _, err := cw.WriteRowValues(values); err != nil {
			return err
		}
	}
	return nil
}

// wholeRows is the smallest number of levels, at least want where there are as
// many, after which a row ends.
func wholeRows(reps []uint8, want int) int {
	for n := want; n < len(reps); n++ {
		if reps[n] == 0 {
			return n
		}
	}
	return len(reps)
}

// cursor is a place in a leaf: the next level, and the next value.
type cursor struct{ level, value int }

// fill makes the encoder's values of the next levels.
func (l *leaf) fill(out []parquet.Value, column int, at *cursor) {
	k := at.value
	for i := range out {
		def, rep := int(l.defs[at.level+i]), 0
		if l.maxRep > 0 {
			rep = int(l.reps[at.level+i])
		}
		if def < int(l.maxDef) {
			out[i] = parquet.Value{}.Level(rep, def, column)
			continue
		}
		var v parquet.Value
		switch l.phys {
		case physBool:
			v = parquet.BooleanValue(l.i32[k] != 0)
		case physInt32:
			v = parquet.Int32Value(l.i32[k])
		case physInt64:
			v = parquet.Int64Value(l.i64[k])
		case physFloat:
			v = parquet.FloatValue(l.f32[k])
		case physDouble:
			v = parquet.DoubleValue(l.f64[k])
		case physBytes:
			v = parquet.ByteArrayValue(l.at(k))
		case physFixed:
			v = parquet.FixedLenByteArrayValue(l.bytes[k*l.width : (k+1)*l.width])
		}
		out[i] = v.Level(rep, def, column)
		k++
	}
	at.level += len(out)
	at.value = k
}

// at is value k of a physBytes leaf.
func (l *leaf) at(k int) []byte {
	from := uint32(0)
	if k > 0 {
		from = l.ends[k-1]
	}
	return l.bytes[from:l.ends[k]]
}

// Close writes the footer, with meta as key/value metadata.
func (w *Writer) Close(meta map[string]string) (Info, error) {
	w.keys = slices.Sorted(maps.Keys(meta))
	for _, k := range w.keys {
		w.pq.SetKeyValueMetadata(k, meta[k])
	}
	if err := w.pq.Close(); err != nil {
		return Info{}, err
	}
	w.info.Bytes = w.out.n
	return w.info, nil
}
