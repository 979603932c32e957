package parquetfile

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/parquet-go/parquet-go/compress"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// Merge joins files of one schema (Same), in order, into one file with large
// row groups. Large row groups are copied as Copy does. Of small ones the pages
// are moved as they are, dictionaries are unified and the places in them
// renumbered; values are decoded only in columns, or pages, where that cannot
// be: where the codec is another, where pages are tiny, where a dictionary does
// not pay any more. Statistics and page index are made anew.
//
// Memory is bounded by the bytes of one row group (F5).
func Merge(ctx context.Context, inputs []*File, w io.Writer, o JoinOptions) (Info, error) {
	if err := Same(inputs); err != nil {
		return Info{}, err
	}
	s, err := fileSchema(inputs[0])
	if err != nil {
		return Info{}, fmt.Errorf("input 0: %w", err)
	}
	end, err := footerOf(inputs, &o)
	if err != nil {
		return Info{}, err
	}
	end.orders = ordersWritten(end.orders)
	m, err := newMerger(s, inputs, w, o)
	if err != nil {
		return Info{}, err
	}
	for i := range inputs {
		if i > 0 { // Same: what is read of a column's type is the first file's
			m.inputs[i] = m.inputs[0]
			continue
		}
		m.inputs[0] = make([]source, len(s.leaves))
		for k, col := range inputs[0].typ.leaves {
			l := &s.leaves[k]
			m.inputs[0][k] = source{column: col, phys: l.phys, width: l.width, ours: sameLevels[:l.maxDef+1], like: -1}
		}
	}
	return m.run(ctx, end)
}

// Merge joins files as the package's Merge does, to a file of this schema:
// their columns are matched by name (F3), and one that has another type or
// other levels there is decoded, it alone.
func (s *Schema) Merge(ctx context.Context, inputs []*File, w io.Writer, o JoinOptions) (Info, error) {
	m, err := newMerger(s, inputs, w, o)
	if err != nil {
		return Info{}, err
	}
	known := make(map[*fileType][]source)
	for i, f := range inputs {
		if f.foot.encrypted {
			return Info{}, fmt.Errorf("input %d: %w", i, ErrEncrypted)
		}
		if known[f.typ] == nil {
			if known[f.typ], err = s.sources(f); err != nil {
				return Info{}, fmt.Errorf("input %d: %w", i, err)
			}
		}
		m.inputs[i] = known[f.typ]
	}
	end, err := s.footer(&o)
	if err != nil {
		return Info{}, err
	}
	return m.run(ctx, end)
}

// footer is the footer of a file of this schema, but for its row groups.
func (s *Schema) footer(o *JoinOptions) (footer, error) {
	out := footer{createdBy: o.createdBy(), meta: s.said(o.Meta)}
	b, err := thrift.Marshal(new(thrift.CompactProtocol), &format.FileMetaData{Version: 2, Schema: s.elements, ColumnOrders: s.orders})
	if err != nil {
		return out, err
	}
	raw, err := parseFooter(b)
	if err != nil {
		return out, err
	}
	out.version, out.schema, out.orders = raw.version, raw.schema, raw.orders
	return out, nil
}

// sameLevels translates levels where there is nothing to translate.
var sameLevels = func() (levels []uint8) {
	for i := range badLevel {
		levels = append(levels, uint8(i))
	}
	return levels
}()

// merger is a merge at work.
type merger struct {
	s      *Schema
	o      JoinOptions
	files  []*File
	inputs [][]source // of each file, of each leaf
	exact  [][]bool   // its pages have our levels and types
	codec  compress.Codec
	joiner joiner
	w      *Writer // encodes what has to be

	members []member
	mem     []byte // the row groups of members, as they are

	// Of the column at hand.
	pend    leaf         // rows that are in no page so far
	pending pendingKind  // how pend has its values
	ids     []int32      // pending: numbers in w.dict
	reader  columnReader // of a page
	facts   chunkFacts
	like    leaf // scratch
	look    leaf // scratch
	union
	plain plainPage
}

type pendingKind uint8

const (
	pendingValues  pendingKind = iota
	pendingNumbers             // in the dictionary
	pendingPlain               // in plain, PLAIN-encoded
)

// member is a row group that is joined with others.
type member struct {
	groupRef
	f      *File // a slice: this row group
	rows   int64
	chunks [][]byte // its columns
	index  pageIndexes
	orders bool // its footer says how values compare
}

func newMerger(s *Schema, inputs []*File, w io.Writer, o JoinOptions) (*merger, error) {
	codec, err := codecOf(o.Codec)
	if err != nil {
		return nil, err
	}
	m, _ := mergers.Get().(*merger)
	if m == nil {
		m = &merger{w: s.NewWriter(nil, WriterOptions{Codec: o.Codec})}
	}
	m.s, m.o, m.files, m.inputs, m.codec = s, o, inputs, make([][]source, len(inputs)), codec
	m.joiner.out = counter{w: w}
	m.w.s, m.w.out = s, &m.joiner.out
	return m, nil
}

