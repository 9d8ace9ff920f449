package accesslog

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// A slot is the part of a Record that a field of a line sets. Servers have several variables for a slot; a format uses
// the best one.
type slot uint8

const (
	skip    slot = iota
	nothing      // the variable is literal text
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

// A variable is a variable of nginx or a directive of httpd in a format string.
type variable struct {
	name    string // as in the format string, for errors
	at      int    // column, from 1
	slot    slot
	rank    int           // of two for the same slot the higher one counts
	unit    time.Duration // of duration, and of a timestamp without a pattern
	pattern string        // of timestamp
	layout  *layout       // of timestamp; nil if the pattern has none
	stamp   Stamp         // of timestamp
	digits  digits        // syntax of a skipped field
	list    bool          // a list of nginx
	port    bool          // the field ends with a colon and a port

	before string // literal text in front of the value, as httpd writes it in front of %t
	until  string // literal text behind it
}

// digits is the syntax of a skipped field.
type digits uint8

const (
	// Similar formats differ in the fields that are numbers, so that numbers decide between them.
	anything digits = iota
	digitsOrDash
	onlyDigits
)

// String names the variable and what it means.
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

// A step reads one field of a line.
type step struct {
	variable
	beforeStatus bool // the field ends where a status follows
	missing, bad error
}

// compile makes a Format of a format string: $remote_addr [$time_local] "$request" $status $request_time becomes
//
//	prefix ""
//	client     up to " ["
//	timestamp  up to "] \"", in the layout of $time_local
//	request    up to "\" " and a status
//	status     three digits, and " "
//	duration   up to the end of the line
//
// A variable that no record needs is also a step, which finds its end. Steps behind the last needed one are not
// executed.
//
// In the format string each variable begins with a sign. The function read reads the variable that a text begins with,
// at a column, from 1. The languages of the servers differ in nothing else: a preset, a LogFormat of httpd, a
// log_format of nginx and a #Fields directive become the same steps. compile keeps the best variable of each slot, and
// refuses formats with ambiguous fields.
func compile(
	text string,
	sign byte,
	escaped bool,
	read func(rest string, column int) (variable, error),
) (*Format, error) {
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
	piped := prefix == "" && len(variables) > 0 && strings.HasPrefix(strings.TrimLeft(variables[0].until, " "), "|")
	dated := prefix == "" && len(variables) > 0 && variables[0].slot == timestamp && variables[0].pattern != ""
	// Fields without text between them are ambiguous, but some are one field together: $uri$is_args$args is a target,
	// seconds and their fraction are a time, and two skipped fields are one skipped field. An address and its port are
	// one field, because an IPv6 address contains the colon that separates them.
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
	f := &Format{name: text, prefix: []byte(prefix), escaped: escaped, stamp: stamp, dated: dated, piped: piped}
	f.noPrefix = fmt.Errorf("the line does not begin with %q", prefix)
	for i, t := range variables {
		end := i+1 == len(variables)
		if t.slot != skip {
			f.needed = i + 1
		}
		// Any other end would be a guess. The digits of a status determine its end without a literal.
		ambiguous := t.until == "" && t.slot != status || t.list && (t.until == ", " || t.until == " : ")
		if ambiguous && !end {
			problems = append(problems, fmt.Errorf("nothing tells where %s ends and %s begins, at column %d",
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

// newStep makes a step and its errors.
func newStep(t variable, beforeStatus bool) step {
	s := step{variable: t, beforeStatus: beforeStatus}
	switch {
	case t.until == "":
		s.missing = fmt.Errorf("something is behind %s, where the line should end", t)
	case s.beforeStatus:
		s.missing = fmt.Errorf("no %q and a status behind %s", t.until, t)
	default:
		s.missing = fmt.Errorf("no %q behind %s", t.until, t)
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

// unescape removes the backslashes of a format string in a server's configuration, up to the quote end, or to the end
// of the string if end is 0. It returns the rest behind the quote, and whether there is a quote.
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

// join joins adjacent variables that are one field together.
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
			a.layout, _ = newLayout(a.pattern, 0) // its error is a problem already
		}
		a.name += a.until + t.name
		a.until = t.until
		a.list, a.port = a.list || t.list, t.slot == port
	}
	return joined
}

// choose keeps the best variable of each slot, and skips the others. It returns the end of the call whose time the
// lines have.
func choose(variables []variable) (stamp Stamp, err error) {
	best := map[slot]*variable{}
	for i := range variables {
		t := &variables[i]
		if t.slot == timestamp {
			if t.layout == nil {
				continue // it is a problem already
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
	delete(best, tail) // those behind a target are joined to it
	delete(best, port) // the same
	for i := range variables {
		if t := &variables[i]; t.slot != more && t != best[t.slot] {
			t.slot = skip
		}
	}
	return stamp, err
}
