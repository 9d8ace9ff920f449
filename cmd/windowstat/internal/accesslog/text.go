package accesslog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/windowstat/windowstat/collector"
)

// The errors of lines that are not calls in any format.
var (
	errEmpty     = errors.New("an empty line")
	errDirective = errors.New("a directive")
)

// match reads a line strictly: each field must be present and have its syntax. It returns the rest of the line.
func (p *Parser) match(line []byte) (rest []byte, ok bool) {
	p.buf = p.buf[:0]
	rest, err := p.read(line, new(Record))
	return rest, err == nil
}

// match reports whether a field has the syntax.
func (d digits) match(field []byte) bool {
	return d == anything || len(field) > 0 && leadingDigits(field) == len(field) ||
		d == digitsOrDash && string(field) == "-"
}

// valid reports whether a field has the syntax of its step. A strict parser also requires the port of an address.
func (s *step) valid(field []byte) bool {
	return s.digits.match(field) && (!s.port || hasPort(s.slot, field))
}

// fields reads the fields of a line that a record needs, or all of them if the parser is strict. It returns the rest of
// the line.
//
// The loop has one step for each field. It finds the end of the field, stores the field in r, and continues after the
// literal. A line may end early after its status.
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
		// Everything after the status may be missing, because a killed server or a full disk cuts lines off.
		if len(rest) == 0 && i > f.required && !p.strict {
			break
		}
		// A status has three digits and no separator within, so it is read before the search for its end.
		if s.slot == status {
			code, n := statusCode(rest)
			if n == 0 {
				return nil, s.bad
			}
			r.Status, rest = code, rest[n:]
			switch {
			// Nothing may follow the last field.
			case s.follows(rest) && (s.until != "" || i+1 < len(f.steps) || len(rest) == 0):
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
		if !p.keep(s, rest[:end], r) || p.strict && !s.valid(rest[:end]) {
			return nil, s.bad
		}
		rest = rest[min(end+len(s.until), len(rest)):]
	}
	r.Time, r.Coarse = p.clock.at, p.clock.coarse
	r.Target = p.unescaped(r.Target) // servers escape quotes, and characters that are not ASCII
	return rest, nil
}

// keep stores a field in the record, and undoes the syntax of its slot: the port of an address, or the parts of a
// request line. It returns false if the time or a duration is invalid.
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
		if r.Host = present(field); s.port && r.Host != nil {
			r.Host = hostName(r.Host)
		}
	case client:
		if r.Client = present(field); r.Client != nil {
			r.Client = clientAddress(r.Client, s.port)
		}
	case grpcCode:
		r.GRPC, r.HasGRPC = grpcStatus(field)
	case duration, more: // AWS splits the duration into three fields
		d, has, ok := parseDuration(field, s.unit)
		r.HasDuration = r.HasDuration || has
		r.Duration += min(d, math.MaxInt64-r.Duration)
		return ok
	}
	return true
}

// grpcStatus parses a gRPC status: its number, or its name, such as NotFound or NOT_FOUND. ok is false for a call that
// is not gRPC.
func grpcStatus(field []byte) (code uint32, ok bool) {
	if n := len(field); n > 0 && n <= 2 && leadingDigits(field) == n {
		number, _ := strconv.Atoi(string(field))
		return uint32(number), true
	}
	if present(field) == nil {
		return 0, false
	}
	return collector.GRPCCodeNumber(string(field))
}

// present returns nil for an empty field and for "-".
func present(field []byte) []byte {
	if len(field) == 0 || string(field) == "-" {
		return nil
	}
	return field
}

// end returns the length of the field at the beginning of b, up to the literal after the field; a negative number if
// the literal is missing.
//
// The literal before a status counts only if the status follows it. So a request ends at the right quote, even if the
// server does not escape the quotes within it. The literal after a list counts only if it is not part of the list.
// escaped says that the server escapes quotes: a quote after an odd number of backslashes is part of the field.
func (s *step) end(b []byte, escaped bool) int {
	if s.until == "" {
		if s.slot == skip && s.digits != anything {
			return max(leadingDigits(b), min(len(b), 1))
		}
		return len(b)
	}
	// Search for the first byte of the literal, and check the rest at each position.
	first, at := s.until[0], 0
	escaped = escaped && first == '"'
	// A time cannot end before its shortest form, and it may contain its separator.
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
		if s.list && withinList(b, at, s.until) {
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

// withinList reports whether the literal at b[at] is part of a list of nginx. The elements of a list are separated by
// ", " for attempts with another server, and by " : " for internal redirects. A list may end with " : ".
func withinList(b []byte, at int, literal string) bool {
	switch {
	case literal == ",":
		return at+1 < len(b) && b[at+1] == ' '
	case literal[0] != ' ' || strings.HasPrefix(literal, " : "):
		return false
	}
	return at > 0 && b[at-1] == ',' || at > 1 && b[at-1] == ':' && b[at-2] == ' ' ||
		bytes.HasPrefix(b[at:], []byte(" : "))
}

// follows reports whether b begins with the literal after the field. Literals are short, and for them a loop is faster
// than bytes.HasPrefix.
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

// backslashes returns the number of backslashes at the end of b.
func backslashes(b []byte) int {
	return len(b) - len(bytes.TrimRight(b, `\`))
}

// statusCode parses a status of three digits, or "-". It returns the status, and the width of its text: 0 if b does not
// begin with a status. A missing status is 0.
func statusCode(b []byte) (code, width int) {
	if len(b) > 2 && (b[0] == '0' && b[1] == ' ' || string(b[:3]) == "-1 ") {
		return 0, bytes.IndexByte(b, ' ') // Envoy (0) and HAProxy (-1) write these if a call has no status
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

// unescaped returns a string without its escapes. If s has escapes, unescaped appends the result to p.buf, where it
// stays until the next Parse; otherwise it returns s.
func (p *Parser) unescaped(s []byte) []byte {
	if bytes.IndexByte(s, '\\') < 0 {
		return s
	}
	begin := len(p.buf)
	p.buf = appendUnescaped(p.buf, s)
	return p.buf[begin:len(p.buf):len(p.buf)]
}

// appendUnescaped appends a string without its escapes. It undoes the escapes of JSON, and those of nginx and httpd,
// such as \x22. It keeps unknown escapes. Half of a surrogate pair becomes U+FFFD.
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

// appendEscaped appends the character of the escape at the beginning of s, and returns the length of the escape.
func appendEscaped(to, s []byte) (_ []byte, n int) {
	if len(s) > 1 && s[1] == '/' { // only JSON has this escape
		return append(to, '/'), 2
	}
	c, multibyte, rest, err := strconv.UnquoteChar(string(s), '"')
	switch {
	case err == nil && !multibyte:
		return append(to, byte(c)), len(s) - len(rest)
	case err == nil:
		return utf8.AppendRune(to, c), len(s) - len(rest)
	}
	// Package strconv does not support pairs of surrogates.
	for _, n := range []int{len(`\ud83d\ude00`), len(`\ud83d`)} {
		var c string
		if n <= len(s) && json.Unmarshal(fmt.Appendf(nil, `"%s"`, s[:n]), &c) == nil && utf8.RuneCountInString(c) == 1 {
			return append(to, c...), n
		}
	}
	return append(to, '\\'), 1
}
