package parquetfile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/parquet-go/parquet-go/compress"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// WriterOptions say how a file is encoded.
type WriterOptions struct {
	Codec     string // zstd, snappy, gzip, lz4 or none
	CreatedBy string // the footer's created_by; "" is "hivesink"
	// Hidden: a part that will soon be read back and rewritten: plain pages,
	// no dictionaries, no minima and maxima.
	Hidden bool
}

// Info describes a finished file.
type Info struct {
	Rows      int64
	Bytes     int64
	RowGroups int
	Copied    int // row groups that are an input's, byte for byte
}

// Writer encodes a file. It is reused through Reset.
type Writer struct {
	s     *Schema
	o     WriterOptions
	asked WriterOptions // before defaults
	codec compress.Codec
	kind  format.CompressionCodec
	out   *counter
	info  Info

	groups        []format.RowGroup
	columnIndexes []format.ColumnIndex // one for each chunk
	offsetIndexes []format.OffsetIndex

	head                          bytes.Buffer
	thrift                        *thrift.Encoder
	body, packed, levels, indexes []byte
	dict                          dictionary
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

// NewWriter starts a file. It panics on a codec that does not exist: the
// configuration has been validated.
func (s *Schema) NewWriter(w io.Writer, o WriterOptions) *Writer {
	codec, err := codecOf(o.Codec)
	if err != nil {
		panic(err)
	}
	asked := o
	if o.CreatedBy == "" {
		o.CreatedBy = "hivesink"
	}
	out := &Writer{s: s, o: o, asked: asked, codec: codec, kind: codec.CompressionCodec(), out: &counter{w: w}}
	out.thrift = thrift.NewEncoder(new(thrift.CompactProtocol).NewWriter(&out.head))
	return out
}

// Reset starts another file with the same options.
func (w *Writer) Reset(to io.Writer) {
	*w.out = counter{w: to}
	w.info = Info{}
	w.groups, w.columnIndexes, w.offsetIndexes = w.groups[:0], w.columnIndexes[:0], w.offsetIndexes[:0]
}

// Size is the number of bytes encoded so far.
func (w *Writer) Size() int64 { return w.out.n }

// WriteRowGroup writes the rows of c as one row group. No rows write nothing
// (F1).
func (w *Writer) WriteRowGroup(c *Columns) error {
	if c.rows == 0 {
		return nil
	}
	if err := w.begin(); err != nil {
		return err
	}
	g := format.RowGroup{Columns: make([]format.ColumnChunk, len(c.leaves)), NumRows: int64(c.rows),
		FileOffset: w.out.n, Ordinal: int16(len(w.groups))}
	for i := range c.leaves {
		if err := w.writeChunk(&c.leaves[i], &g, i); err != nil {
			return fmt.Errorf("column %v: %w", c.leaves[i].path, err)
		}
		g.TotalByteSize += g.Columns[i].MetaData.TotalUncompressedSize
		g.TotalCompressedSize += g.Columns[i].MetaData.TotalCompressedSize
	}
	w.groups = append(w.groups, g)
	w.info.Rows += int64(c.rows)
	w.info.RowGroups++
	return nil
}

// begin writes the first bytes of a file.
func (w *Writer) begin() error {
	if w.out.n > 0 {
		return nil
	}
	_, err := w.out.Write(magic)
	return err
}

// at is value k of a physBytes leaf.
func (l *leaf) at(k int) []byte {
	from := uint32(0)
	if k > 0 {
		from = l.ends[k-1]
	}
	return l.bytes[from:l.ends[k]]
}

// Close writes the page index and the footer, with meta as key/value metadata.
func (w *Writer) Close(meta map[string]string) (Info, error) {
	if err := w.begin(); err != nil {
		return Info{}, err
	}
	if err := w.writePageIndex(); err != nil {
		return Info{}, err
	}
	footer := format.FileMetaData{Version: 2, Schema: w.s.elements, ColumnOrders: w.s.orders, NumRows: w.info.Rows,
		RowGroups: w.groups, CreatedBy: w.o.CreatedBy}
	meta = w.s.said(meta)
	for _, k := range slices.Sorted(maps.Keys(meta)) {
		footer.KeyValueMetadata = append(footer.KeyValueMetadata, format.KeyValue{Key: k, Value: meta[k]})
	}
	n, err := w.writeThrift(&footer)
	if err != nil {
		return Info{}, err
	}
	if _, err := w.out.Write(append(binary.LittleEndian.AppendUint32(nil, uint32(n)), magic...)); err != nil {
		return Info{}, err
	}
	w.info.Bytes = w.out.n
	return w.info, nil
}

// writePageIndex writes the column indexes, then the offset indexes.
func (w *Writer) writePageIndex() (err error) {
	columns := len(w.s.leaves)
	for k := range w.columnIndexes {
		if x := &w.columnIndexes[k]; len(x.NullPages) > 0 {
			c := &w.groups[k/columns].Columns[k%columns]
			c.ColumnIndexOffset = w.out.n
			if c.ColumnIndexLength, err = w.writeThrift(x); err != nil {
				return err
			}
		}
	}
	for k := range w.offsetIndexes {
		c := &w.groups[k/columns].Columns[k%columns]
		c.OffsetIndexOffset = w.out.n
		if c.OffsetIndexLength, err = w.writeThrift(&w.offsetIndexes[k]); err != nil {
			return err
		}
	}
	return nil
}

func (w *Writer) writeThrift(v any) (int32, error) {
	w.head.Reset()
	if err := w.thrift.Encode(v); err != nil {
		return 0, err
	}
	_, err := w.out.Write(w.head.Bytes())
	return int32(w.head.Len()), err
}
