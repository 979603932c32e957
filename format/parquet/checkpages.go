package parquetfile

import (
	"context"
	"fmt"

	"github.com/parquet-go/parquet-go/format"
)

// CheckPages reads the header of every page, and says whether the pages of each
// column chunk have the values that the footer counts, and bytes enough for
// them. It is how a file made of others is looked at before those go: rows,
// schema and nulls of a footer agree also where pages have no values. To decode
// all of it would cost three times the merge that made it.
func (f *File) CheckPages(ctx context.Context) error {
	var p pageReader
	for i := range f.groups() {
		if err := ctx.Err(); err != nil {
			return err
		}
		g := &f.groups()[i]
		for k := range g.columns {
			if err := p.checkChunk(f, g, k); err != nil {
				return fmt.Errorf("column %s of row group %d: %w", f.typ.names[k], i, err)
			}
		}
	}
	return nil
}

func (p *pageReader) checkChunk(f *File, g *rowGroup, k int) error {
	column, c := f.typ.leaves[k], &g.columns[k]
	phys, width, err := physicalOfColumn(column)
	if err != nil {
		return err
	}
	l := leafType{phys: phys, width: width, maxDef: uint8(column.MaxDefinitionLevel()), maxRep: uint8(column.MaxRepetitionLevel())}
	nulls, bounded := c.saidNulls()
	switch {
	case l.maxDef == 0:
		nulls = 0
	case l.maxRep > 0 || nulls == 0 && !bounded:
		nulls = -1 // writers count empty lists or not; and some say 0 of any column
	}
	if l.maxRep == 0 && c.values != g.rows {
		return fmt.Errorf("%d values for %d rows", c.values, g.rows)
	}
	var values, size, least int64
	entries, plain := 0, true
	p.open(f, column, c)
	for p.at < p.end {
		var h format.PageHeader
		if err := p.header(&h); err != nil {
			return err
		}
		p.at += int64(h.CompressedPageSize)
		n, e, data := int64(0), format.Plain, true
		switch {
		case h.DictionaryPageHeader.Valid:
			entries, data = int(h.DictionaryPageHeader.V.NumValues), false
			if need := l.plainLeast(entries); int(h.UncompressedPageSize) < need {
				return fmt.Errorf("a dictionary of %d values has %d bytes", entries, h.UncompressedPageSize)
			}
		case h.DataPageHeader.Valid:
			n, e = int64(h.DataPageHeader.V.NumValues), h.DataPageHeader.V.Encoding
		case h.DataPageHeaderV2.Valid:
			n, e = int64(h.DataPageHeaderV2.V.NumValues), h.DataPageHeaderV2.V.Encoding
		default:
			data = false
		}
		if !data {
			continue
		}
		values += n
		if e == format.Plain || e == format.ByteStreamSplit {
			size += int64(h.UncompressedPageSize)
		} else {
			plain = false
		}
		if nulls == 0 { // each page is on its own
			least = leastBytes(&l, e, n)
			if int64(h.UncompressedPageSize) < least {
				return fmt.Errorf("a page of %d values has %d bytes", n, h.UncompressedPageSize)
			}
		}
	}
	if values != c.values {
		return fmt.Errorf("its pages have %d values, the footer says %d", values, c.values)
	}
	if least = int64(l.plainLeast(int(values - max(nulls, 0)))); plain && nulls >= 0 && size < least {
		return fmt.Errorf("its pages have %d bytes for %d values", size, values-nulls)
	}
	return nil
}

// leastBytes is the least that a page of n values, none of them null, has.
func leastBytes(l *leafType, e format.Encoding, n int64) int64 {
	switch {
	case n == 0:
		return 0
	case e == format.Plain || e == format.ByteStreamSplit:
		return int64(l.plainLeast(int(n)))
	}
	return 2 // a width and a run, or the head of deltas
}
