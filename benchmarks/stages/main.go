// Command stages measures each stage of the ingest path by itself, on the
// lines of one file: nanoseconds of CPU and allocations a row, as JSON.
//
//	go run ./benchmarks/stages FILE.ndjson FILE.csv
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"syscall"
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
	rounds    = 5
	maxBytes  = 64 << 20 // of the file
)

type stage struct {
	Stage     string  `json:"stage"`
	NsPerRow  float64 `json:"ns_per_row"`
	MBPerS    float64 `json:"mb_per_second"` // of CPU, of the input's text
	AllocsRow float64 `json:"allocs_per_row"`
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "stages:", err)
		os.Exit(1)
	}
}

func run() error {
	if len(os.Args) != 3 {
		return fmt.Errorf("usage: stages FILE.ndjson FILE.csv")
	}
	lines, err := read(os.Args[1])
	if err != nil {
		return err
	}
	fields, err := read(os.Args[2])
	if err != nil {
		return err
	}
	rs, err := schema()
	if err != nil {
		return err
	}
	ps, err := parquetfile.NewSchema(rs)
	if err != nil {
		return err
	}
	b := bench{rs: rs, ps: ps, lines: lines, fields: fields[1:]}
	var out []stage
	for _, s := range []struct {
		name string
		run  func() error
	}{
		{"decode CSV", b.decodeCSV}, {"decode", b.decodeJSON}, {"route", b.route}, {"shred", b.shred}, {"encode hidden", b.encodeHidden},
		{"encode zstd", b.encodeTable}, {"rewrite", b.rewrite},
	} {
		m, err := b.measure(s.run)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		m.Stage = s.name
		out = append(out, m)
	}
	enc := json.NewEncoder(os.Stdout)
	enc.SetIndent("", "  ")
	return enc.Encode(out)
}

// read returns the lines of the start of a file.
func read(name string) ([][]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxBytes))
	if err != nil {
		return nil, err
	}
	end := bytes.LastIndexByte(data, '\n')
	if end < 0 {
		return nil, fmt.Errorf("%s has no whole line in its first %d bytes", name, maxBytes)
	}
	return bytes.Split(data[:end], []byte("\n")), nil
}

// schema is that of the lines benchmarks/gen writes.
func schema() (*record.Schema, error) {
	var fields []hivetype.Field
	for _, c := range []string{"id bigint", "ts timestamp", "user_name string", "country string", "amount double", "url string", "ok boolean"} {
		f, err := hivetype.ParseColumn(c)
		if err != nil {
			return nil, err
		}
		fields = append(fields, f)
	}
	return record.NewSchema(fields, nil)
}

// bench hands each stage what the stage before it has made.
type bench struct {
	rs      *record.Schema
	ps      *parquetfile.Schema
	lines   [][]byte
	fields  [][]byte // lines of CSV
	current [][]byte // those that the stage reads
	json    format.RowDecoder
	csv     format.RowDecoder
	batches []arrow.RecordBatch
	part    *record.Partitioner
	assign  []int32
	groups  []*parquetfile.Columns
	hidden  *parquetfile.Writer
	table   *parquetfile.Writer
	file    bytes.Buffer
	target  bytes.Buffer
}

// measure runs a stage once to warm up, then several times; the median counts.
func (b *bench) measure(pass func() error) (stage, error) {
	var ns, allocs []float64
	for i := range rounds + 1 {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		start := cpuTime()
		if err := pass(); err != nil {
			return stage{}, err
		}
		took := cpuTime() - start
		runtime.ReadMemStats(&after)
		if i == 0 {
			continue
		}
		n := float64(len(b.current))
		ns = append(ns, float64(took.Nanoseconds())/n)
		allocs = append(allocs, float64(after.Mallocs-before.Mallocs)/n)
	}
	slices.Sort(ns)
	slices.Sort(allocs)
	size := 0
	for _, line := range b.current {
		size += len(line) + 1
	}
	median := ns[len(ns)/2]
	return stage{NsPerRow: median, MBPerS: float64(size) / float64(len(b.current)) / median * 1e3, AllocsRow: allocs[len(allocs)/2]}, nil
}

// cpuTime is what the process has used, the garbage collector included: unlike
// the clock it does not count what other processes take.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func (b *bench) decodeJSON() (err error) {
	if b.json == nil {
		if b.json, err = jsonrow.New(b.rs, jsonrow.Options{}); err != nil {
			return err
		}
	}
	return b.decode(b.json, b.lines)
}

func (b *bench) decodeCSV() (err error) {
	if b.csv == nil {
		if b.csv, err = csvrow.New(b.rs, nil, csvrow.Options{Delimiter: ',', Quote: '"'}); err != nil {
			return err
		}
	}
	return b.decode(b.csv, b.fields)
}

func (b *bench) decode(d format.RowDecoder, lines [][]byte) error {
	b.current = lines
	for _, rec := range b.batches {
		rec.Release()
	}
	b.batches = b.batches[:0]
	for _, line := range lines {
		if err := d.Append(line); err != nil {
			return err
		}
		if d.Len() == batchRows {
			b.batches = append(b.batches, d.NewBatch())
		}
	}
	if rec := d.NewBatch(); rec != nil {
		b.batches = append(b.batches, rec)
	}
	return nil
}

func (b *bench) route() error {
	if b.part == nil {
		t, err := layout.ParseTransform("dt", "date(ts)")
		if err != nil {
			return err
		}
		if b.part, err = record.NewPartitioner(b.rs, []layout.Transform{t}, time.UTC, nil); err != nil {
			return err
		}
		b.assign = make([]int32, batchRows)
	}
	for _, rec := range b.batches {
		if bad := b.part.Assign(rec, b.assign[:rec.NumRows()]); len(bad) > 0 {
			return fmt.Errorf("%d rows have no partition", len(bad))
		}
	}
	return nil
}

// shred fills row groups.
func (b *bench) shred() error {
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
	return nil
}

func (b *bench) encode(w **parquetfile.Writer, to *bytes.Buffer, o parquetfile.WriterOptions) error {
	to.Reset()
	if *w == nil {
		*w = b.ps.NewWriter(to, o)
	} else {
		(*w).Reset(to)
	}
	for _, c := range b.groups {
		if err := (*w).WriteRowGroup(c); err != nil {
			return err
		}
	}
	_, err := (*w).Close(nil)
	return err
}

func (b *bench) encodeHidden() error {
	return b.encode(&b.hidden, &b.file, parquetfile.WriterOptions{Codec: "none", Hidden: true})
}

func (b *bench) encodeTable() error {
	return b.encode(&b.table, &b.target, parquetfile.WriterOptions{Codec: "zstd"})
}

// rewrite decodes the hidden file and encodes it as a table's.
func (b *bench) rewrite() error {
	f, err := parquetfile.Open(bytes.NewReader(b.file.Bytes()), int64(b.file.Len()))
	if err != nil {
		return err
	}
	b.target.Reset()
	_, err = b.ps.Rewrite(context.Background(), []*parquetfile.File{f}, &b.target, parquetfile.WriterOptions{Codec: "zstd"}, nil)
	return err
}
