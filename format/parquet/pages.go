package parquetfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding"
	"github.com/parquet-go/parquet-go/encoding/rle"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// pageReader reads the pages of a column chunk. It is here because the
// library's (version 0.32.0) allocates whatever size a page header states, up
// to gigabytes, before it looks whether the file has as much; and because it
// mixes up its buffers at LZ4 pages that shrank to more than a third. Buffers
// are used again from page to page and from chunk to chunk (F6).
type pageReader struct {
	r       io.ReaderAt
	column  *parquet.Column
	codec   format.CompressionCodec
	at, end int64 // the chunk's next byte in the file, and its end
	left    int64 // values that are in no page so far
	hides   bool  // pages that say they are not compressed are (hidesPacking)

	window   []byte // of the file, from windowAt on
	windowAt int64
	packed   []byte
	plain    []byte
	values   encoding.Values // of the page
	indexes  []int32
	narrow   []int32 // numbers of the page that were deltas
	wide     []int64
	repsBuf  []byte
	defsBuf  []byte
	dict     encoding.Values
	known    int // values of the dictionary; -1: there is none
}

const (
	// windowBytes is how much is read at once: a whole chunk when it is small.
	windowBytes = 64 << 10
	// headerBytes is the longest page header that is believed: some writers
	// put long minima and maxima there.
	headerBytes = 1 << 20
)

var errDamaged = errors.New("its pages are damaged")

// open starts a column chunk.
func (p *pageReader) open(f *File, column *parquet.Column, c *columnChunk) {
	p.r, p.column, p.codec, p.hides = f.r, column, c.codec, f.hidesPacking()
	at := c.pages()
	p.at, p.end, p.left = at.from, at.to, c.values
	p.window, p.windowAt, p.known = p.window[:0], p.at, -1
}

// peek returns at least n of the chunk's next bytes, or all that are left.
func (p *pageReader) peek(n int) ([]byte, error) {
	n = int(min(int64(n), p.end-p.at))
	if have := p.windowAt + int64(len(p.window)) - p.at; have >= int64(n) {
		return p.window[int64(len(p.window))-have:], nil
	}
	p.window = growTo(p.window[:0], int(min(int64(max(n, windowBytes)), p.end-p.at)))
	p.windowAt = p.at
	return p.window, p.readAt(p.window, p.at)
}

func (p *pageReader) readAt(b []byte, at int64) error {
	n, err := p.r.ReadAt(b, at)
	if n == len(b) {
		return nil
	}
	return fmt.Errorf("read %d bytes at %d: %w", len(b), at, err)
}

// header reads a page header.
func (p *pageReader) header(h *format.PageHeader) error {
	for n := 256; ; n *= 16 {
		b, err := p.peek(n)
		if err != nil {
			return err
		}
		in := new(thrift.CompactProtocol).NewReaderFromBytes(b)
		err = thrift.NewDecoder(in).Decode(h)
		if err == nil {
			p.at += int64(in.BytesRead())
			break
		}
		if int64(len(b)) >= min(headerBytes, p.end-p.at) {
			return fmt.Errorf("its pages are damaged: the header at byte %d: %w", p.at, err)
		}
		*h = format.PageHeader{}
	}
	if h.CompressedPageSize < 0 || h.UncompressedPageSize < 0 || int64(h.CompressedPageSize) > p.end-p.at {
		return fmt.Errorf("its pages are damaged: the header before byte %d says %d bytes", p.at, h.CompressedPageSize)
	}
	return nil
}

// body reads the bytes of a page. They are valid until the next page.
func (p *pageReader) body(h *format.PageHeader) ([]byte, error) {
	n := int(h.CompressedPageSize)
	from := p.at
	var b []byte
	if n <= windowBytes {
		w, err := p.peek(n)
		if err != nil {
			return nil, err
		}
		b = w[:n]
	} else {
		w, err := p.peek(1)
		if err != nil {
			return nil, err
		}
		p.packed = growTo(p.packed[:0], n)
		b = p.packed
		done := copy(b, w)
		if err := p.readAt(b[done:], p.at+int64(done)); err != nil {
			return nil, err
		}
	}
	p.at += int64(n)
	if h.CRC != 0 && uint32(h.CRC) != crc32.ChecksumIEEE(b) {
		return nil, fmt.Errorf("its pages are damaged: the page at byte %d has another checksum than its header says", from)
	}
	return b, nil
}

