package prom

import (
	"context"
	"sync"
	"time"
)

// scraper identifies the owner of a cursor: the name in the request, the client's host, and a hash of what it asks for. The
// names of its fields are in the file of positions.
type scraper struct {
	Cursor, Client string
	Filter         string `json:"Asks"`
}

// cursor is the position of one scraper. It advances when a response was written completely, and goes back if the next
// request shows that the response may not have arrived. If that response was large, the next ones are half as large, and they
// grow again once the seconds in doubt have arrived. Seconds that were written completely six times are given up, so a
// scraper that cannot take them still advances.
type cursor struct {
	scraper

	// Guarded by the mutex of cursors.
	host  string    // whose share it is of
	used  time.Time // the last request
	again bool      // there was more than one request

	turn chan struct{} // held while a request of this scraper is served: one at a time

	mu    sync.Mutex // guards what follows
	next  int64      // first second to send
	doubt int64      // seconds before this one were sent before, with unknown delivery
	tries int        // complete responses that began with next and have unknown delivery
	out   *response  // last response; nil if its delivery is decided
	limit int64      // most seconds in a response, since one did not arrive; 0 for none
	came  time.Time  // the last request that was served; zero if there was none
	saved int64      // position in the file, a Unix time; 0 if it was not saved
	count cursorCounts
}

// cursorCounts counts seconds.
type cursorCounts struct {
	delivered   int64 // acknowledged, unconfirmed or given up
	lost        int64 // dropped from the history before the scraper fetched them
	resent      int64 // sent again because their delivery is unknown
	unconfirmed int64 // those of delivered whose receipt could not be confirmed
}

// add returns the sum of the counts of two cursors.
func (t cursorCounts) add(o cursorCounts) cursorCounts {
	return cursorCounts{t.delivered + o.delivered, t.lost + o.lost, t.resent + o.resent, t.unconfirmed + o.unconfirmed}
}

func newCursor(who scraper, next int64, now time.Time) *cursor {
	return &cursor{scraper: who, turn: make(chan struct{}, 1), next: next, doubt: next, used: now}
}

// regular returns 1 if the cursor is in regular use, and else 0.
func (x *cursor) regular(now time.Time) int {
	if x.again && now.Sub(x.used) < regular {
		return 1
	}
	return 0
}

// acquire waits until no other request of the scraper is served, or until ctx ends.
func (x *cursor) acquire(ctx context.Context) error {
	select {
	case x.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (x *cursor) release() { <-x.turn }

// last returns the last response, nil if its delivery is decided.
func (x *cursor) last() *response {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.out
}

// settle decides about the delivery of the last response, before the next one is made.
func (x *cursor) settle(next *response) {
	x.mu.Lock()
	defer x.mu.Unlock()
	a := x.out
	if a == nil {
		return
	}
	x.out = nil
	size := a.to - a.from
	switch a.delivery(next) {
	case partial:
		x.shrink(a)
	case unknown:
		x.shrink(a)
		x.doubt = max(x.doubt, a.to)
		if x.tries++; x.tries < maxTries {
			x.next = a.from
			return
		}
		x.count.delivered += size
		x.count.unconfirmed += size
	case unconfirmed:
		x.count.unconfirmed += size
		fallthrough
	case acknowledged:
		x.count.delivered += size
		if x.limit > 0 && x.next >= x.doubt {
			x.limit = min(2*x.limit, maxLimit)
		}
	}
	if x.next > a.from {
		x.tries = 0
	}
}

// maxTries is how often seconds are written completely before they are given up.
const maxTries = 6

// shrink halves the responses that follow one that did not arrive, unless that was small. Holds mu.
func (x *cursor) shrink(a *response) {
	const small = 20_000 // samples, about 2 MB: size is not why it failed
	if a.samples > small {
		x.limit = max((a.to-a.from)/2, 1)
	}
}

// maxLimit is more seconds than any history has.
const maxLimit = 1 << 20

// begin returns the first second of the next response and the most seconds it may have: any number, or fewer after a response that
// did not arrive. They are never so few that seconds would leave the history, of that many seconds, before the scraper comes
// again. Seconds that have left it are counted as lost.
func (x *cursor) begin(now time.Time, open, history int64) (from, most int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if oldest := open - history; x.next < oldest {
		x.count.lost += oldest - x.next
		x.next = oldest
	}
	most = maxLimit
	if x.limit > 0 {
		interval := int64(now.Sub(x.came)/time.Second) + 1
		if x.came.IsZero() {
			interval = 0
		}
		due := open + interval + interval/10 - history // the next request may be a little later
		most = max(x.limit, due-x.next, 1)
	}
	x.came = now
	return x.next, most
}

// sent records a response with the seconds in [from, to). complete says that its body was written without an error.
func (x *cursor) sent(a *response, from, to int64, samples int, complete bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if from >= to {
		return
	}
	a.from, a.to, a.samples, a.complete = from, to, samples, complete
	x.out = a
	if complete {
		x.next = to
		x.count.resent += max(min(to, x.doubt)-from, 0)
	}
}

// addLost counts n more lost seconds; a negative n is 0.
func (x *cursor) addLost(n int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.count.lost += max(n, 0)
}

// state returns the position and the counts. The position is behind the last response, which the counts do not include yet.
func (x *cursor) state() (next int64, count cursorCounts) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.next, x.count
}
