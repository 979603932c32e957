package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"

	"github.com/hivesink/hivesink/format/parquet"
	"github.com/hivesink/hivesink/record"
)

// inputName is where the small files of a scenario are.
func inputName(dir string, file int) string {
	return filepath.Join(dir, fmt.Sprintf("part-%05d.parquet", file))
}

// generate writes a scenario's small files with hivesink's own encoder. Files
// of other writers are made of these, by duck.py.
func generate(j job) (func(*outcome) error, error) {
	s := j.Scenario
	kind := shapes[s.Shape]
	rs, err := kind.schema()
	if err != nil {
		return nil, err
	}
	schema, err := parquetfile.NewSchema(rs)
	if err != nil {
		return nil, err
	}
	wo := parquetfile.WriterOptions{Codec: "none", Hidden: true}
	switch s.Writer {
	case byParts:
		wo.Codec = s.From
	case byTable:
		wo = parquetfile.WriterOptions{Codec: s.From}
	}
	w, cols := schema.NewWriter(nil, wo), schema.NewColumns()
	return func(o *outcome) error {
		x := random(1)
		for i := range s.Files {
			name := inputName(j.Dir, i)
			if err := writeSmall(name, s, kind, rs, &x, i, w, cols); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			o.Outputs = append(o.Outputs, name)
		}
		return nil
	}, nil
}

func writeSmall(name string, s scenario, kind shape, rs *record.Schema, x *random, file int, w *parquetfile.Writer, cols *parquetfile.Columns) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer f.Close()
	buf := bufio.NewWriterSize(f, bufferSize)
	w.Reset(buf)
	for g := range s.Groups {
		rec := kind.batch(rs, x, (file*s.Groups+g)*s.GroupRows, s.GroupRows)
		cols.Reset()
		cols.Append(rec, nil)
		rec.Release()
		if err := w.WriteRowGroup(cols); err != nil {
			return err
		}
	}
	if _, err := w.Close(nil); err != nil {
		return err
	}
	if err := buf.Flush(); err != nil {
		return err
	}
	return f.Close()
}
