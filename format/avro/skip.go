package avrorow

import (
	"github.com/hivesink/hivesink/format"
)

// skip passes over a value.
func (d *Decoder) skip(n *node, b []byte) (rest []byte, err *format.Error) {
	if n.empty {
		return b, nil
	}
	switch n.kind {
	case kBool:
		_, rest, err = take(b, 1)
		return rest, err
	case kLong:
		_, rest, err = long(b)
		return rest, err
	case kFloat:
		_, rest, err = take(b, 4)
		return rest, err
	case kDouble:
		_, rest, err = take(b, 8)
		return rest, err
	case kBytes:
		length, rest, err := long(b)
		if err == nil {
			_, rest, err = take(rest, length)
		}
		return rest, err
	case kFixed:
		_, rest, err = take(b, int64(n.size))
		return rest, err
	}
	if d.depth++; d.depth > maxDepth {
		return nil, errDeep
	}
	switch n.kind {
	case kUnion:
		i, rest, e := long(b)
		if e != nil {
			return nil, e
		}
		if i < 0 || i >= int64(len(n.below)) {
			return nil, errValue
		}
		b, err = d.skip(n.below[i], rest)
	case kRecord:
		for _, f := range n.below {
			if b, err = d.skip(f, b); err != nil {
				return nil, err
			}
		}
	default:
		b, err = d.skipBlocks(n, b)
	}
	d.depth--
	return b, err
}

func (d *Decoder) skipBlocks(n *node, b []byte) (rest []byte, err *format.Error) {
	for {
		count, after, err := long(b)
		if err != nil {
			return nil, err
		}
		b = after
		if count == 0 {
			return b, nil
		}
		if count < 0 { // its size is there
			size, after, err := long(b)
			if err != nil {
				return nil, err
			}
			if _, b, err = take(after, size); err != nil {
				return nil, err
			}
			continue
		}
		if n.kind == kArray && n.below[0].empty {
			continue
		}
		for range count {
			if n.kind == kMap {
				var length int64
				if length, b, err = long(b); err != nil {
					return nil, err
				}
				if _, b, err = take(b, length); err != nil {
					return nil, err
				}
			}
			if b, err = d.skip(n.below[0], b); err != nil {
				return nil, err
			}
		}
	}
}