// next reads a data page into c; io.EOF after the last.
func (p *pageReader) next(c *columnReader) error {
	for p.left > 0 {
		if p.at >= p.end {
			return fmt.Errorf("its pages are damaged: %d values are missing", p.left)
		}
		var h format.PageHeader
		if err := p.header(&h); err != nil {
			return err
		}
		body, err := p.body(&h)
		if err != nil {
			return err
		}
		size := int(h.UncompressedPageSize)
		switch {
		case h.Type == format.DictionaryPage && h.DictionaryPageHeader.Valid:
			if err := p.dictionary(&h.DictionaryPageHeader.V, size, body); err != nil {
				return err
			}
		case h.Type == format.DataPage && h.DataPageHeader.Valid:
			return p.dataV1(c, &h.DataPageHeader.V, size, body)
		case h.Type == format.DataPageV2 && h.DataPageHeaderV2.Valid:
			return p.dataV2(c, &h.DataPageHeaderV2.V, size, body)
		}
	}
	return io.EOF
}

func (p *pageReader) dictionary(h *format.DictionaryPageHeader, size int, body []byte) error {
	data, err := p.unpack(body, size)
	if err != nil {
		return err
	}
	phys, width, err := physicalOfColumn(p.column)
	if err != nil {
		return err
	}
	if p.dict, err = p.decode(p.dict, phys, width, int(h.NumValues), data, format.Plain); err != nil {
		return err
	}
	if p.known = int(h.NumValues); p.known > count(phys, width, &p.dict) {
		return errDamaged
	}
	return nil
}

// decode decodes values into the memory of others.
func (p *pageReader) decode(into encoding.Values, phys physical, width, n int, data []byte, e format.Encoding) (encoding.Values, error) {
	want, err := p.believe(phys, width, n, data, e)
	if err != nil {
		return into, err
	}
	buf, offsets := into.Data()
	typ, how := p.column.Type(), parquet.LookupEncoding(e)
	if want < 0 {
		want = typ.EstimateDecodeSize(n, data, how)
	}
	if cap(buf) < want {
		buf = make([]byte, 0, want)
	}
	if want := n + 1; phys == physBytes && cap(offsets) < want {
		offsets = make([]uint32, 0, want)
	}
	if e == format.DeltaBinaryPacked {
		return p.decodeDeltas(phys, data)
	}
	out, err := typ.Decode(typ.NewValues(buf[:0], offsets[:0]), data, how)
	if err != nil && e == format.Plain {
		if end := plainEnd(phys, width, n, data); end < len(data) {
			return typ.Decode(typ.NewValues(buf[:0], offsets[:0]), data[:end], how)
		}
	}
	return out, err
}

func (p *pageReader) dataV1(c *columnReader, h *format.DataPageHeader, size int, body []byte) error {
	data, err := p.unpack(body, size)
	if err != nil {
		return err
	}
	n := int(h.NumValues)
	if n < 0 || int64(n) > p.left || n > mostLevels {
		return fmt.Errorf("%w: a page of %d values where %d are left", errDamaged, n, p.left)
	}
	if n == 0 {
		return nil // nor does it have levels
	}
	var reps, defs []byte
	if p.column.MaxRepetitionLevel() > 0 {
		if reps, data, err = levelsV1(p.repsBuf, data, h.RepetitionLevelEncoding, p.column.MaxRepetitionLevel(), n); err != nil {
			return err
		}
		p.repsBuf = reps
	}
	if p.column.MaxDefinitionLevel() > 0 {
		if defs, data, err = levelsV1(p.defsBuf, data, h.DefinitionLevelEncoding, p.column.MaxDefinitionLevel(), n); err != nil {
			return err
		}
		p.defsBuf = defs
	}
	return p.page(c, n, reps, defs, h.Encoding, data)
}

