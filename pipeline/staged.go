package pipeline

import (
	"github.com/hivesink/hivesink/ledger"
)

// staging are the staged files that hold parts in flight. A bundle, which
// several parts share, stays with all its bytes until the log says that every
// part in it is published; then, and by whoever notes the last of them, it is
// deleted (P2).
type staging struct {
	files map[ledger.StagedFile]*stagedFile
	bytes int64 // of all of them
}

type stagedFile struct {
	left  int   // parts that are not noted as published
	bytes int64 // of all its parts that were in flight when this process took it
}

// newStaging finds the files of parts that another process has left.
func newStaging(st *ledger.State) *staging {
	s := &staging{files: make(map[ledger.StagedFile]*stagedFile)}
	for _, p := range st.Parts { // each by itself: the order does not matter
		s.add(p)
	}
	for _, u := range st.Units {
		if u.Published {
			s.published(st, u)
		}
	}
	return s
}

// add takes a part that a checkpoint has named.
func (s *staging) add(p *ledger.Part) {
	f := s.files[p.File()]
	if f == nil {
		f = new(stagedFile)
		s.files[p.File()] = f
	}
	f.left++
	f.bytes += p.Bytes
	s.bytes += p.Bytes
}

// published takes a unit that was noted as published, in any mode but publish.
func (s *staging) published(st *ledger.State, u *ledger.Unit) {
	for _, id := range u.Inputs {
		if p := st.Parts[id]; p != nil {
			s.files[p.File()].left--
		}
	}
}

// spent says whether the file of an input of a published unit is to be deleted:
// of a bundle once.
func (s *staging) spent(p *ledger.Part) bool {
	f := s.files[p.File()]
	return f != nil && f.left == 0
}

// gone forgets a file that was deleted, or has become visible.
func (s *staging) gone(file ledger.StagedFile) {
	if f := s.files[file]; f != nil {
		s.bytes -= f.bytes
		delete(s.files, file)
	}
}
