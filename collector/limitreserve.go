package collector

import (
	"slices"

	"github.com/windowstat/windowstat/node"
)

// The entry of a call refers to the leaf, and to the reservation of the call, which is usually nil:
//
//	Entry.at ──→ leaf.own           { leaf, reserved: nil }       usual call
//	Entry.at ──→ reservation.place  { leaf, reserved ──┐ }        call with a reservation
//	                  ↑────────────────────────────────┘
//
// Entry.Exit finds the bit "reserved" in the note of the node.Call, and loads the place only if the bit is set.

// reservation holds the limiters of a call, to update them when the call ends. Most calls need none, because their leaf
// updates the limiter. Two kinds of calls have a reservation: calls that another resource records under limits, and
// calls that a dry run would have refused. The entry of the call points to the embedded place, so a reservation costs a
// single allocation.
type reservation struct {
	place
	list       []*limiter  // the first is the resource's; its leaf counts the call in flight
	array      [2]*limiter // usual storage of list
	entered    bool        // list[1:] count the call in flight
	dryRefused bool        // a dry run would have refused the call
}

// newReservation returns a reservation whose list has only the limiter of the recording resource.
func newReservation(l *leaf, own *limiter) *reservation {
	r := new(reservation)
	r.place = place{leaf: l, reserved: r}
	r.list = append(r.array[:0], own)
	return r
}

// reserve returns the limiters of a call, and its reservation if it needs one, else nil. If the name has its own
// resource by now, reserve returns errMoved. If Other records the call because there is no memory for a leaf of its
// resource o.home, the limiters include the limiter of o.home, if it has one.
func (m *limiter) reserve(o *options, l *leaf) ([]*limiter, *reservation, error) {
	if !l.resource.fallback.Load() {
		return m.self[:], nil, nil
	}
	var r *reservation
	var err error
	if o.home == nil || o.home.fallback.Load() { // otherwise the rules of home include those of patterns
		if r, err = m.c.overflowLimiters.reserve(CleanName(o.name), l, m); err != nil {
			return nil, nil, err
		}
	}
	if o.home != nil {
		if home := o.home.limiter.Load(); home != nil {
			if r == nil {
				r = newReservation(l, m)
			}
			r.list = slices.Insert(r.list, 1, home)
		}
	}
	if r == nil { // no other limiter has rules for the call
		return m.self[:], nil, nil
	}
	return r.list, r, nil
}

// enter counts the call as in flight. r may be nil. The limiters must be locked.
func (r *reservation) enter() {
	if r == nil {
		return
	}
	r.entered = true
	for _, m := range r.list[1:] { // the leaf counts the call for list[0]
		m.enterReserved(r.leaf.origin)
	}
}

// end ends a call in flight, and returns the number of completions that it counted.
func (r *reservation) end(call *node.Call, failed bool, code node.Code) (n int64) {
	if !r.dryRefused {
		if n = call.End(failed, code); n > 0 {
			r.release()
		}
		return n
	}
	// A dry run subtracts the refused calls from the calls in flight, so both numbers must change in one step.
	if lockAll(r.list) != nil {
		return 0 // the call has ended before
	}
	defer unlockAll(r.list)
	if n = call.End(failed, code); n > 0 {
		for i, m := range r.list {
			if m.dry.leave(r.leaf.origin); i > 0 {
				m.leave(r.leaf.origin)
			}
		}
	}
	return n
}

// release removes the call from its limiters: the call has ended, was cancelled while it waited, or was refused. r may
// be nil.
func (r *reservation) release() {
	switch {
	case r == nil:
		return
	case !r.entered: // refused: the limiter may exist only for this call
		for _, m := range r.list[1:] {
			m.c.overflowLimiters.dropUnused(m)
		}
		return
	}
	for _, m := range r.list[1:] {
		m.mu.Lock()
		m.leave(r.leaf.origin)
		m.mu.Unlock()
	}
}
