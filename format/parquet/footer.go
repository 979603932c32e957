package parquetfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// rawFooter is a file's footer, not decoded: where in it the things are that
// move to another footer as they are.
type rawFooter struct {
	version   int64
	schema    []byte // a list of SchemaElement
	orders    []byte // a list of ColumnOrder; nil: the order of values is not said
	rowGroups []rawGroup
}

// rawGroup is a RowGroup: its fields as they are, but for the columns.
type rawGroup struct {
	columns []rawColumn
	fields  []rawField // all but columns
}

// rawColumn is a ColumnChunk: a struct as it is.
type rawColumn []byte

type rawField struct {
	id    int16
	typ   byte
	value []byte
}

var errEncrypted = errors.New("it is encrypted; encrypted files are not merged")

// rawBox reads the footer once more, now as it is, when it is asked for. The
// slices of a file share it.
type rawBox struct {
	once   sync.Once
	footer *rawFooter
	err    error
}

func (f *File) rawFooter() (*rawFooter, error) {
	f.raw.once.Do(func() { f.raw.footer, f.raw.err = f.readRawFooter() })
	return f.raw.footer, f.raw.err
}

func (f *File) readRawFooter() (*rawFooter, error) {
	var tail [tailBytes]byte
	if n, err := f.r.ReadAt(tail[:], f.size-tailBytes); n < len(tail) {
		return nil, fmt.Errorf("read its last bytes: %w", err)
	}
	n := int64(binary.LittleEndian.Uint32(tail[:]))
	if n > f.size-int64(len(magic)+tailBytes) {
		return nil, errThrift
	}
	b := make([]byte, n)
	if got, err := f.r.ReadAt(b, f.size-tailBytes-n); got < len(b) {
		return nil, fmt.Errorf("read its footer: %w", err)
	}
	raw, err := parseFooter(b)
	if err != nil {
		return nil, err
	}
	if len(raw.rowGroups) != len(f.pq.Metadata().RowGroups) {
		return nil, errThrift
	}
	return raw, nil
}

func parseFooter(b []byte) (*rawFooter, error) {
	out := &rawFooter{}
	w := walker{b: b}
	for last := int16(0); ; {
		typ, ok := w.next(&last)
		if !ok {
			break
		}
		switch {
		case last == 1 && typ == thriftI32:
			out.version = w.int()
		case last == 2 && typ == thriftList:
			out.schema = w.skip(typ)
		case last == 4 && typ == thriftList:
			elem, n := w.list()
			if elem != thriftStruct && n > 0 {
				return nil, errThrift
			}
			for i := 0; i < n && !w.bad; i++ {
				g, err := w.rowGroup()
				if err != nil {
					return nil, err
				}
				out.rowGroups = append(out.rowGroups, g)
			}
		case last == 7 && typ == thriftList:
			out.orders = w.skip(typ)
		case last == 8 || last == 9: // encryption_algorithm, footer_signing_key_metadata
			return nil, errEncrypted
		default:
			w.skip(typ)
		}
	}
	if w.bad || out.schema == nil {
		return nil, errThrift
	}
	return out, nil
}

func (w *walker) rowGroup() (g rawGroup, err error) {
	for last := int16(0); ; {
		typ, ok := w.next(&last)
		if !ok {
			break
		}
		if last != 1 || typ != thriftList {
			g.fields = append(g.fields, rawField{last, typ, w.skip(typ)})
			continue
		}
		elem, n := w.list()
		if elem != thriftStruct && n > 0 {
			return g, errThrift
		}
		g.columns = make([]rawColumn, 0, min(n, 1<<12))
		for i := 0; i < n && !w.bad; i++ {
			g.columns = append(g.columns, w.skip(thriftStruct))
		}
	}
	if w.bad {
		return g, errThrift
	}
	return g, nil
}

// places says where the things of a column chunk are now.
type places struct {
	shift             int64 // of its pages
	bloom             int64 // 0: it has no bloom filter any more
	offsetIndex       int64
	offsetIndexLength int32 // 0: none
	columnIndex       int64
	columnIndexLength int32 // 0: none
}

// appendTo appends the chunk with its things in other places.
func (c rawColumn) appendTo(dst []byte, p *places) ([]byte, error) {
	w := walker{b: c}
	out := thriftStructOf{dst: dst}
	for last := int16(0); ; {
		typ, ok := w.next(&last)
		if !ok {
			break
		}
		switch last {
		case 1: // file_path
			return nil, fmt.Errorf("its column chunk lies in another file, %q", w.bytes())
		case 2: // file_offset: of late it is 0
			if at := w.int(); at > 0 {
				out.int(2, thriftI64, at+p.shift)
			} else {
				out.int(2, thriftI64, at)
			}
		case 3:
			if typ != thriftStruct {
				return nil, errThrift
			}
			out.header(3, thriftStruct)
			out.dst = appendColumnMeta(out.dst, &w, p)
		case 8, 9: // crypto_metadata, encrypted_column_metadata
			return nil, errEncrypted
		default:
			v := w.skip(typ)
			if last > 7 {
				out.raw(last, typ, v)
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

// appendColumnMeta copies a ColumnMetaData, moving its offsets.
func appendColumnMeta(dst []byte, w *walker, p *places) []byte {
	out := thriftStructOf{dst: dst}
	kind := int64(-1)
	for last := int16(0); ; {
		typ, ok := w.next(&last)
		if !ok {
			break
		}
		switch last {
		case 1: // type
			kind = w.int()
			out.int(1, typ, kind)
		case 9, 10, 11: // data_page_offset, index_page_offset, dictionary_page_offset
			at := w.int()
			if at > 0 || last == 9 {
				at += p.shift
			}
			out.int(last, typ, at)
		case 12: // statistics
			v := w.skip(typ)
			if (kind != 6 && kind != 7) || hasNewMinMax(v) { // BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY
				out.raw(last, typ, v)
			}
		case 14: // bloom_filter_offset
			w.skip(typ)
			if p.bloom > 0 {
				out.int(last, typ, p.bloom)
			}
		case 15: // bloom_filter_length
			if v := w.skip(typ); p.bloom > 0 {
				out.raw(last, typ, v)
			}
		default:
			out.raw(last, typ, w.skip(typ))
		}
	}
	return out.end()
}

// hasNewMinMax: the statistics need no distrust of their old fields. Old
// writers compared texts byte for byte as signed numbers, and readers know them
// by the file's created_by, which is another one after a copy.
func hasNewMinMax(statistics []byte) bool {
	w := walker{b: statistics}
	old := false
	for last := int16(0); ; {
		typ, ok := w.next(&last)
		if !ok {
			break
		}
		w.skip(typ)
		switch last {
		case 1, 2:
			old = true
		case 5, 6:
			return true
		}
	}
	return !old
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
