package ledger

import (
	"cmp"
	"slices"
	"strings"
)

// StagedFile is a file in a staging directory: a part file, or a bundle.
type StagedFile struct {
	Epoch uint64
	Name  string
}

// File is the staged file the part lies in.
func (p *Part) File() StagedFile { return StagedFile{p.Epoch, p.Name} }

// bundled says whether a part shares its file with others.
func (a *application) bundled(id string) bool {
	p := a.s.Parts[id]
	return p != nil && p.Bundle
}

// checkBundles refuses parts of one checkpoint that share bytes: only slices of
// a bundle may have the same file, each its own range of it.
func (a *application) checkBundles(parts []Part) error {
	order := make([]*Part, len(parts))
	for i := range parts {
		order[i] = &parts[i]
	}
	slices.SortFunc(order, func(x, y *Part) int {
		return cmp.Or(strings.Compare(x.Name, y.Name), cmp.Compare(x.Offset, y.Offset))
	})
	for i, p := range order {
		switch {
		case p.Bundle && (p.Offset < 0 || p.Bytes <= 0):
			return a.refuse("part %s is the %d bytes from byte %d of %s", p.ID, p.Bytes, p.Offset, p.Name)
		case p.Bundle && p.Final:
			return a.refuse("part %s is a slice of %s and may not be published as it is", p.ID, p.Name)
		case !p.Bundle && p.Offset != 0:
			return a.refuse("part %s begins at byte %d of %s and is no slice", p.ID, p.Offset, p.Name)
		case i == 0 || p.Name != order[i-1].Name:
			continue
		case !p.Bundle || !order[i-1].Bundle:
			return a.refuse("parts %s and %s have the same file %s", order[i-1].ID, p.ID, p.Name)
		case p.Offset < order[i-1].Offset+order[i-1].Bytes:
			return a.refuse("parts %s and %s share bytes of %s", order[i-1].ID, p.ID, p.Name)
		}
	}
	return nil
}
