package parquetfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"golang.org/x/sync/errgroup"
)

// TestAtOnce: units are built beside each other, with what the package keeps for
// all of them: types of files, buffers, decoders. It is the one test of this
// package that the race detector has anything to see in, and runs (Makefile).
func TestAtOnce(t *testing.T) {
	columns := []string{"id int", "name string", "tags array<string>"}
	_, a, _ := written(t, columns, `{"id":1,"name":"n1","tags":["a","b"]}`, `{"id":2,"name":"n1"}`)
	s, b, _ := written(t, columns, `{"id":3,"name":"n3","tags":[]}`, `{"id":4,"name":"n1","tags":["c"]}`)
	build := func(mode int) ([]byte, error) {
		var inputs []*File
		for _, data := range [][]byte{a, b} {
			f, err := Open(bytes.NewReader(data), int64(len(data)))
			if err != nil {
				return nil, err
			}
			inputs = append(inputs, f)
		}
		var out bytes.Buffer
		var err error
		switch mode {
		case 0:
			_, err = Copy(context.Background(), inputs, &out, JoinOptions{})
		case 1:
			_, err = Merge(context.Background(), inputs, &out, JoinOptions{Codec: "snappy"})
		case 2:
			_, err = s.Merge(context.Background(), inputs, &out, JoinOptions{Codec: "zstd"})
		default:
			_, err = s.Rewrite(context.Background(), inputs, &out, WriterOptions{Codec: "gzip"}, nil)
		}
		return out.Bytes(), err
	}
	var want [4][]byte
	for mode := range want {
		var err error
		if want[mode], err = build(mode); err != nil {
			t.Fatal(err)
		}
	}
	var g errgroup.Group
	for i := range 8 {
		g.Go(func() error { // joined by Wait below
			for k := range 40 {
				mode := (i + k) % len(want)
				got, err := build(mode)
				if err == nil && !bytes.Equal(got, want[mode]) {
					err = errors.New("another file than it becomes by itself")
				}
				if err != nil {
					return fmt.Errorf("mode %d: %w", mode, err)
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
}
