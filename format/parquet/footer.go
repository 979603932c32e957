package parquetfile

import (
	"errors"
	"maps"
	"slices"
)

// rawFooter is a file's footer: what is asked of it, decoded, and where in it
// the things are that move to another footer as they are.
type rawFooter struct {
	version   int64
	rows      int64
	schema    []byte // a list of SchemaElement
	meta      []byte // a list of KeyValue
	orders    []byte // a list of ColumnOrder; nil: the order of values is not said
	known     bool   // it is said, and known here
	createdBy string
	encrypted bool
	rowGroups []rowGroup
}

// rawColumn is a ColumnChunk: a struct as it is.
type rawColumn []byte

type rawField struct {
	id    int16
	typ   byte
	value []byte
}

// ErrEncrypted is a file, whole or in part, that only who has its keys can read.
var ErrEncrypted = errors.New("it is encrypted; encrypted files are not merged")

func parseFooter(b []byte) (*rawFooter, error) {
	out := &rawFooter{}
	var mem groupSlabs
	w := walker{b: b}
	for id, typ := range w.fields {
		switch {
		case id == 1 && typ == thriftI32:
			out.version = w.int()
		case id == 3:
			out.rows = w.typed(typ, thriftI64)
		case id == 2 && typ == thriftList:
			out.schema = w.skip(typ)
		case id == 4 && typ == thriftList:
			elem, n := w.list()
			if elem != thriftStruct && n > 0 {
				return nil, errThrift
			}
			out.rowGroups = slices.Grow(out.rowGroups, min(n, 1<<12))
			for i := 0; i < n && !w.bad; i++ {
				g, err := w.rowGroup(&mem)
				if err != nil {
					return nil, err
				}
				out.rowGroups = append(out.rowGroups, g)
			}
		case id == 5 && typ == thriftList:
			out.meta = w.skip(typ)
		case id == 6 && typ == thriftBinary:
			out.createdBy = string(w.bytes())
		case id == 7 && typ == thriftList:
			out.orders = w.skip(typ)
		case id == 8 || id == 9: // encryption_algorithm, footer_signing_key_metadata
			out.encrypted = true
			w.skip(typ)
		default:
			w.skip(typ)
		}
	}
	if w.bad || out.schema == nil {
		return nil, errThrift
	}
	out.known = columnOrders(out.orders) != nil
	return out, nil
}

// places says where the things of a column chunk are now.
type places struct {
	shift             int64 // of its pages
	bloom             int64 // 0: it has no bloom filter any more
	offsetIndex       int64
	offsetIndexLength int32 // 0: none
	columnIndex       int64
	columnIndexLength int32 // 0: none
	signed            bool  // its values are signed numbers
}

// appendTo appends the chunk with its things in other places.
func (c rawColumn) appendTo(dst []byte, p *places) ([]byte, error) {
	w := walker{b: c}
	out := thriftStructOf{dst: dst}
	for id, typ := range w.fields {
		switch id {
		case 1: // file_path: an empty one, or Open had refused it
			w.skip(typ)
		case 2: // file_offset: of late it is 0
			at := w.optional(typ, thriftI64)
			if at > 0 {
				at += p.shift
			}
			out.int(2, thriftI64, at)
		case 3:
			if typ != thriftStruct {
				return nil, errThrift
			}
			out.header(3, thriftStruct)
			out.dst = appendColumnMeta(out.dst, &w, p)
		case 8, 9: // crypto_metadata, encrypted_column_metadata
			return nil, ErrEncrypted
		default:
			v := w.skip(typ)
			if id > 7 {
				out.raw(id, typ, v)
			}
		}
	}
	if w.bad {
		return nil, errThrift
	}
	if p.offsetIndexLength > 0 {
		out.int(4, thriftI64, p.offsetIndex)
		out.int(5, thriftI32, int64(p.offsetIndexLength))
	}
	if p.columnIndexLength > 0 {
		out.int(6, thriftI64, p.columnIndex)
		out.int(7, thriftI32, int64(p.columnIndexLength))
	}
	return out.end(), nil
}

