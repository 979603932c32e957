package pipeline

import (
	"github.com/hivesink/hivesink/ledger"
)

// bundles are the staged files that several parts share. One stays, with all
// its bytes, until the log says that every part in it is published: then, and
// by whoever notes the last of them, it is deleted (P2).
type bundles map[ledger.StagedFile]*bundle

type bundle struct {
	left  int   // parts that are not noted as published
	bytes int64 // of all its parts that were in flight when this process took it
}

// newBundles finds the bundles of parts that another process has left.
func newBundles(st *ledger.State) bundles {
	b := make(bundles)
	for _, p := range st.Parts { // each by itself: the order does not matter
		b.add(p)
	}
	for _, u := range st.Units {
		if u.Published {
			b.published(st, u)
		}
	}
	return b
}

// add takes a part that a checkpoint has named.
func (b bundles) add(p *ledger.Part) {
	if !p.Bundle {
		return
	}
	f := b[p.File()]
	if f == nil {
		f = new(bundle)
		b[p.File()] = f
	}
	f.left++
	f.bytes += p.Bytes
}

// published takes a unit that was noted as published.
func (b bundles) published(st *ledger.State, u *ledger.Unit) {
	for _, id := range u.Inputs {
		if p := st.Parts[id]; p != nil && p.Bundle {
			b[p.File()].left--
		}
	}
}

// spent says whether the file of an input of a published unit is to be deleted:
// of a bundle once.
func (b bundles) spent(p *ledger.Part) bool {
	if !p.Bundle {
		return true
	}
	f := b[p.File()]
	return f != nil && f.left == 0
}

// deleted forgets a file that is gone.
func (b bundles) deleted(p *ledger.Part) {
	if p.Bundle {
		delete(b, p.File())
	}
}
