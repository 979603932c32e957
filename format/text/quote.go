package textval

import (
	"strconv"
	"unicode/utf8"
)

// maxQuoted is how many bytes of a value an error shows.
const maxQuoted = 64

// Quote shows a value in an error: at most 64 bytes of it, no part of a
// character, with control characters and bytes that are not UTF-8 escaped.
func Quote(b []byte) string {
	if len(b) <= maxQuoted {
		return strconv.Quote(string(b))
	}
	cut := maxQuoted
	for i := cut - 1; i > cut-utf8.UTFMax; i-- {
		if c, n := utf8.DecodeRune(b[i:]); c != utf8.RuneError && i+n > cut {
			cut = i
			break
		}
	}
	return strconv.Quote(string(b[:cut])) + "…"
}
