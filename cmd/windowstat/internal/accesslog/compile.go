package accesslog

import (
	"errors"
	"fmt"
	"slices"
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
	name   string // as in the format string, for errors
	at     int    // column, from 1
	slot   slot
	rank   int    // of two for the same slot the higher one counts
	unit   int    // of duration
	items  []item // of timestamp
	stamp  Stamp  // of timestamp
	digits digits // of what is skipped
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
	slot         slot
	name         string
	unit         int
	items        []item
	until        string // the literal behind it
	beforeStatus bool   // the status follows
	last         bool   // nothing may follow
	digits       digits
	missing, bad error
}

// compile makes a format of its tokens, unless there are problems already. It keeps the best variable of each slot, drops
// all behind the last one that counts, and refuses fields that cannot be told apart.
func compile(name, prefix string, tokens []token, escaped bool, problems []error) (*Format, error) {
	tokens, stamp, err := choose(joinTails(tokens))
	if err != nil {
		problems = append(problems, err)
	}
	index := func(s slot) int { return slices.IndexFunc(tokens, func(t token) bool { return t.slot == s }) }
	if index(status) < 0 {
		problems = append(problems, errors.New("it has no status ($status; %>s)"))
	}
	last := len(tokens)
	for last > 0 && tokens[last-1].slot == skip {
		last--
	}
	whole := last == len(tokens)
	f := &Format{name: name, prefix: prefix, escaped: escaped, stamp: stamp}
	f.noPrefix = fmt.Errorf("the line does not begin with %q", prefix)
	for _, t := range joinSkips(tokens[last:]) {
		f.tail = append(f.tail, newStep(t, false, false))
	}
	tokens = joinSkips(tokens[:last])
	var pieces []item
	for i, t := range tokens {
		end := i+1 == len(tokens)
		// The end of a time or a status is known without a literal.
		if t.until == "" && t.slot != timestamp && t.slot != status && !(end && whole) {
			next := "what follows"
			if !end {
				next = tokens[i+1].name
			}
			problems = append(problems, fmt.Errorf("nothing tells where %s ends and %s begins, at column %d",
				t.name, next, t.at+len(t.name)))
		}
		f.steps = append(f.steps, newStep(t, !end && tokens[i+1].slot == status, end && whole && t.until == ""))
		switch t.slot {
		case timestamp:
			if f.required = i; pieces == nil {
				f.timestamp = i
			}
			pieces = append(pieces, t.items...)
		case status:
			f.required = i
		case duration:
			f.duration = true
		}
	}
	f.composed = len(pieces) != 1
	if len(problems) > 0 {
		return nil, fmt.Errorf("the log format %q cannot be read: %w", name, errors.Join(problems...))
	}
	return f, nil
}

// newStep makes a step and its errors.
func newStep(t token, beforeStatus, last bool) step {
	s := step{slot: t.slot, name: t.name, unit: t.unit, items: t.items, until: t.until, beforeStatus: beforeStatus, last: last, digits: t.digits}
	switch {
	case t.until == "":
		s.missing = fmt.Errorf("something is behind %s, where the line should end", t.String())
	case s.beforeStatus:
		s.missing = fmt.Errorf("no %q and a status behind %s", t.until, t.String())
	default:
		s.missing = fmt.Errorf("no %q behind %s", t.until, t.String())
	}
	s.bad = fmt.Errorf("%s is not %s", t.String(), expected(t.variable))
	return s
}

// expected describes the values of a field.
func expected(v variable) string {
	switch v.slot {
	case status:
		return "a status of three digits"
	case duration, more:
		return "a duration"
	}
	if len(v.items) == 1 {
		switch v.items[0].kind {
		case itemCLF:
			return "a time like 17/May/2015:10:05:03 +0000"
		case itemISO:
			return "a time like 2015-05-17T10:05:03+00:00"
		case itemEpoch, itemCount:
			return "a number of seconds, or parts of them, since 1970"
		}
	}
	return "a time as the format has it"
}

// joinTails joins a target and the query directly behind it.
func joinTails(tokens []token) []token {
	var joined []token
	for _, t := range tokens {
		if n := len(joined); t.slot == tail {
			if n > 0 && joined[n-1].slot == target && joined[n-1].until == "" {
				joined[n-1].name += t.name
				joined[n-1].until = t.until
				continue
			}
			t.slot = skip
		}
		joined = append(joined, t)
	}
	return joined
}

// joinSkips joins adjacent fields that are skipped.
func joinSkips(tokens []token) []token {
	var joined []token
	for _, t := range tokens {
		if n := len(joined); n > 0 && t.slot == skip && joined[n-1].slot == skip && joined[n-1].until == "" {
			joined[n-1].name += t.name
			joined[n-1].until = t.until
			continue
		}
		joined = append(joined, t)
	}
	return joined
}

// choose keeps one variable for each slot, and those that make up one time, and skips the others. It returns which end of the
// call the time is.
func choose(tokens []token) ([]token, Stamp, error) {
	best := map[slot]int{}
	for i, t := range tokens {
		if b, ok := best[t.slot]; !ok || t.rank > tokens[b].rank {
			best[t.slot] = i
		}
	}
	_, line := best[request]
	stamp, single, err := chooseTime(tokens)
	for i, t := range tokens {
		switch t.slot {
		case timestamp:
			if single >= 0 && i != single || t.stamp != stamp {
				tokens[i].slot = skip
			}
		case method, target:
			if line || best[t.slot] != i {
				tokens[i].slot = skip
			}
		case more:
		default:
			if best[t.slot] != i {
				tokens[i].slot = skip
			}
		}
	}
	return tokens, stamp, err
}

// chooseTime returns which end of the call has a whole time in the line, and which variable has all of it including the
// fraction of the second; negative if the time has several parts.
func chooseTime(tokens []token) (stamp Stamp, single int, err error) {
	err = errors.New("it has no time ($time_local, $time_iso8601, $msec; %t)")
	for _, stamp := range []Stamp{Start, End} {
		var pieces []item
		single := -1
		for i, t := range tokens {
			if t.slot != timestamp || t.stamp != stamp {
				continue
			}
			pieces = append(pieces, t.items...)
			if t.rank > 0 && (single < 0 || t.rank > tokens[single].rank) {
				single = i
			}
		}
		if pieces == nil {
			continue
		}
		lack := lacks(pieces)
		if lack == "" {
			return stamp, single, nil
		}
		err = fmt.Errorf("its time has no %s", lack)
	}
	return Start, -1, err
}
