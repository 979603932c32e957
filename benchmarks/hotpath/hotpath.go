// Package hotpath runs each stage of the ingest path by itself: what
// benchmarks/stages times and benchmarks/guard counts.
package hotpath

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/hivesink/hivesink/format"
	csvrow "github.com/hivesink/hivesink/format/csv"
	jsonrow "github.com/hivesink/hivesink/format/json"
	"github.com/hivesink/hivesink/format/parquet"
	"github.com/hivesink/hivesink/hivetype"
	"github.com/hivesink/hivesink/layout"
	"github.com/hivesink/hivesink/record"
)

const (
	batchRows = 8192
	partRows  = 5000 // of each input of a merge
)

// Stage is a hot path: run once more, it does the same work in the memory of
// the run before.
type Stage struct {
	Name string
	Rows int
	// Text is how many bytes of input those rows are.
	Text int64
	// Run does the work and returns how many bytes it has made, 0 for stages
	// that make columns in memory.
	Run func() (int64, error)
}

// Bench hands each stage what the stage before it has made.
type Bench struct {
	rs      *record.Schema
	ps      *parquetfile.Schema
	json    format.RowDecoder
	csv     format.RowDecoder
	batches []arrow.RecordBatch
	part    *record.Partitioner
	assign  []int32
	groups  []*parquetfile.Columns
	hidden  *parquetfile.Writer
	table   *parquetfile.Writer
	file    bytes.Buffer // hidden
	parts   []*parquetfile.File
	target  bytes.Buffer
}

// columns is the schema of the lines that benchmarks/gen writes.
var columns = []string{"id bigint", "ts timestamp", "user_name string", "country string", "amount double", "url string", "ok boolean"}

// New makes the stages of lines of NDJSON and of CSV without a header. They
// must be run in their order at least once.
func New(lines, fields [][]byte) ([]Stage, error) {
	var types []hivetype.Field
	for _, c := range columns {
		f, err := hivetype.ParseColumn(c)
		if err != nil {
			return nil, err
		}
		types = append(types, f)
	}
	b := &Bench{assign: make([]int32, batchRows)}
	var err error
	if b.rs, err = record.NewSchema(types, nil); err != nil {
		return nil, err
	}
	if b.ps, err = parquetfile.NewSchema(b.rs); err != nil {
		return nil, err
	}
	if b.json, err = jsonrow.New(b.rs, jsonrow.Options{}); err != nil {
		return nil, err
	}
	if b.csv, err = csvrow.New(b.rs, nil, csvrow.Options{Quote: '"'}); err != nil {
		return nil, err
	}
	t, err := layout.ParseTransform("dt", "date(ts)")
	if err != nil {
		return nil, err
	}
	if b.part, err = record.NewPartitioner(b.rs, []layout.Transform{t}, time.UTC, nil); err != nil {
		return nil, err
	}
	of := func(name string, run func() (int64, error)) Stage {
		return Stage{Name: name, Rows: len(lines), Text: size(lines), Run: run}
	}
	return []Stage{
		of("decode", func() (int64, error) { return 0, b.decode(b.json, lines, &b.batches) }),
		{"decode CSV", len(fields), size(fields), func() (int64, error) { return 0, b.decode(b.csv, fields, nil) }},
		of("route", b.route), of("shred", b.shred), of("encode hidden", b.encodeHidden), of("encode zstd", b.encodeTable),
		of("rewrite", b.rewrite), of("merge", b.merge), of("copy", b.copy),
	}, nil
}

func size(lines [][]byte) (n int64) {
	for _, line := range lines {
		n += int64(len(line)) + 1
	}
	return n
}

// Lines makes rows up, the same ones always, as benchmarks/gen does.
func Lines(rows int) (lines, fields [][]byte) {
	r := rand.New(rand.NewSource(42))
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
	for i := range rows {
		ts := time.UnixMilli(start + r.Int63n(10*86400000)).UTC().Format("2006-01-02T15:04:05.000Z")
		user, country, amount := r.Intn(100000), r.Intn(200), r.Float64()*1000
		category, item, ok := r.Intn(40), r.Intn(60000), r.Intn(10) != 0
		lines = append(lines, fmt.Appendf(nil, `{"id":%d,"ts":"%s","user_name":"user-%06d","country":"C%03d","amount":%.2f,"url":"/shop/category-%02d/item-%05d","ok":%t}`,
			i, ts, user, country, amount, category, item, ok))
		fields = append(fields, fmt.Appendf(nil, "%d,%s,user-%06d,C%03d,%.2f,/shop/category-%02d/item-%05d,%t", i, ts, user, country, amount, category, item, ok))
	}
	return lines, fields
}

