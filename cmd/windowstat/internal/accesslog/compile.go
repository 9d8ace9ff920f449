package accesslog

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// A slot is the part of a Record that a field of a line sets. Servers have several variables for some slots: nginx has
// $host, $http_host and $server_name for the host. A format uses the variable with the highest rank.
type slot uint8

const (
	skip    slot = iota // a field that no record needs
	nothing             // the variable is literal text
	client
	host
	port // of the client or the host before it
	method
	target
	tail // the query of the target
	request
	status
	duration
	more // another part of the duration
	timestamp
	grpcCode
	note   // text of a message in JSON
	logger // name of Caddy's logger
	slots
)

// A variable is a variable of nginx, a directive of httpd, or a field of a #Fields directive, at its position in a
// format string.
type variable struct {
	name    string // as in the format string, for errors
	at      int    // column, from 1
	slot    slot
	rank    int           // if several variables have the same slot, the highest rank wins
	unit    time.Duration // of duration, and of a timestamp without a pattern
	pattern string        // of timestamp
	layout  *layout       // of timestamp; nil if the pattern is invalid
	stamp   Stamp         // of timestamp
	digits  digits        // syntax of a skipped field
	list    bool          // a list of nginx
	port    bool          // the field ends with a colon and a port

	before string // literal text before the value; httpd writes a bracket before %t
	until  string // literal text after the value, up to the next variable
}

// digits is the syntax of a skipped field. A strict parser checks it, because similar formats differ only in the fields
// that must be numbers.
type digits uint8

const (
	// The syntaxes. The zero value allows any text.
	anything digits = iota
	digitsOrDash
	onlyDigits
)

// String returns the variable and its meaning, for errors: the status ($status).
func (v variable) String() string {
	kinds := [slots]string{
		client: "the client", host: "the host", method: "the method", target: "the target", request: "the request",
		status: "the status", grpcCode: "the gRPC status", duration: "the duration",
		more: "the duration", timestamp: "the time",
	}
	if kinds[v.slot] == "" {
		return v.name
	}
	return kinds[v.slot] + " (" + v.name + ")"
}

// A step reads one field of a line, up to the literal text after it. Its errors are made with the step, so a line that
// cannot be parsed costs no allocation.
type step struct {
	variable
	beforeStatus bool  // a status follows the field, so the field ends only at a literal with a status after it
	missing, bad error // the literal is missing; the value has the wrong syntax
}

// A readVariable reads the variable or directive that a text begins with. column is its position in the format string,
// from 1, for errors.
type readVariable func(rest string, column int) (variable, error)

// compile makes a Format from a format string: $remote_addr [$time_local] "$request" $status $request_time becomes
//
//	prefix ""
//	client     up to " ["
//	timestamp  up to "] \"", in the layout of $time_local
//	request    up to "\" " and a status
//	status     three digits, and " "
//	duration   up to the end of the line
//
// A variable that no record needs is also a step, because the parser has to find its end. The parser does not execute
// the steps after the last needed one.
//
// In the format string each variable begins with sign. The languages of the servers differ only in sign and in read: a
// preset, a LogFormat of httpd, a log_format of nginx and a #Fields directive become the same steps. escaped says
// whether the server writes a backslash before a quote in a value. compile keeps the best variable of each slot, and
// refuses formats with ambiguous fields.
func compile(text string, sign byte, escaped bool, read readVariable) (*Format, error) {
	// Split the text into variables and the literals between them, and collect all problems for one error.
	var variables []variable
	var problems []error
	prefix := ""
	literal := func(s string) {
		if n := len(variables); n > 0 {
			variables[n-1].until += s
		} else {
			prefix += s
		}
	}
	for i := 0; i < len(text); {
		if text[i] != sign {
			literal(text[i : i+1])
			i++
			continue
		}
		v, err := read(text[i:], i+1)
		if v.at = i + 1; v.slot == timestamp {
			if v.layout, err = newLayout(v.pattern, v.unit); err != nil {
				err = fmt.Errorf("%s, at column %d: %w", v.name, v.at, err)
			}
		}
		if err != nil {
			problems = append(problems, err)
		}
		i += len(v.name)
		literal(v.before)
		if v.slot != nothing {
			variables = append(variables, v)
		}
	}
	// The lines of some formats begin with text that otherwise marks a wrapping. The parser must not remove it.
	piped := prefix == "" && len(variables) > 0 && strings.HasPrefix(strings.TrimLeft(variables[0].until, " "), "|")
	dated := prefix == "" && len(variables) > 0 && variables[0].slot == timestamp && variables[0].pattern != ""
	// Fields without text between them are ambiguous, except for fields that belong together. $uri$is_args$args is a
	// target, seconds and their fraction are a time, and two skipped fields count as one. An address and its port are
	// read as one field, because an IPv6 address contains the colon that separates them.
	variables = join(variables, func(a, b variable) bool {
		return (a.slot == client || a.slot == host) && a.until == ":" && b.slot == port
	})
	variables = join(variables, func(a, b variable) bool { return a.slot == target && b.slot == tail && a.until == "" })
	variables = join(variables, func(a, b variable) bool { // a time that consists of several variables
		fraction := a.until+b.pattern == ".%3" || a.until+b.pattern == ".%6"
		return a.slot == timestamp && b.slot == timestamp && a.stamp == b.stamp &&
			(a.layout.part() || b.layout.part() || fraction)
	})
	stamp, err := choose(variables)
	if err != nil {
		problems = append(problems, err)
	}
	variables = join(variables, func(a, b variable) bool { return a.slot == skip && b.slot == skip && a.until == "" })
	// Compile the steps, and find the last one that a record needs and the last one that a line must have.
	f := &Format{name: text, prefix: []byte(prefix), escaped: escaped, stamp: stamp, dated: dated, piped: piped}
	f.noPrefix = fmt.Errorf("the line does not begin with %q", prefix)
	for i, t := range variables {
		end := i+1 == len(variables)
		if t.slot != skip {
			f.needed = i + 1
		}
		// A field ends at the literal after it, and any other end would be a guess. A status needs no literal, because
		// it has three digits. The literal after a list must differ from the separators of the list.
		ambiguous := t.until == "" && t.slot != status || t.list && (t.until == ", " || t.until == " : ")
		if ambiguous && !end {
			problems = append(problems, fmt.Errorf("%s and %s have no text between them, at column %d",
				t.name, variables[i+1].name, t.at+len(t.name)))
		}
		f.steps = append(f.steps, newStep(t, !end && variables[i+1].slot == status && t.slot != timestamp))
		if t.slot == timestamp || t.slot == status {
			f.required = i
		}
	}
	if len(problems) > 0 {
		return nil, fmt.Errorf("the log format %q cannot be read: %w", text, errors.Join(problems...))
	}
	return f, nil
}

