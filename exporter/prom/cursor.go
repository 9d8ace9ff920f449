package prom

import (
	"sync"
	"time"

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
// the response was large, the next ones are half as large, and they grow again once the seconds in doubt have arrived.
// Seconds that were written completely six times are given up, so a scraper that cannot take them still advances. A
// scraper that closed the connection all those times closes connections after reading, until it keeps one; it gets each
// response at most twice.
type cursor struct {
	scraper
	line *seconds.Line
	turn sync.Mutex // held while a request of this scraper is served: one at a time

	mu     *sync.Mutex // that of cursors; guards what follows
	holder *fairshare.Holder[string, *cursor]
	used   time.Time     // the last request
	gap    time.Duration // between the last two requests
	steady time.Duration // for how long requests have come often, and at a steady pace
	// In doubt is what was sent before, with unknown delivery; the last response is behind it.
	seconds.Position
	tries int // complete responses that began with next and have unknown delivery
	// Last response; nil if its delivery is decided; set in turn, so that who has it needs no lock to look.
	out    *response
	limit  int64     // most seconds in a response, since one did not arrive; 0 for none
	came   time.Time // the last request that was served; zero if there was none in this process
	target string    // the header Host of the last request: what the scraper calls this process
	closes bool      // the scraper closes connections, whether it has read the response or not
	count  cursorCounts
}

// cursorCounts counts the seconds of a cursor by outcome.
type cursorCounts struct {
	delivered   int64 // acknowledged, unconfirmed, or given up
	lost        int64 // left the history before the scraper fetched them
	resent      int64 // sent again because their delivery was unknown
	unconfirmed int64 // the part of delivered without proof of receipt
}

// resume decides about seconds that an earlier process sent with unknown delivery. A scraper that uses the same name
// for this process has them under the same labels, and gets them again; otherwise they are unconfirmed.
func (x *cursor) resume(target string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.came.IsZero() && x.target != target && x.InDoubt() {
		x.giveUp(x.line.Count(x.Next, x.Doubt))
		x.Settle(x.Doubt)
	}
	x.target = target
}

// settle records the delivery of the last response, before the next one is rendered.
func (x *cursor) settle(d delivery) {
	x.mu.Lock()
	defer x.mu.Unlock()
	a := x.out
	x.out = nil
	switch d {
	case broken, left:
		x.shrink(a.samples, a.size)
		x.Doubt = max(x.Doubt, a.to)
		most := maxTries
		if d == left && x.closes {
			most = 2
		}
		if x.tries++; x.tries < most {
			x.Next = a.from
			return
		}
		x.closes = d == left
		x.giveUp(a.size)
	case unconfirmed:
		x.giveUp(a.size)
	case acknowledged:
		x.closes = false
		x.count.delivered += a.size
		if x.limit > 0 && x.Next >= x.Doubt {
			x.limit = min(2*x.limit, maxLimit)
		}
	}
	x.tries = 0
}

// maxTries is the number of complete responses with a second until it is given up.
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

// shrink halves the responses after one that did not arrive, unless that one was small. mu must be held.
func (x *cursor) shrink(samples int, size int64) {
	const small = 20_000 // samples, about 2 MB: size is not why it failed
	if samples > small {
		x.limit = max(size/2, 1)
	}
}

// maxLimit exceeds the seconds of any history.
const maxLimit = 1 << 20

// begin returns the first second of the next response and the maximum number of seconds in it. The number is limited
// after a response that did not arrive, but high enough that no second leaves the history, whose first second is
// oldest, before the next request. Seconds that have left it count as lost.
func (x *cursor) begin(now time.Time, oldest int64) (from, most int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.count.lost += x.Expire(x.line, oldest)
	most = maxLimit
	if x.limit > 0 {
		interval := int64(now.Sub(x.came)/time.Second) + 1
		due := x.line.After(oldest, interval+interval/10) // the next request may be a little later
		most = max(x.limit, x.line.Count(x.Next, due), 1)
	}
	x.came = now
	return x.Next, most
}

// sent records that the seconds in [from, to) were written, except lost ones, which left the history in the meantime.
// The scraper discards an incomplete response. If the connection cannot show the delivery, the seconds are unconfirmed.
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
		x.count.resent += x.line.Count(from, min(to, x.Doubt))
		if a == nil {
			x.giveUp(x.line.Count(from, to))
			return
		}
		a.cursor, a.from, a.to, a.samples = x, from, to, samples
		a.size = x.line.Count(from, to)
		x.out = a
	}
}

// saved returns the position for the file, with the last response in doubt.
func (x *cursor) saved() saved {
	x.mu.Lock()
	defer x.mu.Unlock()
	at := seconds.Position{Next: x.Next, Doubt: max(x.Next, x.Doubt)}
	if x.out != nil {
		at.Next = x.out.from
	}
	return saved{x.scraper, x.target, at, x.used.Unix(), int64(x.steady / time.Second)}
}

// state returns the position and the counts. The position is after the last response, which the counts do not include
// yet.
func (x *cursor) state() (next int64, count cursorCounts) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.Next, x.count
}
