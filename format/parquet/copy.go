package parquetfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"sync"
)

// JoinOptions say how files become one.
type JoinOptions struct {
	// Codec compresses what has to be compressed anew: zstd, snappy, gzip, lz4
	// or none.
	Codec string
	// KeepCodec: a column whose inputs agree on a codec keeps it; else every
	// column is in Codec in the end. Copy never compresses anew.
	KeepCodec bool
	CreatedBy string            // the footer's created_by; "" is "hivesink"
	Meta      map[string]string // key/value metadata, instead of the inputs'
}

func (o *JoinOptions) createdBy() string {
	if o.CreatedBy == "" {
		return "hivesink"
	}
	return o.CreatedBy
}

// Same says whether files have the same schema, so that Copy and Merge apply;
// the error says what differs. The name of the schema's root does not count:
// every writer has its own.
func Same(inputs []*File) error {
	if len(inputs) == 0 {
		return errors.New("there are no files")
	}
	first := inputs[0].typ.elements
	for i, f := range inputs[1:] {
		if f.typ == inputs[0].typ {
			continue
		}
		got := f.typ.elements
		if len(got) != len(first) {
			return fmt.Errorf("input %d has a schema of %d elements, input 0 one of %d", i+1, len(got), len(first))
		}
		for k := 1; k < len(got); k++ {
			if !reflect.DeepEqual(got[k], first[k]) || f.typ.passed[k] != inputs[0].typ.passed[k] {
				return fmt.Errorf("input %d has %s, input 0 has %s", i+1, f.typ.text(k), inputs[0].typ.text(k))
			}
		}
	}
	return nil
}

// Copy writes the row groups of the inputs, in order, as one file: their
// column chunks byte for byte, whoever wrote them, with page index, statistics
// and bloom filters. Only places in the file change. It takes files of one
// schema (Same), keeps the row groups as they are, and leaves out empty ones.
func Copy(ctx context.Context, inputs []*File, w io.Writer, o JoinOptions) (Info, error) {
	if err := Same(inputs); err != nil {
		return Info{}, err
	}
	j, _ := joiners.Get().(*joiner)
	if j == nil {
		j = new(joiner)
	}
	j.out = counter{w: w}
	for i, f := range inputs {
		if err := j.copyFile(ctx, f); err != nil {
			return Info{}, fmt.Errorf("input %d: %w", i, err)
		}
	}
	end, err := footerOf(inputs, &o)
	if err != nil {
		return Info{}, err
	}
	info, err := j.close(end)
	if err == nil {
		j.reset()
		joiners.Put(j)
	}
	return info, err
}

// joiners are idle; their memory is used again.
var joiners sync.Pool

// footerOf is what the footers of the inputs have in common.
func footerOf(inputs []*File, o *JoinOptions) (footer, error) {
	out := footer{createdBy: o.createdBy(), meta: o.Meta}
	for i, f := range inputs {
		raw := f.foot
		if raw.encrypted {
			return out, fmt.Errorf("input %d: %w", i, ErrEncrypted)
		}
		out.version = max(out.version, raw.version)
		if i == 0 {
			out.schema, out.orders = raw.schema, raw.orders
		} else {
			out.orders = commonOrders(out.orders, raw.orders)
		}
	}
	return out, nil
}