// newStep makes the step of a variable, with its errors.
func newStep(t variable, beforeStatus bool) step {
	s := step{variable: t, beforeStatus: beforeStatus}
	switch {
	case t.until == "":
		s.missing = fmt.Errorf("the line has text after %s, where it should end", t)
	case s.beforeStatus:
		s.missing = fmt.Errorf("no %q and a status after %s", t.until, t)
	default:
		s.missing = fmt.Errorf("no %q after %s", t.until, t)
	}
	what := "a duration"
	switch t.slot {
	case status:
		what = "a status of three digits"
	case timestamp:
		what = s.layout.String()
	}
	s.bad = fmt.Errorf("%s is not %s", t, what)
	return s
}

// unescape removes the backslashes of a format string in a server's configuration. It stops at the quote end, or at the
// end of the string if end is 0. It returns the text, the rest of s after the quote, and whether s has the quote.
func unescape(s string, end byte) (text, rest string, closed bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == end {
			return b.String(), s[i+1:], true
		}
		if s[i] == '\\' && i+1 < len(s) {
			if i++; s[i] == 't' || s[i] == 'n' {
				b.WriteByte(map[byte]byte{'t': '\t', 'n': '\n'}[s[i]])
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String(), "", false
}

// join replaces each pair of adjacent variables for which together returns true with one variable, from left to right.
// The joined variable keeps the slot of the first one.
func join(variables []variable, together func(a, b variable) bool) []variable {
	var joined []variable
	for _, t := range variables {
		n := len(joined) - 1
		if n < 0 || !together(joined[n], t) {
			joined = append(joined, t)
			continue
		}
		a := &joined[n]
		if a.pattern != "" { // its fraction may follow
			a.pattern += strings.ReplaceAll(a.until, "%", "%%") + t.pattern
			a.layout, _ = newLayout(a.pattern, 0) // compile has already reported its error
		}
		a.name += a.until + t.name
		a.until = t.until
		a.list, a.port = a.list || t.list, t.slot == port
	}
	return joined
}

// choose keeps the best variable of each slot, and marks the others as skipped. The best timestamp determines the
// stamp: whether lines have the time at which a call started or ended. choose returns an error for each part that a
// format must have and this one lacks.
func choose(variables []variable) (stamp Stamp, err error) {
	best := map[slot]*variable{}
	for i := range variables {
		t := &variables[i]
		if t.slot == timestamp {
			if t.layout == nil {
				continue // compile has already reported its error
			}
			if lack := t.layout.lacks(); lack != "" {
				err = fmt.Errorf("its time has no %s", lack)
				continue
			}
		}
		if b := best[t.slot]; b == nil || t.rank > b.rank {
			best[t.slot] = t
		}
	}
	if at := best[timestamp]; at != nil {
		stamp, err = at.stamp, nil
	} else if err == nil {
		err = errors.New("it has no time ($time_local, $time_iso8601, $msec; %t)")
	}
	if best[status] == nil {
		err = errors.Join(err, errors.New("it has no status ($status; %>s)"))
	}
	if best[request] != nil { // it has the method and the target as the client sent them
		delete(best, method)
		delete(best, target)
	}
	delete(best, tail) // a query after a target is already part of the target
	delete(best, port) // a port after an address is already part of the address
	for i := range variables {
		if t := &variables[i]; t.slot != more && t != best[t.slot] {
			t.slot = skip
		}
	}
	return stamp, err
}
