package parquetfile

import (
	"fmt"
)

// A row group that is half full is kept as it is: joined with its neighbour it
// would cost three to ten times its copying, and readers would gain little.
const (
	keptRows  = RowGroupRows / 2
	keptBytes = RowGroupBytes / 2
)

// joinGroup is a row group to be: one that is copied, or several, or one that
// has to be changed, that are joined.
type joinGroup struct {
	members []groupRef
	copied  bool
}

type groupRef struct{ input, group int }

// planJoin decides what becomes of the row groups of the inputs: large ones are
// copied, runs of small ones joined up to a full row group. Order is kept (F2);
// a row group is never divided. copyable says whether one may be copied at all.
func planJoin(inputs []*File, copyable func(input, group int) bool) []joinGroup {
	var out []joinGroup
	var open joinGroup
	var rows, size int64
	flush := func() {
		if n := len(open.members); n > 0 {
			open.copied = n == 1 && copyable(open.members[0].input, open.members[0].group)
			out = append(out, open)
		}
		open, rows, size = joinGroup{}, 0, 0
	}
	for i, f := range inputs {
		for k := range f.groups() {
			g := &f.groups()[k]
			if g.rows == 0 {
				continue // F1
			}
			ref := groupRef{i, k}
			large := g.rows >= keptRows || g.bytes >= keptBytes
			if large && copyable(i, k) {
				flush()
				out = append(out, joinGroup{[]groupRef{ref}, true})
				continue
			}
			if rows > 0 && (rows+g.rows > RowGroupRows || size+g.bytes > RowGroupBytes) {
				flush()
			}
			open.members = append(open.members, ref)
			rows, size = rows+g.rows, size+g.bytes
		}
	}
	flush()
	return out
}

// Coarse: some row groups of the file would become one, or have no statistics,
// so that it is worth writing anew though it stays alone. That some cannot be
// copied is no reason.
func (f *File) Coarse() bool {
	plan := planJoin([]*File{f}, func(_, k int) bool { return f.groups()[k].described() })
	for i := range plan {
		if !plan[i].copied {
			return true
		}
	}
	return false
}

// Modes that Advise knows.
const (
	ModeCopy  = "copy"
	ModeMerge = "merge"
)

// Advise says which of Copy and Merge makes a good file at the least cost, and
// why. Copying is cheapest, but keeps small row groups, which cost every reader
// a third more; merging keeps the large ones too and joins the others.
func Advise(inputs []*File, o JoinOptions) (mode, why string) {
	codec, err := codecOf(o.Codec)
	if err != nil {
		return ModeMerge, err.Error()
	}
	groups, undescribed, other, old := 0, 0, 0, 0
	plan := planJoin(inputs, func(i, k int) bool {
		g := &inputs[i].groups()[k]
		if !g.described() {
			undescribed++
			return false
		}
		if inputs[i].stays(g) != "" {
			old++
			return false
		}
		if !o.KeepCodec && !g.inCodec(codec.CompressionCodec()) {
			other++
			return false
		}
		return true
	})
	joined := 0
	for i := range plan {
		groups += len(plan[i].members)
		if !plan[i].copied {
			joined++
		}
	}
	switch {
	case joined == 0:
		return ModeCopy, fmt.Sprintf("its %d row groups are large enough", groups)
	case undescribed > 0:
		return ModeMerge, fmt.Sprintf("%d row groups become %d; statistics are missing", groups, len(plan))
	case old > 0:
		return ModeMerge, fmt.Sprintf("%d row groups become %d; some have pages of an old writer that are not copied", groups, len(plan))
	case other > 0:
		return ModeMerge, fmt.Sprintf("%d row groups become %d; some are not compressed with %s", groups, len(plan), o.Codec)
	}
	return ModeMerge, fmt.Sprintf("%d row groups become %d", groups, len(plan))
}
