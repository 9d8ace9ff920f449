package httpstat

import (
	"bytes"
	"net/http"
	"path"
	"regexp"
	"strings"
)

// DefaultDepth is how many segments of a path a name keeps by default.
const DefaultDepth = 4

// PathName returns a name function for services whose routes are not known: the [Method] and the path, without
// what identifies a single thing: its segments that look like identifiers become ":id", empty ones go, "." and ".." are resolved as
// the service behind may, and all beyond the depth becomes "*". Identifiers are numbers, UUIDs, hexadecimal strings of eight or
// more characters with a digit, other strings of sixteen or more letters, digits, - and _ with at least two digits and at most
// one separator, dates, e-mail addresses, JSON Web Tokens, and anything longer than 48 bytes. Control characters and | become _.
// A depth below 1 is [DefaultDepth].
//
//	/users/4711/orders/2c5ea4c0-4067-11e9-8bad-9b1deb4d3b7d  ->  /users/:id/orders/:id
//
// Such names are a guess: a path with words in place of identifiers makes a resource for each word, up to the
// Collector's limit, and anybody can make up paths. With [Earn] only those do that the service answers with success.
func PathName(depth int) func(*http.Request) string {
	return func(r *http.Request) string {
		return Method(r.Method) + " " + string(appendPath(nil, r.URL.Path, depth))
	}
}

// Method is a method that HTTP defines, and OTHER for all others, which anybody can make up.
func Method(m string) string {
	switch m {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch,
		http.MethodDelete, http.MethodConnect, http.MethodOptions, http.MethodTrace:
		return m
	case "":
		return http.MethodGet
	default:
		return "OTHER"
	}
}

// AppendPathName appends the name of [PathName] for a method and a path, as logs have them.
func AppendPathName(to, method, path []byte, depth int) []byte {
	return appendPath(append(append(to, Method(string(method))...), ' '), path, depth)
}

// appendPath appends a path as [PathName] has it.
func appendPath[T ~string | ~[]byte](to []byte, p T, depth int) []byte {
	if depth < 1 {
		depth = DefaultDepth
	}
	begin, left := len(to), depth
	for i := 0; i < len(p); {
		end := i
		for end < len(p) && p[end] != '/' {
			end++
		}
		segment := p[i:end]
		i = end + 1
		switch string(segment) {
		case "", ".":
			continue
		case "..":
			return appendPath(to[:begin], path.Clean("/"+string(p)), depth)
		}
		if left--; left < 0 {
			continue // there may be ".."
		}
		to = append(to, '/')
		at := len(to)
		to = append(to, segment...)
		if makePrintable(to[at:]); identifies(to[at:]) {
			to = append(to[:at], ":id"...)
		}
	}
	switch {
	case left < 0:
		to = append(to, "/*"...)
	case len(to) == begin:
		to = append(to, '/')
	}
	return to
}

// makePrintable replaces control characters and |, so that names that differ in these alone are one name in every format.
func makePrintable(b []byte) {
	for i, c := range b {
		if c < ' ' || c == '|' || c == 0x7f {
			b[i] = '_'
		}
	}
}

// longestWord is the length from which a segment is no word.
const longestWord = 48

func identifies(s []byte) bool {
	if len(s) > longestWord || isDate(s) || isEmail(s) || isToken(s) {
		return true
	}
	var digits, hex, letters, dashes int
	for i := range len(s) {
		switch c := s[i]; {
		case '0' <= c && c <= '9':
			digits++
		case 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F':
			hex++
		case 'g' <= c && c <= 'z' || 'G' <= c && c <= 'Z':
			letters++
		case c == '-' || c == '_':
			dashes++
		default:
			return false
		}
	}
	switch {
	case digits == len(s):
		return true
	case letters == 0 && digits > 0 && dashes == 0:
		return len(s) >= 8 // a hash
	case letters == 0 && len(s) == 36 && dashes == 4:
		return s[8] == '-' && s[13] == '-' && s[18] == '-' && s[23] == '-' // a UUID
	default:
		return len(s) >= 16 && digits >= 2 && dashes <= 1 // a random token
	}
}

// date is a month, a day, or a day with a time, separated by one of -._ in either order.
var date = regexp.MustCompile(strings.ReplaceAll(
	`^(?:(?:\d{4}[-._]MM[-._]\d\d|MM[-._]\d\d[-._]\d{4}|\d\d[-._]MM[-._]\d{4})(?:[Tt][\d:.,+Zz-]+)?|(?:19|20)\d\d[-._]MM)$`,
	"MM", "(?:0[1-9]|1[0-2])"))

// isDate asks only where a separator may be one of a date's, as it is in few segments: a regular expression costs as much as all else.
func isDate(s []byte) bool {
	return len(s) >= len("2006-01") && (separates(s[2]) || separates(s[4])) && date.Match(s)
}

func separates(c byte) bool { return c == '-' || c == '.' || c == '_' }

func isEmail(s []byte) bool {
	i := bytes.LastIndexByte(s, '@')
	return i > 0 && bytes.Contains(bytes.Trim(s[i+1:], "."), []byte("."))
}

// isToken reports whether a segment looks like a JSON Web Token, whose first part is that of a JSON object.
func isToken(s []byte) bool {
	dots := bytes.Count(s, []byte("."))
	return bytes.HasPrefix(s, []byte("eyJ")) && (dots == 2 || dots == 4)
}
