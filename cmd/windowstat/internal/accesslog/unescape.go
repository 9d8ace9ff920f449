package accesslog

import (
	"unicode/utf16"
	"unicode/utf8"
)

// appendUnescaped appends a JSON string without escapes. It knows \x22, which is not JSON: nginx writes that unless its format
// has escape=json. Unknown escapes stay as they are; half a surrogate pair is U+FFFD.
func appendUnescaped(to, s []byte) []byte {
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			to = append(to, s[i])
			continue
		}
		i++
		switch c := s[i]; c {
		case 'b':
			to = append(to, '\b')
		case 'f':
			to = append(to, '\f')
		case 'n':
			to = append(to, '\n')
		case 'r':
			to = append(to, '\r')
		case 't':
			to = append(to, '\t')
		case '"', '\\', '/':
			to = append(to, c)
		case 'x':
			if code, ok := hex(s, i+1, 2); ok {
				to = append(to, byte(code))
				i += 2
				continue
			}
			to = append(to, '\\', c)
		case 'u':
			code, ok := hex(s, i+1, 4)
			if !ok {
				to = append(to, '\\', c)
				continue
			}
			i += 4
			if utf16.IsSurrogate(code) {
				low, ok := rune(0), false
				if i+2 < len(s) && s[i+1] == '\\' && s[i+2] == 'u' {
					low, ok = hex(s, i+3, 4)
				}
				code = utf16.DecodeRune(code, low) // U+FFFD if they are no pair
				if ok && code != utf8.RuneError {
					i += 6
				}
			}
			to = utf8.AppendRune(to, code)
		default:
			to = append(to, '\\', c)
		}
	}
	return to
}

// hex parses hexadecimal digits.
func hex(s []byte, at, width int) (code rune, ok bool) {
	if len(s)-at < width {
		return 0, false
	}
	for _, c := range s[at : at+width] {
		switch {
		case isDigit(c):
			code = code<<4 | rune(c-'0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			code = code<<4 | rune(c|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	return code, true
}
