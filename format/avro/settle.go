package avrorow

import "fmt"

// settled says how far settle is with a node.
type settled uint8

const (
	untouched settled = iota
	underWay          // it is in itself, if it is met again
	done
)

// settle finds out, once, which nodes take no bytes, and takes fields that are
// passed over and take none out of their records: a schema of a few lines can
// have more of them than could ever be counted. A record that is a field of
// itself, through records only, has no end and is refused (V4).
func settle(root *node) error {
	later := []*node{root}
	for len(later) > 0 {
		n := later[len(later)-1]
		later = later[:len(later)-1]
		if err := n.settle(&later); err != nil {
			return err
		}
	}
	return nil
}

// settle leaves to later what may be in n without n being in it for ever.
func (n *node) settle(later *[]*node) error {
	switch n.settled {
	case done:
		return nil
	case underWay:
		return fmt.Errorf("the record %s has itself as a field: no value of it has an end", n.name)
	}
	n.settled = done
	switch n.kind {
	case kNull:
		n.empty = true
	case kFixed:
		n.empty = n.size == 0
	case kArray, kMap, kUnion:
		*later = append(*later, n.below...)
	case kRecord:
		n.settled = underWay
		n.empty = true
		for _, f := range n.below {
			if err := f.settle(later); err != nil {
				return err
			}
			n.empty = n.empty && f.empty
		}
		n.trim()
		n.settled = done
	}
	return nil
}

// trim takes fields out of a record that need no looking at. The fields of the
// schema's root go by their columns and stay.
func (n *node) trim() {
	if n.op == opRecord && n.target == nil {
		return
	}
	var below []*node // a copy: nodes of one type share their fields
	var target []int32
	for i, f := range n.below {
		if f.empty && (n.op != opRecord || n.target[i] < 0) {
			continue
		}
		below = append(below, f)
		if n.op == opRecord {
			target = append(target, n.target[i])
		}
	}
	n.below, n.target = below, target
}
