package textval

import (
	"bytes"
	"encoding/base64"
	"unicode/utf8"
)

// appendValid appends text with U+FFFD for each byte that is not UTF-8.
func appendValid(dst, text []byte) []byte {
	for len(text) > 0 {
		if text[0] < utf8.RuneSelf {
			dst = append(dst, text[0])
			text = text[1:]
			continue
		}
		c, n := utf8.DecodeRune(text)
		dst = utf8.AppendRune(dst, c)
		text = text[n:]
	}
	return dst
}

// appendBase64 appends what text encodes, in the standard alphabet and with or
// without its padding.
func appendBase64(dst, text []byte) ([]byte, bool) {
	if bytes.IndexByte(text, '\n') >= 0 || bytes.IndexByte(text, '\r') >= 0 {
		return dst, false // the decoder would pass over them
	}
	raw := bytes.TrimRight(text, "=")
	if pad := len(text) - len(raw); pad > 2 || pad > 0 && len(text)%4 != 0 {
		return dst, false
	}
	n := len(dst)
	size := base64.RawStdEncoding.DecodedLen(len(raw))
	for cap(dst)-n < size {
		dst = append(dst[:cap(dst)], 0)
	}
	got, err := base64.RawStdEncoding.Decode(dst[n:n+size], raw)
	return dst[:n+got], err == nil
}
