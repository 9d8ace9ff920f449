package top

import (
	"fmt"
	"time"
)

// target is one of the services that are watched.
type target struct {
	name   string
	reader *reader
	*board
	asking    bool      // a request is under way
	state     answer    // the last answer, without its samples
	away      time.Time // since when requests fail; zero if they succeed
	restarted time.Time // when a restart was seen
}

func newTarget(e *Endpoint) *target {
	return &target{name: e.Name(), reader: &reader{endpoint: e, past: every}, board: newBoard()}
}

// take takes an answer.
func (t *target) take(a answer, now time.Time) {
	switch {
	case a.err == nil:
		t.away = time.Time{}
		t.add(a.samples, a.newest)
	case t.away.IsZero():
		t.away = now
	}
	if a.restarted {
		t.restarted = now
	}
	a.samples = nil
	t.state = a
}

// patience is how many seconds a target that answers may be behind the others until they go on without it.
const patience = 3

// latest returns the last second that all targets have which answer, or if none does, the last one of any; and the last one of any
// that answers.
func latest(targets []*target) (all, any int64) {
	for _, t := range targets {
		if t.away.IsZero() {
			any = max(any, t.newest)
		} else {
			all = max(all, t.newest)
		}
	}
	if any == 0 {
		return all, 0
	}
	all = any
	for _, t := range targets {
		if t.newest > 0 && !t.late(any) {
			all = min(all, t.newest)
		}
	}
	return all, any
}

// late reports whether nobody waits for the target, with the last second of any.
func (t *target) late(last int64) bool { return !t.away.IsZero() || last-t.newest > patience }

// trouble returns what the user should know of the target: what is bad, and what else.
func (t *target) trouble(last int64, now time.Time) (bad, other string) {
	since := func(x time.Time) string { return now.Sub(x).Round(time.Second).String() }
	switch {
	case t.state.err != nil && t.newest == 0:
		bad = "NO SECONDS"
	case t.state.err != nil:
		bad = "AWAY " + since(t.away)
	case t.newest > 0 && t.late(last):
		bad = fmt.Sprintf("BEHIND %ds", last-t.newest)
	}
	if !t.restarted.IsZero() && now.Sub(t.restarted) < time.Minute {
		other = "RESTARTED " + since(t.restarted) + " ago"
	}
	if t.left > 0 {
		other += " TOO MANY RESOURCES: some are left out"
	}
	return bad, other
}
