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
