package source

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/hivesink/hivesink/internal/fault"
	"github.com/hivesink/hivesink/ledger"
)

// fingerprintBytes is how much of the start of a file or stream tells it from
// others.
const fingerprintBytes = 4096

// position is where a reader of bytes goes on. Offsets count decompressed
// bytes. Its JSON text is in ledgers: fields may be added, never renamed.
type position struct {
	Offset int64  `json:"o"`             // after the last record
	Line   int64  `json:"l"`             // line ends before it
	Open   bool   `json:"u,omitempty"`   // that record had no line end: it was the last of its input
	End    bool   `json:"end,omitempty"` // the input ended here
	Size   int64  `json:"size"`          // bytes on disk of the file when it was seen; 0 for a stream
	N      int64  `json:"n"`             // bytes the hash covers: min(4 KB, length when first seen)
	Hash   string `json:"h"`             // of the first N bytes: on disk for a file, decompressed for a stream
	File   string `json:"f,omitempty"`   // identity of the file, whatever its name (S10)
}

func (p position) String() string {
	text, err := json.Marshal(p)
	if err != nil {
		panic("source: position: " + err.Error()) // plain fields only
	}
	return string(text)
}

// parsePosition reads what String has written; a new source partition has the
// zero position.
func parsePosition(name string, from ledger.Source) (position, error) {
	var p position
	if from.Position == "" {
		return p, nil
	}
	if err := json.Unmarshal([]byte(from.Position), &p); err != nil || p.Offset < 0 || p.Line < 0 || p.N < 0 || p.N > fingerprintBytes {
		return p, fault.New(fault.Halt, "was the table written by another version or another kind of source?",
			"resume %s: the ledger's position %q is not one of this source", name, from.Position)
	}
	return p, nil
}

// fresh says that nothing was consumed yet, so that a resume is a start.
func (p position) fresh() bool { return p.Offset == 0 }

func fingerprint(start []byte) string {
	sum := sha256.Sum256(start)
	return hex.EncodeToString(sum[:8])
}