// decode gives each batch back as soon as it is full, as a run does; the first
// time it keeps them for the stages after it.
func (b *Bench) decode(d format.RowDecoder, lines [][]byte, keep *[]arrow.RecordBatch) error {
	if keep != nil && len(*keep) > 0 {
		keep = nil
	}
	done := func(rec arrow.RecordBatch) {
		if keep != nil {
			*keep = append(*keep, rec)
		} else {
			rec.Release()
		}
	}
	for _, line := range lines {
		if err := d.Append(line); err != nil {
			return err
		}
		if d.Len() == batchRows {
			done(d.NewBatch())
		}
	}
	if d.Len() > 0 {
		done(d.NewBatch())
	}
	return nil
}

func (b *Bench) route() (int64, error) {
	for _, rec := range b.batches {
		if bad := b.part.Assign(rec, b.assign[:rec.NumRows()]); len(bad) > 0 {
			return 0, fmt.Errorf("%d rows have no partition", len(bad))
		}
	}
	return 0, nil
}

// shred fills row groups.
func (b *Bench) shred() (int64, error) {
	for _, c := range b.groups {
		c.Reset()
	}
	g := 0
	for _, rec := range b.batches {
		if g < len(b.groups) && b.groups[g].Rows()+int(rec.NumRows()) > parquetfile.RowGroupRows {
			g++
		}
		if g == len(b.groups) {
			b.groups = append(b.groups, b.ps.NewColumns())
		}
		b.groups[g].Append(rec, nil)
	}
	return 0, nil
}

func (b *Bench) encode(w **parquetfile.Writer, to *bytes.Buffer, o parquetfile.WriterOptions) (int64, error) {
	to.Reset()
	if *w == nil {
		*w = b.ps.NewWriter(to, o)
	} else {
		(*w).Reset(to)
	}
	for _, c := range b.groups {
		if err := (*w).WriteRowGroup(c); err != nil {
			return 0, err
		}
	}
	info, err := (*w).Close(nil)
	return info.Bytes, err
}

func (b *Bench) encodeHidden() (int64, error) {
	return b.encode(&b.hidden, &b.file, parquetfile.WriterOptions{Codec: "none", Hidden: true})
}

func (b *Bench) encodeTable() (int64, error) {
	return b.encode(&b.table, &b.target, parquetfile.WriterOptions{Codec: "zstd"})
}

// rewrite decodes the hidden file and encodes it as a table's.
func (b *Bench) rewrite() (int64, error) {
	f, err := parquetfile.Open(bytes.NewReader(b.file.Bytes()), int64(b.file.Len()))
	if err != nil {
		return 0, err
	}
	b.target.Reset()
	info, err := b.ps.Rewrite(context.Background(), []*parquetfile.File{f}, &b.target, parquetfile.WriterOptions{Codec: "zstd"}, nil)
	return info.Bytes, err
}

// small makes the inputs of a merge, as a table's files.
func (b *Bench) small() error {
	if b.parts != nil {
		return nil
	}
	c := b.ps.NewColumns()
	for _, rec := range b.batches {
		for at := int64(0); at < rec.NumRows(); at += partRows {
			c.Reset()
			c.Append(rec.NewSlice(at, min(at+partRows, rec.NumRows())), nil)
			var out bytes.Buffer
			w := b.ps.NewWriter(&out, parquetfile.WriterOptions{Codec: "zstd"})
			if err := w.WriteRowGroup(c); err != nil {
				return err
			}
			if _, err := w.Close(nil); err != nil {
				return err
			}
			f, err := parquetfile.Open(bytes.NewReader(out.Bytes()), int64(out.Len()))
			if err != nil {
				return err
			}
			b.parts = append(b.parts, f)
		}
	}
	return nil
}

type joiner func(context.Context, []*parquetfile.File, io.Writer, parquetfile.JoinOptions) (parquetfile.Info, error)

func (b *Bench) merge() (int64, error) { return b.join(parquetfile.Merge) }

func (b *Bench) copy() (int64, error) { return b.join(parquetfile.Copy) }

func (b *Bench) join(how joiner) (int64, error) {
	if err := b.small(); err != nil {
		return 0, err
	}
	b.target.Reset()
	info, err := how(context.Background(), b.parts, &b.target, parquetfile.JoinOptions{Codec: "zstd"})
	return info.Bytes, err
}
