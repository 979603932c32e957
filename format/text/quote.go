package textval

import "strconv"

// maxQuoted is how many bytes of a value an error shows.
const maxQuoted = 64

// Quote shows a value in an error: at most 64 bytes of it, with control
// characters and bytes that are not UTF-8 escaped.
func Quote(b []byte) string {
	if len(b) <= maxQuoted {
		return strconv.Quote(string(b))
	}
	return strconv.Quote(string(b[:maxQuoted])) + "…"
}
