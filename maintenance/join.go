package maintenance

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/hivesink/hivesink/format/parquet"
	"github.com/hivesink/hivesink/ledger"
)

// join is how the files of a target become one. Keys of the metadata on which
// all agree are kept, and those that say how values are read (reading,
// keepArrow, keepGeo, keepPandas); the others say something of one file only. footer, when
// there is one, is the target's own.
func (c *compaction) join(files []*parquetfile.File, footer *ledger.Footer) parquetfile.JoinOptions {
	o := parquetfile.JoinOptions{Codec: c.Codec, KeepCodec: c.KeepCodec, CreatedBy: c.createdBy(files), Meta: common(files)}
	if footer != nil {
		own, err := footer.Encode()
		if err != nil {
			panic(fmt.Sprintf("maintenance: %v", err)) // numbers and text always encode
		}
		for k, v := range own {
			o.Meta[k] = v
		}
	}
	return o
}

func common(files []*parquetfile.File) map[string]string {
	out := files[0].Meta()
	for _, f := range files[1:] {
		if len(out) == 0 {
			break
		}
		meta := f.Meta()
		for k, v := range out {
			if other, ok := meta[k]; !ok || other != v {
				delete(out, k)
			}
		}
	}
	keepReading(files, out)
	keepArrow(files, out)
	if len(files) > 1 {
		widenIndexes(out)
	}
	keepGeo(files, out)
	keepPandas(files, out)
	for k := range out {
		if strings.HasPrefix(k, ledger.FooterPrefix) {
			delete(out, k) // the sums of one file
		}
	}
	return out
}

// schemaKeys describe the columns of a file as its writer had them: readers give
// a column the type that is there at its place. The columns of a file that is
// rewritten are the table's.
var schemaKeys = [...]string{
	arrowSchemaKey, pandasKey, "org.apache.spark.sql.parquet.row.metadata", "parquet.avro.schema", "avro.schema",
	"parquet.proto.class", "parquet.proto.descriptor", "thrift.class", "thrift.descriptor", "iceberg.schema",
}

// write writes a target's bytes.
func (c *compaction) write(ctx context.Context, t *target, files []*parquetfile.File, w io.Writer) (parquetfile.Info, error) {
	o := c.join(files, t.footer)
	switch t.Mode {
	case ModeCopy:
		return parquetfile.Copy(ctx, files, w, o)
	case ModeMerge:
		return parquetfile.Merge(ctx, files, w, o)
	}
	for _, key := range schemaKeys {
		delete(o.Meta, key)
	}
	codec := o.Codec
	if agreed := codecOf(files); c.KeepCodec && agreed != "" {
		codec = agreed
	}
	return c.Columns.Rewrite(ctx, files, w, parquetfile.WriterOptions{Codec: codec, CreatedBy: c.CreatedBy}, o.Meta)
}

// codecOf is the codec of all columns of all files, "" when they do not agree
// or it is one that nobody writes any more.
func codecOf(files []*parquetfile.File) string {
	name := ""
	for _, f := range files {
		for _, codec := range f.Codecs() {
			if codec == "uncompressed" {
				codec = "none"
			}
			if codec == "lz4_raw" {
				codec = "lz4"
			} else if codec == "lz4" || codec == "lzo" || codec == "brotli" {
				return ""
			}
			if name != "" && name != codec {
				return ""
			}
			name = codec
		}
	}
	return name
}
