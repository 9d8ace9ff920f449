package collector

import (
	"slices"

	"github.com/windowstat/windowstat/node"
)

// An entry points to a place: the leaf of the call, and the call's reservation, which is usually nil. Each leaf and
// each reservation contains a place:
//
//	Entry.at ──→ leaf.own           { leaf, reserved: nil }       usual call
//	Entry.at ──→ reservation.place  { leaf, reserved ──┐ }        call with a reservation
//	                  ↑────────────────────────────────┘
//
// Entry.Exit reads the note of the node.Call, a number in the Entry itself. If the note is 0 and the call has no error,
// Exit does not load the place. The note is 0 if the call has neither a reservation nor a frame (the context of a
// call).

// reservation holds the limiters (the states of limits) of a call, to update them when the call ends. Most calls need
// no reservation: they have at most one limiter, and the leaf that records the call updates it. Two kinds of calls
// have a reservation: limited calls that are recorded for a resource with another name, and calls that a dry run would
// have refused. The reservation contains the place that the entry points to. It costs a single allocation, except if
// its list has more than two limiters.
type reservation struct {
	place
	list       []*limiter  // list[0] is the limiter of the recording resource; the leaf updates its counters
	array      [2]*limiter // storage of list while it has at most two elements
	entered    bool        // the limiters list[1:] count the call as in flight
	dryRefused bool        // a dry run would have refused the call
}

// newReservation returns a reservation for a call that the leaf l records. The list of the reservation has one element:
// own, the limiter of the recording resource.
func newReservation(l *leaf, own *limiter) *reservation {
	r := new(reservation)
	r.place = place{leaf: l, reserved: r}
	r.list = append(r.array[:0], own)
	return r
}

// reserve returns the limiters of a call that the leaf l records. It also returns the call's reservation, or nil if the
// call needs none. m is the limiter of the resource of l. If the name of the call has got its own resource, reserve
// returns errMoved.
//
// If o.home is not nil, the resource o.home should record the call, because it has the name of the call or is the
// fallback resource of the call. Other records the call instead, because there was no memory for a leaf of o.home. The
// limiters of the call then include the limiter of o.home.
func (m *limiter) reserve(o *options, l *leaf) ([]*limiter, *reservation, error) {
	if !l.resource.fallback.Load() {
		return m.self[:], nil, nil
	}
	var r *reservation
	var err error
	// If o.home is not a fallback resource, its own limiter has the rules of the patterns.
	if o.home == nil || o.home.fallback.Load() {
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
	if r == nil { // no limiter except m has rules for the call
		return m.self[:], nil, nil
	}
	return r.list, r, nil
}

// enter counts the call as in flight in its limiters. r may be nil. The limiters must be locked.
func (r *reservation) enter() {
	if r == nil {
		return
	}
	r.entered = true
	for _, m := range r.list[1:] { // the leaf counts the call in list[0]
		m.enterReserved(r.leaf.origin)
	}
}

// end ends a call in flight, and returns the number of completions that it has counted: 0 if the call had ended before.
func (r *reservation) end(call *node.Call, failed bool, code node.Code) (n int64) {
	if !r.dryRefused {
		if n = call.End(failed, code); n > 0 {
			r.release()
		}
		return n
	}
	// A dry run computes its calls in flight from two numbers: all calls in flight, and the calls in flight that dry
	// runs would have refused. Both numbers must change in one step, so hold the locks of the limiters while they
	// change.
	if lockAll(r.list) != nil {
		return 0 // a limiter is dropped only after all its calls have ended, so this call has ended already
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

// release undoes enter when the call has ended, or when it has stopped waiting without a pass. If the call was refused
// without a wait, enter was not called. In that case, release drops each limiter in list[1:] that belongs to the name
// of the call and has counted no pass. r may be nil.
func (r *reservation) release() {
	switch {
	case r == nil:
		return
	case !r.entered: // the call was refused; reserve may have created a limiter only for this call
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
