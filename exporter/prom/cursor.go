package prom

import (
	"context"
	"sync"
	"time"
)

// reader tells whose position a cursor is: the name that the client gives, the host it asks from, and what it asks for.
type reader struct{ Cursor, Client, Asks string }

// cursor is how far one reader has read. The position moves on when an answer was written whole, and back if it turns
// out, with the reader's next request, that the answer did not arrive. A large one may have been too large for its reader:
// the next is half as large, and those after it grow again when what was in doubt has arrived. What was sent whole
// six times is given up, so that nothing stands in a reader's way for ever.
type cursor struct {
	reader

	turn chan struct{} // who has it serves the reader: one request at a time

	mu       sync.Mutex // guards what follows
	next     int64      // the first second that was not sent, or must be sent again
	doubtful int64      // seconds before this one were sent before, and not read
	tries    int        // how many answers that begin with next were written whole, and not read
	out      *answer    // the last one; nil if it is settled
	limit    int64      // most seconds in an answer since one did not arrive; 0 is none
	used     time.Time
	kept     int64 // the position as it was saved last, in Unix time; 0 if it was not
	count    tally
}

// tally counts seconds.
type tally struct {
	delivered   int64 // the reader has had them, or they were given up
	lost        int64 // dropped from the history before the reader came for them
	resent      int64 // sent again, because the connection broke when they had been written
	unconfirmed int64 // those of delivered for which there is no proof
}

// add is the tallies of two readers together.
func (t tally) add(o tally) tally {
	return tally{t.delivered + o.delivered, t.lost + o.lost, t.resent + o.resent, t.unconfirmed + o.unconfirmed}
}

func newCursor(who reader, next int64, now time.Time) *cursor {
	return &cursor{reader: who, turn: make(chan struct{}, 1), next: next, doubtful: next, used: now}
}

// wait waits for the reader's turn, until its request ends.
func (x *cursor) wait(ctx context.Context) error {
	select {
	case x.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (x *cursor) done() { <-x.turn }

// settle decides what became of the last answer, before the next one is made.
func (x *cursor) settle(next *answer) {
	x.mu.Lock()
	defer x.mu.Unlock()
	a := x.out
	if a == nil {
		return
	}
	x.out = nil
	size := a.to - a.from
	switch a.fate(next) {
	case torn:
		x.shrink(a)
	case lostTrack:
		x.shrink(a)
		x.doubtful = max(x.doubtful, a.to)
		if x.tries++; x.tries < maxTries {
			x.next = a.from
			return
		}
		x.count.delivered += size
		x.count.unconfirmed += size
	case assumed:
		x.count.unconfirmed += size
		fallthrough
	case read:
		x.count.delivered += size
		if x.limit > 0 && x.next >= x.doubtful {
			x.limit = min(2*x.limit, maxLimit)
		}
	}
	if x.next > a.from {
		x.tries = 0
	}
}

// maxTries is how often seconds are sent whole that are not read.
const maxTries = 6

// shrink makes the answers after one that did not arrive half as large, unless it was small. Holds mu.
func (x *cursor) shrink(a *answer) {
	const small = 20_000 // samples, a megabyte or two: nobody takes too long for that, or refuses it
	if a.samples > small {
		x.limit = max((a.to-a.from)/2, 1)
	}
}

// maxLimit is more seconds than there ever are.
const maxLimit = 1 << 20

// begin is where the next answer begins, when the oldest second there is has the index oldest, and how many seconds it
// has at most if a reader without trouble gets most. What was dropped before is lost for the reader.
func (x *cursor) begin(oldest, most int64) (from, limit int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.next < oldest {
		x.count.lost += oldest - x.next
		x.next = oldest
	}
	if x.limit > 0 {
		most = min(most, x.limit)
	}
	return x.next, max(most, 1)
}

// sent says that the answer was made, with the seconds from from to before to, and whether it was written whole.
func (x *cursor) sent(a *answer, from, to int64, samples int, whole bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if from >= to {
		return
	}
	a.from, a.to, a.samples, a.whole = from, to, samples, whole
	x.out = a
	if whole {
		x.next = to
		x.count.resent += max(min(to, x.doubtful)-from, 0)
	}
}

// lose counts seconds that were lost otherwise.
func (x *cursor) lose(n int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.count.lost += max(n, 0)
}

// state is the position and what was counted. The last answer is taken as read in the position, and not counted yet.
func (x *cursor) state() (next int64, count tally) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.next, x.count
}