// mergers are idle; their memory is used again. Those that stay idle are
// garbage collected.
var mergers sync.Pool

// release forgets the files and keeps the memory.
func (m *merger) release() {
	m.s, m.files, m.inputs, m.exact, m.w.s = nil, nil, nil, nil, nil
	m.joiner.reset()
	for i := range m.members[:cap(m.members)] {
		mb := &m.members[:cap(m.members)][i]
		clear(mb.chunks)
		*mb = member{chunks: mb.chunks[:0], index: mb.index}
	}
	m.reader = columnReader{pages: m.reader.pages}
	m.reader.pages.column, m.reader.pages.r = nil, nil
	m.facts.l = nil
	for k := range m.dicts {
		m.dicts[k].page, m.dicts[k].body = rawPage{}, nil
	}
	mergers.Put(m)
}

func (m *merger) run(ctx context.Context, end footer) (Info, error) {
	m.exact = make([][]bool, len(m.inputs))
	for i := range m.inputs {
		if i > 0 && len(m.inputs[i]) > 0 && &m.inputs[i][0] == &m.inputs[i-1][0] {
			m.exact[i] = m.exact[i-1] // the same sources
			continue
		}
		m.exact[i] = make([]bool, len(m.s.leaves))
		for k := range m.s.leaves {
			m.exact[i][k] = m.s.leaves[k].same(&m.inputs[i][k])
		}
	}
	copied := -1
	for _, g := range planJoin(m.files, m.copyable) {
		if err := ctx.Err(); err != nil {
			return Info{}, err
		}
		var err error
		if ref := g.members[0]; g.copied {
			if copied != ref.input {
				copied, err = ref.input, m.files[ref.input].readPageIndex(&m.joiner.index)
			}
			if err == nil {
				err = m.joiner.copyGroup(m.files[ref.input], ref.group)
			}
			if err != nil {
				err = fmt.Errorf("input %d: row group %d: %w", ref.input, ref.group, err)
			}
		} else {
			err = m.join(ctx, g.members)
		}
		if err != nil {
			return Info{}, err
		}
	}
	info, err := m.joiner.close(end)
	if err == nil {
		m.release()
	}
	return info, err
}

// same says whether a file's pages can be the column's as they are.
func (l *leafType) same(src *source) bool {
	if src.column == nil || src.phys != l.phys || src.width != l.width || len(src.ours) != int(l.maxDef)+1 {
		return false
	}
	for i, d := range src.ours {
		if int(d) != i {
			return false
		}
	}
	return src.column.MaxRepetitionLevel() == int(l.maxRep)
}

// copyable says whether a row group can be the output's as it is.
func (m *merger) copyable(input, group int) bool {
	g := &m.files[input].groups()[group]
	if len(g.columns) != len(m.s.leaves) || !g.described() || m.files[input].stays(g) != "" || !m.o.KeepCodec && !g.inCodec(m.codec.CompressionCodec()) {
		return false
	}
	for k := range m.s.leaves {
		if src := &m.inputs[input][k]; !m.exact[input][k] || src.column.Index() != k {
			return false
		}
	}
	return true
}

// codecFor is the codec that a column of some row groups gets.
func (m *merger) codecFor(column int) (compress.Codec, error) {
	if !m.o.KeepCodec {
		return m.codec, nil
	}
	agreed := format.CompressionCodec(-1)
	for i := range m.members {
		src := &m.inputs[m.members[i].input][column]
		if src.column == nil {
			continue
		}
		c := m.members[i].f.groups()[0].columns[src.column.Index()].codec
		if agreed >= 0 && c != agreed {
			return m.codec, nil
		}
		agreed = c
	}
	switch agreed {
	case -1:
		return m.codec, nil
	case format.Zstd, format.Snappy, format.Gzip, format.Lz4Raw, format.Uncompressed:
		return codecOf(map[format.CompressionCodec]string{format.Zstd: "zstd", format.Snappy: "snappy", format.Gzip: "gzip",
			format.Lz4Raw: "lz4", format.Uncompressed: "none"}[agreed])
	}
	// A codec that is read but not written here: what has to be compressed
	// anew gets another.
	return m.codec, nil
}

