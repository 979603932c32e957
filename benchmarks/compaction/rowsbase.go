package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/parquet-go/parquet-go/encoding"

	"github.com/hivesink/hivesink/format/parquet"
)

var libraryCodecs = map[string]compress.Codec{
	"zstd": &parquet.Zstd, "snappy": &parquet.Snappy, "none": &parquet.Uncompressed, "gzip": &parquet.Gzip, "lz4": &parquet.Lz4Raw,
}

// rowsAtOnce is large enough that the library's cost a call does not count.
const rowsAtOnce = 1024

// rewriteByRows decodes and encodes by the library's rows, into row groups of
// the size that Rewrite makes. A column keeps the encoding it has in the first
// input, which is what the library does by itself.
func rewriteByRows(j job) (func(*outcome) error, error) {
	codec, ok := libraryCodecs[j.Codec]
	if !ok {
		return nil, fmt.Errorf("no codec %q", j.Codec)
	}
	buf := make([]parquet.Row, rowsAtOnce)
	return func(o *outcome) error {
		return j.eachTarget(o, func(inputs []string, file *os.File) error {
			out := bufio.NewWriterSize(file, bufferSize)
			var w *parquet.GenericWriter[any]
			for _, name := range inputs {
				if err := copyRows(name, codec, out, &w, buf); err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
			}
			if err := w.Close(); err != nil {
				return err
			}
			return out.Flush()
		})
	}, nil
}

// copyRows appends a file's rows to w, which the first file makes.
func copyRows(name string, codec compress.Codec, out *bufio.Writer, w **parquet.GenericWriter[any], buf []parquet.Row) error {
	in, err := os.Open(name)
	if err != nil {
		return err
	}
	defer in.Close()
	st, err := in.Stat()
	if err != nil {
		return err
	}
	f, err := parquet.OpenFile(in, st.Size(), parquet.ReadBufferSize(bufferSize), parquet.SkipPageIndex(true))
	if err != nil {
		return err
	}
	if *w == nil {
		schema := parquet.NewSchema(f.Schema().Name(), recoded{f.Root(), codec})
		*w = parquet.NewGenericWriter[any](out, schema, parquet.Compression(codec),
			parquet.MaxRowsPerRowGroup(parquetfile.RowGroupRows))
	}
	for _, group := range f.RowGroups() {
		rows := group.Rows()
		// The writer by itself, so that nothing but rows can pass.
		_, err := parquet.CopyRows(rowsOnly{*w}, reader{rows, buf})
		rows.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// rowsOnly and reader keep CopyRows from finding a shorter way than rows.
type rowsOnly struct{ parquet.RowWriter }

type reader struct {
	parquet.RowReader
	buf []parquet.Row
}

// WriteRowsTo makes CopyRows use our buffer, not one of 42 rows.
func (r reader) WriteRowsTo(w parquet.RowWriter) (int64, error) {
	var total int64
	for {
		n, err := r.ReadRows(r.buf)
		if n > 0 {
			m, err := w.WriteRows(r.buf[:n])
			total += int64(m)
			if err != nil {
				return total, err
			}
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return total, err
		}
	}
}

// recoded is a schema of a file with another codec.
type recoded struct {
	parquet.Node
	codec compress.Codec
}

func (n recoded) Compression() compress.Codec { return n.codec }

// Encoding keeps the column's own, but for booleans: DuckDB refuses the run
// lengths that the library writes of them.
func (n recoded) Encoding() encoding.Encoding {
	if n.Leaf() && n.Type().Kind() == parquet.Boolean {
		return &parquet.Plain
	}
	return n.Node.Encoding()
}

func (n recoded) Fields() []parquet.Field {
	fields := n.Node.Fields()
	out := make([]parquet.Field, len(fields))
	for i, f := range fields {
		out[i] = recodedField{recoded{f, n.codec}, f}
	}
	return out
}

type recodedField struct {
	recoded
	field parquet.Field
}

func (f recodedField) Name() string                           { return f.field.Name() }
func (f recodedField) Value(base reflect.Value) reflect.Value { return f.field.Value(base) }
