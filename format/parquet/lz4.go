package parquetfile

import (
	"bufio"
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

// lz4Pages reads the pages of a column chunk compressed as LZ4_RAW. The
// library's own reader must not be used for those: when a page shrank to more
// than a third it decompresses into one buffer and decodes another (version
// 0.32.0), which gives wrong values without an error.
type lz4Pages struct {
	column  *parquet.Column
	in      *bufio.Reader
	left    int64 // values of the chunk that are in no page so far
	decoder *thrift.Decoder
	packed  []byte
	plain   []byte
	dict    encoding.Values
	known   int // values of the dictionary; -1: there is none
}

func newLZ4Pages(f *File, column *parquet.Column, m *format.ColumnMetaData) *lz4Pages {
	start := m.DataPageOffset
	if d := m.DictionaryPageOffset; d > 0 && d < start {
		start = d
	}
	in := bufio.NewReader(io.NewSectionReader(f.r, start, m.TotalCompressedSize))
	return &lz4Pages{column: column, in: in, left: m.NumValues, known: -1,
		decoder: thrift.NewDecoder(new(thrift.CompactProtocol).NewReader(in))}
}

var errLZ4Page = errors.New("its pages are damaged")

// next reads a data page into c; io.EOF after the last.
func (p *lz4Pages) next(c *columnReader) error {
	for p.left > 0 {
		var h format.PageHeader
		if err := p.decoder.Decode(&h); err != nil {
			return fmt.Errorf("read a page header: %w", err)
		}
		if h.CompressedPageSize < 0 || h.UncompressedPageSize < 0 {
			return errLZ4Page
		}
		body, err := p.body(&h)
		if err != nil {
			return err
		}
		switch {
		case h.Type == format.DictionaryPage && h.DictionaryPageHeader.Valid:
			err = p.dictionary(&h, body)
		case h.Type == format.DataPage && h.DataPageHeader.Valid:
			return p.dataV1(c, &h.DataPageHeader.V, int(h.UncompressedPageSize), body)
		case h.Type == format.DataPageV2 && h.DataPageHeaderV2.Valid:
			return p.dataV2(c, &h.DataPageHeaderV2.V, int(h.UncompressedPageSize), body)
		}
		if err != nil {
			return err
		}
	}
	return io.EOF
}

func (p *lz4Pages) body(h *format.PageHeader) ([]byte, error) {
	p.packed = growTo(p.packed[:0], int(h.CompressedPageSize))
	if _, err := io.ReadFull(p.in, p.packed); err != nil {
		return nil, fmt.Errorf("read a page: %w", err)
	}
	if h.CRC != 0 && uint32(h.CRC) != crc32.ChecksumIEEE(p.packed) {
		return nil, errors.New("its pages are damaged: a checksum differs")
	}
	return p.packed, nil
}

// unpack decompresses; what it returns is valid until the next call.
func (p *lz4Pages) unpack(src []byte, size int) ([]byte, error) {
	if size > 255*len(src)+64 { // no block shrinks more
		return nil, errLZ4Page
	}
	p.plain = growTo(p.plain[:0], size)
	if size > 0 && !unpackLZ4(p.plain, src) {
		return nil, errLZ4Page
	}
	return p.plain, nil
}

// unpackLZ4 decompresses a block that fills dst exactly. It is here because
// the library's, given a damaged block, doubles its buffer for ever.
func unpackLZ4(dst, src []byte) bool {
	d := 0
	for len(src) > 0 {
		token := src[0]
		literals, rest, ok := lengthLZ4(src[1:], int(token>>4))
		if !ok || literals > len(rest) || literals > len(dst)-d {
			return false
		}
		d += copy(dst[d:], rest[:literals])
		if rest = rest[literals:]; len(rest) == 0 { // the last sequence has no match
			return d == len(dst)
		}
		if len(rest) < 2 {
			return false
		}
		back := int(rest[0]) | int(rest[1])<<8
		match, rest, ok := lengthLZ4(rest[2:], int(token&15))
		match += 4
		if !ok || back == 0 || back > d || match > len(dst)-d {
			return false
		}
		for end, from := d+match, d-back; d < end; { // what was copied may be copied again
			d += copy(dst[d:end], dst[from:d])
		}
		src = rest
	}
	return false
}

// lengthLZ4 reads the rest of a length whose first four bits are n.
func lengthLZ4(src []byte, n int) (length int, rest []byte, ok bool) {
	if n < 15 {
		return n, src, true
	}
	for i, b := range src {
		n += int(b)
		if b < 255 {
			return n, src[i+1:], true
		}
	}
	return 0, nil, false
}

func (p *lz4Pages) dictionary(h *format.PageHeader, body []byte) error {
	data, err := p.unpack(body, int(h.UncompressedPageSize))
	if err != nil {
		return err
	}
	p.known = int(h.DictionaryPageHeader.V.NumValues)
	p.dict, err = p.decode(p.known, data, &parquet.Plain)
	return err
}

// decode decodes n values into memory of their own.
func (p *lz4Pages) decode(n int, data []byte, e encoding.Encoding) (encoding.Values, error) {
	if n < 0 || n > 8*len(data)+8 {
		return encoding.Values{}, errLZ4Page
	}
	typ := p.column.Type()
	size := typ.EstimateDecodeSize(n, data, e)
	return typ.Decode(typ.NewValues(make([]byte, 0, size), make([]uint32, 0, n+1)), data, e)
}

func (p *lz4Pages) dataV1(c *columnReader, h *format.DataPageHeader, size int, body []byte) error {
	data, err := p.unpack(body, size)
	if err != nil {
		return err
	}
	n := int(h.NumValues)
	var reps, defs []byte
	if p.column.MaxRepetitionLevel() > 0 {
		if reps, data, err = levelsV1(data, p.column.MaxRepetitionLevel(), n); err != nil {
			return err
		}
	}
	if p.column.MaxDefinitionLevel() > 0 {
		if defs, data, err = levelsV1(data, p.column.MaxDefinitionLevel(), n); err != nil {
			return err
		}
	}
	return p.page(c, n, reps, defs, h.Encoding, data)
}

func levelsV1(data []byte, most int, n int) (levels, rest []byte, err error) {
	if len(data) < 4 || uint64(binary.LittleEndian.Uint32(data)) > uint64(len(data)-4) {
		return nil, nil, errLZ4Page
	}
	end := 4 + int(binary.LittleEndian.Uint32(data))
	levels, err = decodeLevels(data[4:end], most, n)
	return levels, data[end:], err
}

func decodeLevels(data []byte, most int, n int) ([]byte, error) {
	e := rle.Encoding{BitWidth: bitsOf(uint8(most))}
	levels, err := e.DecodeLevels(nil, data)
	if err == nil && len(levels) < n {
		err = errLZ4Page
	}
	if err != nil {
		return nil, err
	}
	return levels[:n], nil
}

func (p *lz4Pages) dataV2(c *columnReader, h *format.DataPageHeaderV2, size int, body []byte) error {
	n, r, d := int(h.NumValues), int(h.RepetitionLevelsByteLength), int(h.DefinitionLevelsByteLength)
	if r < 0 || d < 0 || r+d > len(body) || r+d > size {
		return errLZ4Page
	}
	var reps, defs []byte
	var err error
	if p.column.MaxRepetitionLevel() > 0 {
		if reps, err = decodeLevels(body[:r], p.column.MaxRepetitionLevel(), n); err != nil {
			return err
		}
	}
	if p.column.MaxDefinitionLevel() > 0 {
		if defs, err = decodeLevels(body[r:r+d], p.column.MaxDefinitionLevel(), n); err != nil {
			return err
		}
	}
	data := body[r+d:]
	if !h.IsCompressed.Valid || h.IsCompressed.V {
		if data, err = p.unpack(data, size-r-d); err != nil {
			return err
		}
	}
	return p.page(c, n, reps, defs, h.Encoding, data)
}

// page decodes the values of a data page of n levels.
func (p *lz4Pages) page(c *columnReader, n int, reps, defs []byte, e format.Encoding, data []byte) error {
	if n < 0 || int64(n) > p.left {
		return errLZ4Page
	}
	p.left -= int64(n)
	there := n
	if most := p.column.MaxDefinitionLevel(); most > 0 {
		there = bytes.Count(defs, []byte{uint8(most)})
	}
	c.levels, c.reps, c.defs = n, reps, defs
	v := &c.values
	//lint:ignore SA1019 old writers name dictionary pages so
	if e != format.RLEDictionary && e != format.PlainDictionary {
		var err error
		if v.plain, err = p.decode(there, data, parquet.LookupEncoding(e)); err != nil {
			return err
		}
		v.n = count(c.phys, c.width, &v.plain)
		return nil
	}
	if p.known < 0 {
		return errLZ4Page
	}
	var err error
	if v.indexes, err = parquet.RLEDictionary.DecodeInt32([]int32{}, data); err != nil {
		return err
	}
	v.plain, v.known = p.dict, p.known
	v.n = len(v.indexes)
	return v.check()
}
