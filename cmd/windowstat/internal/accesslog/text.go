package accesslog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"
)

// errEmpty is the error of a line without anything, which servers do not write but files have.
var errEmpty = errors.New("an empty line")

// match reads a line of a format strictly, to the end of the format, and returns what is behind that.
func (p *Parser) match(line []byte) (rest []byte, ok bool) {
	p.buf = p.buf[:0]
	rest, err := p.read(line, new(Record))
	return rest, err == nil
}

// are reports whether a field is as it should be.
func (d digits) are(field []byte) bool {
	return d == anything || len(field) > 0 && leadingDigits(field) == len(field) || d == digitsOrDash && string(field) == "-"
}

// fields reads the fields of a line that a record needs, or all of them if the parser is strict, and returns what is behind them.
func (p *Parser) fields(line []byte, r *Record) ([]byte, error) {
	f := p.format
	rest, ok := bytes.CutPrefix(line, f.prefix)
	if !ok {
		return nil, f.noPrefix
	}
	steps := f.steps
	if !p.strict {
		steps = steps[:f.needed]
	}
	for i := range steps {
		s := &steps[i]
		// All behind the status may be missing: servers that are killed, and disks that are full, cut lines off.
		if len(rest) == 0 && i > f.required && !p.strict {
			break
		}
		// A status is known by its digits; so a field before it may have its own separator in it.
		if s.slot == status {
			code, n := statusCode(rest)
			if n == 0 {
				return nil, s.bad
			}
			r.Status, rest = code, rest[n:]
			switch {
			case s.follows(rest) && (s.until != "" || i+1 < len(f.steps) || len(rest) == 0): // nothing may follow the last field
				rest = rest[len(s.until):]
			case len(rest) > 0 || i < f.required:
				return nil, s.missing
			}
			continue
		}
		end := s.end(rest, f.escaped)
		switch {
		case end >= 0:
		case s.slot == timestamp && len(rest) < s.layout.least:
			return nil, s.bad
		case i < f.required || p.strict:
			return nil, s.missing
		case i > f.required: // the line is cut off
			rest = nil
			continue
		default:
			end = len(rest)
		}
		if !p.keep(s, rest[:end], r) || p.strict && !s.digits.are(rest[:end]) {
			return nil, s.bad
		}
		rest = rest[min(end+len(s.until), len(rest)):]
	}
	r.Time, r.Coarse = p.clock.at, p.clock.coarse
	r.Target = p.unescaped(r.Target) // the server escapes what is not of ASCII, and quotes
	return rest, nil
}

// keep stores a field in the record.
func (p *Parser) keep(s *step, field []byte, r *Record) (ok bool) {
	switch s.slot {
	case timestamp:
		return p.clock.read(s.layout, field)
	case request:
		r.Method, r.Target = splitRequest(field)
	case method:
		if isMethod(field) && string(field) != "-" {
			r.Method = field
		}
	case target:
		r.Target = present(field)
	case host:
		r.Host = present(field)
	case client:
		r.Client = present(field)
	case duration, more: // of which there may be several
		d, has, ok := parseDuration(field, s.unit)
		r.HasDuration = r.HasDuration || has
		r.Duration += min(d, math.MaxInt64-r.Duration)
		return ok
	}
	return true
}

// present returns nil for an empty field and for "-".
func present(field []byte) []byte {
	if len(field) == 0 || string(field) == "-" {
		return nil
	}
	return field
}

// end returns the length of the field at the beginning of b, up to its literal; negative if the literal is missing. The literal
// behind a request is looked for with the status that follows it: so a request with quotes of its own, which some servers do not escape, ends
// where it should.
func (s *step) end(b []byte, escaped bool) int {
	if s.until == "" {
		if s.slot == skip && s.digits != anything {
			return max(leadingDigits(b), min(len(b), 1))
		}
		return len(b)
	}
	first, at := s.until[0], 0
	escaped = escaped && first == '"'
	if s.slot == timestamp {
		at = min(s.layout.least, len(b))
	}
	for ; ; at++ {
		i := bytes.IndexByte(b[at:], first)
		if i < 0 {
			return -1
		}
		at += i
		if !s.follows(b[at:]) || escaped && at > 0 && b[at-1] == '\\' && backslashes(b[:at])%2 == 1 {
			continue
		}
		if s.beforeStatus {
			if _, n := statusCode(b[at+len(s.until):]); n == 0 {
				continue
			}
		}
		return at
	}
}

// follows reports whether b begins with the literal behind the field. For such short literals a loop is quicker than a call
// that compares memory.
func (s *step) follows(b []byte) bool {
	if len(b) < len(s.until) {
		return false
	}
	for i := range len(s.until) {
		if b[i] != s.until[i] {
			return false
		}
	}
	return true
}

// backslashes returns how many backslashes b ends with.
func backslashes(b []byte) int {
	return len(b) - len(bytes.TrimRight(b, `\`))
}

// statusCode parses a status of three digits, or "-". The width is 0 if b does not begin with one.
func statusCode(b []byte) (code, width int) {
	if len(b) > 2 && (b[0] == '0' && b[1] == ' ' || string(b[:3]) == "-1 ") {
		return 0, bytes.IndexByte(b, ' ') // Envoy's and HAProxy's of calls without one
	}
	if len(b) >= 3 && isDigit(b[0]) {
		code = twoDigits(b[1:3])
		if code < 0 || len(b) > 3 && isDigit(b[3]) {
			return 0, 0
		}
		return int(b[0]-'0')*100 + code, 3
	}
	if len(b) > 0 && b[0] == '-' && (len(b) == 1 || bytes.IndexByte([]byte(" \t\",;|"), b[1]) >= 0) {
		return 0, 1
	}
	return 0, 0
}

// unescaped returns a string without its escapes. It is copied only if it has some.
func (p *Parser) unescaped(s []byte) []byte {
	if bytes.IndexByte(s, '\\') < 0 {
		return s
	}
	begin := len(p.buf)
	p.buf = appendUnescaped(p.buf, s)
	return p.buf[begin:len(p.buf):len(p.buf)]
}

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
	for _, n := range []int{len(`\ud83d\ude00`), len(`\ud83d`)} {
		var c string
		if n <= len(s) && json.Unmarshal(fmt.Appendf(nil, `"%s"`, s[:n]), &c) == nil && utf8.RuneCountInString(c) == 1 {
			return append(to, c...), n
		}
	}
	return append(to, '\\'), 1
}
