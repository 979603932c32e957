package source

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"testing"

	"github.com/hivesink/hivesink/ledger"
)

// Zeros behind the last member of a gzip file are padding, as for gzip itself;
// anything else there is damage, and what is before it is delivered (S4).
func TestGzipPadding(t *testing.T) {
	one := compressAs(t, gz, []byte("{\"id\":1,\"s\":\"a\"}\n"))
	empty := compressAs(t, gz, nil)
	whole := slices.Concat(empty, one, empty, compressAs(t, gz, []byte("{\"id\":2,\"s\":\"b\"}\n")), empty)
	dir := t.TempDir()
	c := inputCase{format: FormatJSON, batchRows: 300, maxRecord: 1000}
	for name, padding := range map[string]string{"none.gz": "", "one.gz": "\x00", "block.gz": string(make([]byte, 20_000)),
		"member.gz": "\x00\x00" + string(one), "text.gz": "text behind the end"} {
		write(t, filepath.Join(dir, name), append(slices.Clone(whole), padding...))
		src := fileSource(t, c.options(t), dir, name)
		steps, err := readAll(t, src, only(t, src, nil), ledger.Source{})
		equalLines(t, name, rowsOf(steps), []string{"0: 1|a", "1: 2|b"})
		if name == "member.gz" || name == "text.gz" {
			mustHalt(t, err, name, "damaged")
		} else if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// S4: a stream that is cut anywhere but between two members or frames is short,
// and never an end.
func TestCutAnywhere(t *testing.T) {
	for _, compression := range []string{gz, zst} {
		one, two := compressAs(t, compression, []byte("some text, some text\n")), compressAs(t, compression, []byte("more\n"))
		whole := append(slices.Clone(one), two...)
		for cut := 1; cut <= len(whole); cut++ {
			z, err := decompress(compression, bytes.NewReader(whole[:cut]))
			if err == nil {
				_, err = io.ReadAll(z)
				z.Close()
			}
			if end := cut == len(one) || cut == len(whole); end != (err == nil) || !end && !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("%s cut at %d of %d and %d: %v", compression, cut, len(one), len(whole), err)
			}
		}
	}
}

// What is no text at all halts before it is taken for lines, some bad records and
// a file that has been read; text that only looks alike is read.
func TestForeignFiles(t *testing.T) {
	dir := t.TempDir()
	c := inputCase{format: FormatJSON, batchRows: 300, maxRecord: 1000}
	for name, start := range map[string]string{
		"a.xz": "\xfd7zXZ\x00\x00\x04", "a.bz2": "BZh91AY&SY\x01\x02", "a.lz4": "\x04\x22\x4d\x18\x64\x40", "a.zip": "PK\x03\x04\x14\x00", "a.parquet": "PAR1\x15\x04\x15",
		"a.avro": "Obj\x01\x02\x16", "a.sz": "\xff\x06\x00\x00sNaPpY", "le.ndjson": "\xff\xfe{\x00}\x00", "be.ndjson": "\xfe\xff\x00{\x00}",
	} {
		data := []byte(start + "\nmore\n")
		write(t, filepath.Join(dir, name), data)
		src := fileSource(t, c.options(t), dir, name)
		_, err := readAll(t, src, only(t, src, nil), ledger.Source{})
		mustHalt(t, err, name, "it is ")
		in, err := NewStdin(bytes.NewReader(data), c.options(t), false)
		if err != nil {
			t.Fatal(err)
		}
		_, err = readAll(t, in, only(t, in, nil), ledger.Source{})
		mustHalt(t, err, "stdin", "it is ")
	}
	for name, text := range map[string]string{"b.csv": "BZh9,PAR1", "p.csv": "PAR1,x", "short.csv": "BZh", "pk.csv": "PK,\x03"} {
		write(t, filepath.Join(dir, name), []byte(text))
		src := fileSource(t, c.options(t), dir, name)
		steps, err := readAll(t, src, only(t, src, nil), ledger.Source{})
		if err != nil || len(steps) == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}
