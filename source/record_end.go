package source

import "bytes"

// recordEnd finds where a record ends that is not kept in memory: after its
// line end, where a line end inside a quoted field is text. It is the rule of
// the formats' splitters, which need the whole record: a quote opens a field
// only at its start, and is literal elsewhere.
type recordEnd struct {
	delimiter, quote byte // quote 0: every line end ends a record
	at               fieldPlace
}

// fieldPlace is where in a field the next byte is.
type fieldPlace uint8

const (
	atStart fieldPlace = iota
	inText
	inQuotes
	afterQuote // behind a quote that closes, or is the first of two
)

// find looks for the end in b, which goes on where the last call's b ended. end
// is behind the line end, or len(b) when it is not there.
func (r *recordEnd) find(b []byte) (end int, ok bool) {
	if r.quote == 0 {
		if i := bytes.IndexByte(b, '\n'); i >= 0 {
			return i + 1, true
		}
		return len(b), false
	}
	for i := 0; i < len(b); i++ {
		if r.at == inQuotes {
			n := bytes.IndexByte(b[i:], r.quote)
			if n < 0 {
				return len(b), false
			}
			i, r.at = i+n, afterQuote
			continue
		}
		switch c := b[i]; {
		case c == '\n':
			return i + 1, true
		case c == r.delimiter:
			r.at = atStart
		case c == r.quote && r.at != inText:
			r.at = inQuotes
		default:
			r.at = inText
		}
	}
	return len(b), false
}