func levelsV1(buf, data []byte, e format.Encoding, most int, n int) (levels, rest []byte, err error) {
	if e != format.RLE {
		return nil, nil, fmt.Errorf("its levels are encoded as %s", e)
	}
	if len(data) < 4 || uint64(binary.LittleEndian.Uint32(data)) > uint64(len(data)-4) {
		return nil, nil, errDamaged
	}
	end := 4 + int(binary.LittleEndian.Uint32(data))
	levels, err = decodeLevels(buf, data[4:end], most, n)
	return levels, data[end:], err
}

func decodeLevels(buf, data []byte, most int, n int) ([]byte, error) {
	e := rle.Encoding{BitWidth: bitsOf(uint8(most))}
	data, err := runs(data, e.BitWidth, n)
	if err != nil {
		return nil, err
	}
	levels, err := e.DecodeLevels(buf[:0], data)
	if err == nil && len(levels) < n {
		err = errDamaged
	}
	if err != nil {
		return nil, err
	}
	return levels[:n], nil
}

func (p *pageReader) dataV2(c *columnReader, h *format.DataPageHeaderV2, size int, body []byte) error {
	n, r, d := int(h.NumValues), int(h.RepetitionLevelsByteLength), int(h.DefinitionLevelsByteLength)
	if n < 0 || int64(n) > p.left || n > mostLevels || r < 0 || d < 0 || r+d > len(body) || r+d > size {
		return fmt.Errorf("%w: a page of %d values where %d are left, with %d bytes of levels", errDamaged, n, p.left, r+d)
	}
	var reps, defs []byte
	var err error
	if p.column.MaxRepetitionLevel() > 0 {
		if reps, err = decodeLevels(p.repsBuf, body[:r], p.column.MaxRepetitionLevel(), n); err != nil {
			return err
		}
		p.repsBuf = reps
	}
	if p.column.MaxDefinitionLevel() > 0 {
		if defs, err = decodeLevels(p.defsBuf, body[r:r+d], p.column.MaxDefinitionLevel(), n); err != nil {
			return err
		}
		p.defsBuf = defs
	}
	data := body[r+d:]
	if !h.IsCompressed.Valid || h.IsCompressed.V || p.hides {
		if data, err = p.unpack(data, size-r-d); err != nil {
			return err
		}
	}
	return p.page(c, n, reps, defs, h.Encoding, data)
}

// page decodes the values of a data page of n levels.
func (p *pageReader) page(c *columnReader, n int, reps, defs []byte, e format.Encoding, data []byte) (err error) {
	p.left -= int64(n)
	there := n
	if most := p.column.MaxDefinitionLevel(); most > 0 {
		there = bytes.Count(defs, []byte{uint8(most)})
	}
	c.levels, c.reps, c.defs = n, reps, defs
	if there == 0 {
		return nil
	}
	v := &c.values
	//lint:ignore SA1019 old writers name dictionary pages so
	if e == format.RLEDictionary || e == format.PlainDictionary {
		if p.known < 0 {
			return fmt.Errorf("its pages are damaged: there is no dictionary")
		}
		if len(data) == 0 {
			return fmt.Errorf("%w: %d places in a dictionary are missing", errDamaged, there)
		}
		packed, err := runs(data[1:], int(data[0]), there)
		if err != nil {
			return err
		}
		if p.indexes, err = parquet.RLEDictionary.DecodeInt32(p.indexes[:0], data[:1+len(packed)]); err != nil {
			return err
		}
		v.indexes, v.plain, v.known = p.indexes[:min(there, len(p.indexes))], p.dict, p.known
		v.n = len(v.indexes)
		return v.check()
	}
	if e == format.RLE && c.phys == physBool {
		bits, _ := p.values.Data()
		if bits, err = flags(bits, data, there); err != nil {
			return err
		}
		p.values = encoding.BooleanValues(bits)
	} else if p.values, err = p.decode(p.values, c.phys, c.width, there, data, e); err != nil {
		return err
	}
	v.plain = p.values
	v.n = count(c.phys, c.width, &v.plain)
	return nil
}
