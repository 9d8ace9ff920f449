package accesslog

import "bytes"

// splitRequest returns method and target of a request line, or nothing unless it has three parts. Spaces within the target,
// which some clients send, are part of it.
func splitRequest(line []byte) (method, target []byte) {
	first, last := bytes.IndexByte(line, ' '), bytes.LastIndexByte(line, ' ')
	if first == last || !bytes.HasPrefix(line[last+1:], []byte("HTTP/")) {
		return nil, nil
	}
	method, target = line[:first], line[first+1:last]
	if !isMethod(method) || len(target) == 0 {
		return nil, nil
	}
	return method, target
}

// isMethod reports whether b is a token, as methods are.
func isMethod(b []byte) bool {
	for _, c := range b {
		if !tokenChars[c] {
			return false
		}
	}
	return len(b) > 0
}

// tokenChars are the characters of tokens in RFC 9110.
var tokenChars = func() (t [256]bool) {
	for c := '0'; c <= 'z'; c++ {
		t[c] = c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a'
	}
	for _, c := range "!#$%&'*+-.^_`|~" {
		t[c] = true
	}
	return t
}()
