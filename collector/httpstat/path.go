package httpstat

import (
	"bytes"
	"net/http"
	"path"
	"regexp"
	"strings"
)

// DefaultDepth is the default number of path segments in a name.
const DefaultDepth = 4

// PathName returns a name function for services whose routes are unknown. A name consists of the [Method] and the path,
// without the parts that identify a single object:
//
//   - A segment that looks like an identifier becomes ":id".
//   - Empty segments are removed. "." and ".." are resolved, because the service may resolve them, too.
//   - All segments beyond depth become one "*". If depth is below 1, it is [DefaultDepth].
//   - Control characters and | become _.
//
// For example:
//
//	/users/4711/orders/2c5ea4c0-4067-11e9-8bad-9b1deb4d3b7d  ->  /users/:id/orders/:id
//
// Identifiers are numbers, UUIDs, dates, e-mail addresses, JSON Web Tokens, hexadecimal strings of eight or more
// characters with a digit, and segments longer than 48 bytes. Other strings of letters, digits, - and _ are identifiers
// if they have sixteen or more characters, at least two digits, and at most one - or _.
//
// Such names are a guess. If words in the path identify objects, each word leads to another resource, up to
// [collector.Options].MaxResources. Clients can also invent paths. With [Earn], a name becomes a resource only if the
// service has responded to a request of this name with success.
func PathName(depth int) func(*http.Request) string {
	return func(r *http.Request) string {
		return Method(r.Method) + " " + string(appendPath(nil, r.URL.Path, depth))
	}
}

// Method returns m if net/http has a constant for it, and GET if m is empty. All other methods become OTHER, because
// clients can invent them.
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

// AppendPathName appends the name of a method and a path to buf. The function PathName(depth) would return the same
// name for a request. AppendPathName is for programs that read logs and have no [http.Request].
func AppendPathName(buf, method, path []byte, depth int) []byte {
	return appendPath(append(append(buf, Method(string(method))...), ' '), path, depth)
}

// appendPath converts the path p as described at [PathName], and appends the result to buf.
func appendPath[T ~string | ~[]byte](buf []byte, p T, depth int) []byte {
	if depth < 1 {
		depth = DefaultDepth
	}
	// free is the number of segments that may still be appended. It becomes negative if the path has further segments,
	// which the name omits.
	begin, free := len(buf), depth
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
			return appendPath(buf[:begin], path.Clean("/"+string(p)), depth)
		}
		if free--; free < 0 {
			continue // no break, because a later ".." may remove a segment
		}
		buf = append(buf, '/')
		at := len(buf)
		buf = append(buf, segment...)
		if makePrintable(buf[at:]); identifies(buf[at:]) {
			buf = append(buf[:at], ":id"...)
		}
	}
	switch {
	case free < 0:
		buf = append(buf, "/*"...)
	case len(buf) == begin:
		buf = append(buf, '/')
	}
	return buf
}

// makePrintable replaces control characters and | in b by _. Some output formats cannot represent these characters and
// would replace them. After makePrintable, a name is the same in all formats.
func makePrintable(b []byte) {
	for i, c := range b {
		if c < ' ' || c == '|' || c == 0x7f {
			b[i] = '_'
		}
	}
}

// longestWord is the maximum length of a segment that is not an identifier.
const longestWord = 48

// identifies reports whether the segment s looks like an identifier of a single object, see [PathName].
//
//	4711                                   digits
//	2c5ea4c0-4067-11e9-8bad-9b1deb4d3b7d   UUID
//	9fceb02d, not deadbeef                 eight or more hexadecimal characters, at least one digit
//	V1StGXR8Z5jdHi6B                       sixteen or more characters, at least two digits
//	2026-01-02, ann@example.com, eyJ….…    date, e-mail address, JSON Web Token
func identifies(s []byte) bool {
	if len(s) > longestWord || isDate(s) || isEmail(s) || isToken(s) {
		return true
	}
	// hex counts the letters a to f, and letters counts all other letters.
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

// date matches a month, a day, or a day with a time. A month is written year-month, with a year from 1900 to 2099. A
// day is written year-month-day, month-day-year or day-month-year. Instead of -, the separator can also be . or _.
var date = regexp.MustCompile(strings.ReplaceAll(
	`^(?:(?:\d{4}[-._]MM[-._]\d\d|MM[-._]\d\d[-._]\d{4}|\d\d[-._]MM[-._]\d{4})`+ // day
		`(?:[Tt][\d:.,+Zz-]+)?`+ // time
		`|(?:19|20)\d\d[-._]MM)$`, // month
	"MM",
	"(?:0[1-9]|1[0-2])",
))

// isDate reports whether a segment is a date or a month. The regular expression costs as much as all other checks
// together. isDate therefore first checks whether the third or the fifth byte is a separator. All dates have a
// separator at one of these positions, and few other segments do.
func isDate(s []byte) bool {
	return len(s) >= len("2006-01") && (isSeparator(s[2]) || isSeparator(s[4])) && date.Match(s)
}

func isSeparator(c byte) bool { return c == '-' || c == '.' || c == '_' }

func isEmail(s []byte) bool {
	i := bytes.LastIndexByte(s, '@')
	return i > 0 && bytes.Contains(bytes.Trim(s[i+1:], "."), []byte("."))
}

// isToken reports whether the segment s looks like a JSON Web Token. The first part of a JSON Web Token is a
// base64-encoded JSON object, and therefore starts with eyJ.
func isToken(s []byte) bool {
	dots := bytes.Count(s, []byte("."))
	return bytes.HasPrefix(s, []byte("eyJ")) && (dots == 2 || dots == 4)
}
