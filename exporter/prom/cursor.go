package prom

import (
	"sync"
	"time"

	"github.com/windowstat/windowstat/exporter/internal/delivery"
	"github.com/windowstat/windowstat/exporter/internal/seconds"
	"github.com/windowstat/windowstat/internal/fairshare"
)

// scraper identifies the owner of a cursor: the name in the request, the client's host, and a hash of the selection.
// The JSON names of the fields are in the file of positions.
type scraper struct {
	Cursor, Client string
	Filter         string `json:"Asks"`
}

// cursor is the position of one scraper. It advances after a response was written completely. The next request of the
// scraper decides about the delivery of that response; see [response]. Seconds that were not read are sent again. If
// the unread response was large, the next ones are half as large, and they grow again once the seconds in doubt have
// arrived. Seconds that were written completely six times are given up, so a scraper that cannot take them still
// advances. If the scraper closed the connection after the last of the six, it probably closes every connection after
// reading. A response whose connection it closes is then sent at most twice, until a response is acknowledged.
type cursor struct {
	scraper
	line    *seconds.Line
	serving sync.Mutex // held while a request of this scraper is served, so requests are served one at a time

	mu          *sync.Mutex // cursors.mu; guards the fields below
	entry       *fairshare.Holder[string, *cursor]
	lastRequest time.Time
	interval    time.Duration // between the last two requests
	steady      time.Duration // duration of frequent requests at a steady pace
	// Position.Next is after the pending response, which may still be sent again. The seconds that Position has in
	// doubt were sent before that response.
	delivery.Position
	tries int // complete responses with unknown delivery that began with Next
	// pending is the last response, or nil once its delivery is decided. It is written while both serving and mu are
	// held, so the holder of either may read it.
	pending      *response
	limit        int64     // maximum number of seconds in a response after a failed delivery; 0 means no limit
	lastServed   time.Time // last request that this process served, or zero
	target       string    // header Host of the last request: the scraper's name for this process
	alwaysCloses bool      // the scraper closes its connections, also after it has read a response
	count        cursorCounts
}

// cursorCounts counts the seconds of a cursor by outcome.
type cursorCounts struct {
	delivered   int64 // acknowledged, unconfirmed, or given up
	lost        int64 // left the history before the scraper fetched them
	resent      int64 // sent again because their delivery was unknown
	unconfirmed int64 // the part of delivered without proof of receipt
}

// resume decides about seconds that an earlier process sent with unknown delivery. If the scraper has the same name for
// this process and the earlier one, it stores samples of both under the same labels, and gets the seconds again.
// Otherwise the seconds are unconfirmed.
func (x *cursor) resume(target string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.lastServed.IsZero() && x.target != target && x.InDoubt() {
		x.giveUp(x.line.Count(x.Next, x.UnackedTo))
		x.Settle(x.UnackedTo)
	}
	x.target = target
}

// settle records the delivery of the last response, before the next one is rendered.
func (x *cursor) settle(v verdict) {
	x.mu.Lock()
	defer x.mu.Unlock()
	a := x.pending
	x.pending = nil
	switch v {
	case broken, left:
		x.shrink(a.samples, a.size)
		x.UnackedTo = max(x.UnackedTo, a.to)
		most := maxTries
		if v == left && x.alwaysCloses {
			most = 2
		}
		if x.tries++; x.tries < most {
			x.Next = a.from
			return
		}
		x.alwaysCloses = v == left
		x.giveUp(a.size)
	case unconfirmed:
		x.giveUp(a.size)
	case acknowledged:
		x.alwaysCloses = false
		x.count.delivered += a.size
		if x.limit > 0 && x.Next >= x.UnackedTo {
			x.limit = min(2*x.limit, maxLimit)
		}
	}
	x.tries = 0
}

// maxTries is the maximum number of complete responses that contain the same second. If the last of them is also in
// doubt, the second is given up.
const maxTries = 6

// giveUp counts n seconds as delivered without proof. mu must be held.
func (x *cursor) giveUp(n int64) {
	x.count.delivered += n
	x.count.unconfirmed += n
}

// retract counts n delivered seconds as unconfirmed, because the client closed the connection that was idle when settle
// decided.
func (x *cursor) retract(n int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.count.unconfirmed += n
}

// shrink limits the next responses to half the seconds of a response that did not arrive, unless that response was
// small. mu must be held.
func (x *cursor) shrink(samples int, size int64) {
	const small = 20_000 // samples, about 2 MB: size is not why it failed
	if samples > small {
		x.limit = max(size/2, 1)
	}
}

// maxLimit exceeds the seconds of any history.
const maxLimit = 1 << 20

// begin returns the range and the maximum number of seconds of the next response. The history has the seconds in
// [oldest, open); earlier ones count as lost. The number is limited after a response that did not arrive, but it is
// high enough that no second leaves the history before the next request.
func (x *cursor) begin(now time.Time, oldest, open int64) (from, to, most int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.count.lost += x.Expire(x.line, oldest)
	most = maxLimit
	if x.limit > 0 {
		interval := int64(now.Sub(x.lastServed)/time.Second) + 1
		due := x.line.After(oldest, interval+interval/10) // the next request may be a little later
		most = max(x.limit, x.line.Count(x.Next, due), 1)
	}
	x.lastServed = now
	return x.Next, x.End(x.line, open), most
}

// sent records that a response with the seconds in [from, to) was written. Lost is the number of these seconds that
// left the history while the response was rendered. If the response is incomplete, the scraper discards it, and the
// cursor does not advance. If a is nil, the connection cannot show the delivery, and the seconds are unconfirmed.
func (x *cursor) sent(a *response, from, to int64, samples int, complete bool, lost int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.count.lost += lost
	switch {
	case from >= to:
	case !complete:
		x.shrink(samples, x.line.Count(from, to))
	default:
		x.Next = to
		x.count.resent += x.line.Count(from, min(to, x.UnackedTo))
		if a == nil {
			x.giveUp(x.line.Count(from, to))
			return
		}
		a.cursor, a.from, a.to, a.samples = x, from, to, samples
		a.size = x.line.Count(from, to)
		x.pending = a
	}
}

// saved returns the position for the file, with the last response in doubt.
func (x *cursor) saved() savedCursor {
	x.mu.Lock()
	defer x.mu.Unlock()
	at := delivery.Position{Next: x.Next, UnackedTo: max(x.Next, x.UnackedTo)}
	if x.pending != nil {
		at.Next = x.pending.from
	}
	return savedCursor{x.scraper, x.target, at, x.lastRequest.Unix(), int64(x.steady / time.Second)}
}

// state returns the position and the counts. The position is after the last response, which the counts do not include
// yet.
func (x *cursor) state() (next int64, count cursorCounts) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.Next, x.count
}
