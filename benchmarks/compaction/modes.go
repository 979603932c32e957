package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/hivesink/hivesink/format/parquet"
)

// modes are the jobs of this binary's children. Each prepares, untimed, and
// returns the work.
var modes = map[string]func(job) (func(*outcome) error, error){
	"generate":    generate,
	"plain":       plainCopy,
	"plain-files": plainCopyFiles,
	"rows":        rewriteByRows,
	"copy":        joinBy(parquetfile.Copy),
	"merge":       joinBy(parquetfile.Merge),
	"rewrite":     rewrite,
}

// bufferSize is what every copy and every output works with.
const bufferSize = 256 << 10

// plainCopy appends the bytes of each target's inputs to one file and syncs it:
// what moving them costs and no more.
func plainCopy(j job) (func(*outcome) error, error) {
	buf := make([]byte, bufferSize)
	return func(o *outcome) error {
		return j.eachTarget(o, func(inputs []string, out *os.File) error {
			for _, name := range inputs {
				if err := appendFile(out, name, buf); err != nil {
					return err
				}
			}
			return nil
		})
	}, nil
}

// plainCopyFiles copies file by file and syncs each.
func plainCopyFiles(j job) (func(*outcome) error, error) {
	single := job{Dir: j.Dir}
	for _, inputs := range j.Inputs {
		for _, name := range inputs {
			single.Inputs = append(single.Inputs, []string{name})
		}
	}
	return plainCopy(single)
}

func appendFile(out io.Writer, name string, buf []byte) error {
	in, err := os.Open(name)
	if err != nil {
		return err
	}
	defer in.Close()
	// Plain reads and writes: no reflink or copy in the kernel.
	_, err = io.CopyBuffer(struct{ io.Writer }{out}, struct{ io.Reader }{in}, buf)
	return err
}

// eachTarget makes the targets one after the other, each a file that is synced.
func (j job) eachTarget(o *outcome, fill func(inputs []string, out *os.File) error) error {
	for i, inputs := range j.Inputs {
		name := filepath.Join(j.Dir, fmt.Sprintf("target-%05d.parquet", i))
		out, err := os.Create(name)
		if err != nil {
			return err
		}
		if err := fill(inputs, out); err != nil {
			out.Close()
			return fmt.Errorf("target %d: %w", i, err)
		}
		start := time.Now()
		if err := out.Sync(); err != nil {
			out.Close()
			return err
		}
		o.SyncSeconds += time.Since(start).Seconds()
		if err := out.Close(); err != nil {
			return err
		}
		o.Outputs = append(o.Outputs, name)
	}
	return nil
}

// join makes a file of several.
type join func(ctx context.Context, inputs []*parquetfile.File, w io.Writer) (parquetfile.Info, error)

// eachJoin opens each target's inputs and joins them.
func (j job) eachJoin(o *outcome, to join) error {
	return j.eachTarget(o, func(names []string, out *os.File) error {
		files, rows, closeAll, err := openAll(names)
		defer closeAll()
		if err != nil {
			return err
		}
		buf := bufio.NewWriterSize(out, bufferSize)
		info, err := to(context.Background(), files, buf)
		if err != nil {
			return err
		}
		if info.Rows != rows {
			return fmt.Errorf("%d rows came out, %d went in", info.Rows, rows)
		}
		return buf.Flush()
	})
}

func openAll(names []string) (files []*parquetfile.File, rows int64, closeAll func(), err error) {
	opened := make([]*os.File, 0, len(names))
	closeAll = func() {
		for _, f := range opened {
			f.Close()
		}
	}
	for _, name := range names {
		in, err := os.Open(name)
		if err != nil {
			return nil, 0, closeAll, err
		}
		opened = append(opened, in)
		st, err := in.Stat()
		if err != nil {
			return nil, 0, closeAll, err
		}
		f, err := parquetfile.Open(in, st.Size())
		if err != nil {
			return nil, 0, closeAll, fmt.Errorf("%s: %w", name, err)
		}
		files, rows = append(files, f), rows+f.Rows()
	}
	return files, rows, closeAll, nil
}

// joinBy is a mode that takes the files as they are, without a table's schema.
// The codec of the outputs is asked for; columns that have it keep it.
func joinBy(to func(context.Context, []*parquetfile.File, io.Writer, parquetfile.JoinOptions) (parquetfile.Info, error)) func(job) (func(*outcome) error, error) {
	return func(j job) (func(*outcome) error, error) {
		o := parquetfile.JoinOptions{Codec: j.Codec}
		return func(out *outcome) error {
			return j.eachJoin(out, func(ctx context.Context, inputs []*parquetfile.File, w io.Writer) (parquetfile.Info, error) {
				return to(ctx, inputs, w, o)
			})
		}, nil
	}
}

func rewrite(j job) (func(*outcome) error, error) {
	rs, err := shapes[j.Shape].schema()
	if err != nil {
		return nil, err
	}
	schema, err := parquetfile.NewSchema(rs)
	if err != nil {
		return nil, err
	}
	return func(o *outcome) error {
		return j.eachJoin(o, func(ctx context.Context, inputs []*parquetfile.File, w io.Writer) (parquetfile.Info, error) {
			return schema.Rewrite(ctx, inputs, w, parquetfile.WriterOptions{Codec: j.Codec}, nil)
		})
	}, nil
}