// join writes several row groups as one.
func (m *merger) join(ctx context.Context, refs []groupRef) error {
	if err := m.load(refs); err != nil {
		return err
	}
	if err := m.joiner.begin(); err != nil {
		return err
	}
	w := m.w
	w.columnIndexes, w.offsetIndexes = w.columnIndexes[:0], w.offsetIndexes[:0]
	g := format.RowGroup{Columns: make([]format.ColumnChunk, len(m.s.leaves)), FileOffset: m.joiner.out.n}
	for i := range m.members {
		g.NumRows += m.members[i].rows
	}
	for i := range m.s.leaves {
		if err := ctx.Err(); err != nil {
			return err
		}
		codec, err := m.codecFor(i)
		if err != nil {
			return err
		}
		w.codec, w.kind = codec, codec.CompressionCodec()
		if err := m.joinColumn(i, &g); err != nil {
			return err
		}
		g.TotalByteSize += g.Columns[i].MetaData.TotalUncompressedSize
		g.TotalCompressedSize += g.Columns[i].MetaData.TotalCompressedSize
	}
	return m.joiner.addGroup(&g, w.columnIndexes, w.offsetIndexes)
}

// addGroup adds a row group whose pages have been written.
func (j *joiner) addGroup(g *format.RowGroup, columnIndexes []format.ColumnIndex, offsetIndexes []format.OffsetIndex) error {
	encode := func(v any) ([]byte, error) { return thrift.Marshal(new(thrift.CompactProtocol), v) }
	b, err := encode(g)
	if err != nil {
		return err
	}
	w := walker{b: b}
	raw, err := w.rowGroup(new(groupSlabs))
	if err != nil {
		return err
	}
	out := joinedGroup{fields: raw.fields, at: g.FileOffset, columns: j.chunks.take(len(raw.columns))}
	for i := range raw.columns {
		c := &out.columns[i]
		c.raw = raw.columns[i].raw
		if len(columnIndexes[i].NullPages) > 0 {
			b, err := encode(&columnIndexes[i])
			if err != nil {
				return err
			}
			j.columnIndexes, c.columnIndexLength = append(j.columnIndexes, b...), int32(len(b))
		}
		b, err := encode(&offsetIndexes[i])
		if err != nil {
			return err
		}
		j.offsetIndexes, c.offsetIndexLength = append(j.offsetIndexes, b...), int32(len(b))
	}
	j.groups = append(j.groups, out)
	j.rows += g.NumRows
	return nil
}

// load reads row groups, each at once if its columns lie together.
func (m *merger) load(refs []groupRef) error {
	if n := len(refs); n <= cap(m.members) {
		m.members = m.members[:n]
	} else {
		m.members = append(m.members[:cap(m.members)], make([]member, n-cap(m.members))...)
	}
	total := int64(0)
	for i, ref := range refs {
		f, err := m.files[ref.input].Slice(ref.group, ref.group+1)
		if err != nil {
			return err
		}
		mb := &m.members[i]
		*mb = member{groupRef: ref, f: f, rows: f.groups()[0].rows, chunks: mb.chunks[:0], index: mb.index}
		for k := range f.groups()[0].columns {
			e := f.groups()[0].columns[k].pages()
			total += e.to - e.from
		}
	}
	m.mem = growTo(m.mem[:0], int(total))[:0]
	for i := range m.members {
		if err := m.loadMember(&m.members[i]); err != nil {
			return m.blame(i, -1, err)
		}
	}
	return nil
}

func (m *merger) loadMember(mb *member) error {
	mb.orders = mb.f.foot.known
	g := &mb.f.groups()[0]
	for k := range g.columns {
		if n := g.columns[k].values; n < g.rows { // a row has a value, or a null, in each
			return fmt.Errorf("column %s: %w: %d values for %d rows", mb.f.typ.names[k], errDamaged, n, g.rows)
		}
	}
	if err := mb.f.readPageIndex(&mb.index); err != nil {
		return err
	}
	all, together := g.together()
	read := func(e extent) ([]byte, error) {
		at := len(m.mem)
		m.mem = growTo(m.mem, at+int(e.to-e.from))
		b := m.mem[at:]
		if n, err := mb.f.r.ReadAt(b, e.from); n < len(b) {
			return nil, fmt.Errorf("read %d bytes at %d: %w", len(b), e.from, err)
		}
		return b, nil
	}
	if together {
		b, err := read(all)
		if err != nil {
			return err
		}
		for k := range g.columns {
			e := g.columns[k].pages()
			mb.chunks = append(mb.chunks, b[e.from-all.from:e.to-all.from])
		}
		return nil
	}
	for k := range g.columns {
		b, err := read(g.columns[k].pages())
		if err != nil {
			return err
		}
		mb.chunks = append(mb.chunks, b)
	}
	return nil
}

// blame says where an error is.
func (m *merger) blame(member, column int, err error) error {
	where := ""
	if column >= 0 {
		where = "column " + strings.Join(m.s.leaves[column].path, ".") + ": "
	}
	ref := m.members[member].groupRef
	return fmt.Errorf("input %d: row group %d: %s%w", ref.input, ref.group, where, err)
}
