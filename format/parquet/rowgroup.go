package parquetfile

import "github.com/parquet-go/parquet-go/format"

// rowGroup is a RowGroup of a footer: what is asked of it, decoded, and the
// rest as it is. The library's struct of it takes half a kilobyte a column.
type rowGroup struct {
	rows    int64
	bytes   int64 // not compressed
	columns []columnChunk
	fields  []rawField // all but columns
}

// columnChunk is a ColumnChunk.
type columnChunk struct {
	raw rawColumn
	// Of its ColumnMetaData.
	phys         format.Type
	codec        format.CompressionCodec
	values       int64
	uncompressed int64
	compressed   int64
	dataPage     int64
	dictionary   int64 // 0: none
	bloom        int64 // 0: none
	bloomLength  int32
	deltaBytes   bool   // a page is encoded DELTA_BYTE_ARRAY
	elsewhere    bool   // it lies in another file
	statistics   []byte // a Statistics struct; nil: none
	// Of the page index, as the footer says: it may lie outside the file.
	offsetIndex       int64
	offsetIndexLength int32
	columnIndexLength int32
	columnIndex       int64
}

// pages is where the chunk lies.
func (c *columnChunk) pages() extent {
	from := c.dataPage
	if d := c.dictionary; d > 0 && (d < from || from == 0) { // no data page: a chunk without rows
		from = d
	}
	return extent{from, from + c.compressed}
}

// groupSlabs is memory for the row groups of a footer, which are many and small.
type groupSlabs struct {
	columns slab[columnChunk]
	fields  slab[rawField]
}

// groupFields is how many fields beside columns a RowGroup has, so far.
const groupFields = 6

// maxColumns is how many columns are believed before they were seen.
const maxColumns = 1 << 12

func (w *walker) rowGroup(mem *groupSlabs) (g rowGroup, err error) {
	for id, typ := range w.fields {
		if id != 1 || typ != thriftList {
			from := w.at
			switch id {
			case 2:
				g.bytes = w.typed(typ, thriftI64)
			case 3:
				g.rows = w.typed(typ, thriftI64)
			default:
				w.skip(typ)
			}
			if !w.bad {
				if g.fields == nil {
					g.fields = mem.fields.take(groupFields)[:0]
				}
				g.fields = append(g.fields, rawField{id, typ, w.b[from:w.at]})
			}
			continue
		}
		elem, n := w.list()
		if elem != thriftStruct && n > 0 {
			return g, errThrift
		}
		g.columns = mem.columns.take(min(n, maxColumns))[:0]
		for i := 0; i < n && !w.bad; i++ {
			g.columns = append(g.columns, columnChunk{})
			w.columnChunk(&g.columns[i])
		}
	}
	if w.bad {
		return g, errThrift
	}
	return g, nil
}

func (w *walker) columnChunk(c *columnChunk) {
	from := w.at
	for id, typ := range w.fields {
		switch id {
		case 1:
			if typ != thriftBinary {
				w.fail()
				return
			}
			c.elsewhere = len(w.bytes()) > 0
		case 3:
			if typ != thriftStruct {
				w.fail()
				return
			}
			w.columnMeta(c)
		case 4:
			c.offsetIndex = w.optional(typ, thriftI64)
		case 5:
			c.offsetIndexLength = int32(w.optional(typ, thriftI32))
		case 6:
			c.columnIndex = w.optional(typ, thriftI64)
		case 7:
			c.columnIndexLength = int32(w.optional(typ, thriftI32))
		default:
			w.skip(typ)
		}
	}
	if !w.bad {
		c.raw = w.b[from:w.at]
	}
}

func (w *walker) columnMeta(c *columnChunk) {
	for id, typ := range w.fields {
		switch id {
		case 1:
			c.phys = format.Type(w.typed(typ, thriftI32))
		case 2:
			if typ != thriftList {
				w.fail()
				return
			}
			elem, n := w.list()
			if elem != thriftI32 && n > 0 {
				w.fail()
				return
			}
			for i := 0; i < n && !w.bad; i++ {
				c.deltaBytes = format.Encoding(w.int()) == format.DeltaByteArray || c.deltaBytes
			}
		case 4:
			c.codec = format.CompressionCodec(w.typed(typ, thriftI32))
		case 5:
			c.values = w.typed(typ, thriftI64)
		case 6:
			c.uncompressed = w.typed(typ, thriftI64)
		case 7:
			c.compressed = w.typed(typ, thriftI64)
		case 9:
			c.dataPage = w.typed(typ, thriftI64)
		case 11:
			c.dictionary = w.optional(typ, thriftI64)
		case 12:
			if b := w.skip(typ); typ == thriftStruct {
				c.statistics = b
			}
		case 14:
			c.bloom = w.optional(typ, thriftI64)
		case 15:
			c.bloomLength = int32(w.optional(typ, thriftI32))
		default:
			w.skip(typ)
		}
	}
}

// typed reads a number that has to be of a type.
func (w *walker) typed(typ, want byte) int64 {
	if typ != want {
		w.fail()
		return 0
	}
	return w.int()
}

// signed: everybody compares the values of the chunk as signed numbers.
func (c *columnChunk) signed(o order) bool {
	return o == orderNatural && c.phys != format.ByteArray && c.phys != format.FixedLenByteArray
}

// optional reads a number. What has another type is something else, as some
// writers have their own under numbers that the format took later.
func (w *walker) optional(typ, want byte) int64 {
	if typ != want {
		w.skip(typ)
		return 0
	}
	return w.int()
}

// said are the chunk's statistics, as far as its writer says them.
func (c *columnChunk) said() rawStatistics {
	if c.statistics == nil {
		return rawStatistics{nulls: -1}
	}
	w := walker{b: c.statistics}
	return w.statistics()
}

// described: a row group has statistics or a page index. Hidden parts have
// none, and are never copied: readers want them.
func (g *rowGroup) described() bool {
	for i := range g.columns {
		c := &g.columns[i]
		if c.offsetIndexLength > 0 && c.columnIndexLength > 0 || c.said().min != nil {
			return true
		}
	}
	return false
}

// inCodec: all columns of a row group are compressed so.
func (g *rowGroup) inCodec(codec format.CompressionCodec) bool {
	for i := range g.columns {
		if g.columns[i].codec != codec {
			return false
		}
	}
	return true
}
