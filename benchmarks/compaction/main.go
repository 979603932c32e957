// Command compaction measures what merging small files costs: it writes many
// small Parquet files with hivesink's own encoder, merges them into one file a
// partition the way the compactor does, and copies the same bytes beside it.
//
//	go run ./benchmarks/compaction [-files 1000] [-rows 5000] [-partitions 10] [-rounds 3] [-hidden none]
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/hivesink/hivesink/format/parquet"
	"github.com/hivesink/hivesink/hivetype"
	"github.com/hivesink/hivesink/record"
)

type options struct {
	files, rows, partitions, rounds int
	dir, out, codec, hidden         string
}

func main() {
	var o options
	flag.IntVar(&o.files, "files", 200, "small files (1000 is the published size)")
	flag.IntVar(&o.rows, "rows", 5000, "rows a file")
	flag.IntVar(&o.partitions, "partitions", 10, "files that come out")
	flag.IntVar(&o.rounds, "rounds", 3, "times that copying and merging alternate; medians are printed")
	flag.StringVar(&o.dir, "dir", "", "directory to work in (default: a temporary one)")
	flag.StringVar(&o.out, "out", "benchmarks/results/compaction.json", "where the result goes; empty: nowhere")
	flag.StringVar(&o.codec, "codec", "zstd", "codec of the merged files")
	flag.StringVar(&o.hidden, "hidden", "none", "codec of the small files, which are written as hidden parts are; table: as published files are")
	flag.Parse()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "compaction:", err)
		os.Exit(1)
	}
}

// cost is what one pass took.
type cost struct {
	Seconds    float64 `json:"seconds"`
	CPUSeconds float64 `json:"cpu_seconds"`
	BytesOut   int64   `json:"bytes_out"`
}

// result is what is printed and kept.
type result struct {
	Files         int     `json:"files"`
	RowsPerFile   int     `json:"rows_per_file"`
	Partitions    int     `json:"partitions"`
	Hidden        string  `json:"small_files"`
	Codec         string  `json:"codec"`
	BytesIn       int64   `json:"bytes_in"`
	BytesOut      int64   `json:"bytes_out"`
	Copy          cost    `json:"copy"`
	Rewrite       cost    `json:"rewrite"`
	RowsPerSecond float64 `json:"rewrite_rows_per_second"`
	RowsPerCPU    float64 `json:"rewrite_rows_per_cpu_second"`
	MBPerSecond   float64 `json:"rewrite_mb_per_second"`
	CopyMB        float64 `json:"copy_mb_per_second"`
	CPUToCopy     float64 `json:"rewrite_cpu_over_copy"`
	PeakRSSMB     float64 `json:"peak_rss_mb"`
}

