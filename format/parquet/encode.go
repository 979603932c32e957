package parquetfile

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"math"
	"slices"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/rle"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// Limits of a page. A page ends between two rows at the first limit; hidden
// parts have no limit of rows, for nobody looks anything up in them.
const (
	pageBytes = 1 << 20 // of values, before compression
	pageRows  = 32 << 10
)

// chunk is a column of a row group being written.
type chunk struct {
	l      *leaf // its type; and its values, if they are all there
	meta   *format.ColumnMetaData
	index  *format.ColumnIndex
	places *format.OffsetIndex
	rows   int // in the pages written so far
	bounds bounds
	blind  bool // a page with values but no bounds (NaN only): no column index
	vague  bool // a page whose bounds may not be values: no statistics
	stats  []format.PageEncodingStats
}

// span is part of a leaf: its levels [from, to) and the values that are there
// for them.
type span struct {
	from, to           int // levels
	firstRow, rows     int
	firstValue, values int
}

// writeChunk writes a leaf as one column chunk.
func (w *Writer) writeChunk(l *leaf, group *format.RowGroup, i int) error {
	c := w.startChunk(l, &group.Columns[i], i)
	dict := !w.o.Hidden && w.dict.build(l)
	if dict {
		if err := w.writeDictionary(&c); err != nil {
			return err
		}
	}
	if err := w.writeLeaf(&c, l, dict); err != nil {
		return err
	}
	w.finishChunk(&c)
	return nil
}

func (w *Writer) startChunk(l *leaf, col *format.ColumnChunk, i int) chunk {
	w.columnIndexes = append(w.columnIndexes, format.ColumnIndex{})
	w.offsetIndexes = append(w.offsetIndexes, format.OffsetIndex{})
	col.MetaData = format.ColumnMetaData{Type: w.s.parquetType[i], PathInSchema: l.path, Codec: w.kind}
	return chunk{l: l, meta: &col.MetaData, index: &w.columnIndexes[len(w.columnIndexes)-1], places: &w.offsetIndexes[len(w.offsetIndexes)-1]}
}

// writeLeaf writes the values of a leaf as pages; dict: by their numbers in
// the dictionary.
func (w *Writer) writeLeaf(c *chunk, l *leaf, dict bool) error {
	for at := (span{}); at.to < len(l.defs); {
		at = w.nextPage(l, at, dict)
		if err := w.writePage(c, l, at, dict); err != nil {
			return err
		}
	}
	return nil
}

// nextPage cuts the page after at: as many whole rows as fit.
func (w *Writer) nextPage(l *leaf, at span, dict bool) span {
	next := span{from: at.to, firstRow: at.firstRow + at.rows, firstValue: at.firstValue + at.values}
	maxRows := pageRows
	if w.o.Hidden {
		maxRows = math.MaxInt
	}
	if l.maxRep == 0 {
		return w.flatPage(l, next, maxRows, dict)
	}
	size, rows, values := 0, 0, 0
	for i := next.from; i < len(l.defs); i++ {
		if l.reps[i] == 0 {
			if rows == maxRows || size >= pageBytes {
				next.to, next.rows, next.values = i, rows, values
				return next
			}
			rows++
		}
		size += 2
		if l.defs[i] == l.maxDef {
			if dict {
				size += 4
			} else {
				size += l.size(next.firstValue + values)
			}
			values++
		}
	}
	next.to, next.rows, next.values = len(l.defs), rows, values
	return next
}

// flatPage cuts a page of a column without repetition: a level is a row.
func (w *Writer) flatPage(l *leaf, p span, maxRows int, dict bool) span {
	n := min(len(l.defs)-p.from, maxRows)
	switch {
	case l.phys != physBytes:
		n = min(n, pageBytes/l.size(0))
	case !dict:
		n = min(n, l.textRows(p.firstValue, n))
	}
	p.to, p.rows = p.from+n, n
	p.values = bytes.Count(l.defs[p.from:p.to], []byte{l.maxDef})
	return p
}

// textRows is how many rows from value k fill a page, counting every row as a
// value: too few when there are nulls, which does no harm.
func (l *leaf) textRows(k, most int) int {
	start := uint32(0)
	if k > 0 {
		start = l.ends[k-1]
	}
	lo, hi := 0, min(most, len(l.ends)-k)
	if hi == 0 || int(l.ends[k+hi-1]-start)+4*hi <= pageBytes {
		return most
	}
	for lo < hi { // the first count that fills a page
		m := (lo + hi) / 2
		if int(l.ends[k+m]-start)+4*(m+1) >= pageBytes {
			hi = m
		} else {
			lo = m + 1
		}
	}
	return lo + 1
}

