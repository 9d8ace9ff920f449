package accesslog

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// A slot is what a field of a line is in a Record.
type slot uint8

const (
	skip slot = iota
	client
	host
	method
	target
	tail // the query of the target
	request
	status
	duration
	more // another part of the duration
	timestamp
	slots
)

// A variable is a variable of nginx or a directive of httpd in a format string.
type variable struct {
	name    string // as in the format string, for errors
	at      int    // column, from 1
	slot    slot
	rank    int    // of two for the same slot the higher one counts
	unit    int    // of duration, and of a timestamp without a pattern
	pattern string // of timestamp
	stamp   Stamp  // of timestamp
	digits  digits // of what is skipped
}

// digits is whether a field consists of them.
type digits uint8

const (
	anything digits = iota
	digitsOrDash
	onlyDigits
)

// String names the variable and what it means.
func (v variable) String() string {
	kinds := [slots]string{
		client: "the client", host: "the host", method: "the method", target: "the target", request: "the request",
		status: "the status", duration: "the duration", more: "the duration", timestamp: "the time",
	}
	if kinds[v.slot] == "" {
		return v.name
	}
	return kinds[v.slot] + " (" + v.name + ")"
}

// A token is a variable and the literal text behind it.
type token struct {
	variable
	until string
}

// A step reads one field of a line.
type step struct {
	token
	layout       *layout // of timestamp
	beforeStatus bool    // it ends where the status follows
	last         bool    // nothing may follow
	missing, bad error
}

// compile makes a format of its tokens, unless there are problems already. It keeps the best variable of each slot, and refuses
// fields that cannot be told apart.
func compile(name, prefix string, tokens []token, escaped bool, problems []error) (*Format, error) {
	tokens = join(tokens, func(a, b token) bool { return a.slot == target && b.slot == tail && a.until == "" })
	tokens = join(tokens, func(a, b token) bool { // a time that several variables make up
		return a.slot == timestamp && b.slot == timestamp && a.stamp == b.stamp && (a.part() || b.part() || a.until+b.pattern == ".%3" || a.until+b.pattern == ".%6")
	})
	stamp, err := choose(tokens)
	if err != nil {
		problems = append(problems, err)
	}
	if !slices.ContainsFunc(tokens, func(t token) bool { return t.slot == status }) {
		problems = append(problems, errors.New("it has no status ($status; %>s)"))
	}
	tokens = join(tokens, func(a, b token) bool { return a.slot == skip && b.slot == skip && a.until == "" })
	f := &Format{name: name, prefix: []byte(prefix), escaped: escaped, stamp: stamp}
	f.noPrefix = fmt.Errorf("the line does not begin with %q", prefix)
	for i, t := range tokens {
		end := i+1 == len(tokens)
		if t.slot != skip {
			f.needed = i + 1
		}
		// The end of a status is known without a literal.
		if t.until == "" && t.slot != status && !end {
			problems = append(problems, fmt.Errorf("nothing tells where %s ends and %s begins, at column %d",
				t.name, tokens[i+1].name, t.at+len(t.name)))
		}
		f.steps = append(f.steps, newStep(t, !end && tokens[i+1].slot == status && t.slot != timestamp, end && t.until == ""))
		switch t.slot {
		case timestamp, status:
			f.required = i
		case duration:
			f.duration = true
		}
	}
	if len(problems) > 0 {
		return nil, fmt.Errorf("the log format %q cannot be read: %w", name, errors.Join(problems...))
	}
	return f, nil
}

// newStep makes a step and its errors.
func newStep(t token, beforeStatus, last bool) step {
	s := step{token: t, beforeStatus: beforeStatus, last: last}
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
		s.layout, _ = newLayout(t.pattern, t.unit) // it has been compiled before
		what = s.layout.String()
	}
	s.bad = fmt.Errorf("%s is not %s", t, what)
	return s
}

// part reports whether a timestamp is only a part of one.
func (v variable) part() bool {
	l, err := newLayout(v.pattern, v.unit)
	return err == nil && l.lacks() != ""
}

// join joins adjacent tokens that are together one field.
func join(tokens []token, together func(a, b token) bool) []token {
	var joined []token
	for _, t := range tokens {
		n := len(joined) - 1
		if n < 0 || !together(joined[n], t) {
			joined = append(joined, t)
			continue
		}
		a := &joined[n]
		if a.pattern != "" { // a number has its fraction behind it
			a.pattern += strings.ReplaceAll(a.until, "%", "%%") + t.pattern
		}
		a.name += a.until + t.name
		a.until = t.until
	}
	return joined
}

// choose keeps one variable for each slot, and skips the others. It returns which end of the call the time is.
func choose(tokens []token) (Stamp, error) {
	best := map[slot]int{}
	for i, t := range tokens {
		if b, ok := best[t.slot]; !ok || t.rank > tokens[b].rank {
			best[t.slot] = i
		}
	}
	_, line := best[request]
	at, err := chooseTime(tokens)
	stamp := Start
	for i := range tokens {
		t := &tokens[i]
		keep := best[t.slot] == i
		switch t.slot {
		case timestamp:
			if keep = i == at; keep {
				stamp = t.stamp
			}
		case method, target:
			keep = keep && !line
		case tail:
			keep = false
		case more:
			keep = true
		}
		if !keep {
			t.slot = skip
		}
	}
	return stamp, err
}

// chooseTime returns which variable is a whole time: of the beginnings of calls, or else of their ends, the one with the highest rank.
func chooseTime(tokens []token) (best int, err error) {
	best, err = -1, errors.New("it has no time ($time_local, $time_iso8601, $msec; %t)")
	for _, stamp := range []Stamp{Start, End} {
		for i, t := range tokens {
			if t.slot != timestamp || t.stamp != stamp {
				continue
			}
			if l, bad := newLayout(t.pattern, t.unit); bad != nil {
				continue // it is a problem already
			} else if lack := l.lacks(); lack != "" {
				err = fmt.Errorf("its time has no %s", lack)
			} else if best < 0 || t.rank > tokens[best].rank {
				best = i
			}
		}
		if best >= 0 {
			return best, nil
		}
	}
	return best, err
}
