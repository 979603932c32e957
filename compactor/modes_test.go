package compactor

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"path"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"github.com/hivesink/hivesink/format/parquet"
	"github.com/hivesink/hivesink/hivetype"
	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/record"
	"github.com/hivesink/hivesink/storage"
	"github.com/hivesink/hivesink/storage/memfs"
)

// bench is a table with parts on a file system in memory.
type bench struct {
	o      Options
	rs     *record.Schema
	schema *parquetfile.Schema
	next   int
}

func newBench(t *testing.T) *bench {
	t.Helper()
	f, err := hivetype.ParseColumn("id bigint")
	if err != nil {
		t.Fatal(err)
	}
	rs, err := record.NewSchema([]hivetype.Field{f}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := parquetfile.NewSchema(rs)
	if err != nil {
		t.Fatal(err)
	}
	fs := memfs.New()
	if err := fs.Mkdir("/t"); err != nil {
		t.Fatal(err)
	}
	if err := fs.Mkdir("/t/staging"); err != nil {
		t.Fatal(err)
	}
	return &bench{rs: rs, schema: s, o: Options{FS: fs, Staging: "/t/staging", Pipeline: "p", TableID: "table", Epoch: 1, Codec: "zstd",
		Schema: func(string) *parquetfile.Schema { return s }, Location: func(string) string { return "/t" }}}
}

// part writes rows as a part, hidden or in the table's encoding.
func (b *bench) part(t *testing.T, rows int, final bool) Input {
	t.Helper()
	rb := array.NewInt64Builder(memory.DefaultAllocator)
	for i := range rows {
		rb.Append(int64(b.next + i))
	}
	rec := array.NewRecordBatch(b.rs.Arrow, []arrow.Array{rb.NewArray()}, int64(rows))
	c := b.schema.NewColumns()
	c.Append(rec, nil)
	return b.write(t, c, rows, final)
}

// write writes columns as a part, the rows of which follow those before.
func (b *bench) write(t *testing.T, c *parquetfile.Columns, rows int, final bool) Input {
	t.Helper()
	p := ledger.Part{ID: fmt.Sprintf("%016x", b.next+1), Rows: int64(rows), Final: final, Codec: "none"}
	if final {
		p.Codec = "zstd"
	}
	sum := ledger.Range{First: int64(b.next), Last: int64(b.next + rows - 1)}
	for i := range rows {
		sum.Row(int64(b.next + i))
	}
	p.Sources = map[string]ledger.Range{"src": sum}
	b.next += rows
	footer := ledger.Footer{Pipeline: "p", TableID: "table", Epoch: 1, Leaves: []string{p.ID}, Sources: p.Sources}
	meta, err := footer.Encode()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w := b.schema.NewWriter(&out, parquetfile.WriterOptions{Codec: p.Codec, Hidden: !final})
	if err := w.WriteRowGroup(c); err != nil {
		t.Fatal(err)
	}
	info, err := w.Close(meta)
	if err != nil {
		t.Fatal(err)
	}
	p.Bytes = info.Bytes
	in := Input{Part: p, Path: path.Join("/t/staging", "part-"+p.ID)}
	f, err := b.o.FS.Create(in.Path)
	if err != nil {
		t.Fatal(err)
	}
	bw := bufio.NewWriter(f)
	if _, err := bw.Write(out.Bytes()); err != nil {
		t.Fatal(err)
	}
	if err := bw.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return in
}

// TestModes: what is chosen, what is used in the end, and that the target has
// the rows of its inputs in order and their audit footers' sum (C4).
func TestModes(t *testing.T) {
	const large = parquetfile.RowGroupRows/2 + 1
	for _, c := range []struct {
		name         string
		rows         []int
		final        []bool
		chosen, used string
	}{
		{"hidden parts", []int{10, 20}, []bool{false, false}, ledger.ModeRewrite, ledger.ModeRewrite},
		{"one hidden part", []int{10}, []bool{false}, ledger.ModeRewrite, ledger.ModeRewrite},
		{"one finished part", []int{10}, []bool{true}, ledger.ModePublish, ledger.ModePublish},
		{"large finished parts", []int{large, large}, []bool{true, true}, ledger.ModeMerge, ledger.ModeCopy},
		{"small finished parts", []int{5000, 6000}, []bool{true, true}, ledger.ModeMerge, ledger.ModeMerge},
		{"a finished one among hidden ones", []int{100, large, 7}, []bool{false, true, false}, ledger.ModeMerge, ledger.ModeMerge},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			j := Job{Unit: ledger.Unit{ID: "0000000000000001", Target: "part-1-0000000000000001.parquet"}}
			var parts []*ledger.Part
			for i, n := range c.rows {
				in := b.part(t, n, c.final[i])
				j.Inputs = append(j.Inputs, in)
				parts = append(parts, &in.Part)
				j.Unit.Inputs = append(j.Unit.Inputs, in.ID)
				j.Unit.Rows += in.Rows
			}
			var why string
			j.Unit.Mode, why = Choose(parts, "zstd")
			if j.Unit.Mode != c.chosen || why == "" {
				t.Fatalf("chosen %s (%s), want %s", j.Unit.Mode, why, c.chosen)
			}
			built, err := b.o.Build(context.Background(), j)
			if err != nil {
				t.Fatal(err)
			}
			if built.Mode != c.used {
				t.Errorf("used %s, want %s", built.Mode, c.used)
			}
			b.check(t, built)
		})
	}
}

// check reads a target: the rows 0, 1, 2, … and the sum of all of them.
func (b *bench) check(t *testing.T, built *Built) {
	t.Helper()
	r, err := b.o.FS.Open(built.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	f, err := parquetfile.Open(r, r.Size())
	if err != nil {
		t.Fatal(err)
	}
	got := readIDs(t, r)
	want := make([]int64, b.next)
	all := ledger.Sum{}
	for i := range want {
		want[i] = int64(i)
		all.Row(int64(i))
	}
	if !slices.Equal(got, want) {
		t.Fatalf("%d rows or another order, want %d", len(got), len(want))
	}
	footer, ok, err := ledger.DecodeFooter(f.Meta())
	if err != nil || !ok {
		t.Fatalf("audit footer: %v, %v", ok, err)
	}
	if footer.Sources["src"].Sum != all {
		t.Errorf("the audit footer says %+v, want %+v", footer.Sources["src"].Sum, all)
	}
	if r.Size() != built.Bytes {
		t.Errorf("%d bytes, the builder says %d", r.Size(), built.Bytes)
	}
}

// readTable reads with a reader that is not ours.
func readTable(t *testing.T, r storage.Reader) arrow.Table {
	t.Helper()
	pf, err := file.NewParquetReader(io.NewSectionReader(r, 0, r.Size()))
	if err != nil {
		t.Fatal(err)
	}
	fr, err := pqarrow.NewFileReader(pf, pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
	if err != nil {
		t.Fatal(err)
	}
	tbl, err := fr.ReadTable(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return tbl
}

func readIDs(t *testing.T, r storage.Reader) []int64 {
	t.Helper()
	var ids []int64
	for _, c := range readTable(t, r).Column(0).Data().Chunks() {
		ids = append(ids, c.(*array.Int64).Int64Values()...)
	}
	return ids
}
