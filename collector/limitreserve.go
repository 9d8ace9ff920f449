package collector

import (
	"slices"

	"github.com/windowstat/windowstat/node"
)

// An entry points to a place: the leaf of the call, and the call's reservation, which is usually nil. The leaf and the
// reservation each contain such a place:
//
//	Entry.at ──→ leaf.own           { leaf, reserved: nil }       usual call
//	Entry.at ──→ reservation.place  { leaf, reserved ──┐ }        call with a reservation
//	                  ↑────────────────────────────────┘
//
// Entry.Exit finds the bit "reserved" in the note of the node.Call. Only if the bit is set does it load the place.

// reservation holds the limiters of a call, to update them when the call ends. Most calls need none, because their leaf
// updates the limiter. Two kinds of calls have a reservation: calls that another resource records under limits, and
// calls that a dry run would have refused. The reservation contains the place that the entry points to, so it costs a
// single allocation.
type reservation struct {
	place
	list       []*limiter  // list[0] belongs to the recording resource, whose leaf counts the call in flight
	array      [2]*limiter // storage of list, unless it is longer
	entered    bool        // list[1:] count the call in flight
	dryRefused bool        // a dry run would have refused the call
}

// newReservation returns a reservation for a call of the leaf l. Its list has only own, the limiter of the recording
// resource.
func newReservation(l *leaf, own *limiter) *reservation {
	r := new(reservation)
	r.place = place{leaf: l, reserved: r}
	r.list = append(r.array[:0], own)
	return r
}

// reserve returns the limiters of a call that the leaf l records. It also returns the call's reservation, or nil if the
// call needs none. If the name of the call has its own resource by now, reserve returns errMoved. If the resource of
// the call's name has no memory for a leaf, o.home is that resource, and the result includes its limiter.
func (m *limiter) reserve(o *options, l *leaf) ([]*limiter, *reservation, error) {
	if !l.resource.fallback.Load() {
		return m.self[:], nil, nil
	}
	var r *reservation
	var err error
	if o.home == nil || o.home.fallback.Load() { // otherwise the limiter of home has the rules of the patterns
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
	if r == nil { // only m has rules for the call
		return m.self[:], nil, nil
	}
	return r.list, r, nil
}

// enter counts the call as in flight for its limiters. r may be nil. The limiters must be locked.
func (r *reservation) enter() {
	if r == nil {
		return
	}
	r.entered = true
	for _, m := range r.list[1:] { // the leaf counts the call for list[0]
		m.enterReserved(r.leaf.origin)
	}
}

// end ends a call in flight, and returns the number of completions that were counted.
func (r *reservation) end(call *node.Call, failed bool, code node.Code) (n int64) {
	if !r.dryRefused {
		if n = call.End(failed, code); n > 0 {
			r.release()
		}
		return n
	}
	// A dry run computes its calls in flight from two numbers: all calls in flight, and the calls that it would have
	// refused. Both must change in one step, so hold the locks.
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

// release undoes enter when the call has ended or stopped waiting. If the call was refused, release drops its limiters
// that no other call uses. r may be nil.
func (r *reservation) release() {
	switch {
	case r == nil:
		return
	case !r.entered: // the call was refused: its limiter may have been created for it, and have no other call
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
