package parquetfile

import (
	"encoding/binary"
	"fmt"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// What a page says of itself is held against the bytes it has before room is
// made for it (F7).

// mostLevels is how many values, nulls among them, a page may have.
const mostLevels = mostDecoded / 8

// width of a value in bytes; of flags and texts the least that is a whole byte.
func (c *source) plainWidth() int {
	switch c.phys {
	case physBool:
		return 0
	case physInt32, physFloat, physBytes: // the length of a text
		return 4
	case physInt64, physDouble:
		return 8
	}
	return c.width
}

// believe says whether n values can be in these bytes, and how many bytes they
// are, decoded; -1: the decoder knows.
func (p *pageReader) believe(phys physical, width, n int, data []byte, e format.Encoding) (size int, err error) {
	src := source{phys: phys, width: width}
	if n < 0 || n > mostLevels || n*src.plainWidth() > mostDecoded {
		return 0, fmt.Errorf("%w: a page of %d values", errDamaged, n)
	}
	switch e {
	case format.Plain, format.ByteStreamSplit:
		least := n * src.plainWidth()
		if phys == physBool {
			least = (n + 7) / 8
		}
		if len(data) < least {
			return 0, fmt.Errorf("%w: %d bytes for %d values", errDamaged, len(data), n)
		}
	case format.DeltaBinaryPacked:
		_, err = deltas(data, n)
	case format.DeltaLengthByteArray:
		return p.lengths(data, n, len(data))
	case format.DeltaByteArray:
		rest, err := deltas(data, n)
		if err != nil {
			return 0, err
		}
		prefixes, err := p.lengths(data, n, mostDecoded)
		if err != nil {
			return 0, err
		}
		suffixes, err := p.lengths(rest, n, len(rest))
		if prefixes+suffixes > mostDecoded {
			return 0, fmt.Errorf("%w: values of %d bytes in a page", errDamaged, prefixes+suffixes)
		}
		return prefixes + suffixes + deltaPadding, err
	}
	return -1, err
}

// plainEnd is where n values end, PLAIN-encoded; all of the bytes when there are
// fewer. Nobody looks at what follows them: Arrow's C++ leaves bytes behind the
// values of a dictionary when it was given one that has a value twice.
func plainEnd(phys physical, width, n int, data []byte) int {
	if phys != physBytes {
		l := leafType{phys: phys, width: width}
		return min(l.plainLeast(n), len(data))
	}
	at := 0
	for range n {
		if len(data)-at < 4 {
			return len(data)
		}
		size := binary.LittleEndian.Uint32(data[at:])
		if uint64(size) > uint64(len(data)-at-4) {
			return len(data)
		}
		at += 4 + int(size)
	}
	return at
}

// deltaPadding is what the library's decoder writes beyond the last value.
const deltaPadding = 64

// lengths adds up n lengths encoded as deltas; they are at most so many bytes.
func (p *pageReader) lengths(data []byte, n, most int) (sum int, err error) {
	if _, err := deltas(data, n); err != nil {
		return 0, err
	}
	if p.indexes, err = parquet.DeltaBinaryPacked.DecodeInt32(p.indexes[:0], data); err != nil {
		return 0, err
	}
	for _, v := range p.indexes {
		if sum += int(v); v < 0 || sum > most {
			return 0, fmt.Errorf("%w: lengths of %d bytes and more where there are %d", errDamaged, sum, most)
		}
	}
	return sum, nil
}