func run(o options) error {
	if o.files < o.partitions || o.partitions < 1 || o.rows < 1 || o.rounds < 1 {
		return fmt.Errorf("-files must be at least -partitions, and all of them at least 1")
	}
	dir, err := os.MkdirTemp(o.dir, "hivesink-compaction-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	schema, inputs, bytesIn, err := prepare(o, dir)
	if err != nil {
		return err
	}
	var copies, rewrites []cost
	for range o.rounds {
		c, err := measure(func() (int64, error) { return copyAll(dir, inputs) })
		if err != nil {
			return err
		}
		w, err := measure(func() (int64, error) { return rewriteAll(o, schema, dir, inputs) })
		if err != nil {
			return err
		}
		copies, rewrites = append(copies, c), append(rewrites, w)
	}
	r := result{Files: o.files, RowsPerFile: o.rows, Partitions: o.partitions, Hidden: o.hidden, Codec: o.codec, BytesIn: bytesIn,
		Copy: median(copies), Rewrite: median(rewrites), PeakRSSMB: peakRSS()}
	rows := float64(o.files) * float64(o.rows)
	r.BytesOut = r.Rewrite.BytesOut
	r.RowsPerSecond = rows / r.Rewrite.Seconds
	r.RowsPerCPU = rows / r.Rewrite.CPUSeconds
	r.MBPerSecond = float64(bytesIn) / 1e6 / r.Rewrite.Seconds
	r.CopyMB = float64(bytesIn) / 1e6 / r.Copy.Seconds
	r.CPUToCopy = r.Rewrite.CPUSeconds / max(r.Copy.CPUSeconds, 1e-3)
	show(r)
	return keep(o.out, r)
}

func show(r result) {
	fmt.Printf("%d files of %d rows (%s, %.1f MB) into %d files (%s, %.1f MB)\n",
		r.Files, r.RowsPerFile, r.Hidden, float64(r.BytesIn)/1e6, r.Partitions, r.Codec, float64(r.BytesOut)/1e6)
	fmt.Printf("  plain copy + sync  %7.2f s  %7.2f CPU s  %8.1f MB/s\n", r.Copy.Seconds, r.Copy.CPUSeconds, r.CopyMB)
	fmt.Printf("  merge + sync       %7.2f s  %7.2f CPU s  %8.1f MB/s  %.0f rows/s\n",
		r.Rewrite.Seconds, r.Rewrite.CPUSeconds, r.MBPerSecond, r.RowsPerSecond)
	fmt.Printf("  merge: %.0f rows per CPU second; %.1f times the CPU of the copy; %.0f MB peak RSS\n", r.RowsPerCPU, r.CPUToCopy, r.PeakRSSMB)
}

func keep(name string, r result) error {
	if name == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(name, append(text, '\n'), 0o644)
}

// prepare writes the small files; file i belongs to partition i modulo the
// number of partitions.
func prepare(o options, dir string) (*parquetfile.Schema, []string, int64, error) {
	rs, err := clicks()
	if err != nil {
		return nil, nil, 0, err
	}
	schema, err := parquetfile.NewSchema(rs)
	if err != nil {
		return nil, nil, 0, err
	}
	wo := parquetfile.WriterOptions{Codec: o.hidden, Hidden: true}
	if o.hidden == "table" {
		wo = parquetfile.WriterOptions{Codec: o.codec}
	}
	w := schema.NewWriter(nil, wo)
	cols := schema.NewColumns()
	x := random(1)
	var names []string
	var total int64
	for i := range o.files {
		cols.Reset()
		rec := batch(rs, &x, i*o.rows, o.rows)
		cols.Append(rec, nil)
		rec.Release()
		name := filepath.Join(dir, fmt.Sprintf("part-%05d", i))
		n, err := writeSmall(name, w, cols)
		if err != nil {
			return nil, nil, 0, err
		}
		names, total = append(names, name), total+n
	}
	runtime.GC()
	return schema, names, total, nil
}

func writeSmall(name string, w *parquetfile.Writer, cols *parquetfile.Columns) (int64, error) {
	f, err := os.Create(name)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	buf := bufio.NewWriter(f)
	w.Reset(buf)
	if err := w.WriteRowGroup(cols); err != nil {
		return 0, err
	}
	info, err := w.Close(nil)
	if err != nil {
		return 0, err
	}
	return info.Bytes, buf.Flush()
}

// copyAll appends all inputs to one file and syncs it: what moving the bytes
// costs and no more.
func copyAll(dir string, inputs []string) (int64, error) {
	out, err := os.Create(filepath.Join(dir, "copy"))
	if err != nil {
		return 0, err
	}
	defer out.Close()
	var total int64
	buf := make([]byte, 256<<10)
	for _, name := range inputs {
		in, err := os.Open(name)
		if err != nil {
			return 0, err
		}
		// Plain reads and writes: no reflink or copy in the kernel.
		n, err := io.CopyBuffer(struct{ io.Writer }{out}, struct{ io.Reader }{in}, buf)
		in.Close()
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, out.Sync()
}

// rewriteAll merges each partition's files into one, one partition after the
// other.
func rewriteAll(o options, s *parquetfile.Schema, dir string, inputs []string) (int64, error) {
	var total int64
	for p := range o.partitions {
		var names []string
		for i := p; i < len(inputs); i += o.partitions {
			names = append(names, inputs[i])
		}
		n, err := rewrite(o, s, filepath.Join(dir, fmt.Sprintf("target-%03d", p)), names)
		if err != nil {
			return 0, fmt.Errorf("merge partition %d: %w", p, err)
		}
		total += n
	}
	return total, nil
}

func rewrite(o options, s *parquetfile.Schema, to string, names []string) (int64, error) {
	var files []*parquetfile.File
	for _, name := range names {
		in, err := os.Open(name)
		if err != nil {
			return 0, err
		}
		defer in.Close()
		st, err := in.Stat()
		if err != nil {
			return 0, err
		}
		f, err := parquetfile.Open(in, st.Size())
		if err != nil {
			return 0, fmt.Errorf("%s: %w", name, err)
		}
		files = append(files, f)
	}
	out, err := os.Create(to)
	if err != nil {
		return 0, err
	}
	defer out.Close()
	buf := bufio.NewWriterSize(out, 256<<10)
	info, err := s.Rewrite(context.Background(), files, buf, parquetfile.WriterOptions{Codec: o.codec}, nil)
	if err != nil {
		return 0, err
	}
	if want := int64(len(names)) * int64(o.rows); info.Rows != want {
		return 0, fmt.Errorf("%d rows came out, %d went in", info.Rows, want)
	}
	if err := buf.Flush(); err != nil {
		return 0, err
	}
	return info.Bytes, out.Sync()
}

// measure times one pass: wall clock, and the process's CPU.
func measure(pass func() (int64, error)) (cost, error) {
	start, cpu := time.Now(), cpuSeconds()
	n, err := pass()
	return cost{Seconds: time.Since(start).Seconds(), CPUSeconds: cpuSeconds() - cpu, BytesOut: n}, err
}

func cpuSeconds() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

// peakRSS is in MB. Linux counts in KB, others in bytes.
func peakRSS() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	if runtime.GOOS == "linux" {
		return float64(u.Maxrss) / 1e3
	}
	return float64(u.Maxrss) / 1e6
}

// median takes the pass with the median CPU, and the median wall clock.
func median(passes []cost) cost {
	byCPU := slices.SortedFunc(slices.Values(passes), func(a, b cost) int { return compare(a.CPUSeconds, b.CPUSeconds) })
	byWall := slices.SortedFunc(slices.Values(passes), func(a, b cost) int { return compare(a.Seconds, b.Seconds) })
	m := byCPU[len(byCPU)/2]
	m.Seconds = byWall[len(byWall)/2].Seconds
	return m
}

func compare(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// clicks is the schema of the benchmarks' records.
func clicks() (*record.Schema, error) {
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

// random is a linear congruential generator: the same rows on every machine.
type random uint64

func (x *random) next(m uint64) int64 {
	*x = *x*6364136223846793005 + 1442695040888963407
	return int64((uint64(*x) >> 33) % m)
}

// batch makes rows like those of benchmarks/gen.
func batch(rs *record.Schema, x *random, first, rows int) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.DefaultAllocator, rs.Arrow)
	defer b.Release()
	for i := range rows {
		b.Field(0).(*array.Int64Builder).Append(int64(first + i))
		b.Field(1).(*array.TimestampBuilder).Append(arrow.Timestamp(1767225600000000 + x.next(86400000)*1000))
		b.Field(2).(*array.StringBuilder).Append(fmt.Sprintf("user-%06d", x.next(100000)))
		b.Field(3).(*array.StringBuilder).Append(fmt.Sprintf("C%03d", x.next(200)))
		b.Field(4).(*array.Float64Builder).Append(float64(x.next(100000)) / 100)
		b.Field(5).(*array.StringBuilder).Append(fmt.Sprintf("/shop/category-%02d/item-%05d", x.next(40), x.next(60000)))
		b.Field(6).(*array.BooleanBuilder).Append(x.next(10) != 0)
	}
	return b.NewRecordBatch()
}
