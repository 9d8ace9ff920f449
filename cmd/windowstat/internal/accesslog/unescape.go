package accesslog

import (
	"bytes"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// appendUnescaped appends a string without its escapes: those of JSON, and \x22 and the like, which nginx and httpd write. Unknown escapes
// stay as they are; half a surrogate pair is U+FFFD.
func appendUnescaped(to, s []byte) []byte {
	for {
		i := bytes.IndexByte(s, '\\')
		if i < 0 {
			return append(to, s...)
		}
		to, s = append(to, s[:i]...), s[i:]
		var n int
		to, n = appendEscaped(to, s[:min(len(`\ud83d\ude00`), len(s))])
		s = s[n:]
	}
}

// appendEscaped appends what the escape that s begins with stands for. It returns the length of the escape.
func appendEscaped(to, s []byte) (_ []byte, n int) {
	if len(s) > 1 && s[1] == '/' { // of JSON alone
		return append(to, '/'), 2
	}
	c, multibyte, rest, err := strconv.UnquoteChar(string(s), '"')
	switch {
	case err == nil && !multibyte:
		return append(to, byte(c)), len(s) - len(rest)
	case err == nil:
		return utf8.AppendRune(to, c), len(s) - len(rest)
	}
	// Package strconv has no pairs of surrogates, as a character of Go is one escape.
	high, ok := surrogate(s)
	if !ok {
		return append(to, '\\'), 1
	}
	n = len(`\ud83d`)
	if low, ok := surrogate(s[n:]); ok {
		if c := utf16.DecodeRune(high, low); c != utf8.RuneError {
			return utf8.AppendRune(to, c), 2 * n
		}
	}
	return utf8.AppendRune(to, utf8.RuneError), n
}

// surrogate reads half of a character beyond U+FFFF, which s begins with as \ud83d.
func surrogate(s []byte) (rune, bool) {
	if len(s) < len(`\ud83d`) || s[0] != '\\' || s[1] != 'u' {
		return 0, false
	}
	c, err := strconv.ParseUint(string(s[2:6]), 16, 16)
	return rune(c), err == nil && utf16.IsSurrogate(rune(c))
}