// size is the encoded size of value k.
func (l *leaf) size(k int) int {
	switch l.phys {
	case physBool:
		return 1
	case physInt32, physFloat:
		return 4
	case physInt64, physDouble:
		return 8
	case physFixed:
		return l.width
	}
	return 4 + len(l.at(k))
}

// writePage encodes, compresses and writes one data page.
func (w *Writer) writePage(c *chunk, l *leaf, p span, dict bool) error {
	body := w.body[:0]
	var err error
	if l.maxRep > 0 {
		if body, err = w.appendLevels(body, l.reps[p.from:p.to], l.maxRep); err != nil {
			return err
		}
	}
	if l.maxDef > 0 {
		if body, err = w.appendLevels(body, l.defs[p.from:p.to], l.maxDef); err != nil {
			return err
		}
	}
	encoding := format.Plain
	if dict {
		encoding = format.RLEDictionary
		if w.indexes, err = parquet.RLEDictionary.EncodeInt32(w.indexes[:0], w.dict.ids[p.firstValue:p.firstValue+p.values]); err != nil {
			return err
		}
		body = append(body, w.indexes...)
	} else {
		body = l.appendPlain(body, p.firstValue, p.values)
	}
	w.body = body
	nulls := int64(p.to - p.from - p.values)
	header := format.PageHeader{Type: format.DataPage, DataPageHeader: thrift.New(format.DataPageHeader{
		NumValues: int32(p.to - p.from), Encoding: encoding,
		DefinitionLevelEncoding: format.RLE, RepetitionLevelEncoding: format.RLE,
		Statistics: format.Statistics{NullCount: nulls}, // the library writes it anyhow
	})}
	at := w.out.n
	if err := w.emit(c.meta, &header, body); err != nil {
		return err
	}
	c.placed(format.DataPage, encoding, at, w.out.n, p.to-p.from, p.rows, nulls)
	if !w.o.Hidden {
		b := bounds{}
		if dict {
			b = w.dict.bounds(l, w.dict.ids[p.firstValue:p.firstValue+p.values])
		} else {
			b = l.bounds(p.firstValue, p.values)
		}
		c.record(b, p.values, nulls)
	}
	return nil
}

// placed counts a data page that lies in the file now.
func (c *chunk) placed(kind format.PageType, encoding format.Encoding, from, to int64, values, rows int, nulls int64) {
	if len(c.places.PageLocations) == 0 {
		c.meta.DataPageOffset = from
	}
	c.places.PageLocations = append(c.places.PageLocations, format.PageLocation{
		Offset: from, CompressedPageSize: int32(to - from), FirstRowIndex: int64(c.rows)})
	c.rows += rows
	c.meta.NumValues += int64(values)
	c.meta.Statistics.NullCount += nulls
	c.count(kind, encoding)
}

func (c *chunk) count(kind format.PageType, encoding format.Encoding) {
	for i := range c.stats {
		if c.stats[i].PageType == kind && c.stats[i].Encoding == encoding {
			c.stats[i].Count++
			return
		}
	}
	c.stats = append(c.stats, format.PageEncodingStats{PageType: kind, Encoding: encoding, Count: 1})
}

// emit compresses a page body and writes it behind its header.
func (w *Writer) emit(meta *format.ColumnMetaData, header *format.PageHeader, body []byte) error {
	packed := body
	if w.kind != format.Uncompressed {
		var err error
		if w.packed, err = w.codec.Encode(w.packed[:0], body); err != nil {
			return err
		}
		packed = w.packed
	}
	return w.emitPacked(meta, header, len(body), packed)
}

// emitPacked writes a page body that is compressed already; size is what it
// was before.
func (w *Writer) emitPacked(meta *format.ColumnMetaData, header *format.PageHeader, size int, packed []byte) error {
	header.UncompressedPageSize = int32(size)
	header.CompressedPageSize = int32(len(packed))
	header.CRC = int32(crc32.ChecksumIEEE(packed))
	w.head.Reset()
	if err := w.thrift.Encode(header); err != nil {
		return err
	}
	if _, err := w.out.Write(w.head.Bytes()); err != nil {
		return err
	}
	if _, err := w.out.Write(packed); err != nil {
		return err
	}
	meta.TotalUncompressedSize += int64(w.head.Len() + size)
	meta.TotalCompressedSize += int64(w.head.Len() + len(packed))
	return nil
}

