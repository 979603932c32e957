package audit

import (
	"path"

	"github.com/hivesink/hivesink/ledger"
)

// replaced notes which published files have given way to others. moved: that
// happened while the table was listed, and the listing is neither the one nor
// the other.
func (a *auditor) replaced(from, to uint64) (moved bool, err error) {
	err = ledger.ReadLog(a.fs, a.root, func(r *ledger.Record) error {
		if r.Seq > to {
			return nil
		}
		for _, p := range r.Replacing {
			a.plans[p.ID] = p
		}
		for _, id := range r.Replaced {
			moved = moved || r.Seq > from
			p := a.plans[id] // what was published before a plan is forgotten before it
			for _, name := range p.Removed {
				a.gone[path.Join(tableRoot(a.root, p.Table), p.Partition, name)] = true
			}
		}
		return nil
	})
	return moved, err
}

// halfDone settles replacements that are planned and not noted as done: the
// exchange was made or not, and either is no fault.
func (a *auditor) halfDone(st *ledger.State) {
	for _, r := range st.Replacements {
		if r.Done {
			continue
		}
		a.half[ledger.PartitionKey(r.Table, r.Partition)] = true
		dir := path.Join(tableRoot(a.root, r.Table), r.Partition)
		there := len(r.Added) > 0
		for i := range r.Added {
			there = there && a.files[path.Join(dir, r.Added[i].Name)] != nil
		}
		for _, name := range r.Removed {
			if there {
				a.gone[path.Join(dir, name)] = true
			}
		}
	}
}
