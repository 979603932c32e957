package writer

import (
	"bufio"
	"context"
	"fmt"
	"path"

	"github.com/hivesink/hivesink/format/parquet"
	"github.com/hivesink/hivesink/layout"
	"github.com/hivesink/hivesink/ledger"
)

// A bundle is one hidden file with the parts of many buckets, one behind the
// other. Each of them, a slice, is a whole Parquet file in itself, with its own
// footer: what reads a slice reads its bytes and nothing of the others'. One
// footer for all was measured (docs/decisions.md): with thousands of row groups
// it takes more memory to keep, on both sides, than the rows do.
const (
	// sliceBytes is how much a bucket may buffer to be bundled (the default of
	// Options.SmallBytes). What is larger
	// costs so much to write that a file of its own hardly shows, and need not
	// stay on disk for as long as the others of a bundle.
	sliceBytes = 1 << 20
	// bundleSlices and bundleBytes end a bundle: it stays until the last of its
	// slices is published.
	bundleSlices = 4096
	bundleBytes  = 64 << 20
	// bundleShare is the least that a second encoder begins a bundle for.
	bundleShare = 64
)

// small says whether a bucket's rows go into a bundle: they will be merged, and
// no part file of theirs is open.
func (o *Options) small(b *bucket) bool {
	return !o.Final && o.HiddenCodec != "" && b.part == nil && b.cols.Bytes() <= o.SmallBytes
}

// share divides the buckets of a cut into those that become a file each and
// those that share one, bundle by bundle. So many encoders have something to do
// when there is enough.
func (o *Options) share(all []*bucket, encoders int) (alone []*bucket, bundles [][]*bucket) {
	small := make(map[*parquetfile.Schema][]*bucket)
	var order []*parquetfile.Schema
	for _, b := range all {
		if !o.small(b) {
			alone = append(alone, b)
			continue
		}
		if small[b.schema] == nil {
			order = append(order, b.schema)
		}
		small[b.schema] = append(small[b.schema], b)
	}
	for _, s := range order {
		list := small[s]
		each := min(bundleSlices, max(bundleShare, (len(list)+encoders-1)/max(1, encoders)))
		var bytes int64
		var some []*bucket
		for _, b := range list {
			if len(some) == each || len(some) > 0 && bytes+b.cols.Bytes() > bundleBytes {
				bundles = append(bundles, some)
				some, bytes = nil, 0
			}
			some = append(some, b)
			bytes += b.cols.Bytes()
		}
		bundles = append(bundles, some)
	}
	// A bundle of one is a part file.
	kept := bundles[:0]
	for _, some := range bundles {
		if len(some) == 1 {
			alone = append(alone, some[0])
		} else {
			kept = append(kept, some)
		}
	}
	return alone, kept
}

// closeBundle writes the rows of buckets of one schema as a bundle and returns
// their parts, durable as closePart's are. The buckets are left empty, without
// columns.
func (o *Options) closeBundle(ctx context.Context, buckets []*bucket) (parts []ledger.Part, err error) {
	p := &openPart{id: fmt.Sprintf("%016x", o.Random())}
	p.key = parquetKey{schema: buckets[0].schema, codec: o.HiddenCodec, hidden: true}
	name := layout.StagedBundle(p.id)
	if p.file, err = o.FS.Create(path.Join(o.Staging, name)); err != nil {
		return nil, fmt.Errorf("create bundle: %w", err)
	}
	p.buf = bufio.NewWriterSize(p.file, 256<<10)
	p.enc = o.encoder(p.key, p.buf)
	parts, err = o.writeSlices(ctx, p, name, buckets)
	if err = p.seal(err); err != nil {
		return nil, fmt.Errorf("write bundle %s of %d parts: %w", name, len(buckets), err)
	}
	o.idle(p)
	return parts, nil
}

func (o *Options) writeSlices(ctx context.Context, p *openPart, name string, buckets []*bucket) ([]ledger.Part, error) {
	parts := make([]ledger.Part, 0, len(buckets))
	at := int64(0)
	for i, b := range buckets {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if i > 0 {
			p.enc.Reset(p.buf)
		}
		part, meta, err := o.describe(b, fmt.Sprintf("%016x", o.Random()), p.key)
		if err != nil {
			return nil, err
		}
		if err := p.enc.WriteRowGroup(b.cols); err != nil {
			return nil, fmt.Errorf("encode part %s of partition %q: %w", part.ID, part.Partition, err)
		}
		info, err := p.enc.Close(meta)
		if err != nil {
			return nil, fmt.Errorf("close part %s of partition %q: %w", part.ID, part.Partition, err)
		}
		if info.Rows != part.Rows {
			return nil, fmt.Errorf("part %s of partition %q has %d rows, %d were written", part.ID, part.Partition, info.Rows, part.Rows)
		}
		part.Name, part.Bundle, part.Offset, part.Bytes = name, true, at, info.Bytes
		at += info.Bytes
		parts = append(parts, *part)
		o.releaseColumns(b)
		b.clear()
	}
	return parts, nil
}