// appendColumnMeta copies a ColumnMetaData, moving its offsets. What stays as it
// is, is copied as one piece.
func appendColumnMeta(dst []byte, w *walker, p *places) []byte {
	start, from, dst0 := w.at, w.at, len(dst)
	for id, typ := range w.fields {
		at := w.at
		v := w.skip(typ)
		switch {
		case typ == thriftI64 && (id == 9 || id == 10 || id == 11): // data_page_offset, index_page_offset, dictionary_page_offset
			n := walker{b: v}
			dst = appendZigzag(append(dst, w.b[from:at]...), p.moved(id, n.int()))
		case id == 12 && typ == thriftStruct && !p.signed: // statistics
			dst = append(append(dst, w.b[from:at]...), withoutOldMinMax(v)...)
		case id == 14 || id == 15:
			w.at = start
			return appendColumnMetaFields(dst[:dst0], w, p)
		default:
			continue
		}
		from = w.at
	}
	return append(dst, w.b[from:w.at]...)
}

// moved is where the pages of a chunk are that were at a place.
func (p *places) moved(id int16, at int64) int64 {
	if at > 0 || id == 9 {
		at += p.shift
	}
	return at
}

// appendColumnMetaFields is appendColumnMeta field by field: of one with a bloom
// filter, which may stay behind.
func appendColumnMetaFields(dst []byte, w *walker, p *places) []byte {
	out := thriftStructOf{dst: dst}
	for id, typ := range w.fields {
		switch {
		case typ == thriftI64 && (id == 9 || id == 10 || id == 11):
			out.int(id, typ, p.moved(id, w.int()))
		case id == 12:
			v := w.skip(typ)
			if !p.signed && typ == thriftStruct {
				v = withoutOldMinMax(v)
			}
			out.raw(id, typ, v)
		case id == 14: // bloom_filter_offset
			if w.skip(typ); p.bloom > 0 {
				out.int(id, thriftI64, p.bloom)
			}
		case id == 15: // bloom_filter_length; with some writers places of theirs
			if v := w.skip(typ); p.bloom > 0 && typ == thriftI32 {
				out.raw(id, typ, v)
			}
		default:
			out.raw(id, typ, w.skip(typ))
		}
	}
	return out.end()
}

// withoutOldMinMax is a Statistics without the deprecated minimum and maximum,
// where it has no others. Old writers compared texts and numbers without sign as
// signed ones; readers know these writers by the file's created_by, which is
// another one after a copy.
func withoutOldMinMax(statistics []byte) []byte {
	w := walker{b: statistics}
	old := false
	for id, typ := range w.fields {
		w.skip(typ)
		if id == 5 || id == 6 {
			return statistics
		}
		old = old || id == 1 || id == 2
	}
	if !old {
		return statistics
	}
	w = walker{b: statistics}
	out := thriftStructOf{dst: make([]byte, 0, len(statistics))}
	for id, typ := range w.fields {
		if v := w.skip(typ); id > 2 {
			out.raw(id, typ, v)
		}
	}
	return out.end()
}

// footer assembles a footer of row groups that are encoded already.
type footer struct {
	version   int64
	schema    []byte
	orders    []byte // nil: none
	rows      int64
	groups    []byte // structs, one behind the other
	count     int
	createdBy string
	meta      map[string]string
}

func (f *footer) encode() []byte {
	out := thriftStructOf{dst: make([]byte, 0, len(f.schema)+len(f.groups)+1024)}
	out.int(1, thriftI32, f.version)
	out.raw(2, thriftList, f.schema)
	out.int(3, thriftI64, f.rows)
	out.header(4, thriftList)
	out.dst = appendListHeader(out.dst, thriftStruct, f.count)
	out.dst = append(out.dst, f.groups...)
	if len(f.meta) > 0 {
		out.header(5, thriftList)
		out.dst = appendListHeader(out.dst, thriftStruct, len(f.meta))
		for _, k := range slices.Sorted(maps.Keys(f.meta)) {
			kv := thriftStructOf{dst: out.dst}
			kv.text(1, k)
			kv.text(2, f.meta[k])
			out.dst = kv.end()
		}
	}
	out.text(6, f.createdBy)
	if f.orders != nil {
		out.raw(7, thriftList, f.orders)
	}
	return out.end()
}