func (w *Writer) writeDictionary(c *chunk) error {
	c.meta.DictionaryPageOffset = w.out.n
	c.count(format.DictionaryPage, format.Plain)
	body := w.body[:0]
	if c.l.phys == physBytes {
		for id := range w.dict.len() {
			body = appendText(body, w.dict.at(id))
		}
	} else {
		body = append(body, w.dict.bytes...)
	}
	w.body = body
	header := format.PageHeader{Type: format.DictionaryPage, DictionaryPageHeader: thrift.New(format.DictionaryPageHeader{
		NumValues: int32(w.dict.len()), Encoding: format.Plain})}
	return w.emit(c.meta, &header, body)
}

// appendLevels appends levels as data page V1 has them: a length, and runs. A
// page where all are the same is one run.
func (w *Writer) appendLevels(dst []byte, levels []uint8, maxLevel uint8) ([]byte, error) {
	at := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	if bytes.Count(levels, levels[:1]) == len(levels) {
		dst = binary.AppendUvarint(dst, uint64(len(levels))<<1)
		dst = append(dst, levels[0]) // a level fits a byte
	} else {
		e := rle.Encoding{BitWidth: bitsOf(maxLevel)}
		var err error
		if w.levels, err = e.EncodeLevels(w.levels[:0], levels); err != nil {
			return nil, err
		}
		dst = append(dst, w.levels...)
	}
	binary.LittleEndian.PutUint32(dst[at:], uint32(len(dst)-at-4))
	return dst, nil
}

func bitsOf(level uint8) int {
	n := 0
	for ; level > 0; level >>= 1 {
		n++
	}
	return n
}

// appendPlain appends n values from value k on, encoded PLAIN.
func (l *leaf) appendPlain(dst []byte, k, n int) []byte {
	switch l.phys {
	case physBool:
		return appendBits(dst, l.i32[k:k+n])
	case physInt32:
		return appendFixed(dst, l.i32[k:k+n])
	case physInt64:
		return appendFixed(dst, l.i64[k:k+n])
	case physFloat:
		return appendFixed(dst, l.f32[k:k+n])
	case physDouble:
		return appendFixed(dst, l.f64[k:k+n])
	case physFixed:
		return append(dst, l.bytes[k*l.width:(k+n)*l.width]...)
	}
	if n == 0 {
		return dst
	}
	from := uint32(0)
	if k > 0 {
		from = l.ends[k-1]
	}
	at := len(dst)
	dst = growTo(dst, at+4*n+int(l.ends[k+n-1]-from))
	for _, end := range l.ends[k : k+n] {
		binary.LittleEndian.PutUint32(dst[at:], end-from)
		at += 4
		at += copy(dst[at:], l.bytes[from:end])
		from = end
	}
	return dst
}

func appendText(dst, v []byte) []byte {
	return append(binary.LittleEndian.AppendUint32(dst, uint32(len(v))), v...)
}

// appendBits packs flags, the first into the lowest bit.
func appendBits(dst []byte, flags []int32) []byte {
	for len(flags) >= 8 {
		f := (*[8]int32)(flags)
		dst = append(dst, byte(f[0]|f[1]<<1|f[2]<<2|f[3]<<3|f[4]<<4|f[5]<<5|f[6]<<6|f[7]<<7))
		flags = flags[8:]
	}
	if len(flags) > 0 {
		b := int32(0)
		for i, f := range flags {
			b |= f << i
		}
		dst = append(dst, byte(b))
	}
	return dst
}

// finishChunk fills in what the footer says of the whole chunk.
func (w *Writer) finishChunk(c *chunk) {
	c.meta.EncodingStats = c.stats
	c.meta.Encoding = encodingsOf(c.stats)
	if w.o.Hidden {
		return
	}
	c.setStatistics()
	if c.blind {
		*c.index = format.ColumnIndex{}
	} else {
		c.index.BoundaryOrder = boundaryOrder(c.l, c.index)
	}
}

var (
	encodingsPlain      = []format.Encoding{format.Plain, format.RLE}
	encodingsDictionary = []format.Encoding{format.Plain, format.RLE, format.RLEDictionary}
)

// encodingsOf lists the encodings of pages, and that of levels.
func encodingsOf(stats []format.PageEncodingStats) []format.Encoding {
	dict, other := false, false
	for i := range stats {
		dict = dict || stats[i].Encoding == format.RLEDictionary
		other = other || stats[i].Encoding != format.Plain && stats[i].Encoding != format.RLEDictionary
	}
	switch {
	case !dict && !other:
		return encodingsPlain
	case !other:
		return encodingsDictionary
	}
	var out []format.Encoding
	add := func(e format.Encoding) {
		if !slices.Contains(out, e) {
			out = append(out, e)
		}
	}
	for i := range stats {
		add(stats[i].Encoding)
	}
	add(format.RLE)
	return out
}
