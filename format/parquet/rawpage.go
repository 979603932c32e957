package parquetfile

import (
	"fmt"
	"hash/crc32"

	"github.com/parquet-go/parquet-go/format"
)

// rawPage is a page as it lies in a file.
type rawPage struct {
	kind     format.PageType
	encoding format.Encoding
	head     []byte // its header
	body     []byte
	size     int // of the body when it is not compressed, levels included
	values   int // with nulls; of a dictionary page its entries
	rows     int // -1: not said
	stats    rawStatistics

	levels     format.Encoding // of V1's definition levels
	reps, defs int             // bytes of V2's levels
	plain      bool            // V2: the values are not compressed
	crc        uint32
	hasCRC     bool
}

// rawStatistics are those of a page or a column chunk, as far as they are said.
type rawStatistics struct {
	nulls    int64  // -1: not said
	min, max []byte // nil: not said; an empty text is not nil
	vague    bool   // min and max may be no values themselves
}

func (p *rawPage) dictionary() bool {
	//lint:ignore SA1019 old writers name dictionary pages so
	return p.encoding == format.RLEDictionary || p.encoding == format.PlainDictionary
}

func (p *rawPage) data() bool { return p.kind == format.DataPage || p.kind == format.DataPageV2 }

// nextPage takes the first page off a column chunk. It does not look at the
// page's checksum.
func nextPage(chunk []byte, p *rawPage) (rest []byte, err error) {
	w := walker{b: chunk}
	*p = rawPage{kind: -1, rows: -1, stats: rawStatistics{nulls: -1}}
	packed := int64(-1)
	for id, typ := range w.fields {
		switch {
		case id == 1:
			p.kind = format.PageType(w.int())
		case id == 2:
			p.size = int(w.int())
		case id == 3:
			packed = w.int()
		case id == 4:
			p.crc, p.hasCRC = uint32(w.int()), true
		case id == 5 && typ == thriftStruct:
			w.dataHeader(p)
		case id == 7 && typ == thriftStruct:
			w.dictionaryHeader(p)
		case id == 8 && typ == thriftStruct:
			w.dataHeaderV2(p)
		default:
			w.skip(typ)
		}
	}
	if w.bad || packed < 0 || packed > int64(len(chunk)-w.at) || p.size < 0 || p.values < 0 {
		return nil, fmt.Errorf("%w: a page's header makes no sense", errDamaged)
	}
	p.head, p.body = chunk[:w.at], chunk[w.at:w.at+int(packed)]
	return chunk[w.at+int(packed):], nil
}

// check compares the page with its checksum, if it has one.
func (p *rawPage) check() error {
	if p.hasCRC && crc32.ChecksumIEEE(p.body) != p.crc {
		return fmt.Errorf("%w: a page has another checksum than its header says", errDamaged)
	}
	return nil
}

func (w *walker) dataHeader(p *rawPage) {
	for id, typ := range w.fields {
		switch {
		case id == 1:
			p.values = int(w.int())
		case id == 2:
			p.encoding = format.Encoding(w.int())
		case id == 3:
			p.levels = format.Encoding(w.int())
		case id == 5 && typ == thriftStruct:
			p.stats = w.statistics()
		default:
			w.skip(typ)
		}
	}
}

func (w *walker) dictionaryHeader(p *rawPage) {
	for id, typ := range w.fields {
		switch id {
		case 1:
			p.values = int(w.int())
		case 2:
			p.encoding = format.Encoding(w.int())
		default:
			w.skip(typ)
		}
	}
}

func (w *walker) dataHeaderV2(p *rawPage) {
	nulls := int64(-1)
	for id, typ := range w.fields {
		switch {
		case id == 1:
			p.values = int(w.int())
		case id == 2:
			nulls = w.int()
		case id == 3:
			p.rows = int(w.int())
		case id == 4:
			p.encoding = format.Encoding(w.int())
		case id == 5:
			p.defs = int(w.int())
		case id == 6:
			p.reps = int(w.int())
		case id == 7:
			p.plain = typ == thriftFalse
		case id == 8 && typ == thriftStruct:
			p.stats = w.statistics()
		default:
			w.skip(typ)
		}
	}
	p.stats.nulls = nulls
}

// statistics reads a Statistics. The deprecated minimum and maximum do not
// count: nobody knows how their writer compared.
func (w *walker) statistics() (s rawStatistics) {
	s.nulls = -1
	for id, typ := range w.fields {
		switch {
		case id == 3:
			s.nulls = w.int()
		case id == 5 && typ == thriftBinary:
			s.max = w.bytes()
		case id == 6 && typ == thriftBinary:
			s.min = w.bytes()
		case (id == 7 || id == 8) && typ == thriftFalse: // is_max_value_exact, is_min_value_exact
			s.vague = true
		default:
			w.skip(typ)
		}
	}
	return s
}

// bounds are the statistics' bounds when they make sense for the column.
func (s *rawStatistics) bounds(l *leaf) bounds {
	if s.min == nil || s.max == nil || l.order == orderNone {
		return bounds{}
	}
	width := -1
	switch l.phys {
	case physBool:
		width = 1
	case physInt32, physFloat:
		width = 4
	case physInt64, physDouble:
		width = 8
	case physFixed:
		width = l.width
	}
	if width >= 0 && (len(s.min) != width || len(s.max) != width) || width == 0 {
		return bounds{}
	}
	if l.isNaN(s.min) || l.isNaN(s.max) || l.compare(s.min, s.max) > 0 {
		return bounds{}
	}
	return bounds{true, s.min, s.max}.ofFloats(l)
}
