package source

import (
	"os"
	"strings"

	"github.com/hivesink/hivesink/ledger"
	"github.com/hivesink/hivesink/storage/localfs"
)

// renamedFiles finds files that were read under another name: by their path the ID
// they had (S10). What was renamed, moved, linked or named by another way to its
// directory would be read twice.
//
// A file that the log knows by this name is that file, whatever lies there now:
// if it is another one, that halts.
func renamedFiles(all []found, known map[string]ledger.Source) map[string]string {
	out := make(map[string]string)
	var ids map[string]string // by identity
	for _, f := range all {
		if _, ok := known[filePrefix+f.path]; ok {
			continue
		}
		if ids == nil {
			if ids = identities(known); len(ids) == 0 {
				break
			}
		}
		file, err := os.Open(f.path)
		if err != nil {
			continue // found out when it is read
		}
		if id, ok := ids[localfs.Identity(file)]; ok && continues(file, f.name, known[id]) {
			out[f.path] = id
		}
		file.Close()
	}
	return out
}

// continues says whether a file still has what was read of it.
func continues(file *os.File, name string, from ledger.Source) bool {
	p, err := parsePosition(name, from)
	return err == nil && checkFingerprint(file, name, p) == nil
}

// identities are the IDs of known files by identity. Of positions, of which there
// may be many, nothing else is read.
func identities(known map[string]ledger.Source) map[string]string {
	out := make(map[string]string)
	for id, from := range known { // an identity is one file's: the order does not matter
		if !strings.HasPrefix(id, filePrefix) {
			continue
		}
		if _, rest, ok := strings.Cut(from.Position, `"f":"`); ok {
			if identity, _, ok := strings.Cut(rest, `"`); ok && identity != "" {
				out[identity] = id
			}
		}
	}
	return out
}
