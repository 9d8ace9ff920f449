// Package delivery keeps the positions of the consumers of sealed seconds: the cursors of scrapers, and pushes. A
// position separates settled, sent and unsent seconds. A sent second is in doubt until its result is known: the client
// may have received it. A state file of the metric log holds the position, so the next process continues at that
// position.
//
// Every second of a consumer goes through these states. A push counts its verdicts in samples, a cursor in seconds.
//
//	state     event                                      next state  counted
//	unsent    it is in a response or a request           sent
//	unsent    it left the history, and the log lacks it  settled     lost
//	unsent    an earlier process sent the same name      settled     lost
//	sent      the client read it, the server took it     settled     delivered
//	sent      the server refused it (push)               settled     refused
//	sent      the response or the request failed         sent        resent
//	sent      it failed too often, or nothing can        settled     delivered and unconfirmed (cursor),
//	          prove the receipt                                      unconfirmed (push)
//	sent      the process ends; the next one sends it    sent        resent
//	          under the same labels
//	sent      the process ends; the next one has other   settled     unconfirmed
//	          labels
//
// The proof of receipt differs. For a cursor it is the state of the connection when the scraper sends its next
// request, see the type response of package prom. For a push it is the status of the response, see the type verdict of
// package push. Both save the position with its sent seconds before the result is known: a push before it sends a
// request, a cursor when the response has ended.
//
// # Loading a position
//
// The first second of the new process is first. [Position.Restore] applies the first row that matches:
//
//	saved position                      restored position
//	negative, zero, more than a day     an error. A push renames its file and begins with the open second. A cursor
//	sent, or more than MaxAhead         begins with first, so no second comes twice.
//	after first
//	ends before first                   as saved: the log has the seconds up to first
//	ends after first: the clock was     [Next, first) as saved. The names from first to the end of the position exist
//	set back, or the last process was   twice, and the consumer has the values of the earlier process. These names are
//	killed less than a second ago       skipped and count as lost.
package delivery

import (
	"fmt"
	"time"

	"github.com/windowstat/windowstat/exporter/internal/seconds"
)

// Position records how far a consumer of sealed seconds has got. Seconds are Unix times, so a position outlives its
// process. The zero Position is invalid. A Position is not safe for concurrent use.
type Position struct {
	// Next is the first second to send. All seconds before it are settled.
	Next int64
	// UnackedTo ends the sent seconds: the consumer may have received the seconds in [Next, UnackedTo), and gets them
	// again. If UnackedTo is at most Next, no second is in doubt.
	UnackedTo int64 `json:"Doubt,omitempty"`

	reused int64 // seconds of this process before it have names that an earlier process sent
}

// Settle records that all seconds before the given one are settled: received, refused, or given up.
func (p *Position) Settle(before int64) { p.Next = max(p.Next, before) }

// InDoubt reports whether any seconds were sent with an unknown result.
func (p *Position) InDoubt() bool { return p.UnackedTo > p.Next }

// Expire settles the seconds before oldest, the oldest available second, and the seconds whose names an earlier process
// sent. It returns their number; the caller counts them as lost.
func (p *Position) Expire(line *seconds.Line, oldest int64) (lost int64) {
	lost = line.Count(p.Next, oldest)
	p.Settle(oldest)
	if p.Next >= line.First() {
		lost += line.Count(p.Next, p.reused)
		p.Settle(p.reused)
	}
	return lost
}

// End returns the end of a response or a request that begins with Next and could extend to open. It ends before seconds
// that Expire would skip.
func (p *Position) End(line *seconds.Line, open int64) int64 {
	if first := line.First(); p.Next < first && p.reused > first {
		return min(open, first)
	}
	return open
}

// Bounds of a valid position in a file, in seconds.
const (
	maxInDoubt = 24 * 60 * 60
	// MaxAhead is the maximum lead of a position over the process that reads it. A position leads if the clock was set
	// back.
	MaxAhead = 5 * 60
)

// Restore returns the position for a process that has read p from a file. The table of the package comment has the
// rules. Seconds before oldest are no longer available; they are skipped and not counted. If p is invalid,
// Restore returns the first second of the process and an error.
func (p Position) Restore(line *seconds.Line, oldest int64) (Position, error) {
	first := line.First()
	if err := p.Check(first); err != nil {
		return Position{Next: first}, err
	}
	end := max(p.Next, p.UnackedTo)
	restored := Position{Next: max(min(p.Next, first), oldest)}
	if p.InDoubt() {
		restored.UnackedTo = min(end, first)
	}
	if end > first {
		restored.reused = end
	}
	return restored, nil
}

// Check returns an error if the position is invalid. first is the first second of the process that read it.
func (p *Position) Check(first int64) error {
	switch {
	case p.Next <= 0 || p.UnackedTo < 0 || p.UnackedTo-p.Next > maxInDoubt:
		return fmt.Errorf("invalid position: next %d, in doubt before %d", p.Next, p.UnackedTo)
	case max(p.Next, p.UnackedTo) > first+MaxAhead:
		return fmt.Errorf("position in the future: %v", time.Unix(max(p.Next, p.UnackedTo), 0).UTC())
	}
	return nil
}
