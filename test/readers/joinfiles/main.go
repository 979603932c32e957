// Command joinfiles joins Parquet files in a mode that is asked for by name,
// where `hivesink compact` would choose one. Each line of its input is a
// request, each line of its output the answer; all are served by one process,
// whose idle memory is used again.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"

	parquetfile "github.com/hivesink/hivesink/format/parquet"
	"github.com/hivesink/hivesink/hivetype"
	"github.com/hivesink/hivesink/record"
)

type request struct {
	Mode    string   `json:"mode"` // copy, merge; of files of other schemas columns, rewrite
	Codec   string   `json:"codec"`
	Keep    bool     `json:"keep"`
	Columns []string `json:"columns"`
	Inputs  []string `json:"inputs"`
	Out     string   `json:"out"`
}

type reply struct {
	Error  string `json:"error,omitempty"`
	Rows   int64  `json:"rows"`
	Copied int    `json:"copied"` // row groups
}

func main() {
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var r request
		if in.Decode(&r) != nil {
			return
		}
		info, err := r.join(context.Background())
		a := reply{Rows: info.Rows, Copied: info.Copied}
		if err != nil {
			a.Error = err.Error()
		}
		if err := out.Encode(a); err != nil {
			return
		}
	}
}

func (r *request) join(ctx context.Context) (info parquetfile.Info, err error) {
	var files []*parquetfile.File
	for _, name := range r.Inputs {
		f, err := open(name)
		if err != nil {
			return info, fmt.Errorf("%s: %w", name, err)
		}
		files = append(files, f)
	}
	var b bytes.Buffer
	o := parquetfile.JoinOptions{Codec: r.Codec, KeepCodec: r.Keep, Meta: files[0].Meta()}
	switch r.Mode {
	case "copy":
		info, err = parquetfile.Copy(ctx, files, &b, o)
	case "merge":
		info, err = parquetfile.Merge(ctx, files, &b, o)
	default:
		info, err = r.asTable(ctx, files, &b)
	}
	if err != nil {
		return info, err
	}
	if err := os.WriteFile(r.Out, b.Bytes(), 0o644); err != nil {
		return info, err
	}
	f, err := open(r.Out)
	if err != nil {
		return info, err
	}
	return info, f.CheckPages(ctx)
}

// asTable writes the files as a table's columns.
func (r *request) asTable(ctx context.Context, files []*parquetfile.File, b *bytes.Buffer) (info parquetfile.Info, err error) {
	var fields []hivetype.Field
	for _, c := range r.Columns {
		f, err := hivetype.ParseColumn(c)
		if err != nil {
			return info, err
		}
		fields = append(fields, f)
	}
	rs, err := record.NewSchema(fields, nil)
	if err != nil {
		return info, err
	}
	s, err := parquetfile.NewSchema(rs)
	if err != nil {
		return info, err
	}
	if r.Mode == "columns" {
		return s.Merge(ctx, files, b, parquetfile.JoinOptions{Codec: r.Codec, KeepCodec: r.Keep})
	}
	return s.Rewrite(ctx, files, b, parquetfile.WriterOptions{Codec: r.Codec}, nil)
}

func open(name string) (*parquetfile.File, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return parquetfile.Open(bytes.NewReader(data), int64(len(data)))
}
